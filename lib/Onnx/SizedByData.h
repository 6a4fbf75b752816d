#pragma once
#include "Onnx/NodeImporter.h"

namespace fusec {

// Operators whose outputs have sizes that depend on data: compositions, in which a number that is computed becomes a
// symbol (NodeImporter::dataSize) behind which the outputs are made.

/// Finds which elements of `mask`, bool[m], are true, in order: i64[size], where `size` is that of dimension `axis` of
/// output `output`, at most `most` where that is less than m.
Result<ValueId> chosenOnes(NodeImporter &n, ValueId mask, size_t axis, size_t output = 0,
                           const DimExpr *most = nullptr);

Status nonZeroOfData(NodeImporter &n);
/// TopK whose k is what the data says, from 0 to the size of the axis: another one ends the run.
Status topKOfData(NodeImporter &n, int64_t axis);
Status uniqueOfData(NodeImporter &n);
Status nonMaxSuppression(NodeImporter &n);

} // namespace fusec
