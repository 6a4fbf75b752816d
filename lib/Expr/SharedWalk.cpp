#include "Expr/SharedWalk.h"

#include "Expr/Rows.h"
#include "Expr/transforms/Profile.h"
#include "Expr/transforms/Walk.h"

#include <algorithm>

namespace fusec {

namespace {

bool readsAny(const Equation &e, const std::vector<TensorId> &tensors) {
  for (NodeId id : e.body.reachable(bodyRoots(e)))
    if (isRead(e.body[id]) && std::count(tensors.begin(), tensors.end(), e.body[id].index) != 0)
      return true;
  return false;
}

/// A reduction of rows, of which the contraction makes several values each, whose result the map reads in its own row
/// alone.
bool isOfRows(const Equation &row, const Equation &contraction, const Equation &finish) {
  bool several = false;
  for (int d = 0; d < contraction.numSpatial; ++d)
    several = several || (!contraction.axes[d].extent.isConst(1) &&
                          (d >= row.numSpatial || row.axes[d].extent.isConst(1)));
  if (!several)
    return false;
  if (row.kind != EquationKind::Reduction || isTupleMonoid(row.monoid) || !row.states.empty() ||
      isContraction(row) || row.numSpatial > contraction.numSpatial || !sameTerms(row, contraction))
    return false;
  for (int d = 0; d < row.numSpatial; ++d)
    if (!row.axes[d].extent.isConst(1) && row.axes[d].extent != contraction.axes[d].extent)
      return false;
  for (NodeId id : finish.body.reachable(finish.results)) {
    const Scalar &read = finish.body[id];
    if (!isRead(read) || read.index != row.outputs[0])
      continue;
    for (int d = 0; d < row.numSpatial; ++d)
      if (read.op != ScalarOp::Read ||
          (!row.axes[d].extent.isConst(1) && !readsOwnRow(finish, read, d)))
        return false;
  }
  return true;
}

} // namespace

bool sameTerms(const Equation &a, const Equation &b) {
  if (a.numReduction() != b.numReduction() || a.numReduction() == 0)
    return false;
  for (int r = 0; r < a.numReduction(); ++r)
    if (a.axes[a.numSpatial + r].extent != b.axes[b.numSpatial + r].extent)
      return false;
  return true;
}

/// For each axis of the map that of the contraction, which reads the map's value at one place, and no other equation
/// does; nullopt where it is otherwise.
static std::optional<std::vector<int>> axesOfFactor(const std::vector<const Equation *> &equations,
                                                    const Equation &contraction,
                                                    const Equation &map) {
  for (const Equation *e : equations)
    if (e != &contraction && readsAny(*e, map.outputs))
      return std::nullopt;
  std::optional<std::vector<int>> axes;
  for (NodeId id : contraction.body.reachable(contraction.results)) {
    const Scalar &read = contraction.body[id];
    if (!isRead(read) || read.index != map.outputs[0])
      continue;
    if (axes || read.op != ScalarOp::Read)
      return std::nullopt;
    axes.emplace();
    for (NodeId index : read.args) {
      const Scalar &axis = contraction.body[index];
      if (axis.op != ScalarOp::Axis || std::count(axes->begin(), axes->end(), axis.index) != 0)
        return std::nullopt;
      axes->push_back(axis.index);
    }
  }
  return axes;
}

std::optional<SharedWalk> sharedWalk(const std::vector<const Equation *> &equations) {
  SharedWalk walk;
  std::vector<TensorId> sums;
  for (size_t e = 0; e + 1 < equations.size(); ++e) {
    const bool isMap = equations[e]->kind == EquationKind::Map && walk.factor < 0;
    if ((!isMap && equations[e]->kind != EquationKind::Reduction) || readsAny(*equations[e], sums))
      return std::nullopt;
    if (isMap)
      walk.factor = static_cast<int>(e);
    else
      sums.insert(sums.end(), equations[e]->outputs.begin(), equations[e]->outputs.end());
  }
  if (equations.size() < 3 || equations.back()->kind != EquationKind::Map)
    return std::nullopt;
  walk.finish = static_cast<int>(equations.size()) - 1;
  for (int e = 0; e < walk.finish; ++e)
    if (e == walk.factor)
      continue;
    else if (!finishesReduction(*equations[e], *equations[walk.finish]))
      walk.rows.push_back(e);
    else if (walk.contraction >= 0)
      return std::nullopt;
    else
      walk.contraction = e;
  if (walk.contraction < 0)
    return std::nullopt;
  const Equation &contraction = *equations[walk.contraction], &finish = *equations[walk.finish];
  if (walk.rows.empty() || !finishesReduction(contraction, finish) ||
      !std::all_of(walk.rows.begin(), walk.rows.end(),
                   [&](int row) { return isOfRows(*equations[row], contraction, finish); }))
    return std::nullopt;
  if (walk.factor < 0)
    return walk;
  const auto axes = axesOfFactor(equations, contraction, *equations[walk.factor]);
  if (!axes)
    return std::nullopt;
  walk.factorAxes = *axes;
  return walk;
}

} // namespace fusec
