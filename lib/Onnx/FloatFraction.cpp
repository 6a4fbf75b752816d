#include "Onnx/FloatFraction.h"

#include <algorithm>
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

constexpr size_t kMostLimits = 16;
/// No limit forbids sizes up to this: a minute and a half of sound, and more tokens than a model takes.
constexpr int64_t kUsualSize = 1 << 22;

bool isPowerOfTwo(int64_t v) { return v > 0 && (v & (v - 1)) == 0; }

/// Whether it is within the limit, on both sides of 0, at all sizes but those beyond the usual ones.
bool isUsually(const DimExpr &num, int64_t limit, std::vector<Symbol> symbols) {
  for (Symbol &s : symbols)
    s.max = std::min(s.max, std::max(s.min, kUsualSize));
  const DimExpr::Range r = num.range(symbols);
  return r.min > -limit && r.max < limit;
}

std::vector<SizeRule> limitsOfBoth(const FloatFraction &a, const FloatFraction &b) {
  std::vector<SizeRule> limits = a.limits;
  addLimits(limits, b.limits);
  return limits;
}

} // namespace

void addLimits(std::vector<SizeRule> &to, const std::vector<SizeRule> &from) {
  for (const SizeRule &limit : from)
    if (std::ranges::none_of(
            to, [&](const SizeRule &l) { return l.left == limit.left && l.right == limit.right; }))
      to.push_back(limit);
}

DimExpr truncatedQuotient(const DimExpr &num, const DimExpr &den) {
  return floorDiv(max(num, DimExpr(0)), den) - floorDiv(max(num * DimExpr(-1), DimExpr(0)), den);
}

DimExpr wholePart(const FloatFraction &f, const std::vector<Symbol> &symbols) {
  return f.num.range(symbols).min >= 0 ? floorDiv(f.num, DimExpr(f.den))
                                       : truncatedQuotient(f.num, DimExpr(f.den));
}

std::optional<FloatFraction> exactIn(DType type, FloatFraction f,
                                     const std::vector<Symbol> &symbols) {
  const auto r = f.num.range(symbols);
  const int64_t limit = int64_t(1) << precision(type);
  const bool isWithin = r.min > -limit && r.max < limit;
  if (f.den < 1 || f.den >= limit || (!isWithin && !isUsually(f.num, limit, symbols)))
    return std::nullopt;
  const auto add = [&](const DimExpr &left, const DimExpr &right) {
    addLimits(
        f.limits,
        {{SizeRule::Kind::AtLeast, left, right, "", "",
          "what computes a size in floats must be exact, unless --dim gives a larger range"}});
  };
  if (r.max >= limit)
    add(limit - 1, f.num);
  if (r.min <= -limit)
    add(f.num, 1 - limit);
  if (f.limits.size() > kMostLimits)
    return std::nullopt;
  f.rounded = f.rounded || !isPowerOfTwo(f.den);
  return f;
}

std::optional<FloatFraction> fractionOf(Op op, DType type, const FloatFraction &a,
                                        const std::optional<FloatFraction> &b,
                                        const std::vector<Symbol> &symbols) {
  if (op == Op::Floor)
    return exactIn(type, {floorDiv(a.num, DimExpr(a.den)), 1, false, a.limits}, symbols);
  if (op == Op::Ceil)
    return exactIn(type, {ceilDiv(a.num, DimExpr(a.den)), 1, false, a.limits}, symbols);
  if (a.rounded)
    return std::nullopt;
  if (op == Op::Cast || (op == Op::Round && a.den == 1))
    return exactIn(type, a, symbols);
  if (!b || b->rounded)
    return std::nullopt;
  const int64_t common = std::lcm(a.den, b->den); // below 2^53: both are powers of two
  const DimExpr left = a.num * DimExpr(common / a.den), right = b->num * DimExpr(common / b->den);
  const auto make = [&](DimExpr num, int64_t den) {
    return exactIn(type, {std::move(num), den, false, limitsOfBoth(a, *b)}, symbols);
  };
  switch (op) {
  case Op::Add: return make(left + right, common);
  case Op::Sub: return make(left - right, common);
  case Op::Min: return make(min(left, right), common);
  case Op::Max: return make(max(left, right), common);
  case Op::Mul: {
    int64_t den;
    return __builtin_mul_overflow(a.den, b->den, &den) ? std::nullopt : make(a.num * b->num, den);
  }
  case Op::Div: {
    int64_t den;
    if (!b->num.isConst() || b->num.isConst(0) ||
        __builtin_mul_overflow(a.den, std::abs(b->num.constValue()), &den))
      return std::nullopt;
    const int64_t shared = std::gcd(den, b->den), sign = b->num.constValue() < 0 ? -1 : 1;
    return make(a.num * DimExpr(sign * (b->den / shared)), den / shared);
  }
  default: return std::nullopt;
  }
}

} // namespace fusec
