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

/// Sizes that a symbol has where an alternative, or a plan, is right.
struct SizeLimit {
  SymbolId symbol;
  int64_t least, most;
  bool allows(int64_t size) const { return least <= size && size <= most; }
  bool operator==(const SizeLimit &) const = default;
};
/// Tests that let through what a limit, or all of several, allow and no other size.
std::vector<Guard> guardsOf(const SizeLimit &limit, const std::vector<Symbol> &symbols);
std::vector<Guard> guardsOf(const std::vector<SizeLimit> &limits,
                            const std::vector<Symbol> &symbols);
/// Whether a run with these values is within all of the limits.
bool allAllow(const std::vector<SizeLimit> &limits, const std::vector<int64_t> &values);
/// "batch = 1, length = 2..16"
std::string whereText(const std::vector<SizeLimit> &limits, const std::vector<Symbol> &symbols);

/// Collects the limits that these alternatives of the pattern set beyond its symbols' ranges; none: they are right for
/// all sizes.
std::vector<SizeLimit> sizeLimits(const ExprProgram &pattern, const std::vector<Rewrite> &rewrites);

/// The program for sizes within all of these limits: what is 1 is written in, other symbols have a smaller range.
/// nullopt where a symbol has no such size, or nothing uses it.
std::optional<ExprProgram> within(const ExprProgram &program, const std::vector<SizeLimit> &limits);
/// The program for the sizes that are not. A single limit from a symbol's least size on leaves the larger ones; what
/// others leave is no range, and the program is for all sizes as before.
ExprProgram beyond(const ExprProgram &program, const std::vector<SizeLimit> &limits);

/// Symbols of the pattern's equations, ascending.
std::vector<SymbolId> symbolsOf(const ExprProgram &pattern);

} // namespace fusec
