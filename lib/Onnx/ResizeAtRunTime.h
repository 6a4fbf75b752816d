#pragma once
#include "Onnx/NodeImporter.h"

namespace fusec {

/// The attributes of Resize, with all axes named.
struct ResizeForm {
  std::string transform = "half_pixel", mode = "nearest", nearest = "round_prefer_floor",
              policy = "stretch";
  std::vector<int64_t> axes;
  double cubic = -0.75, extrapolation = 0;
  int64_t antialias = 0, excludeOutside = 0;
};

/// A Resize whose scales (the f32 vector `scales`), sizes with a policy other than stretch, or region of a crop
/// (`roi`) are run-time values, where `out` is declared of the output: positions and weights are computed when the
/// values are there, and each axis is gathered once a tap. `scales` or `sizes` is kNoValue, `roi` too without a crop.
Status resizeAtRunTime(NodeImporter &n, const ResizeForm &form, ValueId roi, ValueId scales,
                       ValueId sizes, const Shape &out);

} // namespace fusec
