#pragma once
#include "Support/Dim.h"

#include <optional>
#include <vector>

namespace fusec {

/// Values of symbols, found by comparing shapes with the dims of tensors at run time.
class SymbolBinder {
public:
  explicit SymbolBinder(const std::vector<Symbol> &symbols)
      : symbols(&symbols), known(symbols.size()) {}

  const std::vector<std::optional<int64_t>> &values() const { return known; }

  /// Takes what `dims` says about the symbols of `shape`. Without `solve` only dims that are a symbol are
  /// looked at; with it, expressions must agree, and one with a single unknown symbol gives its value. False
  /// when shape and dims contradict each other or a symbol leaves its range.
  bool bind(const Shape &shape, const std::vector<int64_t> &dims, bool solve);
  /// Computes what has a definition of symbols that have values. Returns the first that has none then, or one outside
  /// its range.
  std::optional<SymbolId> define();
  /// nullopt where a symbol is not known.
  std::optional<int64_t> evaluate(const DimExpr &e) const;

  /// Whatever the symbol was before; false when the value is not in its range.
  bool set(SymbolId id, int64_t value);

private:
  bool solveFor(SymbolId id, const DimExpr &e, int64_t value);

  const std::vector<Symbol> *symbols;
  std::vector<std::optional<int64_t>> known;
};

} // namespace fusec
