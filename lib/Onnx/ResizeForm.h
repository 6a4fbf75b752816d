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

  bool isCrop() const { return transform == "tf_crop_and_resize"; }
  bool isKeepingAspect() const { return policy != "stretch"; }
};

/// The shape that a tensor of shape `in` gets by `scales` (one number an axis of the form, nullptr with sizes) or
/// `sizes`; `roi` is used by a crop alone. Only axes of the scale 1 may have open sizes.
Result<Shape> resizedShape(const NodeImporter &n, const ResizeForm &form, const Shape &in,
                           const ConstantRef &roi, const ConstantRef &scales,
                           const std::optional<std::vector<int64_t>> &sizes);

} // namespace fusec
