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
                     [&](const Statement &s) { return bound.readsValue(*s.leaf, edge.tensor); });
    if (edge.level == MemLevel::Register || !made || reader == bound.statements().end() ||
        bound.equation(maker).kind != EquationKind::Reduction || bound.has(LeafKind::Store, maker))
      continue;
    const Loops &loops = reader->loops;
    const size_t common = commonLoops(loops, *made);
    TreeNode store;
    store.isLoop = false;
    store.leaf = LeafKind::Store;
    store.target = maker;
    for (size_t i = loops.size(); i-- > common;) {
      TreeNode loop{true, loops[i]->loop, loops[i]->axis, loops[i]->step, {}};
      loop.children.push_back(std::move(store));
      store = std::move(loop);
    }
    std::vector<TreeNode> *siblings = &schedule.tree;
    for (size_t i = 0; i < common; ++i)
      siblings = &(*siblings)[static_cast<size_t>(loops[i] - siblings->data())].children;
    const TreeNode *first = common < loops.size() ? loops[common] : reader->leaf;
    siblings->insert(siblings->begin() + (first - siblings->data()), std::move(store));
  }
  return schedule;
}

int64_t ScheduleView::tile(AxisId axis, std::span<const TreeNode *const> loops) const {
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
