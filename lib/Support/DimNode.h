#pragma once
#include "Support/DimLimits.h"

#include <utility>

namespace fusec {

/// Storage of one expression, private to the Dim*.cpp files. Normal form:
///   Add: terms in structural order, then the constant if it is not 0; at least two operands
///   Mul: atoms in structural order, then the coefficient if it is not 1; at least two operands
///   FloorDiv, CeilDiv, Mod: two operands; Min, Max: two, chained to the left in structural order
/// `raw` marks an Add or Mul of two operands whose normal form would need a constant outside int64 (or too
/// many terms): it stays as written and counts as an atom.
struct DimExpr::Node {
  Op op = Op::Const;
  bool raw = false;
  int64_t value = 0; // Const: the value; Symbol: its id
  std::vector<DimExpr> operands;
  size_t hash = 0;
  DimSize size = {};
  bool tooLarge = false; // stands for an expression beyond kLargestDim
};

/// The only maker of nodes besides the constructors of DimExpr.
struct DimBuilder {
  static const DimExpr::Node &node(const DimExpr &e) { return *e.node; }
  static bool isRaw(const DimExpr &e) { return e.node->raw; }
  /// An expression without a value, in place of one beyond kLargestDim.
  static DimExpr tooLarge();
  static DimExpr make(DimExpr::Op op, std::vector<DimExpr> operands, bool raw = false);
};

namespace dim {

/// Wide enough for the product of two int64; larger values count as overflow.
__extension__ using Wide = __int128;
inline constexpr Wide kWideLimit = Wide(1) << 126;

/// |a * b| < kWideLimit, or nullopt. Compiled without __muloti4, which libgcc does not have.
inline std::optional<Wide> multiply(Wide a, Wide b) {
  Wide x = a < 0 ? -a : a, y = b < 0 ? -b : b;
  if (x != 0 && y > (kWideLimit - 1) / x)
    return std::nullopt;
  return a * b;
}
/// Both operands are within +-kWideLimit, so the sum itself cannot wrap.
inline std::optional<Wide> add(Wide a, Wide b) {
  Wide s = a + b;
  if (s >= kWideLimit || s <= -kWideLimit)
    return std::nullopt;
  return s;
}
inline Wide floorDivide(Wide a, Wide b) {
  Wide q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}
inline Wide ceilDivide(Wide a, Wide b) { return -floorDivide(-a, b); }
/// Sign of the divisor.
inline Wide floorModulo(Wide a, Wide b) { return a - floorDivide(a, b) * b; }
inline bool fits(Wide v) { return v >= INT64_MIN && v <= INT64_MAX; }

/// Inclusive bounds, which saturate at +-kWideLimit.
struct WideRange {
  Wide min, max;
};
WideRange addRanges(WideRange a, WideRange b);
WideRange multiplyRanges(WideRange a, WideRange b);
/// Legal values never divide by zero, so zero is left out of the divisor's range.
WideRange divideRanges(WideRange a, WideRange b, Wide (*divide)(Wide, Wide));
WideRange moduloRange(WideRange a, WideRange b);

/// Product of atoms with a coefficient; no atoms: a constant.
struct Term {
  std::vector<DimExpr> atoms; // sorted by structurallyLess
  int64_t coefficient;
};
/// A sum in normal form: sorted, merged, the constant last.
using Polynomial = std::vector<Term>;

Polynomial polynomial(const DimExpr &e);
DimExpr fromPolynomial(const Polynomial &terms);
/// nullopt where a coefficient leaves int64 or the result has too many terms.
std::optional<Polynomial> sum(const Polynomial &a, const Polynomial &b);
std::optional<Polynomial> product(const Polynomial &a, const Polynomial &b);
/// a = quotient * b + rest, where the quotient takes what divides exactly.
struct Division {
  Polynomial quotient, rest;
};
Division divide(const Polynomial &a, const Polynomial &b);

} // namespace dim
} // namespace fusec
