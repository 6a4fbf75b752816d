// An operand in whose elements lanes along the last spatial axis would lie apart is copied first, as an equation of its
// own, into an order in which they lie side by side. What compose has written into a reduction's reads, a transpose of
// the model for instance, is so taken out again where a reader uses an element again and again: a window over an image
// in the order [n, y, x, c] whose result lies as [n, c, y, x],
//
//   reduction p [n:1, c:64, y:28, x:28; r:3, s:3] max f32
//     %p = %in[n, y + r, x + s, c]
//
// becomes
//
//   map p.copy [i0:1, i1:30, i3:64, i2:30]
//     %in.copy = %in[i0, i1, i2, i3]
//   reduction p [n:1, c:64, y:28, x:28; r:3, s:3] max f32
//     %p = %in.copy[n, y + r, c, x + s]
//
// Every bit stays. One tensor is copied, the largest. Not handled: lanes that lie apart within a dimension (strides of
// a window), constants, which are packed when the model is compiled, and values of the pattern itself.
#include "Expr/Alternatives.h"
#include "Expr/Caches.h"
#include "Expr/transforms/Walk.h"

#include <algorithm>

namespace fusec {
namespace {

/// What lanes gather: these reads of a tensor, whose dimension `d` goes along the lanes.
struct Gathered {
  TensorId tensor = -1;
  int dimension = -1;
  std::vector<NodeId> reads;
  double elements = 0;
};

/// The last spatial axis that has points: lanes run along it.
int laneAxis(const Equation &e) {
  int axis = e.numSpatial - 1;
  while (axis >= 0 && e.axes[axis].extent.isConst(1))
    --axis;
  return axis;
}

/// The dimension along which a read's lanes go, one element a lane, where others lie behind it; -1 where there is none.
int dimensionApart(const Equation &e, const Scalar &read, const Shape &shape, int lanes) {
  const size_t first = read.op == ScalarOp::ReadIf ? 2 : 0;
  int found = -1;
  bool behind = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    const std::optional<AffineForm> form =
        affineForm(e.body, read.args[first + d], static_cast<int>(e.axes.size()));
    if (!form)
      return -1;
    if (form->coefficients[lanes].isConst(0)) {
      behind = behind || (found >= 0 && !shape[d].isConst(1));
      continue;
    }
    if (found >= 0 || !form->coefficients[lanes].isConst(1))
      return -1;
    found = static_cast<int>(d);
  }
  return behind ? found : -1;
}

Gathered gatheredBy(const ExprProgram &pattern, const Equation &e) {
  Gathered most;
  const int lanes = laneAxis(e);
  if (e.kind != EquationKind::Reduction || lanes < 0)
    return most;
  Shape domain;
  for (const Axis &axis : e.axes)
    domain.push_back(axis.extent);
  const double points = typicalElements(domain, pattern.symbols);
  std::vector<Gathered> all;
  for (NodeId id : e.body.reachable(bodyRoots(e))) {
    const Scalar &s = e.body[id];
    if (!isRead(s) || pattern.tensors[s.index].kind != TensorKind::Input)
      continue;
    const Shape &shape = pattern.tensors[s.index].shape;
    const int dimension = dimensionApart(e, s, shape, lanes);
    if (dimension < 0)
      continue;
    auto known = std::find_if(all.begin(), all.end(), [&](const Gathered &g) {
      return g.tensor == s.index && g.dimension == dimension;
    });
    if (known == all.end())
      known =
          all.insert(all.end(), {s.index, dimension, {}, typicalElements(shape, pattern.symbols)});
    known->reads.push_back(id);
  }
  // With fewer uses of each element, the copy gathers as often as the reader.
  constexpr double kUsesAnElement = 2;
  for (Gathered &g : all)
    if (g.elements > most.elements &&
        points * double(g.reads.size()) >= kUsesAnElement * g.elements)
      most = std::move(g);
  return most;
}

} // namespace

std::optional<ExprProgram> copyOperands(const ExprProgram &pattern, int64_t) {
  if (pattern.items.empty() || pattern.items.size() > 2)
    return std::nullopt;
  const auto *reduction = std::get_if<Equation>(&pattern.items[0].value);
  if (!reduction)
    return std::nullopt;
  const Gathered gathered = gatheredBy(pattern, *reduction);
  if (gathered.tensor < 0)
    return std::nullopt;
  ExprProgram program = pattern;
  Tensor source = program.tensors[gathered.tensor];
  source.shape = withoutRoom(source.shape, program.symbols);
  std::vector<int> order; // of the source's dimensions
  for (int d = 0; d < static_cast<int>(source.shape.size()); ++d)
    if (d != gathered.dimension)
      order.push_back(d);
  order.push_back(gathered.dimension);

  Equation copy;
  copy.name = reduction->name + ".copy";
  copy.onnxNodes = reduction->onnxNodes;
  Tensor value;
  value.name = source.name + ".copy";
  value.type = source.type;
  value.kind = TensorKind::Temp;
  copy.numSpatial = static_cast<int>(order.size());
  std::vector<NodeId> at(order.size());
  for (int d : order) {
    copy.axes.push_back({"i" + std::to_string(d), source.shape[d]});
    value.shape.push_back(source.shape[d]);
  }
  setRanges(copy, program.symbols);
  for (size_t i = 0; i < order.size(); ++i)
    at[order[i]] = copy.body.axis(static_cast<int32_t>(i));
  copy.results = {copy.body.read(gathered.tensor, source.type, at)};
  const TensorId made = program.addTensor(std::move(value));
  copy.outputs = {made};
  compact(copy);

  Equation &reader = std::get<Equation>(program.items[0].value);
  rebuild(reader, program.symbols, nullptr, [&](Body &body, const Scalar &s, NodeId original) {
    if (std::count(gathered.reads.begin(), gathered.reads.end(), original) == 0)
      return kNoNode;
    Scalar read = s;
    read.index = made;
    const size_t first = s.op == ScalarOp::ReadIf ? 2 : 0;
    for (size_t i = 0; i < order.size(); ++i)
      read.args[first + i] = s.args[first + order[i]];
    return body.add(std::move(read));
  });
  program.items.insert(program.items.begin(), Item{std::move(copy)});
  return program;
}

std::vector<int> copyOperandsStarts(const ExprProgram &, const ExprProgram &) { return {1}; }

} // namespace fusec
