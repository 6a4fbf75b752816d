#include "Tiling/lower/Lower.h"

#include "Support/Diag.h"
#include "Tiling/lower/PhaseLowering.h"
#include "Tiling/schedule/Message.h"
#include "Tiling/schedule/PersistentReads.h"

#include <algorithm>

namespace fusec {

Result<LoweredKernel> lowerSchedule(const ExprProgram &pattern, const Schedule &schedule,
                                    const std::vector<Symbol> &symbols) {
  const tiling::ScheduledProgram program(pattern, schedule.via);
  const Schedule stored = lowering::withStores(schedule, program);
  const tiling::BoundSchedule bound(stored, program);
  lowering::LoweringParts parts(bound, symbols);
  lowering::PhaseLowering phases(parts);
  if (parts.writer.problems.empty())
    phases.lowerAll();
  Diagnostics errors;
  for (const std::string &text : parts.writer.problems)
    errors.push_back({Diag::BadIr, "schedule " + schedule.name, text});
  if (!errors.empty())
    return errors;
  return std::move(parts.writer.out);
}

Shape packedShape(const Schedule &schedule, const Operand &operand) {
  Shape shape;
  for (const LayoutDigit &digit : operand.digits)
    shape.push_back(digit.modulus != 0
                        ? DimExpr(digit.modulus)
                        : ceilDiv(schedule.axes[digit.axis].extent, DimExpr(digit.divide)));
  return shape;
}

RewriteLimits rewriteLimits(const Target &target) {
  if (!target.keepsReads)
    return {};
  return {target.vectorRegisters / 2, target.sharedBytesPerBlock};
}

std::set<KeptRead> keptEverywhere(const NumberedReads &numbered) {
  std::map<int64_t, int> places;
  for (const KeptRead &kept : numbered.kept)
    ++places[kept.read];
  std::set<KeptRead> out;
  for (const KeptRead &kept : numbered.kept)
    if (places[kept.read] == 1 && numbered.left.count(kept.read) == 0 &&
        (!numbered.wanted || numbered.wanted->count(kept) != 0))
      out.insert(kept);
  return out;
}

static int64_t numberOf(const LoweredKernel &lowered, const ReadPlace &place) {
  const auto it = std::find(lowered.reads.begin(), lowered.reads.end(), place);
  return it == lowered.reads.end() ? 0 : it - lowered.reads.begin() + 1;
}

Result<LoweredKernel> lowerAndRewrite(const ExprProgram &pattern, const Schedule &schedule,
                                      const std::vector<Symbol> &symbols, const Target &target) {
  FUSEC_TRY(LoweredKernel lowered, lowerSchedule(pattern, schedule, symbols));
  NumberedReads numbered;
  numbered.wanted.emplace();
  for (const ReusedRead &kept : schedule.kept)
    if (!tiling::isPersistent(schedule, kept))
      numbered.wanted->insert({numberOf(lowered, kept.read),
                               kept.from ? numberOf(lowered, *kept.from) : 0, kept.level});
  RewriteLimits limits = rewriteLimits(target);
  limits.numbered = &numbered;
  lowered.rules = rewrite(lowered.kernel, limits);
  const std::set<KeptRead> done = keptEverywhere(numbered);
  Diagnostics errors;
  for (const ReusedRead &kept : schedule.kept)
    if (!tiling::isPersistent(schedule, kept) &&
        done.count({numberOf(lowered, kept.read), kept.from ? numberOf(lowered, *kept.from) : 0,
                    kept.level}) == 0)
      errors.push_back({Diag::BadIr, "schedule " + schedule.name,
                        print(kept) + " is of a value that its threads have had and that " +
                            std::string(name(kept.level)) +
                            " memory has room for, given another one or no room; without this line "
                            "they read it"});
  if (!errors.empty())
    return errors;
  return lowered;
}

} // namespace fusec
