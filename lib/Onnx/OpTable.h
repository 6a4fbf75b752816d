#pragma once
#include "Onnx/NodeImporter.h"

#include <span>

namespace fusec {

// One function a family, defined in lib/Onnx/ops/<Family>.cpp.
std::span<const OpRow> elementwiseOps();
std::span<const OpRow> elementwiseCastOps();
std::span<const OpRow> reductionsOps();
std::span<const OpRow> contractionsOps();
std::span<const OpRow> attentionOps();
std::span<const OpRow> windowsConvOps();
std::span<const OpRow> windowsPoolOps();
std::span<const OpRow> normalisationsOps();
std::span<const OpRow> movementOps();
std::span<const OpRow> slicesOps();
std::span<const OpRow> gathersOps();
std::span<const OpRow> recurrentOps();
std::span<const OpRow> controlFlowOps();
std::span<const OpRow> controlFlowIfOps();
std::span<const OpRow> quantisationOps();
std::span<const OpRow> generatorOps();
std::span<const OpRow> miscOps();
std::span<const OpRow> imagesOps();
std::span<const OpRow> previewOps(); // of domain ai.onnx.preview
// What ONNX Runtime's quantiser and optimiser write, domain com.microsoft.
std::span<const OpRow> quantisedOps();
std::span<const OpRow> microsoftQuantisationOps();
std::span<const OpRow> quantisedMatMulOps();
std::span<const OpRow> quantisedRecurrentOps();
std::span<const OpRow> quantisedAttentionOps();
std::span<const OpRow> fusedOps();
std::span<const OpRow> imagesSamplingOps();
std::span<const OpRow> signalOps();
std::span<const OpRow> textOps();

/// Makes Graph's operator of the same name, over the same operands and attributes.
Status sameOperator(NodeImporter &n);

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
