#pragma once
#include "Onnx/NodeImporter.h"

namespace fusec {

/// Pad with run-time pads (input 1, of all axes), where the model declares `out`, the output's shape.
Status padAtRunTime(NodeImporter &n, const std::string &mode, const Shape &out);

} // namespace fusec
