// Conv and ConvTranspose. Axes: n, oc, spatial...; ic, kernel.... Groups are an axis of their own, so that the
// input's channel is affine: the sum goes to [N, G, OC/G, spatial...] and a reshape map follows. Depthwise
// convolutions have no ic axis and write their output directly.
#include "Expr/lower/Contractions.h"

namespace fusec::lower {

Window::Window(const Node &node, const Shape &inputShape)
    : kernel(node.intsAttr("kernel_shape")), strides(node.intsAttr("strides")),
      dilations(node.intsAttr("dilations")), input(inputShape.begin() + 2, inputShape.end()) {
  const std::vector<int64_t> &pads = node.intsAttr("pads");
  padsBegin.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank()));
  padsEnd.assign(pads.begin() + static_cast<std::ptrdiff_t>(rank()), pads.end());
  ceilMode = node.hasAttr("ceil_mode") && node.intAttr("ceil_mode");
}

Val Window::inside(size_t d, Val position) const {
  Val low, high;
  if (padsBegin[d] > 0)
    low = ge(position, 0);
  if (padsEnd[d] > 0 || ceilMode)
    high = lt(position, input[d]);
  return both(low, high);
}

void convolve(
    NodeLowering &n, TensorId out, const Shape &w, int64_t group, const Window &window,
    const std::function<Val(EquationBuilder &, Val inside, const std::vector<Val> &)> &readX,
    const std::function<Val(EquationBuilder &, const std::vector<Val> &)> &readW) {
  DimExpr perGroupIn = w[1], perGroupOut = floorDiv(w[0], DimExpr(group));
  // The layout of the equation's axes before the spatial ones: [n, oc], [n, g] or [n, g, oc/g].
  bool splits = group > 1 && !perGroupOut.isConst(1);
  TensorId target = out;
  if (splits) {
    Shape shape = n.shapeOf(out);
    shape[1] = group;
    shape.insert(shape.begin() + 2, perGroupOut);
    target = n.temp("groups", n.typeOf(out), shape);
  }
  size_t lead = splits ? 3 : 2;
  n.reduce(target, Monoid::Sum, [&](EquationBuilder &b) {
    Val batch = b.axis(0), g = group > 1 ? b.axis(1) : b.index(0);
    Val oc = group == 1 ? b.axis(1) : splits ? b.axis(1) * perGroupOut + b.axis(2) : b.axis(1);
    Val ic = b.reduction(perGroupIn);
    std::vector<Val> atX{batch, g * perGroupIn + ic}, atW{oc, ic};
    Val inside;
    for (size_t d = 0; d < window.rank(); ++d) {
      Val k = b.reduction(window.kernel[d]);
      Val position = window.at(d, b.axis(lead + d), k);
      inside = both(inside, window.inside(d, position));
      atX.push_back(position);
      atW.push_back(k);
    }
    return readX(b, inside, atX) * readW(b, atW);
  });
  if (splits)
    n.reshape(out, target);
}

namespace {

/// Where the contraction goes: straight to the output, or to a temp when a bias or a conversion follows.
TensorId sumTarget(NodeLowering &n, DType accumulate, bool hasBias) {
  bool direct = !hasBias && n.outType() == accumulate;
  return direct ? n.out() : n.temp("acc", accumulate, n.outShape());
}
void addBias(NodeLowering &n, TensorId sum, DType accumulate, bool hasBias) {
  if (sum == n.out())
    return;
  n.map(n.out(), [&](EquationBuilder &b) {
    Val y = b.read(sum, b.axes);
    if (hasBias)
      y = y + cast(accumulate, b.read(n.in(2), {b.axis(1)}));
    return cast(n.outType(), y);
  });
}

Status conv(NodeLowering &n) {
  DType t = computeType(n.outType());
  Window window(n.node, n.shape(0));
  TensorId sum = sumTarget(n, t, n.has(2));
  convolve(
      n, sum, n.shape(1), n.node.intAttr("group"), window,
      [&](EquationBuilder &b, Val inside, const std::vector<Val> &at) {
        return cast(t, b.readIf(inside, n.in(0), at, b.constant(n.type(0), 0)));
      },
      [&](EquationBuilder &b, const std::vector<Val> &at) { return cast(t, b.read(n.in(1), at)); });
  addBias(n, sum, t, n.has(2));
  return success();
}

/// Gather form: output position o takes input position i where o + pad - k*dilation = i*stride.
Status convTranspose(NodeLowering &n) {
  DType t = computeType(n.outType());
  Window window(n.node, n.shape(0));
  int64_t group = n.node.intAttr("group");
  const Shape &w = n.shape(1);
  DimExpr perGroupIn = floorDiv(w[0], DimExpr(group)), perGroupOut = w[1];
  TensorId sum = sumTarget(n, t, n.has(2)), target = sum;
  bool splits = group > 1 && !perGroupOut.isConst(1);
  if (splits) {
    Shape shape = n.outShape();
    shape[1] = group;
    shape.insert(shape.begin() + 2, perGroupOut);
    target = n.temp("groups", t, shape);
  }
  size_t lead = splits ? 3 : 2;
  n.reduce(target, Monoid::Sum, [&](EquationBuilder &b) {
    Val g = group > 1 ? b.axis(1) : b.index(0);
    Val oc = group == 1 ? b.axis(1) : splits ? b.axis(2) : b.index(0);
    Val ic = g * perGroupIn + b.reduction(perGroupIn);
    std::vector<Val> atX{b.axis(0), ic}, atW{ic, oc};
    Val inside;
    for (size_t d = 0; d < window.rank(); ++d) {
      Val k = b.reduction(window.kernel[d]);
      Val shifted =
          b.axis(lead + d) - k * double(window.dilations[d]) + double(window.padsBegin[d]);
      Val position = floorDiv(shifted, window.strides[d]);
      if (window.strides[d] > 1)
        inside = both(inside, eq(floorMod(shifted, window.strides[d]), 0));
      inside = both(inside, inRange(position, window.input[d]));
      atX.push_back(position);
      atW.push_back(k);
    }
    return cast(t, b.readIf(inside, n.in(0), atX, b.constant(n.type(0), 0))) *
           cast(t, b.read(n.in(1), atW));
  });
  if (splits)
    n.reshape(sum, target);
  addBias(n, sum, t, n.has(2));
  return success();
}

} // namespace

void addWindowsConv(HandlerTable &table) {
  table[OpKind::Conv] = conv;
  table[OpKind::ConvTranspose] = convTranspose;
}

} // namespace fusec::lower
