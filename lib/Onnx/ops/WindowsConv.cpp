#include "Onnx/OpTable.h"
#include "Onnx/Windows.h"
#include "Support/Diag.h"

// Convolutions. x is [N, C, spatial...], w is [M, C/group, kernel...] and [C, M/group, kernel...] when
// transposed.

namespace fusec {
namespace {

Shape spatialOf(const Shape &s) { return Shape(s.begin() + 2, s.end()); }

/// Sizes of the kernel, from the weights where the node does not say.
Result<std::vector<int64_t>> kernelOf(NodeImporter &n, size_t w) {
  if (n.rank(0) < 3 || n.rank(w) != n.rank(0))
    return n.mismatch("data and weights must have one rank of at least 3");
  if (!isStatic(n.shape(w)))
    return n.needsFixed("the weights must have a fixed shape", n.shape(w));
  return n.attrInts("kernel_shape", staticDims(spatialOf(n.shape(w))));
}

/// Weights at operand `w`.
Status convolution(NodeImporter &n, OpKind op, size_t w) {
  FUSEC_TRY(std::vector<int64_t> kernel, kernelOf(n, w));
  const OpenPads openPads = op == OpKind::Conv ? OpenPads::Served : OpenPads::Refused;
  FUSEC_TRY(Window window, readWindow(n, std::move(kernel), spatialOf(n.shape(0)), openPads));
  std::vector<ValueId> in = n.ids();
  if (!window.open.empty()) {
    FUSEC_TRY(in[0], padOpenAxes(n, in[0], window, kNoValue));
  }
  if (op == OpKind::Conv) // com.microsoft's FusedConv has one more
    in.resize(n.has(2) ? 3 : 2);
  return n.finish(op, std::move(in), window.attributes());
}
Status conv(NodeImporter &n) { return convolution(n, OpKind::Conv, 1); }
Status convInteger(NodeImporter &n) { return convolution(n, OpKind::ConvInteger, 1); }
Status qlinearConv(NodeImporter &n) { return convolution(n, OpKind::QLinearConv, 3); }

/// The padding that makes the output as large as output_shape or auto_pad asks for.
Status resolveTransposedPads(NodeImporter &n, Window &w, std::vector<int64_t> &outputPadding,
                             const Shape &spatial, const std::vector<int64_t> &outputShape,
                             const std::string &autoPad) {
  size_t rank = spatial.size();
  for (size_t i = 0; i < rank; ++i) {
    int64_t natural = outputPadding[i] + (w.kernel[i] - 1) * w.dilations[i] + 1, total;
    if (!spatial[i].isConst()) {
      if (!outputShape.empty())
        return n.needsFixed("output_shape needs fixed spatial sizes", spatial);
      total = natural - w.strides[i]; // SAME: the output is stride times the input
    } else {
      int64_t in = spatial[i].constValue();
      int64_t wanted = outputShape.empty() ? in * w.strides[i] : outputShape[i];
      total = w.strides[i] * (in - 1) + natural - wanted;
    }
    if (total < 0) { // larger than the kernel reaches: zeros at the end
      if (total < -(int64_t(1) << 31))
        return n.fail(Diag::BadAttribute, "output_shape is out of range");
      outputPadding[i] -= total;
      total = 0;
    }
    int64_t smaller = total / 2;
    w.pads[i] = autoPad == "SAME_UPPER" ? smaller : total - smaller;
    w.pads[rank + i] = total - w.pads[i];
  }
  return success();
}

Status convTranspose(NodeImporter &n) {
  FUSEC_TRY(std::vector<int64_t> kernel, kernelOf(n, 1));
  Shape spatial = spatialOf(n.shape(0));
  size_t rank = spatial.size();
  std::string autoPad = n.attrString("auto_pad", "NOTSET");
  std::vector<int64_t> outputPadding = n.attrInts("output_padding", std::vector<int64_t>(rank, 0));
  std::vector<int64_t> outputShape = n.attrInts("output_shape");
  if (outputPadding.empty())
    outputPadding.assign(rank, 0);
  if (outputShape.size() == rank + 2) // some exporters include batch and channels
    outputShape.erase(outputShape.begin(), outputShape.begin() + 2);
  if (outputPadding.size() != rank || (!outputShape.empty() && outputShape.size() != rank))
    return n.fail(Diag::BadAttribute,
                  "output_padding and output_shape need one entry a spatial axis");
  for (int64_t p : outputPadding)
    if (p < 0 || p > INT32_MAX)
      return n.fail(Diag::BadAttribute, "output_padding must not be negative");
  Shape unit(rank, DimExpr(1)); // auto_pad is resolved below, by the transposed rule
  FUSEC_TRY(Window w, readWindow(n, std::move(kernel), unit));
  if (!outputShape.empty() || autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER")
    FUSEC_CHECK(resolveTransposedPads(n, w, outputPadding, spatial, outputShape, autoPad));
  Attributes a = w.attributes();
  a.emplace("output_padding", outputPadding);
  return n.finish(OpKind::ConvTranspose, n.ids(), std::move(a));
}

constexpr OpRow kRows[] = {
    {"Conv", 1, kNewestOpset, 2, 3, 1, conv, "fixed weight shape"},
    {"ConvInteger", 10, kNewestOpset, 2, 4, 1, convInteger, "fixed weight shape"},
    {"ConvTranspose", 1, kNewestOpset, 2, 3, 1, convTranspose, "fixed weight shape"},
    {"QLinearConv", 10, kNewestOpset, 8, 9, 1, qlinearConv, "fixed weight shape"},
};

} // namespace

std::span<const OpRow> windowsConvOps() { return kRows; }

} // namespace fusec
