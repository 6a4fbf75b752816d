#include "Onnx/Windows.h"

#include "Onnx/Compose.h"
#include "Onnx/GraphBuilder.h"
#include "Support/Diag.h"

#include <algorithm>

namespace fusec {

Attributes Window::attributes() const {
  return {{"kernel_shape", kernel}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}};
}

Result<Window> readWindow(NodeImporter &n, std::vector<int64_t> kernel, const Shape &spatial) {
  constexpr int64_t kLargest = int64_t(1) << 31, kMostTaps = int64_t(1) << 24;
  size_t rank = spatial.size();
  Window w;
  w.kernel = std::move(kernel);
  w.strides = n.attrInts("strides", std::vector<int64_t>(rank, 1));
  w.dilations = n.attrInts("dilations", std::vector<int64_t>(rank, 1));
  w.pads = n.attrInts("pads", std::vector<int64_t>(2 * rank, 0));
  std::string autoPad = n.attrString("auto_pad", "NOTSET");
  auto bad = [&](std::string text) { return n.fail(Diag::BadAttribute, std::move(text)); };
  if (w.strides.empty())
    w.strides.assign(rank, 1);
  if (w.dilations.empty())
    w.dilations.assign(rank, 1);
  if (w.pads.empty())
    w.pads.assign(2 * rank, 0);
  if (w.kernel.size() != rank || w.strides.size() != rank || w.dilations.size() != rank ||
      w.pads.size() != 2 * rank)
    return bad("kernel_shape, strides and dilations need " + std::to_string(rank) +
               " entries and pads twice as many, one for each spatial axis");
  for (size_t i = 0; i < rank; ++i)
    if (w.kernel[i] < 1 || w.kernel[i] > kLargest || w.strides[i] < 1 || w.strides[i] > kLargest ||
        w.dilations[i] < 1 || w.dilations[i] > kLargest)
      return bad("kernel_shape, strides and dilations must be between 1 and 2^31");
  int64_t taps = 1;
  for (int64_t k : w.kernel)
    if ((taps *= k) > kMostTaps) // factors up to 2^31: no overflow before it shows
      return n.fail(Diag::LimitExceeded, "the window has more than 2^24 elements");
  for (int64_t p : w.pads)
    if (p < 0 || p > kLargest)
      return bad("pads must be between 0 and 2^31");
  if (autoPad == "NOTSET" || autoPad.empty())
    return w;
  if (autoPad == "VALID") {
    w.pads.assign(2 * rank, 0);
    return w;
  }
  if (autoPad != "SAME_UPPER" && autoPad != "SAME_LOWER")
    return bad("auto_pad is '" + autoPad + "'; NOTSET, VALID, SAME_UPPER or SAME_LOWER is needed");
  w.moreAtEnd = autoPad == "SAME_UPPER";
  for (size_t i = 0; i < rank; ++i) {
    int64_t extent = (w.kernel[i] - 1) * w.dilations[i] + 1, total;
    if (spatial[i].isConst()) {
      int64_t in = spatial[i].constValue();
      int64_t out = (in + w.strides[i] - 1) / w.strides[i];
      total = std::max<int64_t>((out - 1) * w.strides[i] + extent - in, 0);
    } else if (w.strides[i] == 1) {
      total = extent - 1;
    } else {
      w.open.push_back(i);
      total = 0;
    }
    int64_t smaller = total / 2;
    w.pads[i] = w.moreAtEnd ? smaller : total - smaller;
    w.pads[rank + i] = total - w.pads[i];
  }
  return w;
}

