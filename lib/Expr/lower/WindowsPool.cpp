// Pools: reductions over window axes with predicated reads; averages divide by the number of elements that
// count, an expression of the output position.
#include "Expr/lower/Contractions.h"

namespace fusec::lower {
namespace {

struct Read {
  Val value;
  std::vector<Val> at;
  Val inside;
};

/// Adds the window's reduction axes and reads x there, `outside` where the window leaves the input.
Read windowRead(NodeLowering &n, EquationBuilder &b, const Window &window, Val outside) {
  Read r;
  r.at = {b.axis(0), b.axis(1)};
  for (size_t d = 0; d < window.rank(); ++d) {
    Val position = window.at(d, b.axis(2 + d), b.reduction(window.kernel[d]));
    r.inside = both(r.inside, window.inside(d, position));
    r.at.push_back(position);
  }
  r.value = b.readIf(r.inside, n.in(0), r.at, outside);
  return r;
}

Status maxPool(NodeLowering &n) {
  Window window(n.node, n.shape(0));
  const DType own = n.type(0);
  if (!n.wants(1)) {
    n.reduceTo(n.out(), "acc", Monoid::Max, computeType(own), [&](EquationBuilder &b) {
      return windowRead(n, b, window, b.val(identityOf(b.body(), Monoid::Max, n.type(0)))).value;
    });
    return success();
  }
  // Narrow integers compete as i32, whose least number none of them is, so that what lies outside never wins.
  const bool isNarrow = isInteger(own) && sizeInBytes(own) < 4;
  const DType t = isNarrow ? DType::I32 : computeType(own);
  // The index is that of the element in the whole tensor, row-major; storage order 1 transposes the first
  // two spatial dimensions' meaning to column-major.
  bool columnMajor = n.node.intAttr("storage_order") && window.rank() > 1;
  bool direct = n.wants(0) && n.outType() == t;
  TensorId value = direct ? n.out() : n.temp("value", t, n.outShape(1));
  TensorId index = columnMajor ? n.temp("index", DType::I64, n.outShape(1)) : n.out(1);
  EquationBuilder b(n, EquationKind::Reduction, {value, index});
  b.equation.monoid = Monoid::ArgMax;
  b.equation.accumulateType = t;
  Read r = windowRead(n, b, window, b.val(identityOf(b.body(), Monoid::Max, n.type(0))));
  const Shape &shape = n.shape(0);
  Val flat = b.index(0);
  for (size_t d = 0; d < shape.size(); ++d)
    flat = flat + r.at[d] * product(shape, d + 1, shape.size());
  Val element = cast(t, r.value);
  if (isNarrow && r.inside.body)
    element = select(r.inside, element, element.like(INT32_MIN));
  b.finish({element, flat});
  if (!direct && n.wants(0))
    n.copy(n.out(), value);
  if (columnMajor)
    n.map(n.out(1), [&](EquationBuilder &m) {
      Val rest = m.read(index, m.axes);
      Val plane = floorDiv(rest, product(shape, 2, shape.size()));
      Val column = m.index(0);
      DimExpr stride = 1;
      for (size_t d = 2; d < shape.size(); ++d) {
        Val at = floorMod(floorDiv(rest, product(shape, d + 1, shape.size())), shape[d]);
        column = column + at * stride;
        stride = stride * shape[d];
      }
      return plane * product(shape, 2, shape.size()) + column;
    });
  return success();
}

/// Number of kernel positions that count in dimension d at output position o.
Val countIn(const Window &w, size_t d, Val o, bool includePad) {
  DimExpr dilation = w.dilations[d], kernel = w.kernel[d];
  Val begin = o * double(w.strides[d]); // in the padded input
  DimExpr padded = w.input[d] + DimExpr(w.padsBegin[d] + (includePad ? w.padsEnd[d] : 0));
  bool mayPass = w.ceilMode || (!includePad && w.padsEnd[d] > 0);
  Val high = o.likeDim(kernel);
  if (mayPass)
    high = min(high, ceilDiv(max(o.likeDim(padded) - begin, 0), dilation));
  if (includePad || w.padsBegin[d] == 0)
    return high;
  Val low = ceilDiv(max(o.likeDim(w.padsBegin[d]) - begin, 0), dilation);
  return high - low;
}

Status averagePool(NodeLowering &n) {
  Window window(n.node, n.shape(0));
  bool includePad = n.node.intAttr("count_include_pad");
  DType t = computeType(n.type(0));
  TensorId sum = n.reduceTemp("sum", Monoid::Sum, t, n.outShape(), [&](EquationBuilder &b) {
    return cast(t, windowRead(n, b, window, b.constant(n.type(0), 0)).value);
  });
  n.map(n.out(), [&](EquationBuilder &b) {
    Val count = b.index(1);
    for (size_t d = 0; d < window.rank(); ++d)
      count = count * countIn(window, d, b.axis(2 + d), includePad);
    return cast(n.outType(), b.read(sum, b.axes) / cast(t, count));
  });
  return success();
}

/// |x|^p, and the p-th root.
Val powerOf(Val x, int64_t p) {
  x = abs(x);
  return p == 1 ? x : p == 2 ? x * x : pow(x, x.like(double(p)));
}
Val rootOf(Val x, int64_t p) {
  return p == 1 ? x : p == 2 ? sqrt(x) : pow(x, x.like(1.0 / double(p)));
}

Status lpPool(NodeLowering &n) {
  Window window(n.node, n.shape(0));
  int64_t p = n.node.intAttr("p");
  DType t = computeType(n.type(0));
  TensorId sum = n.reduceTemp("sum", Monoid::Sum, t, n.outShape(), [&](EquationBuilder &b) {
    return powerOf(cast(t, windowRead(n, b, window, b.constant(n.type(0), 0)).value), p);
  });
  n.map(n.out(),
        [&](EquationBuilder &b) { return cast(n.outType(), rootOf(b.read(sum, b.axes), p)); });
  return success();
}

/// Pools over all spatial positions.
template <typename Pre> TensorId globalReduce(NodeLowering &n, Monoid monoid, Pre pre) {
  DType t = computeType(n.type(0));
  Shape spatial(n.shape(0).begin() + 2, n.shape(0).end());
  return n.reduceTemp("acc", monoid, t, n.outShape(), [&](EquationBuilder &b) {
    return pre(cast(t, b.read(n.in(0), concat({b.axis(0), b.axis(1)}, b.reductions(spatial)))));
  });
}

Status globalAverage(NodeLowering &n) {
  TensorId sum = globalReduce(n, Monoid::Sum, [](Val x) { return x; });
  DimExpr count = product(n.shape(0), 2, n.shape(0).size());
  n.map(n.out(), [&](EquationBuilder &b) {
    Val s = b.read(sum, b.axes);
    return cast(n.outType(), s / b.number(s.type(), count));
  });
  return success();
}
Status globalMax(NodeLowering &n) {
  n.copy(n.out(), globalReduce(n, Monoid::Max, [](Val x) { return x; }));
  return success();
}
Status globalLp(NodeLowering &n) {
  int64_t p = n.node.intAttr("p");
  TensorId sum = globalReduce(n, Monoid::Sum, [p](Val x) { return powerOf(x, p); });
  n.map(n.out(),
        [&](EquationBuilder &b) { return cast(n.outType(), rootOf(b.read(sum, b.axes), p)); });
  return success();
}

} // namespace

void addWindowsPool(HandlerTable &table) {
  using enum OpKind;
  table[MaxPool] = maxPool;
  table[AveragePool] = averagePool;
  table[LpPool] = lpPool;
  table[GlobalAveragePool] = globalAverage;
  table[GlobalMaxPool] = globalMax;
  table[GlobalLpPool] = globalLp;
}

} // namespace fusec::lower
