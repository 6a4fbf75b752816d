#include "Reference/Random/Builder.h"

namespace fusec::random {

namespace {

using enum OpKind;
using Attributes = std::map<std::string, Attribute>;

bool addReduction(Builder &b) {
  OpKind op =
      b.rng.pick(std::vector<OpKind>{ReduceSum, ReduceSum, ReduceMean, ReduceMax, ReduceMin,
                                     ReduceL1, ReduceSumSquare, ReduceLogSumExp, ReduceProd});
  ValueId x = b.pick([&](ValueId v) {
    DType t = b.type(v);
    if (op == ReduceProd)
      return isInteger(t) && sizeInBytes(t) >= 4;
    if (op == ReduceMean || op == ReduceLogSumExp)
      return isFloat(t);
    return isFloat(t) || (isInteger(t) && sizeInBytes(t) >= 4);
  });
  if (x == kNoValue)
    return false;
  std::vector<int64_t> axes;
  DimExpr count = 1;
  for (int64_t d = 0; d < b.rank(x); ++d)
    if (b.rng.chance(40)) {
      axes.push_back(d);
      count = count * b.shape(x)[static_cast<size_t>(d)];
    }
  bool neutral = op == ReduceSum || op == ReduceL1 || op == ReduceSumSquare || op == ReduceProd;
  if (!neutral && b.least(count) == 0)
    return false; // the empty maximum and mean are infinite or undefined
  bool keep = b.rng.chance(50);
  auto n = static_cast<double>(b.most(count));
  const Facts f = b.facts[size_t(x)];
  Facts out = f;
  double m = f.largest();
  if (isFloat(b.type(x))) {
    if (op == ReduceSum)
      out = {std::min(0.0, n * f.low), std::max(0.0, n * f.high), n * f.error};
    else if (op == ReduceL1)
      out = {0, n * m, n * f.error};
    else if (op == ReduceSumSquare)
      out = {0, n * m * m, n * 2 * m * f.error};
    else if (op == ReduceLogSumExp)
      out = {f.low, f.high + std::log(std::max(n, 1.0)), f.error};
    if (op != ReduceMax && op != ReduceMin) {
      Facts scaled = out; // errors are relative to the sum of magnitudes
      scaled.high = std::max(scaled.high, op == ReduceSum ? n * m : std::max(m, 1.0));
      auto r = b.rounded(b.type(x), scaled, n + 16);
      if (!r)
        return false;
      out.error = r->error;
      out.low -= out.error;
      out.high += out.error;
    }
  }
  b.addNode(op, {x}, {{"axes", axes}, {"keepdims", int64_t(keep)}}, out);
  return true;
}

bool addArgExtreme(Builder &b) {
  ValueId x = b.pick([&](ValueId v) {
    return b.rank(v) > 0 &&
           (isInteger(b.type(v)) || (isFloat(b.type(v)) && b.facts[size_t(v)].exact()));
  });
  if (x == kNoValue)
    return false;
  int64_t axis = b.rng.below(b.rank(x));
  if (b.least(b.shape(x)[size_t(axis)]) == 0)
    return false;
  bool keep = b.rng.chance(50);
  b.addNode(b.rng.chance(50) ? ArgMax : ArgMin, {x},
            {{"axis", axis}, {"keepdims", int64_t(keep)}, {"select_last_index", b.rng.below(2)}},
            {});
  return true;
}

bool addCumSum(Builder &b) {
  ValueId x = b.pick([&](ValueId v) {
    DType t = b.type(v);
    return b.rank(v) > 0 &&
           (t == DType::F32 || t == DType::F64 || t == DType::I32 || t == DType::I64);
  });
  if (x == kNoValue)
    return false;
  int64_t axis = b.rng.below(b.rank(x));
  auto n = static_cast<double>(b.most(b.shape(x)[size_t(axis)]));
  const Facts f = b.facts[size_t(x)];
  Facts out = f;
  if (isFloat(b.type(x))) {
    auto r = b.rounded(b.type(x), {-n * f.largest(), n * f.largest(), n * f.error}, n + 1);
    if (!r)
      return false;
    out = *r;
  }
  b.addNode(CumSum, {x, b.addInts({}, {axis})},
            {{"exclusive", b.rng.below(2)}, {"reverse", b.rng.below(2)}}, out);
  return true;
}

bool addSoftmax(Builder &b) {
  ValueId x = b.pick([&](ValueId v) { return isFloat(b.type(v)) && b.rank(v) > 0; });
  if (x == kNoValue)
    return false;
  int64_t axis = b.rng.below(b.rank(x));
  auto n = static_cast<double>(b.most(b.shape(x)[size_t(axis)]));
  const Facts f = b.facts[size_t(x)];
  bool logarithm = b.rng.chance(30);
  Facts out{0, 1, 2 * f.error};
  if (logarithm)
    out = {-(f.high - f.low) - std::log(std::max(n, 1.0)), 0, 2 * f.error};
  auto r = b.rounded(b.type(x), out, n + 16);
  if (!r)
    return false;
  b.addNode(logarithm ? LogSoftmax : Softmax, {x}, {{"axis", axis}}, *r);
  return true;
}

/// x * w with a constant w, or x * transpose(x).
bool addMatMul(Builder &b) {
  ValueId x = b.pick([&](ValueId v) {
    DType t = b.type(v);
    return b.rank(v) >= 2 && (isFloat(t) || (isInteger(t) && sizeInBytes(t) >= 4));
  });
  if (x == kNoValue)
    return false;
  const SymbolicDims s = b.shape(x);
  size_t last = s.size() - 1;
  auto depth = static_cast<double>(b.most(s[last]));
  const Facts f = b.facts[size_t(x)];
  Facts g{-kInputRange, kInputRange, 0};
  bool withItself = !s[last].isConst() || b.rng.chance(40);
  SymbolicDims out = s;
  int64_t columns = b.rng.between(1, 9);
  out[last] = withItself ? s[last - 1] : DimExpr(columns);
  if (!b.fits(out))
    return false;
  if (withItself)
    g = f;
  const std::optional<Facts> made = product(b, b.type(x), f, g, depth);
  if (!made)
    return false;
  ValueId y;
  if (withItself) {
    std::vector<int64_t> perm;
    for (size_t d = 0; d < s.size(); ++d)
      perm.push_back(static_cast<int64_t>(d));
    std::swap(perm[last], perm[last - 1]);
    y = b.addNode(Transpose, {x}, {{"perm", perm}}, f);
  } else {
    y = b.addConstant(b.type(x), {s[last].constValue(), columns});
  }
  b.addNode(MatMul, {x, y}, {}, *made);
  return true;
}

/// Convolution or pooling of a rank-4 tensor with static channels.
bool addWindowed(Builder &b) {
  ValueId x = b.pick([&](ValueId v) {
    const SymbolicDims &s = b.shape(v);
    return isFloat(b.type(v)) && s.size() == 4 && s[1].isConst() && s[1].constValue() > 0 &&
           b.isIndexable(s[2]) && b.isIndexable(s[3]);
  });
  if (x == kNoValue)
    return false;
  const SymbolicDims s = b.shape(x);
  DType t = b.type(x);
  const Facts f = b.facts[size_t(x)];
  std::vector<int64_t> kernel, strides, dilations, pads(4, 0);
  SymbolicDims out = {s[0], s[1]};
  for (size_t d = 0; d < 2; ++d) {
    const DimExpr &size = s[2 + d];
    const bool isOpen = !size.isConst();
    kernel.push_back(b.rng.between(1, isOpen ? 3 : std::min<int64_t>(3, b.least(size))));
    strides.push_back(b.rng.between(1, 2));
    dilations.push_back(1);
    if (kernel[d] > b.least(size) || (kernel[d] > 1 && b.rng.chance(50)))
      pads[d] = pads[d + 2] = 1;
    out.push_back(floorDiv(size + DimExpr(pads[d] + pads[d + 2] - kernel[d]), DimExpr(strides[d])) +
                  DimExpr(1));
  }
  auto window = static_cast<double>(kernel[0] * kernel[1]);
  Attributes attributes = {
      {"kernel_shape", kernel}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}};
  int kind = static_cast<int>(b.rng.below(3));
  if (kind == 0) {
    int64_t group = s[1].constValue() % 2 == 0 && b.rng.chance(30) ? 2 : 1;
    int64_t filters = group * b.rng.between(1, 4), perGroup = s[1].constValue() / group;
    out[1] = filters;
    double taps = window * static_cast<double>(perGroup),
           bound = taps * f.largest() * kInputRange + kInputRange;
    auto r = b.rounded(t, {-bound, bound, taps * kInputRange * f.error}, taps + 3);
    if (!r || !b.fits(out))
      return false;
    ValueId w = b.addConstant(t, {filters, perGroup, kernel[0], kernel[1]});
    ValueId bias = b.addConstant(t, {filters});
    attributes["group"] = group;
    return b.addNode(Conv, {x, w, bias}, attributes, *r) != kNoValue;
  }
  attributes["ceil_mode"] = int64_t(0);
  if (kind == 1) {
    attributes["storage_order"] = int64_t(0);
    return b.addNode(MaxPool, {x}, attributes, f) != kNoValue;
  }
  attributes["count_include_pad"] = b.rng.below(2);
  Facts average{std::min(0.0, f.low), std::max(0.0, f.high), f.error};
  auto r = b.rounded(t, average, window + 2);
  if (!r)
    return false;
  return b.addNode(AveragePool, {x}, attributes, *r) != kNoValue;
}

bool addLayerNorm(Builder &b) {
  ValueId x = b.pick([&](ValueId v) {
    return isFloat(b.type(v)) && b.rank(v) > 0 && b.shape(v).back().isConst() &&
           b.shape(v).back().constValue() > 0;
  });
  if (x == kNoValue)
    return false;
  DType t = b.type(x);
  int64_t n = b.shape(x).back().constValue();
  const Facts f = b.facts[size_t(x)];
  constexpr double epsilon = 0.5;
  // |y| <= sqrt(n); a change of x moves mean, deviation and x itself.
  double top = std::sqrt(static_cast<double>(n)), gain = (2 + 2 * top) / std::sqrt(epsilon);
  double centred = f.largest() * gain * unitRoundoff(t) * static_cast<double>(n + 8);
  double bound = top * kInputRange + kInputRange;
  auto r = b.rounded(t, {-bound, bound, kInputRange * (gain * f.error + centred)},
                     static_cast<double>(n + 16));
  if (!r)
    return false;
  ValueId scale = b.addConstant(t, {n}), bias = b.addConstant(t, {n});
  b.addNode(LayerNormalization, {x, scale, bias}, {{"axis", b.rank(x) - 1}, {"epsilon", epsilon}},
            *r);
  return true;
}

} // namespace

std::optional<Facts> product(const Builder &b, DType t, const Facts &f, const Facts &g,
                             double depth) {
  const double most = depth * f.largest() * g.largest();
  const Facts made{-most, most, depth * (f.largest() * g.error + g.largest() * f.error)};
  return isFloat(t) ? b.rounded(t, made, depth + 2) : made;
}

const std::vector<Attempt> &contractionAttempts() {
  static const std::vector<Attempt> list = {addReduction, addReduction, addArgExtreme,
                                            addCumSum,    addSoftmax,   addMatMul,
                                            addMatMul,    addWindowed,  addLayerNorm};
  return list;
}

} // namespace fusec::random
