#pragma once
#include "Onnx/KnownValues.h"

namespace fusec {

/// How many elements a value has, where they may be followed.
std::optional<int64_t> followedCount(const Value &v);

/// The place in a tensor of `dims`, broadcast to `to`, of element `flat` of that.
size_t broadcastIndex(const std::vector<int64_t> &dims, const std::vector<int64_t> &to,
                      int64_t flat);

/// Where a reduction puts each element of a tensor of `dims`.
std::vector<size_t> reducedPlaces(const Node &node, const std::vector<int64_t> &dims);

/// Operators whose outputs hold elements of their operands, or of constants, and nothing else.
bool movesElements(OpKind op);
/// The outputs' elements.
std::vector<std::optional<KnownValues::Elements>> followMovement(KnownValues &values,
                                                                 const Node &node);

} // namespace fusec
