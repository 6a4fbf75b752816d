#include "Tiling/lower/ScheduleView.h"

#include "Tiling/schedule/GridScan.h"

#include <algorithm>

namespace fusec::lowering {

using namespace tiling;

Schedule withStores(Schedule schedule, const ScheduledProgram &program) {
  for (const EdgeLevel &edge : schedule.edges) {
    const BoundSchedule bound(schedule, program);
    const int maker = bound.producer(edge.tensor);
    const Loops *made = maker < 0 ? nullptr : bound.loopsOf(maker);
    const auto reader =
        std::find_if(bound.statements().begin(), bound.statements().end(),
                     [&](const Statement &s) { return readsValue(bound, *s.leaf, edge.tensor); });
    if (edge.level == MemLevel::Register || !made || reader == bound.statements().end() ||
        bound.equation(maker).kind != EquationKind::Reduction || bound.has(LeafKind::Store, maker))
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

int64_t ScheduleView::tile(AxisId axis, std::span<const LoopNode *const> loops) const {
  const DimExpr tile = bound.tile(axis, loops);
  return tile.isConst() ? tile.constValue() : 0;
}

bool ScheduleView::outlivesStep(TensorId tensor) const {
  return scan && tiling::outlivesStep(*scan, tensor, inGridScan);
}

bool ScheduleView::isStoredTwice(int number) const {
  const TensorId value = equation(number).outputs[0];
  if (equation(number).kind != EquationKind::Map || !outlivesStep(value))
    return false;
  return bound.level(value) == MemLevel::Shared ||
         (inGridScan && isStacked(*scan, value) && isNextState(*scan, value));
}

} // namespace fusec::lowering
