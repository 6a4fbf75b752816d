#pragma once
#include "Onnx/Compose.h"

namespace fusec {

Status attention(NodeImporter &n);
Status flexAttention(NodeImporter &n);
Status linearAttention(NodeImporter &n);

/// [B, S, heads * D] -> [B, heads, S, D].
Result<ValueId> splitHeads(NodeImporter &n, Compose &c, ValueId x, int64_t heads);
/// There are as many query heads as those of keys and of values, or a multiple of them.
Status headsFit(NodeImporter &n, const DimExpr &heads, const DimExpr &ofKeys,
                const DimExpr &ofValues);
/// Repeats every head of x in a row, so that there are as many as q has: [B,G,T,D] -> [B,H,T,D].
Result<ValueId> repeatHeads(NodeImporter &n, ValueId x, ValueId q);

/// The root of attribute scale, or else of 1/sqrt(head size of q): what each side of the scores is multiplied with.
Result<ValueId> rootOfScale(NodeImporter &n, ValueId q);
/// The float type that attribute softmax_precision names, or `otherwise`.
Result<DType> softmaxPrecision(NodeImporter &n, DType otherwise);

} // namespace fusec
