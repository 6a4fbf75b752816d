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

/// The convolution of the image with `weights`, which have the accumulation type of `sum` after a cast.
void convolveImage(NodeLowering &n, TensorId sum, TensorId weights, const Window &window) {
  const DType t = n.typeOf(sum);
  convolve(
      n, sum, n.shapeOf(weights), n.node.intAttr("group"), window,
      [&](EquationBuilder &b, Val inside, const std::vector<Val> &at) {
        return cast(t, b.readIf(inside, n.in(0), at, b.constant(n.type(0), 0)));
      },
      [&](EquationBuilder &b, const std::vector<Val> &at) { return cast(t, b.read(weights, at)); });
}

Status conv(NodeLowering &n) {
  const DType t = computeType(n.outType());
  const TensorId sum = sumTarget(n, t, n.has(2));
  convolveImage(n, sum, n.in(1), Window(n.node, n.shape(0)));
  addBias(n, sum, t, n.has(2));
  return success();
}

/// A transposed convolution with stride s as one with stride 1, of which s results lie between two positions of the
/// data (Shi et al., "Is the deconvolution layer the same as a convolutional layer?", 2016). Output o takes data i by
/// tap o + pad - i*s. With o + pad = u*s + r, tap r + s*j takes data u - j: there is a filter for each r, with each
/// s-th tap, and nothing is multiplied by the zeros between the data.
class TransposedConvolution {
public:
  explicit TransposedConvolution(NodeLowering &n)
      : n(n), t(computeType(n.outType())), group(n.node.intAttr("group")),
        given(n.node, n.shape(0)) {
    for (size_t d = 0; d < given.rank(); ++d) {
      const int64_t stride = given.strides[d], pad = given.padsBegin[d];
      const int64_t reach = (given.kernel[d] - 1) * given.dilations[d] + 1;
      Phases p{
          stride, stride == 1 ? given.kernel[d] : (reach + stride - 1) / stride, pad / stride, {}};
      p.results = ceilDiv(n.outShape()[d + 2], DimExpr(stride)) +
                  DimExpr((stride - 1 + pad) / stride - p.first);
      axes.push_back(p);
    }
  }

  Status lower() {
    const TensorId weights = filters();
    Window window = given;
    Shape shape{n.outShape()[0], n.shapeOf(weights)[0]};
    for (size_t d = 0; d < axes.size(); ++d) {
      const Phases &p = axes[d];
      shape.push_back(p.results);
      window.kernel[d] = p.taps;
      window.strides[d] = 1;
      window.dilations[d] = p.stride == 1 ? given.dilations[d] : 1;
      window.padsBegin[d] = (p.taps - 1) * window.dilations[d] - p.first;
      const DimExpr behind = p.results + DimExpr(p.first) - given.input[d];
      window.padsEnd[d] = !behind.isConst() || behind.constValue() > 0;
    }
    const bool areApart =
        std::any_of(axes.begin(), axes.end(), [](auto &p) { return p.stride > 1; });
    const TensorId sum = areApart ? n.temp("acc", t, shape) : sumTarget(n, t, n.has(2));
    convolveImage(n, sum, weights, window);
    if (areApart)
      putSideBySide(sum);
    else
      addBias(n, sum, t, n.has(2));
    return success();
  }

private:
  /// The places between two positions of the data along one axis.
  struct Phases {
    int64_t stride, taps; // of a filter
    int64_t first;        // the least u
    DimExpr results;      // how many u
  };

  /// [groups * filters * phases, channels of a group, taps...], with the taps in the order of the data. With a stride
  /// and a dilation some taps are none of the kernel's, and are 0.
  TensorId filters() {
    const Shape &w = n.shape(1);
    const size_t rank = axes.size();
    const DimExpr perGroupIn = floorDiv(w[0], DimExpr(group));
    Shape apart{DimExpr(group), w[1]}, joined{w[1] * DimExpr(group), perGroupIn};
    for (const Phases &p : axes) {
      apart.push_back(DimExpr(p.stride));
      joined[0] = joined[0] * DimExpr(p.stride);
    }
    apart.push_back(perGroupIn);
    for (const Phases &p : axes) {
      apart.push_back(DimExpr(p.taps));
      joined.push_back(DimExpr(p.taps));
    }
    const TensorId made = n.map(n.temp("phases", n.type(1), apart), [&](EquationBuilder &b) {
      std::vector<Val> at{b.axis(0) * perGroupIn + b.axis(2 + rank), b.axis(1)};
      Val inside;
      for (size_t d = 0; d < rank; ++d) {
        const Phases &p = axes[d];
        const int64_t dilation = given.dilations[d], kernel = given.kernel[d];
        Val tap = b.index(DimExpr(p.taps - 1)) - b.axis(3 + rank + d);
        if (p.stride > 1) {
          const Val place = b.axis(2 + d) + tap * double(p.stride);
          tap = floorDiv(place, dilation);
          if (dilation > 1)
            inside = both(inside, eq(floorMod(place, dilation), 0));
          if (p.taps * p.stride > (kernel - 1) * dilation + 1)
            inside = both(inside, lt(tap, DimExpr(kernel)));
        }
        at.push_back(tap);
      }
      return b.readIf(inside, n.in(1), at, b.constant(n.type(1), 0));
    });
    const TensorId weights = n.temp("filters", n.type(1), joined);
    n.reshape(weights, made);
    return weights;
  }

  /// The results of all phases in the order of the output, with the bias.
  void putSideBySide(TensorId sum) {
    n.map(n.out(), [&](EquationBuilder &b) {
      Val filter = b.axis(1);
      std::vector<Val> at{b.axis(0), filter};
      for (size_t d = 0; d < axes.size(); ++d) {
        const Val shifted = b.axis(2 + d) + double(given.padsBegin[d]);
        filter = filter * DimExpr(axes[d].stride) + floorMod(shifted, axes[d].stride);
        at.push_back(floorDiv(shifted, axes[d].stride) - double(axes[d].first));
      }
      at[1] = filter;
      Val y = b.read(sum, at);
      if (n.has(2))
        y = y + cast(t, b.read(n.in(2), {b.axis(1)}));
      return cast(n.outType(), y);
    });
  }

  NodeLowering &n;
  const DType t;
  const int64_t group;
  const Window given;
  std::vector<Phases> axes;
};

Status convTranspose(NodeLowering &n) { return TransposedConvolution(n).lower(); }

} // namespace

void addWindowsConv(HandlerTable &table) {
  table[OpKind::Conv] = conv;
  table[OpKind::ConvTranspose] = convTranspose;
}

} // namespace fusec::lower
