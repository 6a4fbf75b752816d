#include "Onnx/FloatFraction.h"

#include <numeric>

namespace fusec {

using Op = DimProgram::Op;

namespace {

/// How many bits an integer may have that a float type holds exactly.
int precision(DType type) {
  switch (type) {
  case DType::F16: return 11;
  case DType::BF16: return 8;
  case DType::F32: return 24;
  default: return 53;
  }
}

bool isPowerOfTwo(int64_t v) { return v > 0 && (v & (v - 1)) == 0; }

} // namespace

DimExpr truncated(const DimExpr &num, const DimExpr &den) {
  return floorDiv(max(num, DimExpr(0)), den) - floorDiv(max(num * DimExpr(-1), DimExpr(0)), den);
}

DimExpr whole(const FloatFraction &f, const std::vector<Symbol> &symbols) {
  return f.num.range(symbols).min >= 0 ? floorDiv(f.num, DimExpr(f.den))
                                       : truncated(f.num, DimExpr(f.den));
}

std::optional<FloatFraction> inType(DType type, FloatFraction f,
                                    const std::vector<Symbol> &symbols) {
  const auto r = f.num.range(symbols);
  const int64_t limit = int64_t(1) << precision(type);
  if (f.den < 1 || f.den >= limit || r.min <= -limit || r.max >= limit)
    return std::nullopt;
  f.rounded = f.rounded || !isPowerOfTwo(f.den);
  return f;
}

std::optional<FloatFraction> apply(Op op, DType type, const FloatFraction &a,
                                   const FloatFraction *b, const std::vector<Symbol> &symbols) {
  if (op == Op::Floor)
    return inType(type, {floorDiv(a.num, DimExpr(a.den)), 1, false}, symbols);
  if (op == Op::Ceil)
    return inType(type, {ceilDiv(a.num, DimExpr(a.den)), 1, false}, symbols);
  if (a.rounded)
    return std::nullopt;
  if (op == Op::Cast || (op == Op::Round && a.den == 1))
    return inType(type, a, symbols);
  if (!b || b->rounded)
    return std::nullopt;
  const int64_t common = std::lcm(a.den, b->den); // below 2^53: both are powers of two
  const DimExpr left = a.num * DimExpr(common / a.den), right = b->num * DimExpr(common / b->den);
  switch (op) {
  case Op::Add: return inType(type, {left + right, common, false}, symbols);
  case Op::Sub: return inType(type, {left - right, common, false}, symbols);
  case Op::Min: return inType(type, {min(left, right), common, false}, symbols);
  case Op::Max: return inType(type, {max(left, right), common, false}, symbols);
  case Op::Mul: {
    int64_t den;
    return __builtin_mul_overflow(a.den, b->den, &den)
               ? std::nullopt
               : inType(type, {a.num * b->num, den, false}, symbols);
  }
  case Op::Div: {
    int64_t den;
    if (!b->num.isConst() || b->num.constValue() <= 0 ||
        __builtin_mul_overflow(a.den, b->num.constValue(), &den))
      return std::nullopt;
    const int64_t shared = std::gcd(den, b->den);
    return inType(type, {a.num * DimExpr(b->den / shared), den / shared, false}, symbols);
  }
  default: return std::nullopt;
  }
}

} // namespace fusec
