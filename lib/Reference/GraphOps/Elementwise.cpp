#include "Reference/OpCall.h"
#include "Support/Diag.h"

#include <cmath>

namespace fusec {

namespace {

Result<Dims> commonDims(const OpCall &call) {
  std::vector<Dims> shapes;
  for (const TensorValue *in : call.inputs)
    if (in)
      shapes.push_back(in->dims);
  auto dims = broadcastDims(shapes);
  if (!dims)
    return call.fail("the operands' shapes do not broadcast", Diag::ShapeMismatch);
  FUSEC_CHECK(call.checkSize(*dims));
  return *dims;
}

/// out = f(a, b) element by element; F and G map numbers of the operand type to numbers of `outType`.
template <typename F, typename G>
Result<Outputs> binary(const OpCall &call, DType outType, F onFloats, G onInts) {
  FUSEC_TRY(Dims dims, commonDims(call));
  bool discontinuous = outType == DType::Bool || call.node.op == OpKind::Mod;
  const TensorValue a = discontinuous ? call.rounded(0) : call.in(0);
  const TensorValue b = discontinuous ? call.rounded(1) : call.in(1);
  TensorValue out(outType, dims);
  size_t i = 0;
  for (Walker w(dims, {broadcastStrides(a.dims, dims), broadcastStrides(b.dims, dims)}); !w.done();
       w.next(), ++i) {
    auto p = static_cast<size_t>(w.offset(0)), q = static_cast<size_t>(w.offset(1));
    if (a.isFloating()) {
      auto v = onFloats(a.floats[p], b.floats[q]);
      if (out.isFloating())
        out.floats[i] = static_cast<double>(v);
      else
        out.ints[i] = static_cast<int64_t>(v);
    } else {
      out.ints[i] =
          wrapToDType(outType, static_cast<int64_t>(onInts(a.ints[p], b.ints[q], a.type)));
    }
  }
  return Outputs{std::move(out)};
}

using U = uint64_t;

int64_t divideInts(int64_t a, int64_t b, DType t) {
  if (b == 0)
    return 0;
  if (!isSigned(t))
    return static_cast<int64_t>(static_cast<U>(a) / static_cast<U>(b));
  return b == -1 ? static_cast<int64_t>(0 - static_cast<U>(a)) : a / b;
}

int64_t remainderInts(int64_t a, int64_t b, DType t) {
  if (b == 0)
    return 0;
  if (!isSigned(t))
    return static_cast<int64_t>(static_cast<U>(a) % static_cast<U>(b));
  return b == -1 ? 0 : a % b;
}

int64_t floorModInts(int64_t a, int64_t b, DType t) {
  int64_t r = remainderInts(a, b, t);
  return isSigned(t) && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

double floorMod(double a, double b) {
  double r = std::fmod(a, b);
  if (r == 0)
    return std::copysign(r, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

bool lessInts(int64_t a, int64_t b, DType t) {
  return t == DType::U64 ? static_cast<U>(a) < static_cast<U>(b) : a < b;
}

Result<Outputs> add(const OpCall &call) {
  return binary(
      call, call.in(0).type, [](double a, double b) { return a + b; },
      [](int64_t a, int64_t b, DType) { return static_cast<U>(a) + static_cast<U>(b); });
}
Result<Outputs> sub(const OpCall &call) {
  return binary(
      call, call.in(0).type, [](double a, double b) { return a - b; },
      [](int64_t a, int64_t b, DType) { return static_cast<U>(a) - static_cast<U>(b); });
}
Result<Outputs> mul(const OpCall &call) {
  return binary(
      call, call.in(0).type, [](double a, double b) { return a * b; },
      [](int64_t a, int64_t b, DType) { return static_cast<U>(a) * static_cast<U>(b); });
}
Result<Outputs> div(const OpCall &call) {
  return binary(call, call.in(0).type, [](double a, double b) { return a / b; }, divideInts);
}
Result<Outputs> modulo(const OpCall &call) {
  if (call.node.intAttr("fmod"))
    return binary(
        call, call.in(0).type, [](double a, double b) { return std::fmod(a, b); }, remainderInts);
  return binary(call, call.in(0).type, floorMod, floorModInts);
}
Result<Outputs> prelu(const OpCall &call) {
  return binary(
      call, call.in(0).type, [](double x, double s) { return x < 0 ? x * s : x; },
      [](int64_t x, int64_t s, DType t) {
        return isSigned(t) && x < 0 ? static_cast<U>(x) * static_cast<U>(s) : static_cast<U>(x);
      });
}

template <typename F> Result<Outputs> bits(const OpCall &call, F f) {
  return binary(
      call, call.in(0).type, [](double, double) { return 0.0; },
      [f](int64_t a, int64_t b, DType t) { return f(a, b, t); });
}
Result<Outputs> bitAnd(const OpCall &call) {
  return bits(call, [](int64_t a, int64_t b, DType) { return a & b; });
}
Result<Outputs> bitOr(const OpCall &call) {
  return bits(call, [](int64_t a, int64_t b, DType) { return a | b; });
}
Result<Outputs> bitXor(const OpCall &call) {
  return bits(call, [](int64_t a, int64_t b, DType) { return a ^ b; });
}
Result<Outputs> bitShift(const OpCall &call) {
  bool left = call.node.stringAttr("direction") == "LEFT";
  return bits(call, [left](int64_t a, int64_t b, DType t) -> int64_t {
    bool negative = isSigned(t) && a < 0;
    if (static_cast<U>(b) >= static_cast<U>(8 * sizeInBytes(t)))
      return !left && negative ? -1 : 0;
    return left       ? static_cast<int64_t>(static_cast<U>(a) << b)
           : negative ? a >> b
                      : static_cast<int64_t>(static_cast<U>(a) >> b);
  });
}

Result<Outputs> equal(const OpCall &call) {
  return binary(
      call, DType::Bool, [](double a, double b) { return a == b; },
      [](int64_t a, int64_t b, DType) { return a == b; });
}
Result<Outputs> less(const OpCall &call) {
  return binary(call, DType::Bool, [](double a, double b) { return a < b; }, lessInts);
}
Result<Outputs> lessOrEqual(const OpCall &call) {
  return binary(
      call, DType::Bool, [](double a, double b) { return a <= b; },
      [](int64_t a, int64_t b, DType t) { return !lessInts(b, a, t); });
}
Result<Outputs> greater(const OpCall &call) {
  return binary(
      call, DType::Bool, [](double a, double b) { return a > b; },
      [](int64_t a, int64_t b, DType t) { return lessInts(b, a, t); });
}
Result<Outputs> greaterOrEqual(const OpCall &call) {
  return binary(
      call, DType::Bool, [](double a, double b) { return a >= b; },
      [](int64_t a, int64_t b, DType t) { return !lessInts(a, b, t); });
}

/// b^e mod 2^64 for e >= 0.
U powerOf(U b, U e) {
  U r = 1;
  for (; e; e >>= 1, b *= b)
    if (e & 1)
      r *= b;
  return r;
}

/// The result has the type of the base; integer bases with negative or fractional exponents go through double.
Result<Outputs> pow(const OpCall &call) {
  FUSEC_TRY(Dims dims, commonDims(call));
  const TensorValue &a = call.in(0), &b = call.in(1);
  TensorValue out(a.type, dims);
  int64_t i = 0;
  for (Walker w(dims, {broadcastStrides(a.dims, dims), broadcastStrides(b.dims, dims)}); !w.done();
       w.next(), ++i) {
    int64_t p = w.offset(0), q = w.offset(1);
    bool integral = !a.isFloating() && !b.isFloating();
    int64_t e = integral ? b.ints[static_cast<size_t>(q)] : 0;
    if (integral && (e >= 0 || b.type == DType::U64))
      out.ints[static_cast<size_t>(i)] = wrapToDType(
          a.type, static_cast<int64_t>(
                      powerOf(static_cast<U>(a.ints[static_cast<size_t>(p)]), static_cast<U>(e))));
    else
      out.setNumber(i, std::pow(a.number(p), b.number(q)));
  }
  return Outputs{std::move(out)};
}

enum class Fold { Sum, Mean, Max, Min };

double foldFloats(Fold f, double a, double b) {
  if (f == Fold::Sum || f == Fold::Mean)
    return a + b;
  if (std::isnan(a) || std::isnan(b))
    return std::nan("");
  return f == Fold::Max ? std::fmax(a, b) : std::fmin(a, b);
}

int64_t foldInts(Fold f, int64_t a, int64_t b, DType t) {
  if (f == Fold::Sum || f == Fold::Mean)
    return static_cast<int64_t>(static_cast<U>(a) + static_cast<U>(b));
  return lessInts(a, b, t) == (f == Fold::Max) ? b : a;
}

template <Fold f> Result<Outputs> variadic(const OpCall &call) {
  FUSEC_TRY(Dims dims, commonDims(call));
  TensorValue out(call.in(0).type, dims);
  for (size_t k = 0; k < call.inputs.size(); ++k) {
    const TensorValue &x = call.in(k);
    size_t i = 0;
    for (Walker w(dims, {broadcastStrides(x.dims, dims)}); !w.done(); w.next(), ++i) {
      auto p = static_cast<size_t>(w.offset(0));
      if (x.isFloating())
        out.floats[i] = k ? foldFloats(f, out.floats[i], x.floats[p]) : x.floats[p];
      else
        out.ints[i] =
            k ? wrapToDType(x.type, foldInts(f, out.ints[i], x.ints[p], x.type)) : x.ints[p];
    }
  }
  if (f == Fold::Mean) {
    for (double &v : out.floats)
      v /= static_cast<double>(call.inputs.size());
    for (int64_t &v : out.ints)
      v = divideInts(v, static_cast<int64_t>(call.inputs.size()), out.type);
  }
  return Outputs{std::move(out)};
}

/// Clip(x, lo, hi) = Min(hi, Max(x, lo)): hi wins where lo > hi.
Result<Outputs> clip(const OpCall &call) {
  TensorValue out = call.in(0);
  for (size_t bound = 1; bound <= 2; ++bound) {
    if (!call.has(bound))
      continue;
    const TensorValue &limit = call.in(bound);
    if (limit.numElements() != 1)
      return call.fail("min and max must be scalars", Diag::ShapeMismatch);
    Fold f = bound == 1 ? Fold::Max : Fold::Min;
    for (double &v : out.floats)
      v = foldFloats(f, v, limit.floats[0]);
    for (int64_t &v : out.ints)
      v = foldInts(f, v, limit.ints[0], out.type);
  }
  return Outputs{std::move(out)};
}

Result<Outputs> where(const OpCall &call) {
  FUSEC_TRY(Dims dims, commonDims(call));
  const TensorValue &c = call.in(0), &a = call.in(1), &b = call.in(2);
  TensorValue out(a.type, dims);
  int64_t i = 0;
  for (Walker w(dims, {broadcastStrides(c.dims, dims), broadcastStrides(a.dims, dims),
                       broadcastStrides(b.dims, dims)});
       !w.done(); w.next(), ++i) {
    if (c.ints[static_cast<size_t>(w.offset(0))])
      out.copyElement(i, a, w.offset(1));
    else
      out.copyElement(i, b, w.offset(2));
  }
  return Outputs{std::move(out)};
}

} // namespace

void addElementwise(OpTable &t) {
  using enum OpKind;
  entry(t, Add) = add;
  entry(t, And) = bitAnd; // bools are 0 and 1
  entry(t, BitShift) = bitShift;
  entry(t, BitwiseAnd) = bitAnd;
  entry(t, BitwiseOr) = bitOr;
  entry(t, BitwiseXor) = bitXor;
  entry(t, Clip) = clip;
  entry(t, Div) = div;
  entry(t, Equal) = equal;
  entry(t, Greater) = greater;
  entry(t, GreaterOrEqual) = greaterOrEqual;
  entry(t, Less) = less;
  entry(t, LessOrEqual) = lessOrEqual;
  entry(t, Max) = variadic<Fold::Max>;
  entry(t, Mean) = variadic<Fold::Mean>;
  entry(t, Min) = variadic<Fold::Min>;
  entry(t, Mod) = modulo;
  entry(t, Mul) = mul;
  entry(t, Or) = bitOr;
  entry(t, Pow) = pow;
  entry(t, PRelu) = prelu;
  entry(t, Sub) = sub;
  entry(t, Sum) = variadic<Fold::Sum>;
  entry(t, Where) = where;
  entry(t, Xor) = bitXor;
}

} // namespace fusec
