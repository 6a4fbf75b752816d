// TopK: the opaque equation topk searches the last axis, so that another one is moved there and back by maps.
#include "Expr/lower/SortedRuns.h"

#include <algorithm>
#include <functional>

namespace fusec::lower {
namespace {

/// `shape` with dimension `axis` behind the others.
Shape withLast(Shape shape, size_t axis) {
  std::rotate(shape.begin() + static_cast<long>(axis), shape.begin() + static_cast<long>(axis) + 1,
              shape.end());
  return shape;
}

/// `row`: what of each row is searched.
void whole(NodeLowering &n, TensorId x, const DimExpr &row, bool largest,
           const TensorId (&outputs)[2]) {
  EquationBuilder b(n, EquationKind::Opaque, {outputs[0], outputs[1]});
  b.equation.opaque = "topk";
  b.equation.opaqueInputs = {x};
  b.equation.opaqueAttributes["largest"] = largest;
  b.equation.axes.push_back({"r0", row});
  b.finish({});
}

void inRuns(NodeLowering &n, TensorId x, const DimExpr &k, bool largest,
            const TensorId (&outputs)[2]) {
  const TensorId first = firstInRuns(n, x, k, largest);
  auto indexOf = [&](EquationBuilder &b) {
    std::vector<Val> at = b.axes;
    at.insert(at.end() - 1, b.index(0));
    return b.read(first, at);
  };
  n.map(outputs[0], [&](EquationBuilder &b) {
    std::vector<Val> at = b.axes;
    at.back() = min(max(indexOf(b), 0.0), b.index(n.shapeOf(x).back() - 1));
    return b.read(x, at);
  });
  n.map(outputs[1], indexOf);
}

/// What fills two outputs.
using Fill = std::function<void(const TensorId (&)[2])>;

void choose(NodeLowering &n, TensorId condition, const Fill &then, const Fill &otherwise,
            const TensorId (&outputs)[2]) {
  Control choice;
  choice.onnxNodes = {n.node.name};
  choice.name = n.l.program.tensors[outputs[0]].name;
  choice.condition = condition;
  auto branch = [&](const Fill &fill, std::vector<TensorId> &yields) {
    return n.l.nested([&] {
      TensorId own[2];
      for (size_t o : {0, 1})
        own[o] = n.temp(o ? "places" : "found", n.typeOf(outputs[o]), n.shapeOf(outputs[o]));
      fill(own);
      yields = {own[0], own[1]};
    });
  };
  choice.thenItems = branch(then, choice.thenYields);
  choice.elseItems = branch(otherwise, choice.elseYields);
  choice.results = {outputs[0], outputs[1]};
  n.l.items->push_back({std::move(choice)});
}

/// A row whose length varies: a block sorts it, or passes go over it, as any other row of its length; where it is too
/// long for that, parts of it are sorted, unless passes over it are sooner. Which it is shows when it is there.
void asLengthSays(NodeLowering &n, TensorId x, const DimExpr &k, bool largest,
                  const TensorId (&outputs)[2]) {
  const DimExpr row = n.shapeOf(x).back(), part = sortedByBlock(row);
  const std::vector<Symbol> &symbols = n.l.program.symbols;
  auto isTrue = [&](const char *suffix, const auto &test) {
    return n.map(n.temp(suffix, DType::Bool, {}), test);
  };
  const Fill parts = [&](const TensorId(&own)[2]) { inRuns(n, x, k, largest, own); };
  const Fill asLong = [&](const TensorId(&own)[2]) {
    if (areAlwaysSoonerInRuns(row, k, symbols))
      return parts(own);
    const TensorId isSooner =
        isTrue("isLong", [&](EquationBuilder &b) { return isSoonerInRuns(b, row, k); });
    choose(
        n, isSooner, parts, [&](const TensorId(&passes)[2]) { whole(n, x, row, largest, passes); },
        own);
  };
  if (std::max(row.range(symbols).min, k.range(symbols).min) > part.range(symbols).max)
    return asLong(outputs);
  const TensorId fits =
      isTrue("fits", [&](EquationBuilder &b) { return le(b.index(row), b.index(part)); });
  choose(
      n, fits, [&](const TensorId(&own)[2]) { whole(n, x, part, largest, own); }, asLong, outputs);
}

Status topK(NodeLowering &n) {
  auto axis = static_cast<size_t>(n.node.intAttr("axis"));
  size_t last = static_cast<size_t>(n.rank(0)) - 1;
  bool moved = axis != last;
  TensorId x = n.in(0);
  if (moved)
    x = n.map(n.temp("moved", n.type(0), withLast(n.shape(0), axis)), [&](EquationBuilder &b) {
      std::vector<Val> from = b.axes;
      from.insert(from.begin() + static_cast<long>(axis), from.back());
      from.pop_back();
      return b.load(n.in(0), from);
    });
  Shape found = withLast(n.outShape(n.wants(0) ? 0 : 1), axis);
  TensorId outputs[2];
  DType types[] = {n.type(0), DType::I64};
  const char *suffixes[] = {"values", "indices"};
  for (size_t o : {0, 1})
    outputs[o] = n.wants(o) && !moved ? n.out(o) : n.temp(suffixes[o], types[o], found);
  if (const bool largest = n.node.intAttr("largest") != 0;
      !sortsInRuns(n, n.shapeOf(x).back(), found.back()))
    whole(n, x, n.shapeOf(x).back(), largest, outputs);
  else if (n.shapeOf(x).back().isConst())
    inRuns(n, x, found.back(), largest, outputs);
  else
    asLengthSays(n, x, found.back(), largest, outputs);
  if (moved)
    for (size_t o : {0, 1})
      if (n.wants(o))
        n.map(n.out(o), [&](EquationBuilder &back) {
          std::vector<Val> from = back.axes;
          from.push_back(from[axis]);
          from.erase(from.begin() + static_cast<long>(axis));
          return back.load(outputs[o], from);
        });
  return success();
}

} // namespace

void addReductionsTopK(HandlerTable &table) { table[OpKind::TopK] = topK; }

} // namespace fusec::lower
