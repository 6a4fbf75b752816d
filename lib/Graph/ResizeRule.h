#pragma once
#include "Graph/SizeCheck.h"
#include "Support/DimProgram.h"

namespace fusec {

// The sizes that Resize gives its output, in numbers of any kind: constants, what is computed when shapes are set,
// values of the graph. `apply` makes a number of an operation of DimProgram and two operands. ONNX Runtime computes
// them in f32, of which each step rounds: 7 * (13 / 7) is 13 there, and less in f64, where the scale alone is rounded.

/// The one scale of all axes where a policy other than stretch is followed: of those that the sizes ask for, at least
/// one, the smallest or the largest.
template <typename Number, typename Apply>
Number keptScale(const std::vector<Number> &scales, std::string_view policy, const Apply &apply) {
  Number kept = scales.at(0);
  for (size_t i = 1; i < scales.size(); ++i)
    kept =
        apply(policy == "not_larger" ? DimProgram::Op::Min : DimProgram::Op::Max, kept, scales[i]);
  return kept;
}

/// The size by the scale of one axis, to be rounded down, where `part` of the axis is taken; by the one scale of all
/// axes, to be rounded to the nearest.
template <typename Number, typename Apply>
Number sizeByScale(const Number &own, const std::optional<Number> &part, const Number &scale,
                   const Apply &apply) {
  return apply(DimProgram::Op::Mul, part ? apply(DimProgram::Op::Mul, own, *part) : own, scale);
}

/// A scale that multiplies without rounding what any image has of elements along an axis, as 1, 2 or 0.75 does: a small
/// number times a power of two. Sizes by such scales are exact, also where f32 would round.
struct ShortScale {
  int64_t factor = 1;
  int exponent = 0;
};
std::optional<ShortScale> shortScale(double scale);

/// `apply` of constants.
float applyToNumbers(DimProgram::Op op, float a, float b);

/// Whether there are as many operands as `axes` ask for: a size for each, or else a scale, and of the region of a crop
/// two values.
Status checkResize(const SizeCheck &check, size_t axes, std::optional<size_t> sizes,
                   const ConstantRef &scales, bool isCrop, const ConstantRef &roi);
/// Whether a scale is one.
Status checkScale(const SizeCheck &check, double scale);
/// Whether a size is one.
Status checkResized(const SizeCheck &check, double size);

} // namespace fusec
