// Element-wise operators with several operands, broadcast against each other.
#include "Expr/lower/Lowering.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace fusec::lower {
namespace {

/// All operands broadcast to the output's shape, 16-bit floats widened.
std::vector<Val> operands(NodeLowering &n, EquationBuilder &b) {
  std::vector<Val> list;
  for (size_t i = 0; i < n.node.inputs.size(); ++i)
    list.push_back(widen(b.broadcast(n.in(i))));
  return list;
}

template <typename F> Status formula(NodeLowering &n, F f) {
  n.map(n.out(), [&](EquationBuilder &b) { return cast(n.outType(), f(operands(n, b))); });
  return success();
}

constexpr int64_t kMostQuotientsTried = 65536;

/// Whether x * r is q wherever x is q * c without rounding.
template <typename Float> bool dividesExactly(Float c, Float r, int64_t lastQuotient) {
  for (int64_t q = 1; q <= lastQuotient; q += 2)
    if (static_cast<Float>(q) * c * r != static_cast<Float>(q))
      return false;
  return true;
}

/// A number that multiplies as `divisor` divides: quotients without a rest come out exact, so that floor finds whole
/// what is whole, the others up to 1.5 units of their last place off, where a division is 0.5. There may be none; one
/// that is `exact`, with all quotients as a division has them, is of powers of 2 alone.
template <typename Float> std::optional<double> reciprocalOf(double divisor, bool exact) {
  const Float c = static_cast<Float>(divisor), nearest = 1 / c;
  if (!std::isnormal(c) || !std::isnormal(nearest))
    return std::nullopt;
  constexpr int digits = std::numeric_limits<Float>::digits;
  int exponent = 0;
  auto odd = static_cast<uint64_t>(std::ldexp(std::frexp(std::fabs(c), &exponent), digits));
  odd >>= std::countr_zero(odd);
  if (odd == 1)
    return nearest;
  if (exact)
    return std::nullopt;
  const auto lastQuotient = static_cast<int64_t>((uint64_t{1} << digits) / odd);
  if (lastQuotient > kMostQuotientsTried)
    return std::nullopt;
  for (Float r : {nearest, std::nextafter(nearest, Float(0)), std::nextafter(nearest, 2 * nearest)})
    if (dividesExactly(c, r, lastQuotient))
      return r;
  return std::nullopt;
}

/// A division by a constant is a product where it may be: an AVX-512 core divides 16 numbers in 10 cycles, and
/// multiplies 16 or 32 in each (GELU divides by the root of 2). What decides between whole numbers is divided.
Val quotient(Val x, Val divisor, bool isRounded) {
  const Scalar &c = (*divisor.body)[divisor.id];
  std::optional<double> r;
  if (c.op == ScalarOp::Const && c.type == DType::F32)
    r = reciprocalOf<float>(c.fimm, isRounded);
  else if (c.op == ScalarOp::Const && c.type == DType::F64)
    r = reciprocalOf<double>(c.fimm, isRounded);
  return r ? x * *r : x / divisor;
}

Status division(NodeLowering &n) {
  return formula(n, [&](const std::vector<Val> &v) {
    return quotient(v[0], v[1], n.l.isRounded[n.node.outputs[0]]);
  });
}

/// ((x0 op x1) op x2) ..., then `finish`, always in this order: of many operands what the first ones give is a tensor
/// that the next ones go on from.
template <typename F> Status fold(NodeLowering &n, ScalarOp op, F finish) {
  const size_t count = n.node.inputs.size();
  TensorId folded = -1;
  for (size_t next = 0; next < count;) {
    const size_t begin = next, own = folded < 0 ? kMostOperands : kMostOperands - 1,
                 end = std::min(count, begin + own);
    const TensorId out =
        end == count ? n.out()
                     : n.temp("first" + std::to_string(end), computeType(n.type(0)), n.outShape());
    n.map(out, [&](EquationBuilder &b) {
      Val r = folded < 0 ? widen(b.broadcast(n.in(begin))) : b.read(folded, b.axes);
      for (size_t i = folded < 0 ? begin + 1 : begin; i < end; ++i)
        r = binary(op, r, widen(b.broadcast(n.in(i))));
      return end == count ? cast(n.outType(), finish(r)) : r;
    });
    folded = out;
    next = end;
  }
  return success();
}

/// Binary operations and their chains (Max, Min, Sum).
template <ScalarOp op> Status chain(NodeLowering &n) {
  return fold(n, op, [](Val r) { return r; });
}

template <ScalarOp op, bool swapped> Status comparison(NodeLowering &n) {
  return formula(n, [](const std::vector<Val> &v) { return binary(op, v[swapped], v[!swapped]); });
}

Status mean(NodeLowering &n) {
  return fold(n, ScalarOp::Add,
              [&](Val r) { return r / static_cast<double>(n.node.inputs.size()); });
}

Status bitShift(NodeLowering &n) {
  bool left = n.node.stringAttr("direction") == "LEFT";
  return formula(n, [&](const std::vector<Val> &v) {
    Val shifted = binary(left ? ScalarOp::Shl : ScalarOp::Shr, v[0], v[1]);
    if (left || !isSigned(n.outType()))
      return shifted;
    // A count outside [0, width) leaves nothing but copies of the sign.
    const double width = 8 * static_cast<double>(sizeInBytes(n.outType()));
    Val sign = select(lt(v[0], 0), v[0].likeInt(-1), v[0].likeInt(0));
    return select(both(ge(v[1], 0), lt(v[1], width)), shifted, sign);
  });
}

/// x - floor(x / y) * y; a zero has the sign of the divisor.
Val floorRemainder(Val x, Val y) {
  Val r = binary(ScalarOp::Rem, x, y);
  Val wrong = binary(ScalarOp::Xor, lt(r, 0), lt(y, 0));
  Val zero = select(lt(y, 0), y.like(-0.0), y.like(0));
  return select(eq(r, 0), zero, select(wrong, r + y, r));
}

Status mod(NodeLowering &n) {
  const bool fmod = n.node.intAttr("fmod") != 0;
  return formula(n, [&](const std::vector<Val> &v) {
    return fmod              ? binary(ScalarOp::Rem, v[0], v[1])
           : v[0].floating() ? floorRemainder(v[0], v[1])
                             : binary(ScalarOp::FloorMod, v[0], v[1]);
  });
}

Status prelu(NodeLowering &n) {
  return formula(n,
                 [](const std::vector<Val> &v) { return select(lt(v[0], 0), v[0] * v[1], v[0]); });
}

Status where(NodeLowering &n) {
  n.map(n.out(), [&](EquationBuilder &b) {
    Val p = b.broadcast(n.in(0));
    return select(p, b.broadcast(n.in(1)), b.broadcast(n.in(2)));
  });
  return success();
}

Status clip(NodeLowering &n) {
  n.map(n.out(), [&](EquationBuilder &b) {
    Val x = widen(b.broadcast(n.in(0)));
    // The bound in front, where it may be a number (Val.h).
    if (n.has(1))
      x = max(widen(b.scalar(n.in(1))), x);
    if (n.has(2))
      x = min(widen(b.scalar(n.in(2))), x);
    return cast(n.outType(), x);
  });
  return success();
}

/// x^e for integers, modulo 2^width: square and multiply over all bits of the exponent. A negative exponent
/// gives the truncated reciprocal: 1 for 1, +-1 for -1, else 0.
Val integerPower(Val x, Val e) {
  // In u64, whose low bits are those of every integer type, and which is no index arithmetic.
  Val result = cast(DType::U64, x).like(1), square = cast(DType::U64, x);
  Val bits = e;
  int width = static_cast<int>(sizeInBytes(e.type())) * 8 - (isSigned(e.type()) ? 1 : 0);
  for (int i = 0; i < width; ++i) {
    Val odd = ne(binary(ScalarOp::And, bits, bits.like(1)), bits.like(0));
    result = select(odd, result * square, result);
    if (i + 1 == width)
      break;
    square = square * square;
    bits = binary(ScalarOp::Shr, bits, bits.like(1));
  }
  result = cast(x.type(), result);
  if (!isSigned(e.type()))
    return result;
  Val even = eq(binary(ScalarOp::And, e, e.like(1)), e.like(0));
  Val inverse = select(eq(x, 1), x, x.like(0));
  if (isSigned(x.type()))
    inverse = select(eq(x, -1), select(even, x.like(1), x), inverse);
  return select(lt(e, 0), inverse, result);
}

Status power(NodeLowering &n) {
  n.map(n.out(), [&](EquationBuilder &b) {
    Val x = widen(b.broadcast(n.in(0))), e = widen(b.broadcast(n.in(1)));
    if (!x.floating() && !e.floating())
      return integerPower(x, e);
    const Scalar &s = b.body()[e.id];
    double fixed = s.op != ScalarOp::Const ? 0
                   : isFloat(s.type)       ? s.fimm
                                           : static_cast<double>(s.imm);
    if (x.floating() && fixed == 2)
      return cast(n.outType(), x * x);
    if (x.floating() && fixed == 3)
      return cast(n.outType(), x * x * x);
    if (x.floating() && fixed == 1)
      return cast(n.outType(), x);
    if (x.floating() && fixed == 0.5)
      return cast(n.outType(), sqrt(x));
    DType t = x.floating() ? x.type() : e.type() == DType::F32 ? DType::F64 : e.type();
    return cast(n.outType(), pow(cast(t, x), cast(t, e)));
  });
  return success();
}

} // namespace

