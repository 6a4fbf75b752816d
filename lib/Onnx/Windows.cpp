#include "Onnx/Windows.h"

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
  for (size_t i = 0; i < rank; ++i) {
    int64_t extent = (w.kernel[i] - 1) * w.dilations[i] + 1, total;
    if (spatial[i].isConst()) {
      int64_t in = spatial[i].constValue();
      int64_t out = (in + w.strides[i] - 1) / w.strides[i];
      total = std::max<int64_t>((out - 1) * w.strides[i] + extent - in, 0);
    } else if (w.strides[i] == 1) {
      total = extent - 1;
    } else {
      return n.needsFixed("auto_pad with a stride needs fixed spatial sizes", spatial);
    }
    int64_t smaller = total / 2;
    w.pads[i] = autoPad == "SAME_UPPER" ? smaller : total - smaller;
    w.pads[rank + i] = total - w.pads[i];
  }
  return w;
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

} // namespace fusec
