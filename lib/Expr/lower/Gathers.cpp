// Indirect reads. Negative indices count from the end. An index that is still outside is clamped to the
// nearest element, so that every read stays in its tensor; where the host can tell, the run then ends with an error
// (Onnx/ops/Gathers.cpp).
#include "Expr/lower/Lowering.h"
#include "Support/Diag.h"

namespace fusec::lower {
namespace {

Status gather(NodeLowering &n) {
  auto axis = static_cast<std::ptrdiff_t>(n.node.intAttr("axis"));
  std::ptrdiff_t inner = axis + n.rank(1);
  const DimExpr &extent = n.shape(0)[static_cast<size_t>(axis)];
  n.map(n.out(), [&](EquationBuilder &b) {
    std::vector<Val> at(b.axes.begin(), b.axes.begin() + axis);
    std::vector<Val> which(b.axes.begin() + axis, b.axes.begin() + inner);
    at.push_back(wrapIndex(b.read(n.in(1), which), extent));
    return b.readClamped(n.in(0), concat(at, {b.axes.begin() + inner, b.axes.end()}));
  });
  return success();
}

Status gatherElements(NodeLowering &n) {
  auto axis = static_cast<size_t>(n.node.intAttr("axis"));
  n.map(n.out(), [&](EquationBuilder &b) {
    std::vector<Val> at = b.axes;
    at[axis] = wrapIndex(b.read(n.in(1), b.axes), n.shape(0)[axis]);
    return b.readClamped(n.in(0), at);
  });
  return success();
}

/// out[batch..., i..., inner...] = data[batch..., indices[batch..., i..., :], inner...]
Status gatherND(NodeLowering &n) {
  auto batch = static_cast<std::ptrdiff_t>(n.node.intAttr("batch_dims"));
  if (!n.shape(1).back().isConst())
    return n.fail("the length of an index must be known", Diag::UnsupportedShape);
  int64_t depth = n.shape(1).back().constValue();
  std::ptrdiff_t lead = n.rank(1) - 1;
  n.map(n.out(), [&](EquationBuilder &b) {
    std::vector<Val> at(b.axes.begin(), b.axes.begin() + batch),
        which(b.axes.begin(), b.axes.begin() + lead);
    for (int64_t i = 0; i < depth; ++i)
      at.push_back(wrapIndex(b.read(n.in(1), concat(which, {b.index(i)})),
                             n.shape(0)[static_cast<size_t>(batch + i)]));
    return b.readClamped(n.in(0), concat(at, {b.axes.begin() + lead, b.axes.end()}));
  });
  return success();
}

/// values = [off, on]; an index outside [-depth, depth) gives "off" everywhere.
Status oneHot(NodeLowering &n) {
  auto axis = static_cast<std::ptrdiff_t>(n.node.intAttr("axis"));
  const DimExpr &depth = n.outShape()[static_cast<size_t>(axis)];
  n.map(n.out(), [&](EquationBuilder &b) {
    std::vector<Val> which = b.axes;
    which.erase(which.begin() + axis);
    Val i = cast(DType::I64, b.read(n.in(0), which));
    i = select(lt(i, 0), i + depth, i);
    Val hit = eq(i, b.axis(static_cast<size_t>(axis)));
    return select(hit, b.read(n.in(2), {b.index(1)}), b.read(n.in(2), {b.index(0)}));
  });
  return success();
}

} // namespace

void addGathers(HandlerTable &table) {
  using enum OpKind;
  table[Gather] = gather;
  table[GatherElements] = gatherElements;
  table[GatherND] = gatherND;
  table[OneHot] = oneHot;
}

} // namespace fusec::lower
