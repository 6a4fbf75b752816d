// Conv and ConvTranspose. Axes: n, oc, spatial...; ic, kernel.... Groups are an axis of their own, so that the
// input's channel is affine: the sum goes to [N, G, OC/G, spatial...] and a reshape map follows. Depthwise
// convolutions have no ic axis and write their output directly. Transposed ones with strides are several convolutions.
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

/// A transposed convolution with stride s as convolutions with stride 1, of which s results lie between two positions
/// of the data (Shi et al., "Is the deconvolution layer the same as a convolutional layer?", 2016). Output o takes data
/// i by tap o + pad - i*s. With o + pad = u*s + r, tap r + s*j takes data u - j: there is a filter for each r, with
/// each s-th tap, and nothing is multiplied by the zeros between the data. Where s does not divide the kernel, the last
/// places have a tap less: they are a convolution of their own, so that no data is multiplied by a tap that is not
/// there.
class TransposedConvolution {
public:
  explicit TransposedConvolution(NodeLowering &n)
      : n(n), t(computeType(n.outType())), group(n.node.intAttr("group")),
        given(n.node, n.shape(0)) {}

  Status lower() {
    bool areApart = false, areDilated = false;
    for (size_t d = 0; d < given.rank(); ++d) {
      areApart |= given.strides[d] > 1;
      areDilated |= given.strides[d] > 1 && given.dilations[d] > 1;
    }
    const TensorId sum = areApart && !areDilated ? -1 : sumTarget(n, t, n.has(2));
    if (areDilated)
      gather(sum);
    else if (areApart)
      return putSideBySide();
    else
      convolvePlaces(allPlaces()[0], sum);
    addBias(n, sum, t, n.has(2));
    return success();
  }

private:
  /// Places between two positions of the data that have equally many taps, along one axis.
  struct Places {
    int64_t begin, count, taps;
  };
  using AllAxes = std::vector<Places>;

  /// Every place of the output in one of them; none of those that no tap reaches.
  std::vector<AllAxes> allPlaces() const {
    std::vector<AllAxes> all{{}};
    for (size_t d = 0; d < given.rank(); ++d) {
      const int64_t stride = given.strides[d], kernel = given.kernel[d];
      const int64_t more = stride == 1 ? 1 : (kernel - 1) % stride + 1; // with a tap more
      const int64_t taps = (kernel + stride - 1) / stride;
      std::vector<Places> along{{0, more, taps}};
      if (more < stride && taps > 1)
        along.push_back({more, stride - more, taps - 1});
      std::vector<AllAxes> longer;
      for (const AllAxes &axes : all)
        for (const Places &p : along) {
          longer.push_back(axes);
          longer.back().push_back(p);
        }
      all = std::move(longer);
    }
    return all;
  }

  /// The least u along an axis, and how many there are.
  int64_t first(size_t d) const { return given.padsBegin[d] / given.strides[d]; }
  DimExpr results(size_t d) const {
    const int64_t stride = given.strides[d];
    return ceilDiv(n.outShape()[d + 2], DimExpr(stride)) +
           DimExpr((stride - 1 + given.padsBegin[d]) / stride - first(d));
  }

  /// [groups * filters * places, channels of a group, taps...], with the taps in the order of the data.
  TensorId filters(const AllAxes &axes) {
    const Shape &w = n.shape(1);
    const size_t rank = axes.size();
    const DimExpr perGroupIn = floorDiv(w[0], DimExpr(group));
    Shape apart{DimExpr(group), w[1]}, joined{w[1] * DimExpr(group), perGroupIn};
    for (const Places &p : axes) {
      apart.push_back(DimExpr(p.count));
      joined[0] = joined[0] * DimExpr(p.count);
    }
    apart.push_back(perGroupIn);
    for (const Places &p : axes) {
      apart.push_back(DimExpr(p.taps));
      joined.push_back(DimExpr(p.taps));
    }
    const TensorId made = n.map(n.temp("phases", n.type(1), apart), [&](EquationBuilder &b) {
      std::vector<Val> at{b.axis(0) * perGroupIn + b.axis(2 + rank), b.axis(1)};
      for (size_t d = 0; d < rank; ++d)
        at.push_back(b.axis(2 + d) + double(axes[d].begin) +
                     (b.index(DimExpr(axes[d].taps - 1)) - b.axis(3 + rank + d)) *
                         double(given.strides[d]));
      return b.read(n.in(1), at);
    });
    const TensorId weights = n.temp("filters", n.type(1), joined);
    n.reshape(weights, made);
    return weights;
  }

