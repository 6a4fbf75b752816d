#pragma once
#include "Onnx/HostNumbers.h"
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
  /// Where the output has fewer elements, the filter is wider.
  bool isWidening() const { return antialias != 0 && mode != "nearest"; }
  /// How far the filter reaches on either side of a position.
  int64_t reach() const { return mode == "cubic" ? 2 : 1; }
};

/// The inputs of a Resize behind the data: scales or sizes, and the region of a crop (`roi`). Those that it lacks, or
/// that have no effect, are nothing.
struct ResizeOperands {
  std::optional<size_t> roi, scales, sizes;
};

/// The operands that say where the output's elements lie and are run-time values. Sizes to stretch to say no more than
/// the output's shape.
std::vector<size_t> openOperands(const NodeImporter &n, const ResizeForm &form,
                                 const ResizeOperands &operands);

/// The output's shape where sizes of the operand, of the output, or scales are not fixed and follow from shapes;
/// nothing where they do not.
std::optional<Shape> computedShape(NodeImporter &n, const ResizeForm &form,
                                   const ResizeOperands &operands);

/// What a scale makes of a size, or of `part` of it; nothing where that is too large.
std::optional<DimExpr> scaledSize(NodeImporter &n, const DimExpr &own, HostNumbers::Id scale,
                                  std::optional<HostNumbers::Id> part);
/// The sizes or scales of a run make the declared shape `out`.
Status requireResized(NodeImporter &n, const ResizeForm &form, const ResizeOperands &operands,
                      const Shape &out);

/// A Resize with such operands, `open`, or over axes whose sizes are not fixed, where the output's shape follows from
/// sizes or is declared: positions and weights are computed when the values are there, and each axis is gathered once
/// a tap.
Status resizeAtRunTime(NodeImporter &n, const ResizeForm &form, const ResizeOperands &operands,
                       const std::vector<size_t> &open);

/// A Resize of `x` by these scales, or stretched to these sizes, where sizes are not fixed: positions and weights are
/// computed as above, from the sizes of a run.
Status resizeOpenSizes(NodeImporter &n, ValueId x, const ResizeForm &form, const ConstantRef &roi,
                       const ConstantRef &scales, const std::optional<Shape> &sizes);

} // namespace fusec