void addElementwiseUnary(HandlerTable &table);

void addElementwise(HandlerTable &table) {
  addElementwiseUnary(table);
  using enum OpKind;
  table[Add] = chain<ScalarOp::Add>;
  table[Sum] = chain<ScalarOp::Add>;
  table[Sub] = chain<ScalarOp::Sub>;
  table[Mul] = chain<ScalarOp::Mul>;
  table[Div] = division;
  table[Max] = chain<ScalarOp::Max>;
  table[Min] = chain<ScalarOp::Min>;
  table[And] = chain<ScalarOp::And>;
  table[Or] = chain<ScalarOp::Or>;
  table[Xor] = chain<ScalarOp::Xor>;
  table[BitwiseAnd] = chain<ScalarOp::And>;
  table[BitwiseOr] = chain<ScalarOp::Or>;
  table[BitwiseXor] = chain<ScalarOp::Xor>;
  table[Equal] = comparison<ScalarOp::Eq, false>;
  table[Less] = comparison<ScalarOp::Lt, false>;
  table[LessOrEqual] = comparison<ScalarOp::Le, false>;
  table[Greater] = comparison<ScalarOp::Lt, true>;
  table[GreaterOrEqual] = comparison<ScalarOp::Le, true>;
  table[Mean] = mean;
  table[BitShift] = bitShift;
  table[Mod] = mod;
  table[PRelu] = prelu;
  table[Where] = where;
  table[Clip] = clip;
  table[Pow] = power;
}

} // namespace fusec::lower
