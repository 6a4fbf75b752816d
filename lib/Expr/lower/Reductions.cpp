// Reductions over given axes, ArgMax and ArgMin.
#include "Expr/lower/Lowering.h"

namespace fusec::lower {
namespace {

/// The reduced tensor's axes: which of the input's dims are reduced.
struct Reduced {
  std::vector<bool> reduced; // by dim of the input
  Shape kept;                // dims that stay, in order
  Shape extents;             // dims that go
  DimExpr count = 1;

  Reduced(const Shape &shape, const std::vector<int64_t> &axes) : reduced(shape.size()) {
    for (int64_t a : axes)
      reduced[static_cast<size_t>(a)] = true;
    for (size_t d = 0; d < shape.size(); ++d)
      (reduced[d] ? extents : kept).push_back(shape[d]);
    count = product(extents, 0, extents.size());
  }
  /// Input indices from those of the kept dims and of the reduced ones.
  std::vector<Val> indices(const std::vector<Val> &keptAt,
                           const std::vector<Val> &reducedAt) const {
    std::vector<Val> at;
    size_t k = 0, r = 0;
    for (bool isReduced : reduced)
      at.push_back(isReduced ? reducedAt[r++] : keptAt[k++]);
    return at;
  }
  /// The kept dims' indices of an output with or without the dims of length 1.
  std::vector<Val> keptOf(const std::vector<Val> &outAxes) const {
    if (outAxes.size() != reduced.size())
      return outAxes;
    std::vector<Val> at;
    for (size_t d = 0; d < reduced.size(); ++d)
      if (!reduced[d])
        at.push_back(outAxes[d]);
    return at;
  }
};

/// out = post(monoid of pre(x)); `post` also gets the builder.
template <typename Pre, typename Post>
Status reduceWith(NodeLowering &n, Monoid monoid, DType accumulate, Pre pre, Post post,
                  bool hasPost) {
  Reduced r(n.shape(0), n.node.intsAttr("axes"));
  auto element = [&](EquationBuilder &b) {
    std::vector<Val> kept = r.keptOf(b.axes);
    return pre(cast(accumulate, b.read(n.in(0), r.indices(kept, b.reductions(r.extents)))));
  };
  if (!hasPost && n.outType() == accumulate) {
    n.reduce(n.out(), monoid, element);
    return success();
  }
  TensorId t = n.reduceTemp("acc", monoid, accumulate, n.outShape(), element);
  n.map(n.out(),
        [&](EquationBuilder &b) { return cast(n.outType(), post(b, b.read(t, b.axes), r)); });
  return success();
}

Val same(Val x) { return x; }
Val samePost(EquationBuilder &, Val x, const Reduced &) { return x; }

template <Monoid monoid> Status plain(NodeLowering &n) {
  Monoid m = monoid;
  if (n.type(0) == DType::Bool)
    m = monoid == Monoid::Max ? Monoid::Or : Monoid::And;
  return reduceWith(n, m, computeType(n.type(0)), same, samePost, false);
}

Status mean(NodeLowering &n) {
  return reduceWith(
      n, Monoid::Sum, computeType(n.type(0)), same,
      [](EquationBuilder &b, Val x, const Reduced &r) { return x / b.number(x.type(), r.count); },
      true);
}

Status l1(NodeLowering &n) {
  return reduceWith(
      n, Monoid::Sum, computeType(n.type(0)), [](Val x) { return abs(x); }, samePost, false);
}
Val squared(Val x) { return x * x; }
Status sumSquare(NodeLowering &n) {
  return reduceWith(n, Monoid::Sum, computeType(n.type(0)), squared, samePost, false);
}
/// The root or logarithm of an integer sum is taken in f64.
Val inFloat(Val x) { return x.floating() ? x : cast(DType::F64, x); }
Status l2(NodeLowering &n) {
  return reduceWith(
      n, Monoid::Sum, computeType(n.type(0)), squared,
      [](EquationBuilder &, Val x, const Reduced &) { return sqrt(inFloat(x)); }, true);
}
Status logSum(NodeLowering &n) {
  return reduceWith(
      n, Monoid::Sum, computeType(n.type(0)), same,
      [](EquationBuilder &, Val x, const Reduced &) { return log(inFloat(x)); }, true);
}

/// m + log(sum(exp(x - m))) with m the maximum, or 0 where that is infinite.
Status logSumExp(NodeLowering &n) {
  DType t = isFloat(n.type(0)) ? computeType(n.type(0)) : DType::F64;
  Reduced r(n.shape(0), n.node.intsAttr("axes"));
  auto element = [&](EquationBuilder &b) {
    return cast(t, b.read(n.in(0), r.indices(r.keptOf(b.axes), b.reductions(r.extents))));
  };
  TensorId m = n.reduceTemp("max", Monoid::Max, t, n.outShape(), element);
  TensorId shift = n.map(n.temp("shift", t, n.outShape()), [&](EquationBuilder &b) {
    Val v = b.read(m, b.axes);
    return select(isInf(v), v.like(0), v);
  });
  TensorId s = n.reduceTemp("sum", Monoid::Sum, t, n.outShape(), [&](EquationBuilder &b) {
    return exp(element(b) - b.read(shift, b.axes));
  });
  n.map(n.out(), [&](EquationBuilder &b) {
    return cast(n.outType(), log(b.read(s, b.axes)) + b.read(shift, b.axes));
  });
  return success();
}

template <bool isMax> Status arg(NodeLowering &n) {
  auto axis = static_cast<size_t>(n.node.intAttr("axis"));
  bool last = n.node.intAttr("select_last_index");
  Reduced r(n.shape(0), {static_cast<int64_t>(axis)});
  DType t = n.type(0) == DType::Bool ? DType::U8 : computeType(n.type(0));
  TensorId value = n.temp("value", t, n.outShape());
  EquationBuilder b(n, EquationKind::Reduction, {value, n.out()});
  b.equation.monoid = isMax ? (last ? Monoid::ArgMaxLast : Monoid::ArgMax)
                            : (last ? Monoid::ArgMinLast : Monoid::ArgMin);
  b.equation.accumulateType = t;
  std::vector<Val> at = b.reductions(r.extents);
  Val x = cast(t, b.read(n.in(0), r.indices(r.keptOf(b.axes), at)));
  b.finish({x, at[0]});
  return success();
}

} // namespace

void addReductions(HandlerTable &table) {
  using enum OpKind;
  table[ReduceSum] = plain<Monoid::Sum>;
  table[ReduceProd] = plain<Monoid::Prod>;
  table[ReduceMax] = plain<Monoid::Max>;
  table[ReduceMin] = plain<Monoid::Min>;
  table[ReduceMean] = mean;
  table[ReduceL1] = l1;
  table[ReduceL2] = l2;
  table[ReduceSumSquare] = sumSquare;
  table[ReduceLogSum] = logSum;
  table[ReduceLogSumExp] = logSumExp;
  table[ArgMax] = arg<true>;
  table[ArgMin] = arg<false>;
}

} // namespace fusec::lower
