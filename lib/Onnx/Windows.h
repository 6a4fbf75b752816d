#pragma once
#include "Onnx/NodeImporter.h"

namespace fusec {

/// Geometry of a convolution or pool over the spatial axes (all axes after the first two).
struct Window {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> pads; // begins, then ends
  /// Spatial axes whose pads hang on their size, which is not fixed: padOpenAxes() makes them.
  std::vector<size_t> open;
  bool moreAtEnd = true; // of two pads of which one is larger by 1
  Attributes attributes() const;
};

/// Reads strides, dilations, pads and auto_pad; `kernel` are the sizes of the window. auto_pad is resolved
/// with the sizes of `spatial`.
Result<Window> readWindow(NodeImporter &n, std::vector<int64_t> kernel, const Shape &spatial);

struct PaddedData {
  ValueId value;
  /// How much is in front of the data along each open axis: vectors of one i64.
  std::vector<ValueId> begins;
};

/// x with `fill` (0 where it is absent) around its open axes, as far as the windows reach.
Result<PaddedData> padOpenAxes(NodeImporter &n, ValueId x, const Window &window, ValueId fill);

/// A pool over x [N, C, spatial...].
struct PoolForm {
  Window window;
  int64_t ceilMode; // 0 or 1
  Attributes attributes() const;
};

/// Reads the attributes that all pools have; `in` is the shape of x.
Result<PoolForm> readPool(NodeImporter &n, const Shape &in);

/// The means of x, floats, of which `includePad` counts the pads too.
Result<ValueId> meanOfWindows(NodeImporter &n, ValueId x, const PoolForm &form, bool includePad);

} // namespace fusec
