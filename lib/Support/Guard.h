#pragma once
#include "Support/Dim.h"
#include "Support/Text.h"

namespace fusec {

/// A test on symbols that guards a kernel variant: `value` >= 0, or `value` mod `modulus` == 0 when modulus > 0.
struct Guard {
  DimExpr value;
  int64_t modulus = 0;

  bool operator==(const Guard &other) const = default;
  /// False too where the value cannot be computed.
  bool holds(const std::vector<int64_t> &symbols) const;
};

/// True where all of them hold; none: always.
bool allHold(const std::vector<Guard> &guards, const std::vector<int64_t> &symbols);

/// One of `guards` lets no size through that `wanted`, of no modulus, does not.
bool isImplied(const Guard &wanted, const std::vector<Guard> &guards);

/// "(batch - 16 >= 0)" or "(batch % 16 == 0)"
std::string guardText(const Guard &guard, const std::vector<Symbol> &symbols);
Result<Guard> parseGuard(TextReader &in, const std::vector<Symbol> &symbols);

/// For people: "batch*seq >= 16", "batch <= 3", "batch % 16 = 0"; several with " and " between them.
std::string guardWords(const std::vector<Guard> &guards, const std::vector<Symbol> &symbols);

} // namespace fusec
