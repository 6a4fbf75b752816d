// TopK by counting: the rank of an element is the number of elements that come before it, and the element of
// rank k goes to place k. That is quadratic in the length of the axis, and made of reductions alone, so that
// every target has it and fusion sees it; an order of selections pays off for long axes only.
//
//   %rank[i] = sum_j before(x[j], x[i]);  %index[k] = sum_i (rank[i] == k ? i : 0);  values[k] = x[index[k]]
//
// Equal values keep the order of their indices; a NaN counts as larger than every number.
#include "Expr/lower/Lowering.h"

namespace fusec::lower {
namespace {

Val less(Val a, Val b) {
  if (!a.floating())
    return lt(a, b);
  return select(isNan(b), logicalNot(isNan(a)), lt(a, b));
}

Status topK(NodeLowering &n) {
  auto axis = static_cast<size_t>(n.node.intAttr("axis"));
  bool largest = n.node.intAttr("largest");
  const Shape &shape = n.shape(0);
  size_t any = n.wants(1) ? 1 : 0;
  TensorId rank = n.reduceTemp("rank", Monoid::Sum, DType::I32, shape, [&](EquationBuilder &b) {
    std::vector<Val> other = b.axes;
    other[axis] = b.reduction(shape[axis]);
    Val self = b.read(n.in(0), b.axes), x = b.read(n.in(0), other);
    Val first = largest ? less(self, x) : less(x, self),
        second = largest ? less(x, self) : less(self, x);
    Val tie = select(second, b.truth(false), lt(other[axis], b.axis(axis)));
    return cast(DType::I32, select(first, b.truth(true), tie));
  });
  TensorId index = n.wants(1) ? n.out(1) : n.temp("index", DType::I64, n.outShape(any));
  n.reduce(index, Monoid::Sum, [&](EquationBuilder &b) {
    std::vector<Val> from = b.axes;
    from[axis] = b.reduction(shape[axis]);
    Val hit = eq(b.read(rank, from), cast(DType::I32, b.axis(axis)));
    return select(hit, from[axis], b.index(0));
  });
  if (n.wants(0))
    n.map(n.out(), [&](EquationBuilder &b) {
      std::vector<Val> from = b.axes;
      from[axis] = b.read(index, b.axes);
      return b.read(n.in(0), from);
    });
  return success();
}

} // namespace

void addOrdering(HandlerTable &table) { table[OpKind::TopK] = topK; }

} // namespace fusec::lower
