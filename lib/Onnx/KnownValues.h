#pragma once
#include "Graph/Graph.h"
#include "Graph/Passes.h"

#include <optional>

namespace fusec {

/// Tensors with at most this many elements are followed element by element.
constexpr int64_t kMaxFollowedElements = 4096;

/// Elements of a small integer or bool value that is constant or followed.
std::optional<std::vector<DimExpr>> knownElements(const Value &v);

/// Elements of the first output of `node`, whose output types and shapes are set, when they follow from
/// known inputs or from shapes: the arithmetic that exporters write around Reshape and Expand.
std::optional<std::vector<DimExpr>> followValues(const Graph &graph, const Node &node);

/// A constant of these elements, or nullptr when one depends on a symbol.
ConstantRef constantFromElements(DType type, const Shape &shape,
                                 const std::vector<DimExpr> &elements);

} // namespace fusec
