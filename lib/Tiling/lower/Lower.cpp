#include "Tiling/lower/Lower.h"

#include "Support/Diag.h"
#include "Tiling/lower/PhaseLowering.h"
#include "Tiling/schedule/PersistentReads.h"

#include <algorithm>

namespace fusec {

using namespace tiling;

/// The schedule with the stores that edge levels ask for: an edge above registers needs the values in memory before the
/// first statement that reads them. If the tree has no Store of the reduction that makes them, puts one in front of
/// that statement, under loops like its own.
static Schedule withStores(Schedule schedule, const ScheduledProgram &program) {
  for (const EdgeLevel &edge : schedule.edges) {
    const BoundSchedule bound(schedule, program);
    const int maker = bound.program.producer(edge.tensor);
    const Loops *made = maker < 0 ? nullptr : bound.loopsOf(maker);
    const auto reader = std::ranges::find_if(bound.statements(), [&](const Statement &s) {
      return readsValue(bound, *s.leaf, edge.tensor);
    });
    if (edge.level == MemLevel::Register || !made || reader == bound.statements().end() ||
        !bound.facts(maker).reduces() || bound.has(LeafKind::Store, maker))
      continue;
    const Loops &loops = reader->loops;
    const size_t common = commonLoops(loops, *made);
    TreeNode store = LeafNode{LeafKind::Store, maker};
    for (size_t i = loops.size(); i-- > common;)
      store = LoopNode{loops[i]->kind, loops[i]->axis, loops[i]->step, {std::move(store)}};
    std::vector<TreeNode> *siblings = &schedule.tree;
    auto towardsReader = [&](size_t depth) {
      return std::find_if(siblings->begin(), siblings->end(), [&](const TreeNode &node) {
        return depth < loops.size() ? node.loop() == loops[depth] : node.leaf() == reader->leaf;
      });
    };
    for (size_t i = 0; i < common; ++i)
      siblings = &towardsReader(i)->loop()->children;
    siblings->insert(towardsReader(common), std::move(store));
  }
  return schedule;
}

Result<LoweredKernel> lowerSchedule(const ExprProgram &pattern, const Schedule &schedule,
                                    const std::vector<Symbol> &symbols) {
  const ScheduledProgram program(pattern, schedule.via);
  const Schedule stored = withStores(schedule, program);
  const BoundSchedule bound(stored, program);
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

/// What the schedule says of a read, by the numbers that reads have in the kernel.
static KeptRead keptRead(const LoweredKernel &lowered, const ReusedRead &kept) {
  auto numberOf = [&](const ReadPlace &place) -> int64_t {
    const auto it = std::ranges::find(lowered.reads, place);
    return it == lowered.reads.end() ? 0 : it - lowered.reads.begin() + 1;
  };
  return {numberOf(kept.read), kept.from ? numberOf(*kept.from) : 0, kept.level};
}

Result<LoweredKernel> lowerAndRewrite(const ExprProgram &pattern, const Schedule &schedule,
                                      const std::vector<Symbol> &symbols, const Target &target) {
  FUSEC_TRY(LoweredKernel lowered, lowerSchedule(pattern, schedule, symbols));
  NumberedReads numbered;
  numbered.wanted.emplace();
  const std::vector<ReusedRead> within = withoutPersistentReads(schedule).kept;
  for (const ReusedRead &kept : within)
    numbered.wanted->insert(keptRead(lowered, kept));
  RewriteLimits limits = rewriteLimits(target);
  limits.numbered = &numbered;
  lowered.rules = rewrite(lowered.kernel, limits);
  const std::set<KeptRead> done = keptEverywhere(numbered);
  Diagnostics errors;
  for (const ReusedRead &kept : within)
    if (done.count(keptRead(lowered, kept)) == 0)
      errors.push_back({Diag::BadIr, "schedule " + schedule.name,
                        print(kept) + " is of a value that its threads have had and that " +
                            std::string(name(kept.level)) + " memory has room for, given " +
                            (numbered.lackedRoom ? "no room" : "another one") +
                            "; without this line they read it"});
  if (!errors.empty())
    return errors;
  return lowered;
}

} // namespace fusec
