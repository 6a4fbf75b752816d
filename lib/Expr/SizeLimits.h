#pragma once
#include "Expr/Alternatives.h"
#include "Support/Guard.h"

namespace fusec {

// Alternatives that are right for some sizes alone. Nobody tries them but who guards what comes of them.

/// The symbol of this number, from 1, is 1.
constexpr std::string_view kSizeOne = "size-one";
std::optional<ExprProgram> sizeOne(const ExprProgram &pattern, int64_t symbol);
/// No symbol of the pattern is larger than this.
constexpr std::string_view kSizeMost = "size-most";
std::optional<ExprProgram> sizeMost(const ExprProgram &pattern, int64_t most);

/// The program where all of these symbols are 1; nullopt where one of them cannot be, or nothing uses it.
std::optional<ExprProgram> withOnes(const ExprProgram &program, const std::vector<SymbolId> &ones);

/// Sizes that a symbol has where an alternative is right.
struct SizeLimit {
  SymbolId symbol;
  int64_t least, most;
  bool allows(int64_t size) const { return least <= size && size <= most; }
};
/// Tests that let through what a limit allows and no other size.
std::vector<Guard> guardsOf(const SizeLimit &limit, const std::vector<Symbol> &symbols);
/// Collects the limits that these alternatives of the pattern set beyond its symbols' ranges; none: they are right for
/// all sizes.
std::vector<SizeLimit> sizeLimits(const ExprProgram &pattern, const std::vector<Rewrite> &rewrites);

/// Symbols of the pattern's equations, ascending.
std::vector<SymbolId> symbolsOf(const ExprProgram &pattern);

} // namespace fusec
