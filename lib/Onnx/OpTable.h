#pragma once
#include "Onnx/NodeImporter.h"

#include <span>

namespace fusec {

// One function a family, defined in lib/Onnx/ops/<Family>.cpp.
std::span<const OpRow> elementwiseOps();
std::span<const OpRow> convertOps();
std::span<const OpRow> reduceOps();
std::span<const OpRow> matMulOps();
std::span<const OpRow> attentionOps();
std::span<const OpRow> convOps();
std::span<const OpRow> poolOps();
std::span<const OpRow> normOps();
std::span<const OpRow> movementOps();
std::span<const OpRow> sliceOps();
std::span<const OpRow> gatherOps();
std::span<const OpRow> recurrentOps();
std::span<const OpRow> controlFlowOps();
std::span<const OpRow> quantOps();
std::span<const OpRow> generatorOps();
std::span<const OpRow> lossOps();
std::span<const OpRow> resizeOps();
std::span<const OpRow> previewOps(); // of domain ai.onnx.preview
// What ONNX Runtime's quantiser and optimiser write, domain com.microsoft.
std::span<const OpRow> quantisedOps();
std::span<const OpRow> microsoftQuantOps();
std::span<const OpRow> quantisedMatMulOps();
std::span<const OpRow> quantisedRecurrentOps();
std::span<const OpRow> quantisedAttentionOps();
std::span<const OpRow> fusedOps();
std::span<const OpRow> samplingOps();
std::span<const OpRow> signalOps();
std::span<const OpRow> textOps();

/// All families in the order of the operator list.
struct OpFamily {
  std::string_view title;
  std::span<const OpRow> rows;
  std::string_view domain = ""; // of all rows
};
const std::vector<OpFamily> &opFamilies();

/// The row that serves operator `name` of `domain` ("" is ONNX's own) at this opset, or nullptr.
const OpRow *findOpRow(std::string_view domain, std::string_view name, int opset);

} // namespace fusec
