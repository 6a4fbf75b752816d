// Normalisations. Statistics are taken in two passes (mean, then centred variance), in at least f32.
#include "Expr/lower/Lowering.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace fusec::lower {
namespace {

/// mean and 1/sqrt(var + epsilon) over groups of elements. `statShape` is the domain of the statistics,
/// `element` adds the reduction axes to an equation over it and reads x there (in type t), `count` is the
/// number of elements a group.
struct Moments {
  TensorId mean, inverse;
};
Moments moments(NodeLowering &n, const Shape &statShape, DType t, const DimExpr &count,
                double epsilon, const std::function<Val(EquationBuilder &)> &element) {
  TensorId sum = n.reduceTemp("sum", Monoid::Sum, t, statShape, element);
  TensorId mean = n.map(n.temp("mean", t, statShape), [&](EquationBuilder &b) {
    return b.read(sum, b.axes) / b.number(t, count);
  });
  TensorId squares = n.reduceTemp("squares", Monoid::Sum, t, statShape, [&](EquationBuilder &b) {
    Val centred = element(b) - b.read(mean, b.axes);
    return centred * centred;
  });
  TensorId inverse = n.map(n.temp("inverse", t, statShape), [&](EquationBuilder &b) {
    return 1.0 / sqrt(b.read(squares, b.axes) / b.number(t, count) + epsilon);
  });
  return {mean, inverse};
}

Status layerNorm(NodeLowering &n) {
  auto axis = static_cast<size_t>(n.node.intAttr("axis"));
  const Shape &shape = n.shape(0);
  DType t = computeType(n.type(0));
  Shape outer(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis));
  Shape inner(shape.begin() + static_cast<std::ptrdiff_t>(axis), shape.end());
  Moments m = moments(n, outer, t, product(inner, 0, inner.size()), n.node.floatAttr("epsilon"),
                      [&](EquationBuilder &b) {
                        return cast(t, b.read(n.in(0), concat(b.axes, b.reductions(inner))));
                      });
  auto outerAxes = [&](EquationBuilder &b) {
    return std::vector<Val>(b.axes.begin(), b.axes.begin() + static_cast<std::ptrdiff_t>(axis));
  };
  if (n.wants(0))
    n.map(n.out(), [&](EquationBuilder &b) {
      Val x = cast(t, b.read(n.in(0), b.axes)) - b.read(m.mean, outerAxes(b));
      Val y = x * b.read(m.inverse, outerAxes(b)) * cast(t, b.broadcast(n.in(1)));
      if (n.has(2))
        y = y + cast(t, b.broadcast(n.in(2)));
      return cast(n.outType(), y);
    });
  for (size_t i : {1, 2})
    if (n.wants(i))
      n.map(n.out(i), [&](EquationBuilder &b) {
        return cast(n.outType(i), b.read(i == 1 ? m.mean : m.inverse, outerAxes(b)));
      });
  return success();
}

Status rmsNorm(NodeLowering &n) {
  auto axis = static_cast<size_t>(n.node.intAttr("axis"));
  const Shape &shape = n.shape(0);
  DType t = computeType(n.type(0));
  Shape outer(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis));
  Shape inner(shape.begin() + static_cast<std::ptrdiff_t>(axis), shape.end());
  TensorId squares = n.reduceTemp("squares", Monoid::Sum, t, outer, [&](EquationBuilder &b) {
    Val x = cast(t, b.read(n.in(0), concat(b.axes, b.reductions(inner))));
    return x * x;
  });
  TensorId inverse = n.map(n.temp("inverse", t, outer), [&](EquationBuilder &b) {
    Val mean = b.read(squares, b.axes) / b.number(t, product(inner, 0, inner.size()));
    return 1.0 / sqrt(mean + n.node.floatAttr("epsilon"));
  });
  n.map(n.out(), [&](EquationBuilder &b) {
    std::vector<Val> row(b.axes.begin(), b.axes.begin() + static_cast<std::ptrdiff_t>(axis));
    Val y = cast(t, b.read(n.in(0), b.axes)) * b.read(inverse, row);
    return cast(n.outType(), y * cast(t, b.broadcast(n.in(1))));
  });
  return success();
}

