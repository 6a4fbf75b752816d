#include "Fusion/MergeVerdict.h"

#include "Cost/SecondsText.h"
#include "Support/WholeText.h"

namespace fusec {

Result<MergeVerdict> judgeMerge(const FusionContext &context, const SearchGraph &region,
                                const QuickCost &quick, AccurateCost &accurate,
                                const VertexSets &sets, const Partition &partition,
                                const std::vector<int> &a, const std::vector<int> &b) {
  const std::vector<int> all = united(a, b);
  if (std::string reason = whyNotOneKernel(context, region, all); !reason.empty())
    return MergeVerdict{false, false, std::move(reason)};
  MergeVerdict verdict;
  if (!staysAcyclic(region, sets, partition, all)) {
    verdict.reason = "another kernel needs the one and makes what the other one needs";
    return verdict;
  }
  const int64_t refusals = accurate.refusals();
  FUSEC_TRY(const double one, accurate.kernelSeconds(all));
  FUSEC_TRY(const double first, accurate.kernelSeconds(a));
  FUSEC_TRY(const double second, accurate.kernelSeconds(b));
  const double two = first + second;
  FUSEC_TRY(const auto bytes, accurate.movesMore(all));
  if (accurate.refusals() > refusals || (one < two && quick.kernelSeconds(all) == kNever)) {
    verdict.reason = "the search had no evaluation left for both as one kernel";
  } else if (bytes) {
    verdict.reason = "one kernel would move " + wholeText(bytes->first) +
                     " bytes, their equations apart " + wholeText(bytes->second);
  } else if (one == kNever) {
    verdict.reason = "no schedule runs both as one kernel";
  } else {
    verdict.reason =
        "one kernel would take " + cost::secondsText(one) + ", two take " + cost::secondsText(two);
    verdict.isFaster = one < two;
  }
  return verdict;
}

} // namespace fusec
