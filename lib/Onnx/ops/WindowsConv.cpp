#include "Onnx/Compose.h"
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
  FUSEC_TRY(Window window, readWindow(n, std::move(kernel), spatialOf(n.shape(0))));
  std::vector<ValueId> in = n.ids();
  if (!window.open.empty()) {
    const bool hasZero = op != OpKind::Conv && n.has(2);
    if (hasZero) {
      FUSEC_CHECK(n.sameDim(numElements(n.shape(2)), DimExpr(1), "the elements of the zero point"));
    }
    FUSEC_TRY(PaddedData x,
              padOpenAxes(n, in[0], window, hasZero ? n.reshape(in[2], {}) : kNoValue));
    in[0] = x.value;
  }
  if (op == OpKind::Conv) // com.microsoft's FusedConv has one more
    in.resize(n.has(2) ? 3 : 2);
  return n.finish(op, std::move(in), window.attributes());
}
Status conv(NodeImporter &n) { return convolution(n, OpKind::Conv, 1); }
Status convInteger(NodeImporter &n) { return convolution(n, OpKind::ConvInteger, 1); }
Status qlinearConv(NodeImporter &n) { return convolution(n, OpKind::QLinearConv, 3); }

/// A ConvTranspose over sizes of `spatial`, whose pads follow from the sizes of its output.
struct TransposedForm {
  Window window;
  std::vector<int64_t> outputPadding, outputShape;
  bool moreAtEnd;                  // of two pads of which one is larger by 1
  std::vector<int64_t> zeros = {}; // how much of outputPadding small data alone needs, by open axis

  /// The output along axis i without pads, less what each element of the data adds to it.
  int64_t natural(size_t i) const {
    return outputPadding[i] + (window.kernel[i] - 1) * window.dilations[i] + 1;
  }
};

/// The padding that makes the output as large as output_shape or auto_pad asks for. It hangs on open sizes where
/// output_shape does: such axes get none, and zeros at their end if they may need some.
Status resolveTransposedPads(NodeImporter &n, TransposedForm &form, const Shape &spatial) {
  Window &w = form.window;
  size_t rank = spatial.size();
  for (size_t i = 0; i < rank; ++i) {
    const int64_t natural = form.natural(i), stride = w.strides[i];
    int64_t total;
    if (spatial[i].isConst()) {
      const int64_t in = spatial[i].constValue();
      const int64_t wanted = form.outputShape.empty() ? in * stride : form.outputShape[i];
      total = stride * (in - 1) + natural - wanted;
    } else if (form.outputShape.empty()) {
      total = natural - stride; // SAME: the output is stride times the input
    } else {
      w.open.push_back(i);
      FUSEC_CHECK(n.sizes().atLeast(spatial[i], 1, "a spatial size"));
      total = std::min<int64_t>(natural - form.outputShape[i], 0);
      form.zeros.push_back(-total);
    }
    if (total < 0) { // larger than the kernel reaches: zeros at the end
      if (total < -(int64_t(1) << 31))
        return n.fail(Diag::BadAttribute, "output_shape is out of range");
      form.outputPadding[i] -= total;
      total = 0;
    }
    int64_t smaller = total / 2;
    w.pads[i] = form.moreAtEnd ? smaller : total - smaller;
    w.pads[rank + i] = total - w.pads[i];
  }
  return success();
}

/// What output_shape asks for of `y`, which has no pads along the open axes.
Result<ValueId> cutOpenAxes(NodeImporter &n, ValueId y, const TransposedForm &form) {
  Compose c(n);
  for (size_t k = 0; k < form.window.open.size(); ++k) {
    const size_t open = form.window.open[k];
    const auto axis = static_cast<int64_t>(open) + 2;
    const int64_t wanted = form.outputShape[open];
    FUSEC_TRY(const ValueId made, c.extent(y, axis));
    FUSEC_TRY(const ValueId beyond, c.binary(OpKind::Sub, made, c.integer(wanted + form.zeros[k])));
    FUSEC_TRY(const ValueId total, c.binary(OpKind::Max, beyond, c.integer(0)));
    FUSEC_TRY(ValueId begin, c.binary(OpKind::Div, total, c.integer(2)));
    if (!form.moreAtEnd) {
      FUSEC_TRY(begin, c.binary(OpKind::Sub, total, begin));
    }
    FUSEC_TRY(const ValueId places, c.binary(OpKind::Add, c.iota(wanted), begin));
    FUSEC_TRY(y, c.gather(y, places, axis));
  }
  return y;
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
  TransposedForm form{std::move(w), std::move(outputPadding), std::move(outputShape),
                      autoPad == "SAME_UPPER"};
  if (!form.outputShape.empty() || autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER")
    FUSEC_CHECK(resolveTransposedPads(n, form, spatial));
  Attributes a = form.window.attributes();
  a.emplace("output_padding", form.outputPadding);
  if (form.window.open.empty())
    return n.finish(OpKind::ConvTranspose, n.ids(), std::move(a));
  a.emplace("group", n.attrInt("group", 1));
  FUSEC_TRY(const ValueId whole, n.emitOne(OpKind::ConvTranspose, n.ids(), std::move(a)));
  FUSEC_TRY(const ValueId cut, cutOpenAxes(n, whole, form));
  n.result(0, cut);
  return success();
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