ConstantRef floatConstant(const std::vector<double> &values) {
  std::vector<uint8_t> bytes;
  for (double v : values)
    appendElement(bytes, DType::F32, v);
  return makeConstant(DType::F32, {static_cast<int64_t>(values.size())}, std::move(bytes));
}

/// y = x*factor + offset per channel, with factor = scale/sqrt(var + epsilon), offset = bias - mean*factor.
Status batchNorm(NodeLowering &n) {
  DType t = computeType(n.outType());
  double epsilon = n.node.floatAttr("epsilon");
  bool constant = t == DType::F32;
  for (size_t i = 1; i < 5; ++i)
    constant = constant && n.inValue(i).constant;
  TensorId factor, offset;
  if (constant) {
    // Computed here, in double: square roots and quotients are exactly rounded on every builder.
    std::vector<double> factors, offsets;
    auto value = [&](size_t i, int64_t c) { return n.inValue(i).constant->floatAt(c); };
    for (int64_t c = 0; c < n.inValue(1).constant->numElements(); ++c) {
      factors.push_back(value(1, c) / std::sqrt(value(4, c) + epsilon));
      offsets.push_back(value(2, c) - value(3, c) * factors.back());
    }
    factor = n.constant("factor", floatConstant(factors));
    offset = n.constant("offset", floatConstant(offsets));
  } else {
    auto read = [&](EquationBuilder &b, size_t i) { return cast(t, b.read(n.in(i), b.axes)); };
    factor = n.map(n.temp("factor", t, n.shape(1)),
                   [&](EquationBuilder &b) { return read(b, 1) / sqrt(read(b, 4) + epsilon); });
    offset = n.map(n.temp("offset", t, n.shape(1)), [&](EquationBuilder &b) {
      return read(b, 2) - read(b, 3) * b.read(factor, b.axes);
    });
  }
  n.map(n.out(), [&](EquationBuilder &b) {
    Val c = b.axes.size() > 1 ? b.axis(1) : b.index(0);
    Val x = cast(t, b.read(n.in(0), b.axes));
    return cast(n.outType(), x * b.read(factor, {c}) + b.read(offset, {c}));
  });
  return success();
}

/// Instance normalisation is group normalisation with one channel a group.
Status groupedNorm(NodeLowering &n, DimExpr groups, DimExpr perGroup) {
  DType t = computeType(n.outType());
  Shape inner = n.shape(0);
  inner.erase(inner.begin(), inner.begin() + 2);
  auto channel = [&](Val g, Val c) { return g * perGroup + c; };
  Moments m =
      moments(n, {n.shape(0)[0], groups}, t, perGroup * product(inner, 0, inner.size()),
              n.node.floatAttr("epsilon"), [&](EquationBuilder &b) {
                Val c = channel(b.axis(1), b.reduction(perGroup));
                return cast(t, b.read(n.in(0), concat({b.axis(0), c}, b.reductions(inner))));
              });
  n.map(n.out(), [&](EquationBuilder &b) {
    std::vector<Val> group{b.axis(0), floorDiv(b.axis(1), perGroup)};
    Val x = (cast(t, b.read(n.in(0), b.axes)) - b.read(m.mean, group)) * b.read(m.inverse, group);
    Val y = x * cast(t, b.read(n.in(1), {b.axis(1)})) + cast(t, b.read(n.in(2), {b.axis(1)}));
    return cast(n.outType(), y);
  });
  return success();
}

Status instanceNorm(NodeLowering &n) { return groupedNorm(n, n.shape(0)[1], 1); }
Status groupNorm(NodeLowering &n) {
  int64_t groups = n.node.intAttr("num_groups");
  return groupedNorm(n, groups, floorDiv(n.shape(0)[1], DimExpr(groups)));
}

