#pragma once
#include "Onnx/KnownValues.h"

namespace fusec {

/// How many elements a value has, where they may be followed.
std::optional<int64_t> followedCount(const Value &v);

/// The product of `dims` from `begin` to `end`.
int64_t productOf(const std::vector<int64_t> &dims, size_t begin, size_t end);
/// The coordinates of element `flat` of a tensor of `dims`.
std::vector<int64_t> coordinates(const std::vector<int64_t> &dims, int64_t flat);
/// The place of the element at these coordinates.
size_t flatIndex(const std::vector<int64_t> &dims, const std::vector<int64_t> &at);

/// The place in a tensor of `dims`, broadcast to `to`, of element `flat` of that.
size_t broadcastIndex(const std::vector<int64_t> &dims, const std::vector<int64_t> &to,
                      int64_t flat);

/// Where a reduction puts each element of a tensor of `dims`.
std::vector<size_t> reducedPlaces(const Node &node, const std::vector<int64_t> &dims);

/// Operators that move elements of their operands to places that hang on shapes and attributes alone.
bool movesElements(OpKind op);
/// The outputs' elements.
std::vector<std::optional<KnownValues::Elements>> followMovement(KnownValues &values,
                                                                 const Node &node);

} // namespace fusec
