#include "Onnx/ResizeForm.h"

#include "Support/Diag.h"

#include <algorithm>
#include <cmath>

namespace fusec {

/// The common scale of all axes that a policy other than stretch asks for.
static double commonScale(const ResizeForm &form, const Shape &in,
                          const std::vector<int64_t> &sizes) {
  double common = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const double scale = static_cast<double>(sizes[i]) /
                         static_cast<double>(in[static_cast<size_t>(form.axes[i])].constValue());
    common = i == 0                        ? scale
             : form.policy == "not_larger" ? std::min(common, scale)
                                           : std::max(common, scale);
  }
  return common;
}

Result<Shape> resizedShape(const NodeImporter &n, const ResizeForm &form, const Shape &in,
                           const ConstantRef &roi, const ConstantRef &scales,
                           const std::optional<std::vector<int64_t>> &sizes) {
  const size_t count = form.axes.size();
  if (scales && static_cast<size_t>(scales->numElements()) != count)
    return n.mismatch("one scale for each axis is needed");
  if (sizes && sizes->size() != count)
    return n.mismatch("one size for each axis is needed");
  if (form.isCrop() && (!roi || static_cast<size_t>(roi->numElements()) != 2 * count))
    return n.mismatch("tf_crop_and_resize needs a roi with two values for each axis");
  for (size_t i = 0; i < count; ++i)
    if (const DimExpr &d = in[static_cast<size_t>(form.axes[i])];
        !d.isConst() && (sizes || scales->floatAt(static_cast<int64_t>(i)) != 1.0))
      return n.needsFixed("the axes to resize must have fixed sizes", {d});
  const double common = sizes && form.isKeepingAspect() ? commonScale(form, in, *sizes) : 0;
  Shape out = in;
  for (size_t i = 0; i < count; ++i) {
    DimExpr &d = out[static_cast<size_t>(form.axes[i])];
    if (!d.isConst())
      continue;
    double size = 0;
    const double own = static_cast<double>(d.constValue());
    if (sizes) {
      size = form.isKeepingAspect() ? std::floor(common * own + 0.5)
                                    : static_cast<double>((*sizes)[i]);
    } else {
      const double scale = scales->floatAt(static_cast<int64_t>(i));
      double extent = own;
      if (form.isCrop())
        extent *=
            roi->floatAt(static_cast<int64_t>(i + count)) - roi->floatAt(static_cast<int64_t>(i));
      size = std::floor(extent * scale);
      if (!(scale > 0) || !(size >= 0) || size > 1e12)
        return n.fail(Diag::BadOperand, "a scale must be positive and finite");
    }
    if (!(size >= 0 && size <= static_cast<double>(int64_t(1) << 40)))
      return n.fail(Diag::BadOperand, "an output size is out of range");
    d = DimExpr(static_cast<int64_t>(size));
  }
  return out;
}

} // namespace fusec
