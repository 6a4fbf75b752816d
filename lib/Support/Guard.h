#pragma once
#include "Support/Dim.h"
#include "Support/SumText.h"
#include "Support/Text.h"

namespace fusec {

/// A test on symbols that guards a kernel variant: `value` >= 0, or `value` mod `modulus` == 0 when modulus > 0.
/// `Expr` is DimExpr, or what a bundle has in its place.
template <typename Expr> struct GuardOf {
  Expr value;
  int64_t modulus = 0;

  bool operator==(const GuardOf &other) const = default;
  /// False too where the value cannot be computed.
  bool holds(const std::vector<int64_t> &symbols) const {
    const std::optional<int64_t> v = value.evaluate(symbols);
    return v && (modulus > 0 ? *v % modulus == 0 : *v >= 0);
  }
};
using Guard = GuardOf<DimExpr>;

/// True where all of them hold; none: always.
template <typename Expr>
bool allHold(const std::vector<GuardOf<Expr>> &guards, const std::vector<int64_t> &symbols) {
  for (const GuardOf<Expr> &guard : guards)
    if (!guard.holds(symbols))
      return false;
  return true;
}

/// One of `guards` lets no size through that `wanted`, of no modulus, does not.
bool isImplied(const Guard &wanted, const std::vector<Guard> &guards);

/// "(batch - 16 >= 0)" or "(batch % 16 == 0)"
std::string guardText(const Guard &guard, const std::vector<Symbol> &symbols);
Result<Guard> parseGuard(TextReader &in, const std::vector<Symbol> &symbols);

/// The terms of an expression in normal form, at least one.
std::vector<SumTerm> sumTerms(const DimExpr &e, const std::vector<Symbol> &symbols);
/// For people: "batch*seq >= 16", "batch <= 3", "batch % 16 = 0"; several with " and " between them.
template <typename Expr>
std::string guardWords(const std::vector<GuardOf<Expr>> &guards,
                       const std::vector<Symbol> &symbols) {
  std::string out;
  for (const GuardOf<Expr> &guard : guards)
    out += (out.empty() ? "" : " and ") + guardWords(sumTerms(guard.value, symbols), guard.modulus);
  return out;
}

} // namespace fusec
