#include "Expr/transforms/CopyView.h"
#include "Expr/Caches.h"
#include "Expr/transforms/Walk.h"

#include <algorithm>
#include <set>

namespace fusec {

std::optional<View> viewOf(const ExprProgram &program, const Body &body, const Scalar &read) {
  View view;
  view.tensor = read.index;
  const Shape shape = withoutRoom(program.tensors[read.index].shape, program.symbols);
  const size_t first = read.op == ScalarOp::ReadIf ? 2 : 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    const NodeId index = read.args[first + d];
    std::vector<NodeId> lookUps, open = {index};
    std::set<NodeId> seen; // indices share their parts: a walk without it takes exponential time
    bool hasLeaf = false;
    while (!open.empty()) {
      const NodeId id = open.back();
      const Scalar &s = body[id];
      open.pop_back();
      if (!seen.insert(id).second)
        continue;
      if (s.op == ScalarOp::ReadIf)
        return std::nullopt;
      if (s.op == ScalarOp::Read) {
        lookUps.push_back(id);
        continue;
      }
      hasLeaf = hasLeaf || s.op == ScalarOp::Axis || s.op == ScalarOp::Step;
      open.insert(open.end(), s.args.begin(), s.args.end());
    }
    if (lookUps.empty()) {
      view.at.push_back(index);
      view.extents.push_back(shape[d]);
      continue;
    }
    if (hasLeaf || lookUps.size() > 1)
      return std::nullopt;
    view.gathers = true;
    const Scalar &lookUp = body[lookUps[0]];
    for (NodeId id : body.reachable(lookUp.args))
      if (isRead(body[id]))
        return std::nullopt;
    const Shape &of = program.tensors[lookUp.index].shape;
    view.at.insert(view.at.end(), lookUp.args.begin(), lookUp.args.end());
    view.extents.insert(view.extents.end(), of.begin(), of.end());
  }
  if (!view.gathers)
    return program.tensors[read.index].kind == TensorKind::Constant ? std::nullopt
                                                                    : std::optional(view);
  // A guard that looks at values may be what keeps an index in range; the copy would go without.
  if (first > 0)
    for (NodeId id : body.reachable({read.args[0]}))
      if (isRead(body[id]))
        return std::nullopt;
  return view;
}

Order naturalOrder(size_t rank) {
  Order order(rank);
  for (size_t i = 0; i < rank; ++i)
    order[i] = static_cast<int>(i);
  return order;
}

Order wantedOrder(const Equation &e, const View &view) {
  int lanes = e.numSpatial - 1;
  while (lanes >= 0 && e.axes[lanes].extent.isConst(1))
    --lanes;
  Order order = naturalOrder(view.at.size());
  std::vector<int> last(view.at.size(), -1);
  for (size_t i = 0; i < view.at.size(); ++i)
    for (NodeId id : e.body.reachable({view.at[i]}))
      if (const Scalar &s = e.body[id]; s.op == ScalarOp::Axis && s.index < e.numSpatial)
        last[i] = std::max(last[i], static_cast<int>(s.index));
  if (lanes < 0 || std::count(last.begin(), last.end(), lanes) == 0)
    return order;
  for (int i : naturalOrder(view.at.size())) // lanes that step over elements find no neighbours
    if (last[i] == lanes)
      if (const auto form = affineForm(e.body, view.at[i], static_cast<int>(e.axes.size()));
          form && !form->coefficients[lanes].isConst(1))
        return order;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return last[a] < last[b]; });
  // Dimensions of one element may lie anywhere.
  Order moved = order;
  std::erase_if(moved, [&](int i) { return view.extents[i].isConst(1); });
  return std::is_sorted(moved.begin(), moved.end()) ? naturalOrder(view.at.size()) : order;
}

Equation copyEquation(const ExprProgram &program, const Equation &reader, const Scalar &read,
                      const View &view, const Order &order) {
  Equation copy;
  copy.numSpatial = static_cast<int>(order.size());
  std::vector<NodeId> coordinate(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    copy.axes.push_back({"i" + std::to_string(i), view.extents[order[i]]});
  setRanges(copy, program.symbols);
  for (size_t i = 0; i < order.size(); ++i)
    coordinate[order[i]] = copy.body.axis(static_cast<int32_t>(i));
  const Shape &shape = program.tensors[view.tensor].shape;
  const size_t first = read.op == ScalarOp::ReadIf ? 2 : 0;
  std::vector<NodeId> indices;
  size_t next = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    const NodeId index = read.args[first + d];
    const std::vector<NodeId> inside = reader.body.reachable({index});
    const auto lookUp = std::find_if(inside.begin(), inside.end(),
                                     [&](NodeId id) { return isRead(reader.body[id]); });
    if (lookUp == inside.end()) {
      indices.push_back(coordinate[next++]);
      continue;
    }
    const size_t rank = reader.body[*lookUp].args.size();
    std::vector<NodeId> own(coordinate.begin() + static_cast<std::ptrdiff_t>(next),
                            coordinate.begin() + static_cast<std::ptrdiff_t>(next + rank));
    next += rank;
    indices.push_back(
        copy.body.import(reader.body, index, [&](const Scalar &leaf, NodeId) -> NodeId {
          if (leaf.op != ScalarOp::Read) // a place of the index, which the copy has its own for
            return copy.body.index(0);
          return copy.body.read(leaf.index, leaf.type, own);
        }));
  }
  copy.results = {copy.body.read(view.tensor, program.tensors[view.tensor].type, indices)};
  compact(copy);
  return copy;
}

std::vector<NodeId> placesInCopy(const Body &body, const Scalar &read, const Order &order) {
  std::vector<NodeId> at, ordered;
  for (size_t d = read.op == ScalarOp::ReadIf ? 2 : 0; d < read.args.size(); ++d) {
    const std::vector<NodeId> inside = body.reachable({read.args[d]});
    const auto lookUp =
        std::find_if(inside.begin(), inside.end(), [&](NodeId id) { return isRead(body[id]); });
    if (lookUp == inside.end())
      at.push_back(read.args[d]);
    else
      at.insert(at.end(), body[*lookUp].args.begin(), body[*lookUp].args.end());
  }
  for (int i : order)
    ordered.push_back(at[i]);
  return ordered;
}

} // namespace fusec
