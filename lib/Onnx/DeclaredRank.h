#pragma once
#include "Onnx/NodeImporter.h"

namespace fusec {

/// The axes that a Squeeze without axes takes away. ONNX has those of size 1 go, of which open sizes leave a run to
/// decide; the rank that the model declares then says it, and becomes a rule: what goes is 1, what stays is not. E4004
/// where nothing is declared, or several sets of axes leave what is.
Result<std::vector<int64_t>> squeezedAxes(NodeImporter &n);

} // namespace fusec
