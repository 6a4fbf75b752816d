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
/// Bounds of a dimension (>= 0) under the symbols' ranges, by interval arithmetic; INT64_MAX where open.
DimBounds boundsOf(const bundle::DimCode &dim, const std::vector<Symbol> &symbols);

/// Values of the symbols from the dimensions of all inputs: `dims[i]` is the value of `exprs[i]` at
/// `places[i]`, words for messages. A dimension that
/// depends on one unknown symbol and does not fall with it is solved for the symbol. nullopt: contradiction, or a
/// symbol that no input determines; `problem` says which. Those that are computed have no value yet.
std::optional<std::vector<int64_t>> solveSymbols(const std::vector<const bundle::DimCode *> &exprs,
                                                 const std::vector<int64_t> &dims,
                                                 const std::vector<std::string> &places,
                                                 const bundle::Model &model, std::string &problem);
/// Adds the values of symbols that are computed; of one that depends on data, the largest that it may have. What is
/// wrong is returned, or empty.
std::string computeSymbols(std::vector<int64_t> &values, const bundle::Model &model);
/// Empty when every value obeys its symbol's range and divisor. `placeOf`: what to say behind the value of a symbol.
std::string checkSymbols(const std::vector<int64_t> &values, const std::vector<Symbol> &symbols,
                         const std::function<std::string(size_t)> &placeOf);
/// The values with the smallest allowed ones in place of zeros.
std::vector<int64_t> withoutZeros(std::vector<int64_t> values, const std::vector<Symbol> &symbols);

} // namespace fusec::rt