  /// `sum`: where the results go; -1: to a temp.
  TensorId convolvePlaces(const AllAxes &axes, TensorId sum = -1) {
    const TensorId weights = filters(axes);
    Window window = given;
    Shape shape{n.outShape()[0], n.shapeOf(weights)[0]};
    for (size_t d = 0; d < axes.size(); ++d) {
      shape.push_back(results(d));
      window.kernel[d] = axes[d].taps;
      window.strides[d] = 1;
      window.padsBegin[d] = (axes[d].taps - 1) * window.dilations[d] - first(d);
      const DimExpr behind = results(d) + DimExpr(first(d)) - given.input[d];
      window.padsEnd[d] = !behind.isConst() || behind.constValue() > 0;
    }
    if (sum < 0)
      sum = n.temp("acc", t, shape);
    convolveImage(n, sum, weights, window);
    return sum;
  }

  /// The results at all places in the order of the output, with the bias.
  Status putSideBySide() {
    std::vector<std::pair<AllAxes, TensorId>> sums;
    for (AllAxes &axes : allPlaces()) {
      const TensorId sum = convolvePlaces(axes);
      sums.emplace_back(std::move(axes), sum);
    }
    n.map(n.out(), [&](EquationBuilder &b) {
      Val y = b.constant(t, 0);
      for (const auto &[axes, sum] : sums) {
        Val filter = b.axis(1), isThere;
        std::vector<Val> at{b.axis(0), filter};
        for (size_t d = 0; d < axes.size(); ++d) {
          const int64_t stride = given.strides[d];
          const Val shifted = b.axis(2 + d) + double(given.padsBegin[d]);
          const Val place = floorMod(shifted, stride) - double(axes[d].begin);
          if (axes[d].count < stride)
            isThere = both(isThere, inRange(place, DimExpr(axes[d].count)));
          filter = filter * DimExpr(axes[d].count) + place;
          at.push_back(floorDiv(shifted, stride) - double(first(d)));
        }
        at[1] = filter;
        y = b.readIf(isThere, sum, at, y);
      }
      if (n.has(2))
        y = y + cast(t, b.read(n.in(2), {b.axis(1)}));
      return cast(n.outType(), y);
    });
    return success();
  }

  /// With a stride and a dilation: output o takes data i by tap k where o + pad - k*dilation = i*stride.
  void gather(TensorId sum) {
    const Shape &w = n.shape(1);
    const DimExpr perGroupIn = floorDiv(w[0], DimExpr(group)), perGroupOut = w[1];
    const bool splits = group > 1 && !perGroupOut.isConst(1);
    TensorId target = sum;
    if (splits) {
      Shape shape = n.outShape();
      shape[1] = group;
      shape.insert(shape.begin() + 2, perGroupOut);
      target = n.temp("groups", t, shape);
    }
    const size_t lead = splits ? 3 : 2;
    n.reduce(target, Monoid::Sum, [&](EquationBuilder &b) {
      const Val g = group > 1 ? b.axis(1) : b.index(0);
      const Val oc = group == 1 ? b.axis(1) : splits ? b.axis(2) : b.index(0);
      const Val ic = g * perGroupIn + b.reduction(perGroupIn);
      std::vector<Val> atX{b.axis(0), ic}, atW{ic, oc};
      Val inside;
      for (size_t d = 0; d < given.rank(); ++d) {
        const Val k = b.reduction(given.kernel[d]);
        const Val shifted =
            b.axis(lead + d) - k * double(given.dilations[d]) + double(given.padsBegin[d]);
        const Val position = floorDiv(shifted, given.strides[d]);
        if (given.strides[d] > 1)
          inside = both(inside, eq(floorMod(shifted, given.strides[d]), 0));
        inside = both(inside, inRange(position, given.input[d]));
        atX.push_back(position);
        atW.push_back(k);
      }
      return cast(t, b.readIf(inside, n.in(0), atX, b.constant(n.type(0), 0))) *
             cast(t, b.read(n.in(1), atW));
    });
    if (splits)
      n.reshape(sum, target);
  }

  NodeLowering &n;
  const DType t;
  const int64_t group;
  const Window given;
};

Status convTranspose(NodeLowering &n) { return TransposedConvolution(n).lower(); }

} // namespace

void addWindowsConv(HandlerTable &table) {
  table[OpKind::Conv] = conv;
  table[OpKind::ConvTranspose] = convTranspose;
}

} // namespace fusec::lower
