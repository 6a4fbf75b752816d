#pragma once
#include "Onnx/Compose.h"

namespace fusec {

Status attention(NodeImporter &n);

/// [B, S, heads * D] -> [B, heads, S, D].
Result<ValueId> splitHeads(NodeImporter &n, Compose &c, ValueId x, int64_t heads);
/// Repeats every head `times` in a row: [B,G,T,D] -> [B,G*times,T,D].
ValueId repeatHeads(NodeImporter &n, ValueId x, int64_t times);

} // namespace fusec