/// x / (sum |x|^p)^(1/p) along one axis; 0 where all elements are zero.
Status lpNorm(NodeLowering &n) {
  auto axis = static_cast<std::ptrdiff_t>(n.node.intAttr("axis"));
  bool l1 = n.node.intAttr("p") == 1;
  DType t = computeType(n.outType());
  Shape rows = n.shape(0);
  DimExpr extent = rows[static_cast<size_t>(axis)];
  rows.erase(rows.begin() + axis);
  TensorId norm = n.reduceTemp("norm", Monoid::Sum, t, rows, [&](EquationBuilder &b) {
    std::vector<Val> at = b.axes;
    at.insert(at.begin() + axis, b.reduction(extent));
    Val x = cast(t, b.read(n.in(0), at));
    return l1 ? abs(x) : x * x;
  });
  n.map(n.out(), [&](EquationBuilder &b) {
    std::vector<Val> row = b.axes;
    row.erase(row.begin() + axis);
    Val s = b.read(norm, row), x = cast(t, b.read(n.in(0), b.axes));
    return cast(n.outType(), select(eq(s, 0), s, x / (l1 ? s : sqrt(s))));
  });
  return success();
}

/// x / (bias + alpha/size * sum of squares over `size` neighbouring channels)^beta
Status lrn(NodeLowering &n) {
  int64_t size = n.node.intAttr("size");
  // Neighbours further away than there are channels do not exist.
  int64_t furthest = std::max<int64_t>(n.shape(0)[1].range(n.l.program.symbols).max, 1) - 1;
  int64_t before = std::min((size - 1) / 2, furthest);
  int64_t after = std::min(size - 1 - (size - 1) / 2, furthest);
  DType t = computeType(n.outType());
  TensorId squares = n.reduceTemp("squares", Monoid::Sum, t, n.shape(0), [&](EquationBuilder &b) {
    std::vector<Val> at = b.axes;
    at[1] = b.axis(1) + b.reduction(before + after + 1) - double(before);
    Val x = cast(t, b.readIf(inRange(at[1], n.shape(0)[1]), n.in(0), at, b.constant(n.type(0), 0)));
    return x * x;
  });
  n.map(n.out(), [&](EquationBuilder &b) {
    Val base = b.read(squares, b.axes) * (n.node.floatAttr("alpha") / double(size)) +
               n.node.floatAttr("bias");
    Val x = cast(t, b.read(n.in(0), b.axes));
    return cast(n.outType(), x / pow(base, base.like(n.node.floatAttr("beta"))));
  });
  return success();
}

/// (x - mean) / (sqrt(var) + 1e-9) over the given axes.
Status meanVariance(NodeLowering &n) {
  const Shape &shape = n.shape(0);
  std::vector<bool> reduced(shape.size());
  for (int64_t a : n.node.intsAttr("axes"))
    reduced[static_cast<size_t>(a)] = true;
  DType t = computeType(n.outType());
  Shape kept;
  DimExpr count = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (reduced[d])
      count = count * shape[d];
    else
      kept.push_back(shape[d]);
  }
  auto element = [&](EquationBuilder &b) {
    std::vector<Val> at;
    size_t k = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      at.push_back(reduced[d] ? b.reduction(shape[d]) : b.axis(k++));
    return cast(t, b.read(n.in(0), at));
  };
  TensorId sum = n.reduceTemp("sum", Monoid::Sum, t, kept, element);
  TensorId mean = n.map(n.temp("mean", t, kept), [&](EquationBuilder &b) {
    return b.read(sum, b.axes) / b.number(t, count);
  });
  TensorId squares = n.reduceTemp("squares", Monoid::Sum, t, kept, [&](EquationBuilder &b) {
    Val centred = element(b) - b.read(mean, b.axes);
    return centred * centred;
  });
  n.map(n.out(), [&](EquationBuilder &b) {
    std::vector<Val> row;
    for (size_t d = 0; d < shape.size(); ++d)
      if (!reduced[d])
        row.push_back(b.axis(d));
    Val deviation = sqrt(b.read(squares, row) / b.number(t, count)) + 1e-9;
    return cast(n.outType(), (cast(t, b.read(n.in(0), b.axes)) - b.read(mean, row)) / deviation);
  });
  return success();
}

} // namespace

void addNormalisations(HandlerTable &table) {
  using enum OpKind;
  table[LayerNormalization] = layerNorm;
  table[RMSNormalization] = rmsNorm;
  table[BatchNormalization] = batchNorm;
  table[InstanceNormalization] = instanceNorm;
  table[GroupNormalization] = groupNorm;
  table[LpNormalization] = lpNorm;
  table[LRN] = lrn;
  table[MeanVarianceNormalization] = meanVariance;
}

} // namespace fusec::lower
