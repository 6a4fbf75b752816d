#include "Reference/OpCall.h"
#include "Support/Diag.h"

#include <cmath>

namespace fusec {

namespace {

// The template arguments are functions of one number and the node, which holds the attributes.

template <auto f> Result<Outputs> floatOp(const OpCall &call) {
  TensorValue out = call.in(0);
  if (!out.isFloating())
    return call.fail("expects floats", Diag::UnsupportedType);
  for (double &v : out.floats)
    v = f(v, call.node);
  return Outputs{std::move(out)};
}

/// Applies `f`, a function with jumps, to each element, which is rounded to its declared type first.
template <auto f> Result<Outputs> stepOp(const OpCall &call) {
  TensorValue out = call.rounded(0);
  for (double &v : out.floats)
    v = f(v, call.node);
  return Outputs{std::move(out)};
}

template <auto f, auto g> Result<Outputs> numericOp(const OpCall &call) {
  TensorValue out = call.in(0);
  for (double &v : out.floats)
    v = f(v, call.node);
  for (int64_t &v : out.ints)
    v = wrapToDType(out.type, g(v, call.node));
  return Outputs{std::move(out)};
}

double alpha(const Node &n) { return n.floatAttr("alpha"); }

double stableSigmoid(double x) {
  if (x >= 0)
    return 1 / (1 + std::exp(-x));
  double e = std::exp(x);
  return e / (1 + e);
}
double stableSoftplus(double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }

double absOf(double x, const Node &) { return std::fabs(x); }
double negOf(double x, const Node &) { return -x; }
double signOf(double x, const Node &) { return std::isnan(x) ? x : (x > 0) - (x < 0); }
double reluOf(double x, const Node &) { return x < 0 ? 0 : x; } // NaN passes
int64_t absOfInt(int64_t x, const Node &) {
  return x < 0 ? static_cast<int64_t>(0 - static_cast<uint64_t>(x)) : x;
}
int64_t negOfInt(int64_t x, const Node &) {
  return static_cast<int64_t>(0 - static_cast<uint64_t>(x));
}
int64_t signOfInt(int64_t x, const Node &) { return (x > 0) - (x < 0); }
int64_t reluOfInt(int64_t x, const Node &) { return x < 0 ? 0 : x; }

/// Abs, Sign and Relu of unsigned numbers: u64 is held by its bits, whose sign means nothing.
template <auto f, auto g> Result<Outputs> magnitudeOp(const OpCall &call) {
  const TensorValue &x = call.in(0);
  if (x.isFloating() || isSigned(x.type))
    return numericOp<f, g>(call);
  TensorValue out = x;
  if (call.node.op == OpKind::Sign)
    for (int64_t &v : out.ints)
      v = v != 0;
  return Outputs{std::move(out)};
}

double geluOf(double x, const Node &n) {
  if (n.stringAttr("approximate") == "tanh") {
    double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    return 0.5 * x * (1 + std::tanh(inner));
  }
  return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
}

double shrinkOf(double x, const Node &n) {
  double lambda = n.floatAttr("lambd"), bias = n.floatAttr("bias");
  return x < -lambda ? x + bias : x > lambda ? x - bias : 0;
}

double hardSigmoidOf(double x, const Node &n) {
  double y = alpha(n) * x + n.floatAttr("beta");
  return y < 0 ? 0 : y > 1 ? 1 : y;
}

double hardSwishOf(double x, const Node &) {
  double y = x / 6 + 0.5;
  return x * (y < 0 ? 0 : y > 1 ? 1 : y);
}

Result<Outputs> shrink(const OpCall &call) {
  if (call.in(0).isFloating())
    return floatOp<shrinkOf>(call);
  TensorValue out = call.in(0);
  for (int64_t i = 0; i < out.numElements(); ++i)
    out.setNumber(i, shrinkOf(out.number(i), call.node));
  return Outputs{std::move(out)};
}

Result<Outputs> isInf(const OpCall &call) {
  const TensorValue &x = call.in(0);
  bool negative = call.node.intAttr("detect_negative"),
       positive = call.node.intAttr("detect_positive");
  TensorValue out(DType::Bool, x.dims);
  for (size_t i = 0; i < x.floats.size(); ++i)
    out.ints[i] = std::isinf(x.floats[i]) && (x.floats[i] < 0 ? negative : positive);
  return Outputs{std::move(out)};
}

Result<Outputs> isNan(const OpCall &call) {
  const TensorValue &x = call.in(0);
  TensorValue out(DType::Bool, x.dims);
  for (size_t i = 0; i < x.floats.size(); ++i)
    out.ints[i] = std::isnan(x.floats[i]);
  return Outputs{std::move(out)};
}

Result<Outputs> logicalNot(const OpCall &call) {
  TensorValue out = call.in(0);
  for (int64_t &v : out.ints)
    v = !v;
  return Outputs{std::move(out)};
}

Result<Outputs> bitwiseNot(const OpCall &call) {
  TensorValue out = call.in(0);
  for (int64_t &v : out.ints)
    v = wrapToDType(out.type, ~v);
  return Outputs{std::move(out)};
}

Result<Outputs> identity(const OpCall &call) { return Outputs{call.in(0)}; }

/// An integer as the nearest value of a float type, rounded once: beyond 2^53 the low bits are first gathered
/// into a sticky bit, which keeps the second rounding from seeing a false tie.
double intToFloat(DType from, int64_t bits, DType to) {
  bool negative = from != DType::U64 && bits < 0;
  uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(bits) : static_cast<uint64_t>(bits);
  if (to == DType::F64)
    return negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
  if (magnitude >> 53)
    magnitude = (magnitude >> 12 | ((magnitude & 0xfff) != 0)) << 12;
  double v = static_cast<double>(magnitude);
  return roundToDType(to, negative ? -v : v);
}

Result<Outputs> cast(const OpCall &call) {
  const TensorValue &x = call.in(0);
  DType to = call.outType();
  TensorValue out(to, x.dims);
  for (size_t i = 0; i < static_cast<size_t>(x.numElements()); ++i) {
    if (x.isFloating()) {
      double v = roundToDType(x.type, x.floats[i]);
      if (isFloat(to))
        out.floats[i] = roundToDType(to, v);
      else if (to == DType::Bool)
        out.ints[i] = v != 0;
      else
        out.ints[i] = wrapToDType(to, truncateToInt(to, v));
    } else if (isFloat(to)) {
      out.floats[i] = intToFloat(x.type, x.ints[i], to);
    } else {
      out.ints[i] = wrapToDType(to, x.ints[i]);
    }
  }
  return Outputs{std::move(out)};
}

Result<Outputs> bitCast(const OpCall &call) {
  const ConstantRef from = toConstant(call.in(0));
  return Outputs{toTensorValue(
      *makeConstantView(call.outType(), from->dims, from->bytes, from->sizeBytes, from))};
}

} // namespace

void addElementwiseUnary(OpTable &t) {
  using enum OpKind;
  entry(t, Abs) = magnitudeOp<absOf, absOfInt>;
  entry(t, Acos) = floatOp<[](double x, const Node &) { return std::acos(x); }>;
  entry(t, Acosh) = floatOp<[](double x, const Node &) { return std::acosh(x); }>;
  entry(t, Asin) = floatOp<[](double x, const Node &) { return std::asin(x); }>;
  entry(t, Asinh) = floatOp<[](double x, const Node &) { return std::asinh(x); }>;
  entry(t, Atan) = floatOp<[](double x, const Node &) { return std::atan(x); }>;
  entry(t, Atanh) = floatOp<[](double x, const Node &) { return std::atanh(x); }>;
  entry(t, BitCast) = bitCast;
  entry(t, BitwiseNot) = bitwiseNot;
  entry(t, Cast) = cast;
  entry(t, Ceil) = stepOp<[](double x, const Node &) { return std::ceil(x); }>;
  entry(t, Celu) = floatOp<[](double x, const Node &n) {
    return x < 0 ? alpha(n) * std::expm1(x / alpha(n)) : x;
  }>;
  entry(t, Cos) = floatOp<[](double x, const Node &) { return std::cos(x); }>;
  entry(t, Cosh) = floatOp<[](double x, const Node &) { return std::cosh(x); }>;
  entry(t, Elu) =
      floatOp<[](double x, const Node &n) { return x < 0 ? alpha(n) * std::expm1(x) : x; }>;
  entry(t, Erf) = floatOp<[](double x, const Node &) { return std::erf(x); }>;
  entry(t, Exp) = floatOp<[](double x, const Node &) { return std::exp(x); }>;
  entry(t, Floor) = stepOp<[](double x, const Node &) { return std::floor(x); }>;
  entry(t, Gelu) = floatOp<geluOf>;
  entry(t, HardSigmoid) = floatOp<hardSigmoidOf>;
  entry(t, HardSwish) = floatOp<hardSwishOf>;
  entry(t, Identity) = identity;
  entry(t, IsInf) = isInf;
  entry(t, IsNaN) = isNan;
  entry(t, LeakyRelu) = floatOp<[](double x, const Node &n) { return x < 0 ? alpha(n) * x : x; }>;
  entry(t, Log) = floatOp<[](double x, const Node &) { return std::log(x); }>;
  entry(t, Mish) = floatOp<[](double x, const Node &) { return x * std::tanh(stableSoftplus(x)); }>;
  entry(t, Neg) = numericOp<negOf, negOfInt>;
  entry(t, Not) = logicalNot;
  entry(t, Reciprocal) = floatOp<[](double x, const Node &) { return 1 / x; }>;
  entry(t, Relu) = magnitudeOp<reluOf, reluOfInt>;
  entry(t, Round) = stepOp<[](double x, const Node &) { return std::nearbyint(x); }>;
  entry(t, Selu) = floatOp<[](double x, const Node &n) {
    return n.floatAttr("gamma") * (x <= 0 ? alpha(n) * std::expm1(x) : x);
  }>;
  entry(t, Shrink) = shrink;
  entry(t, Sigmoid) = floatOp<[](double x, const Node &) { return stableSigmoid(x); }>;
  entry(t, Sign) = magnitudeOp<signOf, signOfInt>;
  entry(t, Sin) = floatOp<[](double x, const Node &) { return std::sin(x); }>;
  entry(t, Sinh) = floatOp<[](double x, const Node &) { return std::sinh(x); }>;
  entry(t, Softplus) = floatOp<[](double x, const Node &) { return stableSoftplus(x); }>;
  entry(t, Softsign) = floatOp<[](double x, const Node &) { return x / (1 + std::fabs(x)); }>;
  entry(t, Sqrt) = floatOp<[](double x, const Node &) { return std::sqrt(x); }>;
  entry(t, Swish) =
      floatOp<[](double x, const Node &n) { return x * stableSigmoid(alpha(n) * x); }>;
  entry(t, Tan) = floatOp<[](double x, const Node &) { return std::tan(x); }>;
  entry(t, Tanh) = floatOp<[](double x, const Node &) { return std::tanh(x); }>;
  entry(t, ThresholdedRelu) =
      floatOp<[](double x, const Node &n) { return alpha(n) < x ? x : 0.0; }>;
}

} // namespace fusec
