// The rule of a scatter's loops: what goes to one element goes there in the order of its points, so that no two threads
// meet at it and every run gives the same bits.
//
//   scatter s [i:n, k:m, j:4] add base %b      block j:32 { seq i:1 { seq k:1 { lane j:1 { compute e0 } } } }
//     %out[%ids[i, k], j] = %x[i, k, j]
//
// Points that differ in j never meet and run side by side; those along i and k may, and run one after the other, with k
// the faster.
#include "Tiling/verify/Rules.h"

#include "Tiling/verify/RuleChecker.h"

#include <algorithm>

namespace fusec::tiling {

bool hasOwnElements(const Equation &scatter, int position) {
  return std::ranges::any_of(scatter.scatterIndex, [&](NodeId id) {
    return scatter.body[id].op == ScalarOp::Axis && scatter.body[id].index == position;
  });
}

std::vector<std::string> scatterProblems(const BoundSchedule &bound) {
  const Schedule &schedule = bound.schedule;
  RuleChecker broken(bound);
  for (const Statement &place : bound.statements()) {
    if (place.leaf->kind != LeafKind::Compute)
      continue;
    const Equation &e = bound.equation(place.leaf->equation);
    if (bound.facts(place.leaf->equation).form != EquationForm::Scatter)
      continue;
    std::vector<int> order; // axes of points that may meet, outermost first
    AxisId last;
    for (const LoopNode *loop : place.loops) {
      const AxisUse *use = bound.use(loop->axis, place.leaf->equation);
      if (!use || std::ranges::all_of(use->positions, [&](int position) {
            return e.axes[position].extent.isConst(1) || hasOwnElements(e, position);
          }))
        continue;
      broken.require(
          loop->kind == LoopKind::Seq || loop->kind == LoopKind::Unroll ||
              (loop->kind == LoopKind::Unit && schedule.units == 1),
          "points of e", place.leaf->equation,
          " that may go to one element go there in turn, in seq and unroll loops, given ", *loop);
      if (loop->axis != last)
        order.insert(order.end(), use->positions.begin(), use->positions.end());
      last = loop->axis;
    }
    broken.require(std::ranges::is_sorted(order, std::less_equal<>()), "points of e",
                   place.leaf->equation,
                   " that may go to one element go there in the order of its axes, given ", place);
  }
  return broken.list();
}

} // namespace fusec::tiling
