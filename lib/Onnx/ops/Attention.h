#pragma once
#include "Onnx/Compose.h"

namespace fusec {

Status attention(NodeImporter &n);
Status flexAttention(NodeImporter &n);
Status linearAttention(NodeImporter &n);

/// [B, S, heads * D] -> [B, heads, S, D].
Result<ValueId> splitHeads(NodeImporter &n, Compose &c, ValueId x, int64_t heads);
/// Repeats every head `times` in a row: [B,G,T,D] -> [B,G*times,T,D].
ValueId repeatHeads(NodeImporter &n, ValueId x, int64_t times);

/// Attribute scale, or else 1/sqrt(head size): what scores are multiplied with, half of it on each side.
Result<double> attentionScale(NodeImporter &n, const DimExpr &headSize);
/// The float type that attribute softmax_precision names, or `otherwise`.
Result<DType> softmaxPrecision(NodeImporter &n, DType otherwise);

} // namespace fusec
