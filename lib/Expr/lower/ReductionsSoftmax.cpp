// Softmax, LogSoftmax and Hardmax over one axis: reductions and maps, computed in at least f32.
#include "Expr/lower/Lowering.h"

#include <cmath>

namespace fusec::lower {
namespace {

std::vector<Val> without(std::vector<Val> v, size_t axis) {
  v.erase(v.begin() + static_cast<std::ptrdiff_t>(axis));
  return v;
}
std::vector<Val> with(std::vector<Val> v, size_t axis, Val at) {
  v.insert(v.begin() + static_cast<std::ptrdiff_t>(axis), at);
  return v;
}

template <bool isLog> Status softmax(NodeLowering &n) {
  auto axis = static_cast<size_t>(n.node.intAttr("axis"));
  DType t = computeType(n.type(0));
  Shape rows = n.shape(0);
  DimExpr extent = rows[axis];
  rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(axis));
  auto element = [&](EquationBuilder &b) {
    return cast(t, b.read(n.in(0), with(b.axes, axis, b.reduction(extent))));
  };
  const TensorId largest = n.reduceTemp("max", Monoid::Max, t, rows, element);
  // A line that is masked whole has the maximum -inf, which no difference survives.
  const bool zeroMasked = n.node.hasAttr("zero_masked") && n.node.intAttr("zero_masked") != 0;
  const TensorId m = zeroMasked ? n.map(n.temp("shift", t, rows),
                                        [&](EquationBuilder &b) {
                                          Val top = b.read(largest, b.axes);
                                          return select(eq(top, -INFINITY), top.like(0), top);
                                        })
                                : largest;
  auto shifted = [&](EquationBuilder &b) {
    return cast(t, b.read(n.in(0), b.axes)) - b.read(m, without(b.axes, axis));
  };
  if (isLog) {
    TensorId s = n.reduceTemp("sum", Monoid::Sum, t, rows, [&](EquationBuilder &b) {
      return exp(element(b) - b.read(m, b.axes));
    });
    TensorId logarithm =
        n.map(n.temp("log", t, rows), [&](EquationBuilder &b) { return log(b.read(s, b.axes)); });
    n.map(n.out(), [&](EquationBuilder &b) {
      return cast(n.outType(), shifted(b) - b.read(logarithm, without(b.axes, axis)));
    });
    return success();
  }
  // A tensor of its own, since two read it: whether it is kept or made twice is the search's to decide.
  TensorId e =
      n.map(n.temp("exp", t, n.shape(0)), [&](EquationBuilder &b) { return exp(shifted(b)); });
  TensorId s = n.reduceTemp("sum", Monoid::Sum, t, rows, [&](EquationBuilder &b) {
    return b.read(e, with(b.axes, axis, b.reduction(extent)));
  });
  // One division a row; the product's second rounding stays within 1.5 ulp of the quotient.
  TensorId inverse = n.map(n.temp("inverse", t, rows), [&](EquationBuilder &b) {
    Val sum = b.read(s, b.axes);
    return zeroMasked ? select(eq(sum, 0.0), sum, 1.0 / sum) : 1.0 / sum;
  });
  n.map(n.out(), [&](EquationBuilder &b) {
    return cast(n.outType(), b.read(e, b.axes) * b.read(inverse, without(b.axes, axis)));
  });
  return success();
}

/// 1 at the first maximum along the axis, else 0.
Status hardmax(NodeLowering &n) {
  auto axis = static_cast<size_t>(n.node.intAttr("axis"));
  DType t = computeType(n.type(0));
  Shape rows = n.shape(0);
  DimExpr extent = rows[axis];
  rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(axis));
  TensorId value = n.temp("max", t, rows), index = n.temp("index", DType::I64, rows);
  EquationBuilder b(n, EquationKind::Reduction, {value, index});
  b.equation.monoid = Monoid::ArgMax;
  b.equation.accumulateType = t;
  Val at = b.reduction(extent);
  b.finish({cast(t, b.read(n.in(0), with(b.axes, axis, at))), at});
  n.map(n.out(), [&](EquationBuilder &m) {
    return cast(n.outType(), eq(m.read(index, without(m.axes, axis)), m.axis(axis)));
  });
  return success();
}

} // namespace

void addReductionsSoftmax(HandlerTable &table) {
  table[OpKind::Softmax] = softmax<false>;
  table[OpKind::LogSoftmax] = softmax<true>;
  table[OpKind::Hardmax] = hardmax;
}

} // namespace fusec::lower
