// The sizes that Resize gives its output.
#include "Graph/SizeCheck.h"

#include <algorithm>
#include <cmath>

namespace fusec {

/// The common scale of all axes that a policy other than stretch asks for.
static double commonScale(const Shape &in, const ResizeSizes &how) {
  double common = 0;
  for (size_t i = 0; i < how.axes.size(); ++i) {
    const double scale = static_cast<double>((*how.sizes)[i]) /
                         static_cast<double>(in[static_cast<size_t>(how.axes[i])].constValue());
    common = i == 0                       ? scale
             : how.policy == "not_larger" ? std::min(common, scale)
                                          : std::max(common, scale);
  }
  return common;
}

Result<Shape> SizeCheck::resized(const Shape &in, const ResizeSizes &how) const {
  const size_t count = how.axes.size();
  auto wrong = [&](const char *text) { return misfit({Misfit::Kind::Operands, text}); };
  auto badValue = [&](const char *text) { return misfit({Misfit::Kind::Value, text}); };
  auto has = [](const ConstantRef &c, size_t numbers) {
    return c && static_cast<size_t>(c->numElements()) == numbers;
  };
  auto number = [](const ConstantRef &c, size_t i) { return c->floatAt(static_cast<int64_t>(i)); };
  if (how.sizes ? how.sizes->size() != count : !has(how.scales, count))
    return wrong(how.sizes ? "one size for each axis is needed"
                           : "one scale for each axis is needed");
  if (how.isCrop && !has(how.roi, 2 * count))
    return wrong("tf_crop_and_resize needs a roi with two values for each axis");
  for (size_t i = 0; i < count; ++i)
    if (const DimExpr &d = in[static_cast<size_t>(how.axes[i])];
        !d.isConst() && (how.sizes || number(how.scales, i) != 1.0))
      return misfit({Misfit::Kind::NotFixed, "the axes to resize must have fixed sizes", {d}});
  const bool keepsAspect = how.policy != "stretch";
  const double common = how.sizes && keepsAspect ? commonScale(in, how) : 0;
  Shape out = in;
  for (size_t i = 0; i < count; ++i) {
    DimExpr &d = out[static_cast<size_t>(how.axes[i])];
    if (!d.isConst())
      continue;
    const double own = static_cast<double>(d.constValue());
    double size = 0;
    if (how.sizes) {
      size = keepsAspect ? std::floor(common * own + 0.5) : static_cast<double>((*how.sizes)[i]);
    } else {
      const double scale = number(how.scales, i);
      const double part = how.isCrop ? number(how.roi, i + count) - number(how.roi, i) : 1;
      size = std::floor(own * part * scale);
      if (!(scale > 0) || !(size >= 0) || size > 1e12)
        return badValue("a scale must be positive and finite");
    }
    if (!(size >= 0 && size <= static_cast<double>(int64_t(1) << 40)))
      return badValue("an output size is out of range");
    d = DimExpr(static_cast<int64_t>(size));
  }
  return out;
}

} // namespace fusec
