#include "Onnx/OpTable.h"
#include "Onnx/Windows.h"
#include "Support/Diag.h"

// Convolutions. x is [N, C, spatial...], w is [M, C/group, kernel...] and [C, M/group, kernel...] when
// transposed.

namespace fusec {
namespace {

Shape spatialOf(const Shape &s) { return Shape(s.begin() + 2, s.end()); }

/// Sizes of the kernel from the weights; kernel_shape, where given, must agree.
Result<std::vector<int64_t>> kernelOf(NodeImporter &n, size_t x, size_t w) {
  if (n.rank(x) < 3 || n.rank(w) != n.rank(x))
    return n.mismatch("data and weights must have one rank of at least 3");
  Shape dims = spatialOf(n.shape(w));
  if (!isStatic(dims) || !isStatic({n.shape(w)[0], n.shape(w)[1]}))
    return n.needsFixed("the weights must have a fixed shape", n.shape(w));
  std::vector<int64_t> kernel = staticDims(dims), given = n.attrInts("kernel_shape", kernel);
  if (given != kernel)
    return n.mismatch("kernel_shape does not agree with the weights");
  return kernel;
}

struct ConvForm {
  Window window;
  int64_t group;
  Shape out;
};

Result<ConvForm> convForm(NodeImporter &n, size_t x, size_t w) {
  FUSEC_TRY(std::vector<int64_t> kernel, kernelOf(n, x, w));
  ConvForm f;
  FUSEC_TRY(f.window, readWindow(n, std::move(kernel), spatialOf(n.shape(x))));
  f.group = n.attrInt("group", 1);
  int64_t channels = n.shape(w)[1].constValue(), filters = n.shape(w)[0].constValue();
  int64_t all;
  if (f.group < 1 || filters % f.group || __builtin_mul_overflow(channels, f.group, &all))
    return n.fail(Diag::BadAttribute,
                  "group is " + std::to_string(f.group) + "; it must divide the number of filters");
  if (channels < 1 || n.shape(x)[1] != DimExpr(all))
    return n.mismatch("the data must have " + std::to_string(all) + " channels for these weights",
                      {n.shape(x)[1]}, {DimExpr(all)});
  f.out = {n.shape(x)[0], DimExpr(filters)};
  for (size_t i = 0; i < f.window.kernel.size(); ++i) {
    FUSEC_TRY(DimExpr d, windowCount(n, f.window, i, n.shape(x)[i + 2], false));
    f.out.push_back(d);
  }
  return f;
}

Attributes attributesOf(const ConvForm &f) {
  Attributes a = f.window.attributes();
  a.emplace("group", f.group);
  return a;
}

Status checkBias(NodeImporter &n, size_t i, const DimExpr &filters) {
  if (n.has(i) && n.shape(i) != Shape{filters})
    return n.mismatch("the bias must have one element a filter", n.shape(i), {filters});
  return success();
}

Status conv(NodeImporter &n) {
  if (n.type(0) != n.type(1) || !isFloat(n.type(0)))
    return n.mismatch("data and weights must have one float type");
  FUSEC_TRY(ConvForm f, convForm(n, 0, 1));
  FUSEC_CHECK(checkBias(n, 2, f.out[1]));
  std::vector<ValueId> in{n.id(0), n.id(1)};
  if (n.has(2))
    in.push_back(n.id(2));
  return n.finish(OpKind::Conv, std::move(in), attributesOf(f), {{n.type(0), f.out}});
}

Status convInteger(NodeImporter &n) {
  FUSEC_TRY(ConvForm f, convForm(n, 0, 1));
  for (size_t i : {2, 3})
    if (n.has(i) && n.type(i) != n.type(i - 2))
      return n.mismatch("a zero point must have its operand's type");
  FUSEC_CHECK(n.quantParameter(2, DimExpr(1)));
  FUSEC_CHECK(n.quantParameter(3, f.out[1]));
  return n.finish(OpKind::ConvInteger, n.ids(), attributesOf(f), {{DType::I32, f.out}});
}

Status qlinearConv(NodeImporter &n) {
  FUSEC_TRY(ConvForm f, convForm(n, 0, 3));
  FUSEC_CHECK(checkBias(n, 8, f.out[1]));
  if (n.type(2) != n.type(0) || n.type(5) != n.type(3) || !isFloat(n.type(1)) ||
      !isFloat(n.type(4)) || !isFloat(n.type(6)) || (n.has(8) && n.type(8) != DType::I32))
    return n.mismatch(
        "the scales must be floats, zero points of their operand's type, the bias i32");
  for (size_t i : {1, 2, 6, 7})
    FUSEC_CHECK(n.quantParameter(i, DimExpr(1)));
  for (size_t i : {4, 5})
    FUSEC_CHECK(n.quantParameter(i, f.out[1]));
  return n.finish(OpKind::QLinearConv, n.ids(), attributesOf(f), {{n.type(7), f.out}});
}

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
  if (n.type(0) != n.type(1) || !isFloat(n.type(0)))
    return n.mismatch("data and weights must have one float type");
  FUSEC_TRY(std::vector<int64_t> kernel, kernelOf(n, 0, 1));
  Shape spatial = spatialOf(n.shape(0));
  size_t rank = spatial.size();
  std::string autoPad = n.attrString("auto_pad", "NOTSET");
  std::vector<int64_t> outputPadding = n.attrInts("output_padding", std::vector<int64_t>(rank, 0));
  std::vector<int64_t> outputShape = n.attrInts("output_shape");
  int64_t group = n.attrInt("group", 1);
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
  if (group < 1 || n.shape(1)[0].constValue() % group)
    return n.fail(Diag::BadAttribute, "group must divide the number of channels");
  if (n.shape(0)[1] != n.shape(1)[0])
    return n.mismatch("data and weights must have the same number of channels", {n.shape(0)[1]},
                      {n.shape(1)[0]});
  int64_t filters;
  if (__builtin_mul_overflow(n.shape(1)[1].constValue(), group, &filters))
    return n.mismatch("the number of filters overflows");
  Shape out{n.shape(0)[0], DimExpr(filters)};
  for (size_t i = 0; i < rank; ++i) {
    int64_t extra =
        outputPadding[i] + (w.kernel[i] - 1) * w.dilations[i] + 1 - w.pads[i] - w.pads[rank + i];
    DimExpr d = (spatial[i] - DimExpr(1)) * DimExpr(w.strides[i]) + DimExpr(extra);
    if (d.isConst() && d.constValue() < 1)
      return n.mismatch("the pads remove the whole output");
    out.push_back(d);
  }
  FUSEC_CHECK(checkBias(n, 2, out[1]));
  Attributes a = w.attributes();
  a.emplace("group", group);
  a.emplace("output_padding", outputPadding);
  return n.finish(OpKind::ConvTranspose, n.ids(), std::move(a), {{n.type(0), std::move(out)}});
}

constexpr OpRow kRows[] = {
    {"Conv", 1, 28, 2, 3, 1, conv, "fixed weight shape"},
    {"ConvInteger", 10, 28, 2, 4, 1, convInteger, "fixed weight shape"},
    {"ConvTranspose", 1, 28, 2, 3, 1, convTranspose, "fixed weight shape"},
    {"QLinearConv", 10, 28, 8, 9, 1, qlinearConv, "fixed weight shape"},
};

} // namespace

std::span<const OpRow> convOps() { return kRows; }

} // namespace fusec
