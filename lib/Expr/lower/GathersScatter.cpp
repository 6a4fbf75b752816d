// Indirect writes over a copy of the data; duplicates are combined in the order of the updates. Negative
// indices count from the end; an update whose index is outside its dimension is dropped.
#include "Expr/lower/Lowering.h"
#include "Support/Diag.h"

namespace fusec::lower {
namespace {

Result<Combiner> combinerOf(NodeLowering &n) {
  const std::string &r = n.node.stringAttr("reduction");
  if (r == "none")
    return Combiner::Assign;
  if (auto c = parseCombiner(r))
    return *c;
  return n.fail("reduction '" + r + "' is not known");
}

/// The index along a dimension, counted from the end when negative.
Val counted(Val i, const DimExpr &extent) {
  i = cast(DType::I64, i);
  return select(lt(i, 0), i + extent, i);
}

/// Scatters into a copy of `base`. 16-bit floats are combined in f32, through temps.
template <typename F>
Status scatter(NodeLowering &n, TensorId base, const Shape &domain, Combiner combiner, F f) {
  DType t = n.outType(), wide = combiner == Combiner::Assign ? t : computeType(t);
  TensorId from = base, to = n.out();
  if (wide != t) {
    from = n.temp("base", wide, n.outShape());
    n.copy(from, base);
    to = n.temp("sum", wide, n.outShape());
  }
  EquationBuilder b(n, EquationKind::Scatter, {to}, domain);
  b.equation.base = from;
  b.equation.combiner = combiner;
  std::vector<Val> at;
  Val inside, value = cast(wide, f(b, at));
  for (size_t d = 0; d < at.size(); ++d) {
    b.equation.scatterIndex.push_back(at[d].id);
    const Scalar &s = b.body()[at[d].id];
    if (s.op != ScalarOp::Axis)
      inside = both(inside, inRange(at[d], n.outShape()[d]));
  }
  b.equation.scatterPredicate = inside.id;
  b.finish({value});
  if (wide != t)
    n.copy(n.out(), to);
  return success();
}

Status scatterElements(NodeLowering &n) {
  auto axis = static_cast<size_t>(n.node.intAttr("axis"));
  FUSEC_TRY(Combiner combiner, combinerOf(n));
  return scatter(n, n.in(0), n.shape(1), combiner, [&](EquationBuilder &b, std::vector<Val> &at) {
    at = b.axes;
    at[axis] = counted(b.read(n.in(1), b.axes), n.shape(0)[axis]);
    return b.read(n.in(2), b.axes);
  });
}

Status scatterND(NodeLowering &n) {
  FUSEC_TRY(Combiner combiner, combinerOf(n));
  if (!n.shape(1).back().isConst())
    return n.fail("the length of an index must be known", Diag::UnsupportedShape);
  int64_t depth = n.shape(1).back().constValue();
  std::ptrdiff_t lead = n.rank(1) - 1;
  return scatter(n, n.in(0), n.shape(2), combiner, [&](EquationBuilder &b, std::vector<Val> &at) {
    std::vector<Val> which(b.axes.begin(), b.axes.begin() + lead);
    for (int64_t i = 0; i < depth; ++i)
      at.push_back(counted(b.read(n.in(1), concat(which, {b.index(i)})),
                           n.shape(0)[static_cast<size_t>(i)]));
    at.insert(at.end(), b.axes.begin() + lead, b.axes.end());
    return b.read(n.in(2), b.axes);
  });
}

/// Writes `update` into the cache along `axis`, from write_indices[batch] on; mode "circular" goes round.
Status tensorScatter(NodeLowering &n) {
  auto axis = static_cast<size_t>(n.node.intAttr("axis"));
  bool circular = n.node.stringAttr("mode") == "circular";
  return scatter(n, n.in(0), n.shape(1), Combiner::Assign,
                 [&](EquationBuilder &b, std::vector<Val> &at) {
                   at = b.axes;
                   if (n.has(2))
                     at[axis] = at[axis] + cast(DType::I64, b.read(n.in(2), {b.axis(0)}));
                   if (circular)
                     at[axis] = floorMod(at[axis], n.shape(0)[axis]);
                   return b.read(n.in(1), b.axes);
                 });
}

} // namespace

void addGathersScatter(HandlerTable &table) {
  using enum OpKind;
  table[ScatterElements] = scatterElements;
  table[ScatterND] = scatterND;
  table[TensorScatter] = tensorScatter;
}

} // namespace fusec::lower
