#include "Fusion/PairVerdict.h"

#include "Cost/SecondsText.h"
#include "Support/WholeText.h"

namespace fusec {

Result<PairVerdict> judgePair(const FusionContext &context, const Region &region,
                              const Score &score, Judge &judge, const VertexSets &sets,
                              const Partition &partition, const std::vector<int> &a,
                              const std::vector<int> &b) {
  const std::vector<int> all = united(a, b);
  if (std::string reason = whyNotOneKernel(context, region, all); !reason.empty())
    return PairVerdict{false, false, std::move(reason)};
  PairVerdict verdict;
  if (!staysAcyclic(region, sets, partition, all)) {
    verdict.told = "another kernel needs the one and makes what the other one needs";
    return verdict;
  }
  const int64_t refusals = judge.refusals();
  FUSEC_TRY(const double one, judge.kernelSeconds(all));
  FUSEC_TRY(const double first, judge.kernelSeconds(a));
  FUSEC_TRY(const double second, judge.kernelSeconds(b));
  const double two = first + second;
  FUSEC_TRY(const auto bytes, judge.movesMore(all));
  if (judge.refusals() > refusals || (one < two && score.kernelSeconds(all) == kNever)) {
    verdict.told = "the search had no evaluation left for both as one kernel";
  } else if (bytes) {
    verdict.told = "one kernel would move " + wholeText(bytes->first) +
                   " bytes, their equations apart " + wholeText(bytes->second);
  } else if (one == kNever) {
    verdict.told = "no schedule runs both as one kernel";
  } else {
    verdict.told =
        "one kernel would take " + cost::secondsText(one) + ", two take " + cost::secondsText(two);
    verdict.isFaster = one < two;
  }
  return verdict;
}

} // namespace fusec
