// Conv and ConvTranspose. Axes: n, oc, spatial...; ic, kernel.... Groups are an axis of their own, so that the
// input's channel is affine: the sum goes to [N, G, OC/G, spatial...] and a reshape map follows. Depthwise
// convolutions have no ic axis and write their output directly.
#include "Expr/lower/Contractions.h"

#include <algorithm>

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

/// A transposed convolution with stride s as a convolution with stride 1, of which s results lie between the positions of
/// the data (Shi et al., "Is the deconvolution layer the same as a convolutional layer?", 2016): output o takes data i
/// by tap o + pad - i*s. With o + pad = u*s + r, tap r + s*j takes data u - j, so that there is a filter for each r, with
/// each s-th tap, and nothing is multiplied by the zeros between the data. One of a spatial axis.
struct TransposedAxis {
  int64_t stride, dilation, taps, kernel, pad;
  int64_t first;    // the least u
  DimExpr results;  // how many u
  DimExpr out;      // output positions, in groups of `stride`
  DimExpr position; // output positions

  TransposedAxis(const Window &window, size_t d, const DimExpr &out)
      : stride(window.strides[d]), dilation(window.dilations[d]), kernel(window.kernel[d]),
        pad(window.padsBegin[d]), first(pad / stride), position(out) {
    taps = stride == 1 ? kernel : ((kernel - 1) * dilation + stride) / stride;
    this->out = ceilDiv(out, DimExpr(stride));
    results = this->out + DimExpr((stride - 1 + pad) / stride - first);
  }
  /// Between two of data that one result takes.
  int64_t distance() const { return stride == 1 ? dilation : 1; }
  bool isCut() const { return !(out * DimExpr(stride) == position); }
};

/// The filters [groups * filters * phases, channels of a group, taps...], with the taps in the order of the data. With a
/// stride and a dilation some taps are none of the kernel's, and are 0.
TensorId phaseFilters(NodeLowering &n, DType t, const std::vector<TransposedAxis> &axes,
                      int64_t group) {
  const Shape &w = n.shape(1);
  const DimExpr perGroupIn = floorDiv(w[0], DimExpr(group));
  Shape apart{DimExpr(group), w[1]}, joined{w[1] * DimExpr(group), perGroupIn};
  for (const TransposedAxis &a : axes) {
    apart.push_back(DimExpr(a.stride));
    joined[0] = joined[0] * DimExpr(a.stride);
  }
  apart.push_back(perGroupIn);
  for (const TransposedAxis &a : axes) {
    apart.push_back(DimExpr(a.taps));
    joined.push_back(DimExpr(a.taps));
  }
  const TensorId made = n.map(n.temp("phases", t, apart), [&](EquationBuilder &b) {
    std::vector<Val> at{b.axis(0) * perGroupIn + b.axis(2 + axes.size()), b.axis(1)};
    Val inside;
    for (size_t d = 0; d < axes.size(); ++d) {
      const TransposedAxis &a = axes[d];
      Val tap = b.index(DimExpr(a.taps - 1)) - b.axis(3 + axes.size() + d);
      if (a.stride > 1) {
        const Val place = b.axis(2 + d) + tap * double(a.stride);
        tap = floorDiv(place, a.dilation);
        if (a.dilation > 1)
          inside = both(inside, eq(floorMod(place, a.dilation), 0));
        if (a.taps * a.stride > (a.kernel - 1) * a.dilation + 1)
          inside = both(inside, lt(tap, DimExpr(a.kernel)));
      }
      at.push_back(tap);
    }
    return cast(t, b.readIf(inside, n.in(1), at, b.constant(n.type(1), 0)));
  });
  const TensorId filters = n.temp("filters", t, joined);
  n.reshape(filters, made);
  return filters;
}

/// The results of all phases in the order of the output, with the bias.
void interleave(NodeLowering &n, TensorId sum, DType t, const std::vector<TransposedAxis> &axes) {
  const size_t rank = axes.size();
  Shape apart = {n.outShape()[0], n.outShape()[1]}, whole = apart;
  for (const TransposedAxis &a : axes) {
    apart.insert(apart.end(), {a.out, DimExpr(a.stride)});
    whole.push_back(a.out * DimExpr(a.stride));
  }
  const TensorId made = n.map(n.temp("interleaved", n.outType(), apart), [&](EquationBuilder &b) {
    Val filter = b.axis(1);
    std::vector<Val> at{b.axis(0), filter};
    for (size_t d = 0; d < rank; ++d) {
      const Val shifted = b.axis(3 + 2 * d) + double(axes[d].pad);
      filter = filter * DimExpr(axes[d].stride) + floorMod(shifted, axes[d].stride);
      at.push_back(b.axis(2 + 2 * d) + floorDiv(shifted, axes[d].stride) - double(axes[d].first));
    }
    at[1] = filter;
    Val y = b.read(sum, at);
    if (n.has(2))
      y = y + cast(t, b.read(n.in(2), {b.axis(1)}));
    return cast(n.outType(), y);
  });
  if (std::ranges::none_of(axes, &TransposedAxis::isCut)) {
    n.reshape(n.out(), made);
    return;
  }
  const TensorId uncut = n.temp("uncut", n.outType(), whole);
  n.reshape(uncut, made);
  n.map(n.out(), [&](EquationBuilder &b) { return b.read(uncut, b.axes); });
}

Status convTranspose(NodeLowering &n) {
  const DType t = computeType(n.outType());
  const int64_t group = n.node.intAttr("group");
  Window window(n.node, n.shape(0));
  std::vector<TransposedAxis> axes;
  for (size_t d = 0; d < window.rank(); ++d)
    axes.emplace_back(window, d, n.outShape()[d + 2]);
  const TensorId filters = phaseFilters(n, t, axes, group);
  const bool hasPhases = std::ranges::any_of(axes, [](auto &a) { return a.stride > 1; });
  Shape shape{n.outShape()[0], n.shapeOf(filters)[0]};
  for (size_t d = 0; d < axes.size(); ++d) {
    const TransposedAxis &a = axes[d];
    shape.push_back(a.results);
    window.kernel[d] = a.taps;
    window.strides[d] = 1;
    window.dilations[d] = a.distance();
    window.padsBegin[d] = (a.taps - 1) * a.distance() - a.first;
    const DimExpr behind = a.results + DimExpr(a.first) - window.input[d];
    window.padsEnd[d] = !behind.isConst() || behind.constValue() > 0;
  }
  const TensorId sum = hasPhases ? n.temp("acc", t, shape) : sumTarget(n, t, n.has(2));
  convolve(
      n, sum, n.shapeOf(filters), group, window,
      [&](EquationBuilder &b, Val inside, const std::vector<Val> &at) {
        return cast(t, b.readIf(inside, n.in(0), at, b.constant(n.type(0), 0)));
      },
      [&](EquationBuilder &b, const std::vector<Val> &at) { return b.read(filters, at); });
  if (hasPhases)
    interleave(n, sum, t, axes);
  else
    addBias(n, sum, t, n.has(2));
  return success();
}

} // namespace

void addWindowsConv(HandlerTable &table) {
  table[OpKind::Conv] = conv;
  table[OpKind::ConvTranspose] = convTranspose;
}

} // namespace fusec::lower
