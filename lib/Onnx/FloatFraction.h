#pragma once
#include "Support/DimProgram.h"
#include "Support/SizeRules.h"

#include <optional>

namespace fusec {

/// A float as (num / den), rounded once to its type where that is not exact; within `limits` num is small enough for
/// floor and ceiling to be those of the exact quotient.
struct FloatFraction {
  DimExpr num;
  int64_t den = 1;
  bool rounded = false;
  std::vector<SizeRule> limits = {}; // without a node
};

/// Adds those that are not among them.
void addLimits(std::vector<SizeRule> &to, const std::vector<SizeRule> &from);

/// `f` as a float of this type, with the limits within which that holds it exactly; nothing where these forbid usual
/// sizes.
std::optional<FloatFraction> exactIn(DType type, FloatFraction f,
                                     const std::vector<Symbol> &symbols);
/// What an operation makes of a float, or of two; nothing where that is no such fraction, and where it takes a second
/// one and `b` is none.
std::optional<FloatFraction> fractionOf(DimProgram::Op op, DType type, const FloatFraction &a,
                                        const std::optional<FloatFraction> &b,
                                        const std::vector<Symbol> &symbols);
/// The integer that a cast makes of it.
DimExpr wholePart(const FloatFraction &f, const std::vector<Symbol> &symbols);

/// The quotient towards zero, of a divisor above it.
DimExpr truncatedQuotient(const DimExpr &num, const DimExpr &den);

} // namespace fusec
