#pragma once
#include "Expr/lower/Lowering.h"

#include <functional>

namespace fusec::lower {

/// The product under the sum of a MatMul in an equation over its output, with the batch dims broadcast; adds
/// the reduction axis. The maps turn what is read into factors of the accumulation type.
Val matMulTerm(EquationBuilder &b, TensorId x, TensorId w, const std::function<Val(Val)> &mapX,
               const std::function<Val(Val)> &mapW);

/// Geometry of a convolution or pool window: out position o and kernel position k read input position
/// o*stride + k*dilation - pad, per spatial dimension.
struct Window {
  std::vector<int64_t> kernel, strides, dilations, padsBegin, padsEnd;
  bool ceilMode = false;
  Shape input; // spatial extents

  Window(const Node &node, const Shape &inputShape);
  size_t rank() const { return kernel.size(); }
  /// Position in the input that kernel position `k` at output position `o` reads, and where it is inside.
  Val at(size_t d, Val o, Val k) const {
    return o * double(strides[d]) + k * double(dilations[d]) - double(padsBegin[d]);
  }
  Val inside(size_t d, Val position) const;
};

/// The sum of products of a convolution into `out` [N, M, spatial...], which has the accumulation type.
/// `readX` reads x at [n, c, position...] where the predicate holds and gives its contribution of nothing
/// elsewhere; `readW` reads the weight.
void convolve(
    NodeLowering &n, TensorId out, const Shape &w, int64_t group, const Window &window,
    const std::function<Val(EquationBuilder &, Val inside, const std::vector<Val> &)> &readX,
    const std::function<Val(EquationBuilder &, const std::vector<Val> &)> &readW);

} // namespace fusec::lower
