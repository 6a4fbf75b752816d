#include "Expr/OpaqueOps.h"

namespace fusec {
namespace {

struct Row {
  OpaqueOp op;
  std::string_view text;
  size_t inputs, outputs;
  std::string_view attributes;
};
constexpr Row kRows[] = {
#define FUSEC_OPAQUE_OP(name, text, inputs, outputs, attributes)                                   \
  {OpaqueOp::name, text, inputs, outputs, attributes},
#include "Expr/OpaqueOps.def"
};

Shape extents(const Equation &e, size_t begin, size_t end) {
  Shape shape;
  for (size_t a = begin; a < end; ++a)
    shape.push_back(e.axes[a].extent);
  return shape;
}

void checkTopK(const Equation &e, const ExprProgram &program, std::vector<std::string> &broken) {
  const Tensor &x = program.tensors[e.opaqueInputs[0]];
  const Tensor &values = program.tensors[e.outputs[0]], &indices = program.tensors[e.outputs[1]];
  size_t rank = x.shape.size();
  if (rank < 1 || e.axes.size() != rank + 1 || e.numSpatial != static_cast<int>(rank))
    return broken.push_back("topk has one axis for each dimension of its outputs, and then the "
                            "one that is searched");
  const DimExpr &searched = e.axes[rank].extent, &row = x.shape[rank - 1];
  if (Shape(x.shape.begin(), x.shape.end() - 1) != extents(e, 0, rank - 1) ||
      (searched != row && min(searched, row) != searched))
    broken.push_back("topk reads [rows..., n], or the first of each row");
  if (values.shape != extents(e, 0, rank) || indices.shape != values.shape)
    broken.push_back("topk writes [rows..., k] twice");
  if (x.type == DType::Bool || values.type != x.type || indices.type != DType::I64)
    broken.push_back("topk gives numbers of its operand's type, and i64 indices");
  // Sizes of a run that leave fewer are refused before it.
  if (e.axes[rank - 1].extent.range(program.symbols).min >
      e.axes[rank].extent.range(program.symbols).max)
    broken.push_back("topk finds no more elements than there are");
  int64_t largest = e.opaqueAttributes.at("largest");
  if (largest != 0 && largest != 1)
    broken.push_back("topk's 'largest' is 0 or 1");
}

} // namespace

std::string_view name(OpaqueOp op) { return kRows[static_cast<int>(op)].text; }

std::optional<OpaqueOp> parseOpaqueOp(std::string_view text) {
  for (const Row &row : kRows)
    if (row.text == text)
      return row.op;
  return std::nullopt;
}

std::vector<std::string> checkOpaque(const Equation &e, const ExprProgram &program) {
  std::optional<OpaqueOp> op = parseOpaqueOp(e.opaque);
  if (!op)
    return {"'" + e.opaque + "' is no opaque operation"};
  const Row &row = kRows[static_cast<int>(*op)];
  std::string attributes;
  for (const auto &[key, value] : e.opaqueAttributes)
    attributes += (attributes.empty() ? "" : " ") + key;
  std::vector<std::string> broken;
  if (e.opaqueInputs.size() != row.inputs || e.outputs.size() != row.outputs)
    broken.push_back(e.opaque + " has " + std::to_string(row.inputs) + " inputs and " +
                     std::to_string(row.outputs) + " outputs");
  if (attributes != row.attributes)
    broken.push_back(e.opaque + " has the attributes {" + std::string(row.attributes) + "}");
  if (!broken.empty())
    return broken;
  switch (*op) {
  case OpaqueOp::TopK: checkTopK(e, program, broken); break;
  }
  return broken;
}

} // namespace fusec
