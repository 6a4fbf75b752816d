#pragma once
#include "Bundle/Model.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fusec::rt {

struct DimBounds {
  int64_t min, max;
};
/// Bounds of a dimension (>= 0) under those of the symbols, by interval arithmetic; INT64_MAX where open.
DimBounds boundsOf(const bundle::DimCode &dim, const std::vector<DimBounds> &symbols);
/// The symbols' ranges.
std::vector<DimBounds> boundsOf(const std::vector<Symbol> &symbols);

/// How the symbols that a caller may set follow from the dimensions of all inputs, one behind the other. A dimension
/// that depends on one unknown symbol and does not fall with it is solved for the symbol.
class SymbolSolver {
public:
  SymbolSolver() = default;
  /// The model outlives the solver.
  explicit SymbolSolver(const bundle::Model &model);
  /// What is wrong, or empty: a contradiction, or a symbol that no input determines.
  std::string solve(const std::vector<int64_t> &dims, std::vector<int64_t> &values) const;

private:
  struct Dim {
    const bundle::DimCode *code;
    int32_t input, axis;
  };
  struct Step {
    size_t symbol;
    size_t dim;               // that it is solved from
    bool isPlain = false;     // the dimension is the symbol
    bool hasOneValue = false; // whatever the dimensions are
  };
  const bundle::Model *model = nullptr;
  std::vector<Dim> dims;
  std::vector<Step> steps;
  std::vector<size_t> open; // symbols that do not follow
};

/// Adds the values of symbols that are computed; of one that depends on data, the largest that it may have. What is
/// wrong is returned, or empty.
std::string computeSymbols(std::vector<int64_t> &values, const bundle::Model &model);
/// Empty when every value obeys its symbol's range and divisor. `placeOf`: what to say behind the value of a symbol.
std::string checkSymbols(const std::vector<int64_t> &values, const std::vector<Symbol> &symbols,
                         const std::function<std::string(size_t)> &placeOf);

} // namespace fusec::rt
