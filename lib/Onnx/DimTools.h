#pragma once
#include "Onnx/Import.h"

#include <optional>
#include <set>

namespace fusec {

/// (product of `num`) / (product of `den`) when that is exact for all symbol values; common factors cancel
/// symbolically.
std::optional<DimExpr> exactQuotient(const Shape &num, const Shape &den,
                                     const std::vector<Symbol> &symbols);

/// The one factor of `num` that must be a multiple of the second, so that (product of `num`) / (product of `den`) is
/// exact; nullopt where there is no such single requirement.
std::optional<std::pair<DimExpr, int64_t>> missingDivisor(const Shape &num, const Shape &den);

/// The symbols of these sizes.
std::set<SymbolId> symbolsOf(const Shape &sizes);

/// What a size is called for which the model has no name: "x_d1", of the tensor and the axis. Where that is taken
/// underscores stand behind it.
std::string nameOfSize(const std::string &tensor, size_t axis);
/// Whether a name may be one of these.
bool mayNameSize(std::string_view name);

/// What is said of an expression beyond kLargestSizeOfModel.
std::string tooLargeExpression();

/// Says so where a tensor would have more bytes than the limit, for the smallest sizes already; "" where it may fit.
std::string tooLarge(DType type, const Shape &shape, const std::vector<Symbol> &symbols,
                     const Limits &limits);

} // namespace fusec
