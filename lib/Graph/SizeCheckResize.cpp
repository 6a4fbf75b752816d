// The sizes that Resize gives its output where all operands are constants.
#include "Graph/ResizeRule.h"

#include <algorithm>
#include <cmath>

namespace fusec {

float applyToNumbers(DimProgram::Op op, float a, float b) {
  switch (op) {
  case DimProgram::Op::Sub: return a - b;
  case DimProgram::Op::Mul: return a * b;
  case DimProgram::Op::Div: return a / b;
  case DimProgram::Op::Min: return std::min(a, b);
  case DimProgram::Op::Max: return std::max(a, b);
  default: return NAN;
  }
}

std::optional<ShortScale> shortScale(double scale) {
  constexpr int kBits = 4, kLargestExponent = 32;
  int exponent = 0;
  double factor = std::frexp(scale, &exponent);
  for (int bit = 0; bit < kBits && factor != std::floor(factor); ++bit, --exponent)
    factor *= 2;
  if (factor != std::floor(factor) || std::abs(exponent) > kLargestExponent)
    return std::nullopt;
  return ShortScale{static_cast<int64_t>(factor), exponent};
}

Status checkResize(const SizeCheck &check, size_t axes, std::optional<size_t> sizes,
                   const ConstantRef &scales, bool isCrop, const ConstantRef &roi) {
  auto has = [](const ConstantRef &c, size_t numbers) {
    return c && static_cast<size_t>(c->numElements()) == numbers;
  };
  auto wrong = [&](const char *text) { return check.misfit({Misfit::Kind::Operands, text}); };
  if (sizes ? *sizes != axes : !has(scales, axes))
    return wrong(sizes ? "one size for each axis is needed" : "one scale for each axis is needed");
  if (isCrop && !has(roi, 2 * axes))
    return wrong("tf_crop_and_resize needs a roi with two values for each axis");
  return success();
}

Status checkScale(const SizeCheck &check, double scale) {
  if (!(scale > 0) || !std::isfinite(scale))
    return check.misfit({Misfit::Kind::Value, "a scale must be positive and finite"});
  return success();
}

Status checkResized(const SizeCheck &check, double size) {
  constexpr double kLargest = static_cast<double>(int64_t(1) << 40);
  if (!(size >= 0 && size <= kLargest))
    return check.misfit({Misfit::Kind::Value, "an output size is out of range"});
  return success();
}

Result<Shape> SizeCheck::resized(const Shape &in, const ResizeSizes &how) const {
  const size_t count = how.axes.size();
  auto number = [](const ConstantRef &c, size_t i) { return c->floatAt(static_cast<int64_t>(i)); };
  FUSEC_CHECK(checkResize(*this, count, how.sizes ? std::optional(how.sizes->size()) : std::nullopt,
                          how.scales, how.isCrop, how.roi));
  for (size_t i = 0; i < count; ++i)
    if (const DimExpr &d = in[static_cast<size_t>(how.axes[i])];
        !d.isConst() && (how.sizes || number(how.scales, i) != 1.0))
      return misfit({Misfit::Kind::NotFixed, "the axes to resize must have fixed sizes", {d}});
  auto own = [&](size_t i) {
    return static_cast<float>(in[static_cast<size_t>(how.axes[i])].constValue());
  };
  std::vector<float> scales;
  for (size_t i = 0; how.sizes && i < count; ++i)
    scales.push_back(
        applyToNumbers(DimProgram::Op::Div, static_cast<float>((*how.sizes)[i]), own(i)));
  const bool keepsAspect = how.sizes && how.policy != "stretch" && count > 0;
  const float kept = keepsAspect ? keptScale(scales, how.policy, applyToNumbers) : 0;
  const std::optional<float> whole;
  Shape out = in;
  for (size_t i = 0; i < count; ++i) {
    DimExpr &d = out[static_cast<size_t>(how.axes[i])];
    if (!d.isConst())
      continue;
    double size = 0;
    if (keepsAspect) {
      size = std::round(sizeByScale(own(i), whole, kept, applyToNumbers));
    } else if (how.sizes) {
      size = static_cast<double>((*how.sizes)[i]);
    } else {
      const double scale = number(how.scales, i);
      FUSEC_CHECK(checkScale(*this, scale));
      auto end = [&](size_t k) { return static_cast<float>(number(how.roi, k)); };
      const auto part =
          how.isCrop ? std::optional(applyToNumbers(DimProgram::Op::Sub, end(i + count), end(i)))
                     : whole;
      size = !how.isCrop && shortScale(scale)
                 ? static_cast<double>(d.constValue()) * scale
                 : sizeByScale(own(i), part, static_cast<float>(scale), applyToNumbers);
      size = std::floor(size);
    }
    FUSEC_CHECK(checkResized(*this, size));
    d = DimExpr(static_cast<int64_t>(size));
  }
  return out;
}

} // namespace fusec