Result<PaddedData> padOpenAxes(NodeImporter &n, ValueId x, const Window &w, ValueId fill) {
  Compose c(n);
  const size_t rank = n.shapeOf(x).size();
  auto axisOf = [](size_t open) { return static_cast<int64_t>(open) + 2; };
  auto number = [&](int64_t v) { return n.intsValue({v}); };
  std::vector<ValueId> begins, starts, ends;
  std::vector<int64_t> axes, pads(2 * rank, 0);
  for (size_t open : w.open) {
    const int64_t axis = axisOf(open), stride = w.strides[open],
                  extent = (w.kernel[open] - 1) * w.dilations[open] + 1;
    // One window for each multiple of the stride: the form of it that others are to be given.
    n.graphBuilder().solver().unified(
        ceilDiv(n.shapeOf(x)[static_cast<size_t>(axis)], DimExpr(stride)));
    // The last window begins at the last multiple of the stride, `rest` in front of the last element.
    FUSEC_TRY(ValueId size, n.emitOne(OpKind::Shape, {x}, {{"start", axis}, {"end", axis + 1}}));
    FUSEC_TRY(ValueId last, c.binary(OpKind::Sub, size, number(1)));
    FUSEC_TRY(ValueId rest, n.emitOne(OpKind::Mod, {last, number(stride)}, {{"fmod", int64_t(0)}}));
    FUSEC_TRY(ValueId beyond, c.binary(OpKind::Sub, number(extent - 1), rest));
    FUSEC_TRY(ValueId total, c.binary(OpKind::Max, beyond, number(0)));
    FUSEC_TRY(ValueId begin, c.binary(OpKind::Div, total, number(2)));
    if (!w.moreAtEnd) {
      FUSEC_TRY(begin, c.binary(OpKind::Sub, total, begin));
    }
    // Pads as large as any are, of which a part is read.
    FUSEC_TRY(ValueId start, c.binary(OpKind::Sub, number(extent - 1), begin));
    FUSEC_TRY(ValueId reach, c.binary(OpKind::Sub, last, rest));
    FUSEC_TRY(ValueId length, c.binary(OpKind::Add, reach, number(extent)));
    FUSEC_TRY(ValueId end, c.binary(OpKind::Add, start, length));
    pads[static_cast<size_t>(axis)] = pads[rank + static_cast<size_t>(axis)] = extent - 1;
    axes.push_back(axis);
    begins.push_back(begin);
    starts.push_back(start);
    ends.push_back(end);
  }
  std::vector<ValueId> operands{x};
  if (fill != kNoValue)
    operands.insert(operands.end(), {kNoValue, fill});
  FUSEC_TRY(ValueId padded, n.emitOne(OpKind::Pad, std::move(operands),
                                      {{"mode", std::string("constant")}, {"pads", pads}}));
  FUSEC_TRY(ValueId cut, n.emitOne(OpKind::SliceDynamic, {padded, c.concat(starts, 0),
                                                          c.concat(ends, 0), n.intsValue(axes)}));
  return PaddedData{cut, std::move(begins)};
}

Attributes PoolForm::attributes() const {
  Attributes a = window.attributes();
  a.emplace("ceil_mode", ceilMode);
  return a;
}

Result<PoolForm> readPool(NodeImporter &n, const Shape &in) {
  if (in.size() < 3)
    return n.mismatch("the data must have rank 3 or more");
  if (!n.hasAttribute("kernel_shape"))
    return n.fail(Diag::BadAttribute, "attribute 'kernel_shape' is missing");
  Shape spatial(in.begin() + 2, in.end());
  FUSEC_TRY(Window w, readWindow(n, n.attrInts("kernel_shape"), spatial));
  int64_t ceilMode = n.attrInt("ceil_mode", 0) != 0;
  return PoolForm{std::move(w), ceilMode};
}

Result<ValueId> meanOfWindows(NodeImporter &n, ValueId x, const PoolForm &form, bool includePad) {
  Attributes attrs = form.attributes();
  const bool isOpen = !form.window.open.empty();
  attrs.emplace("count_include_pad", int64_t(includePad || isOpen));
  if (!isOpen)
    return n.emitOne(OpKind::AveragePool, {x}, std::move(attrs));
  FUSEC_TRY(PaddedData padded, padOpenAxes(n, x, form.window, kNoValue));
  FUSEC_TRY(ValueId mean, n.emitOne(OpKind::AveragePool, {padded.value}, attrs));
  if (includePad)
    return mean;
  Compose c(n);
  FUSEC_TRY(PaddedData ones,
            padOpenAxes(n, c.filled(n.typeOf(x), 1, n.shapeOf(x)), form.window, kNoValue));
  FUSEC_TRY(ValueId counted, n.emitOne(OpKind::AveragePool, {ones.value}, std::move(attrs)));
  return c.binary(OpKind::Div, mean, counted);
}

} // namespace fusec
