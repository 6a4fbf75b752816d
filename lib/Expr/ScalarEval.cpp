#include "Expr/ScalarEval.h"
#include "Support/Half.h"
#include "Support/MathPoly.h"

#include <bit>
#include <cmath>

namespace fusec {
namespace {

/// Bits of the truncated value; NaN and what is out of range give those of INT64_MIN.
int64_t floatToInt(DType to, double v) {
  constexpr double limit = 9223372036854775808.0; // 2^63
  if (v >= -limit && v < limit)
    return static_cast<int64_t>(v);
  if (to == DType::U64 && v >= limit && v < 2 * limit)
    return static_cast<int64_t>(static_cast<uint64_t>(v));
  return INT64_MIN;
}

double intToFloat(DType to, DType from, int64_t v) {
  bool isUnsigned64 = from == DType::U64;
  if (to == DType::F64)
    return isUnsigned64 ? static_cast<double>(static_cast<uint64_t>(v)) : static_cast<double>(v);
  if (to == DType::F32)
    return isUnsigned64 ? static_cast<float>(static_cast<uint64_t>(v)) : static_cast<float>(v);
  // Beyond 2^53 a sticky bit keeps the second rounding right.
  auto magnitude = isUnsigned64 || v >= 0 ? static_cast<uint64_t>(v) : 0 - static_cast<uint64_t>(v);
  bool negative = !isUnsigned64 && v < 0;
  if (magnitude >> 53)
    magnitude = (magnitude & ~uint64_t(2047)) | ((magnitude & 2047) != 0 ? 2048 : 0);
  double d = static_cast<double>(magnitude);
  return roundToType(to, negative ? -d : d);
}

int bitWidth(DType t) { return static_cast<int>(sizeInBytes(t)) * 8; }

int64_t saturate(DType t, double v) {
  if (std::isnan(v))
    return 0;
  double r = std::nearbyint(v);
  if (t == DType::U64) {
    if (r <= 0)
      return 0;
    return r >= 18446744073709551616.0 ? -1 : static_cast<int64_t>(static_cast<uint64_t>(r));
  }
  if (t == DType::Bool)
    return r != 0;
  int bits = bitWidth(t) - (isSigned(t) ? 1 : 0);
  int64_t high = bits == 63 ? INT64_MAX : (int64_t(1) << bits) - 1;
  int64_t low = isSigned(t) ? -high - 1 : 0;
  if (r >= static_cast<double>(high))
    return high;
  if (r <= static_cast<double>(low))
    return low;
  return static_cast<int64_t>(r);
}

uint64_t bitsOf(DType t, const ScalarValue &v) {
  switch (t) {
  case DType::F64: return std::bit_cast<uint64_t>(v.f);
  case DType::F32: return std::bit_cast<uint32_t>(static_cast<float>(v.f));
  case DType::BF16: return bfloatFromDouble(v.f);
  case DType::F16: return halfFromDouble(v.f);
  default: return static_cast<uint64_t>(v.i);
  }
}

ScalarValue fromBits(DType t, uint64_t bits) {
  switch (t) {
  case DType::F64: return {0, std::bit_cast<double>(bits)};
  case DType::F32: return {0, std::bit_cast<float>(static_cast<uint32_t>(bits))};
  case DType::BF16: return {0, bfloatToDouble(static_cast<uint16_t>(bits))};
  case DType::F16: return {0, halfToDouble(static_cast<uint16_t>(bits))};
  default: return {wrapToType(t, static_cast<int64_t>(bits)), 0};
  }
}

/// The maths functions stand in ScalarOps.def in the order of MathFn, Pow apart. f16 and bf16 are computed in f32.
std::optional<double> evaluateMaths(ScalarOp op, DType type, const ScalarValue *v) {
  if (op != ScalarOp::Pow && (op < ScalarOp::Exp || op > ScalarOp::Atanh))
    return std::nullopt;
  MathFn fn = op == ScalarOp::Pow
                  ? MathFn::Pow
                  : static_cast<MathFn>(static_cast<int>(op) - static_cast<int>(ScalarOp::Exp) + 1);
  double y = op == ScalarOp::Pow ? v[1].f : 0;
  if (type == DType::F64)
    return evaluateMath(fn, v[0].f, y);
  return evaluateMath(fn, static_cast<float>(v[0].f), static_cast<float>(y));
}

std::optional<double> evaluateFloat(ScalarOp op, DType type, const ScalarValue *v) {
  if (auto r = evaluateMaths(op, type, v))
    return r;
  double a = v[0].f, b = v[1].f;
  switch (op) {
  case ScalarOp::Add: return a + b;
  case ScalarOp::Sub: return a - b;
  case ScalarOp::Mul: return a * b;
  case ScalarOp::Div: return a / b;
  case ScalarOp::Rem: return std::fmod(a, b);
  // A product of two f32 is exact in a double but the sum is not: round once, in the type itself.
  case ScalarOp::Fma:
    if (type == DType::F64)
      return std::fma(a, b, v[2].f);
    return std::fmaf(static_cast<float>(a), static_cast<float>(b), static_cast<float>(v[2].f));
  case ScalarOp::Min: return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? a : b;
  case ScalarOp::Max: return std::isnan(a) ? a : std::isnan(b) ? b : a > b ? a : b;
  case ScalarOp::Neg: return -a;
  case ScalarOp::Abs: return std::fabs(a);
  case ScalarOp::Sqrt: return std::sqrt(a);
  case ScalarOp::Floor: return std::floor(a);
  case ScalarOp::Ceil: return std::ceil(a);
  case ScalarOp::Trunc: return std::trunc(a);
  case ScalarOp::RoundEven: return std::nearbyint(a);
  default: return std::nullopt;
  }
}

std::optional<int64_t> evaluateInt(ScalarOp op, DType type, const ScalarValue *v) {
  int64_t a = v[0].i, b = v[1].i;
  auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  bool u64 = type == DType::U64;
  int width = type == DType::Bool ? 1 : bitWidth(type);
  bool overflowing = !u64 && a == INT64_MIN && b == -1; // wraps back to INT64_MIN, remainder 0
  switch (op) {
  case ScalarOp::Add: return static_cast<int64_t>(ua + ub);
  case ScalarOp::Sub: return static_cast<int64_t>(ua - ub);
  case ScalarOp::Mul: return static_cast<int64_t>(ua * ub);
  case ScalarOp::Div:
    if (b == 0 || overflowing)
      return b == 0 ? 0 : a;
    return u64 ? static_cast<int64_t>(ua / ub) : a / b;
  case ScalarOp::FloorDiv:
    if (b == 0 || overflowing)
      return b == 0 ? 0 : a;
    return u64 ? static_cast<int64_t>(ua / ub) : a / b - (a % b != 0 && (a % b < 0) != (b < 0));
  case ScalarOp::Rem:
    if (b == 0 || overflowing)
      return 0;
    return u64 ? static_cast<int64_t>(ua % ub) : a % b;
  case ScalarOp::FloorMod: {
    if (b == 0 || overflowing)
      return 0;
    if (u64)
      return static_cast<int64_t>(ua % ub);
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
  case ScalarOp::Min: return (u64 ? ua < ub : a < b) ? a : b;
  case ScalarOp::Max: return (u64 ? ua > ub : a > b) ? a : b;
  case ScalarOp::Neg: return static_cast<int64_t>(0 - ua);
  case ScalarOp::Abs: return isSigned(type) && a < 0 ? static_cast<int64_t>(0 - ua) : a;
  case ScalarOp::Floor:
  case ScalarOp::Ceil:
  case ScalarOp::Trunc:
  case ScalarOp::RoundEven: return a;
  case ScalarOp::And: return a & b;
  case ScalarOp::Or: return a | b;
  case ScalarOp::Xor: return a ^ b;
  case ScalarOp::Not: return type == DType::Bool ? !a : ~a;
  case ScalarOp::Shl:
    return ub >= static_cast<uint64_t>(width) ? 0 : static_cast<int64_t>(ua << ub);
  case ScalarOp::Shr:
    if (ub >= static_cast<uint64_t>(width))
      return 0;
    return isSigned(type) ? a >> b : static_cast<int64_t>(ua >> ub);
  default: return std::nullopt;
  }
}

std::optional<bool> evaluateComparison(ScalarOp op, DType operandType, const ScalarValue *v) {
  bool equal, less;
  if (isFloat(operandType)) {
    equal = v[0].f == v[1].f;
    less = v[0].f < v[1].f;
  } else {
    equal = v[0].i == v[1].i;
    less = operandType == DType::U64 ? static_cast<uint64_t>(v[0].i) < static_cast<uint64_t>(v[1].i)
                                     : v[0].i < v[1].i;
  }
  switch (op) {
  case ScalarOp::Eq: return equal;
  case ScalarOp::Ne: return !equal;
  case ScalarOp::Lt: return less;
  case ScalarOp::Le: return less || equal;
  case ScalarOp::IsNan: return isFloat(operandType) && std::isnan(v[0].f);
  case ScalarOp::IsInf: return isFloat(operandType) && std::isinf(v[0].f);
  default: return std::nullopt;
  }
}

} // namespace

double roundToType(DType t, double v) {
  switch (t) {
  case DType::F32: return static_cast<float>(v);
  case DType::F16: return halfToDouble(halfFromDouble(v));
  case DType::BF16: return bfloatToDouble(bfloatFromDouble(v));
  default: return v;
  }
}

int64_t wrapToType(DType t, int64_t v) {
  switch (t) {
  case DType::Bool: return v != 0;
  case DType::I8: return static_cast<int8_t>(v);
  case DType::I16: return static_cast<int16_t>(v);
  case DType::I32: return static_cast<int32_t>(v);
  case DType::U8: return static_cast<uint8_t>(v);
  case DType::U16: return static_cast<uint16_t>(v);
  case DType::U32: return static_cast<uint32_t>(v);
  default: return v;
  }
}

bool sameBits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

std::optional<ScalarValue> evaluateScalar(ScalarOp op, DType type, DType operandType,
                                          const ScalarValue *args) {
  switch (op) {
  case ScalarOp::Select: return args[0].i ? args[1] : args[2];
  case ScalarOp::Bitcast: return fromBits(type, bitsOf(operandType, args[0]));
  case ScalarOp::CastSat:
    if (isFloat(type) || !isFloat(operandType))
      break; // the same as Cast
    return ScalarValue{saturate(type, args[0].f), 0};
  default: break;
  }
  if (op == ScalarOp::Cast || op == ScalarOp::CastSat) {
    if (isFloat(type)) {
      double v = isFloat(operandType) ? roundToType(type, args[0].f)
                                      : intToFloat(type, operandType, args[0].i);
      return ScalarValue{0, v};
    }
    if (type == DType::Bool)
      return ScalarValue{isFloat(operandType) ? args[0].f != 0 : args[0].i != 0, 0};
    int64_t v = isFloat(operandType) ? floatToInt(type, args[0].f) : args[0].i;
    return ScalarValue{wrapToType(type, v), 0};
  }
  if (auto truth = evaluateComparison(op, operandType, args))
    return ScalarValue{*truth, 0};
  if (isFloat(type)) {
    auto v = evaluateFloat(op, type, args);
    return v ? std::optional(ScalarValue{0, roundToType(type, *v)}) : std::nullopt;
  }
  auto v = evaluateInt(op, type, args);
  return v ? std::optional(ScalarValue{wrapToType(type, *v), 0}) : std::nullopt;
}

} // namespace fusec
