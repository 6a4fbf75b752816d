#include "Reference/OpCall.h"

#include <algorithm>
#include <cmath>

// Resizing is separable: each axis is resampled on its own. For output position i of an axis, the operator's
// coordinate transformation gives a position x in the input, where a scale divides in f32, as in ONNX Runtime. With
// base = ceil(x) - 1 and ratio = x - base in (0, 1] the taps are base + first, base + first + 1, ...; positions outside
// the input read its edge.

namespace fusec {

namespace {

struct Axis {
  float scale = 1; // as given, or output / input size
  float width = 1; // what the scale makes of the input's size, before that is rounded
  int64_t in = 1, out = 1;
  double roiBegin = 0, roiEnd = 1;
};

struct Taps {
  std::vector<int64_t> index;
  std::vector<double> weight;
};

double sourcePosition(const std::string &mode, const Axis &a, int64_t i) {
  const double x = static_cast<double>(i), in = static_cast<double>(a.in), width = a.width;
  if (mode == "align_corners")
    return width == 1 ? 0 : x * (in - 1) / (width - 1);
  if (mode == "asymmetric")
    return static_cast<float>(i) / a.scale;
  if (mode == "tf_crop_and_resize") {
    double span = (a.roiEnd - a.roiBegin) * (in - 1);
    return (width == 1 ? span / 2 : x * span / (width - 1)) + a.roiBegin * (in - 1);
  }
  if (mode == "pytorch_half_pixel" && a.out == 1)
    return 0;
  const float centre = (static_cast<float>(i) + 0.5f) / a.scale, halfPixel = centre - 0.5f;
  if (mode == "tf_half_pixel_for_nn")
    return centre;
  if (mode == "half_pixel_symmetric")
    return in / 2 * (1 - static_cast<double>(a.out) / width) + halfPixel;
  return halfPixel;
}

double cubicWeight(double distance, double a) {
  double d = std::fabs(distance);
  if (d <= 1)
    return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

int64_t nearest(const std::string &mode, double x) {
  double low = std::floor(x), ratio = x - low;
  if (ratio == 0 || mode == "floor")
    return static_cast<int64_t>(low);
  bool up = mode == "ceil" || (mode == "round_prefer_ceil" ? ratio >= 0.5 : ratio > 0.5);
  return static_cast<int64_t>(low) + up;
}

/// Taps of linear and cubic interpolation. Antialiasing stretches the filter by 1/scale when downsampling.
Taps interpolate(const Node &n, const Axis &a, double x) {
  bool cubic = n.stringAttr("mode") == "cubic";
  double stretch = n.intAttr("antialias") ? std::min<double>(a.scale, 1) : 1;
  double reach = cubic ? 2 : 1, coefficient = n.floatAttr("cubic_coeff_a");
  auto first = static_cast<int64_t>(std::floor(-reach / stretch)) + 1;
  double base = std::ceil(x) - 1, ratio = x - base, sum = 0;
  Taps taps;
  for (int64_t i = first; i <= 1 - first; ++i) {
    double distance = (static_cast<double>(i) - ratio) * stretch;
    double w = cubic ? cubicWeight(distance, coefficient) : std::max(0.0, 1 - std::fabs(distance));
    int64_t index = static_cast<int64_t>(base) + i;
    bool outside = index < 0 || index >= a.in;
    w = outside && n.intAttr("exclude_outside") ? 0 : w;
    sum += w;
    taps.index.push_back(std::clamp<int64_t>(index, 0, a.in - 1));
    taps.weight.push_back(w);
  }
  for (double &w : taps.weight)
    w = sum == 0 ? w : w / sum;
  return taps;
}

/// Axes with their scales, from the operands scales or sizes and the output's shape.
Result<std::vector<Axis>> readAxes(const OpCall &call) {
  const TensorValue &x = call.in(0);
  const Node &n = call.node;
  Dims axes = n.intsAttr("axes");
  if (axes.empty())
    for (int64_t d = 0; d < x.rank(); ++d)
      axes.push_back(d);
  auto outDims = call.outDims();
  std::vector<Axis> list(x.dims.size());
  for (size_t d = 0; d < list.size(); ++d)
    list[d].in = list[d].out = x.dims[d];
  bool hasScales = call.has(2) && call.in(2).numElements() > 0, hasSizes = call.has(3);
  const std::string &policy = n.stringAttr("keep_aspect_ratio_policy");
  float common = policy == "not_larger" ? INFINITY : 0;
  for (size_t k = 0; k < axes.size(); ++k) {
    auto d = static_cast<size_t>(axes[k]);
    Axis &a = list[d];
    if (hasScales) {
      a.scale = static_cast<float>(call.in(2).floats[k]);
      a.width = a.scale * static_cast<float>(a.in);
      a.out = static_cast<int64_t>(std::floor(a.width));
    } else if (hasSizes || outDims) {
      a.out = hasSizes ? call.in(3).ints[k] : (*outDims)[d];
      a.width = static_cast<float>(a.out);
      a.scale = a.width / static_cast<float>(a.in);
      common = policy == "not_larger" ? std::min(common, a.scale) : std::max(common, a.scale);
    } else {
      return call.fail("needs scales or sizes");
    }
    if (n.stringAttr("coordinate_transformation_mode") == "tf_crop_and_resize" && call.has(1)) {
      a.roiBegin = call.in(1).floats[k];
      a.roiEnd = call.in(1).floats[k + axes.size()];
    }
  }
  for (int64_t axis : axes) {
    Axis &a = list[static_cast<size_t>(axis)];
    if (!hasScales && hasSizes && policy != "stretch") {
      a.scale = common;
      a.width = common * static_cast<float>(a.in);
      a.out = static_cast<int64_t>(std::round(a.width));
    }
  }
  return list;
}

/// Resamples one axis.
TensorValue resample(const OpCall &call, const TensorValue &x, size_t axis, const Axis &a) {
  const Node &n = call.node;
  const std::string &coordinates = n.stringAttr("coordinate_transformation_mode");
  bool byNearest = n.stringAttr("mode") == "nearest";
  Dims dims = x.dims;
  dims[axis] = a.out;
  TensorValue out(x.type, dims);
  AxisView from(x.dims, static_cast<int64_t>(axis)), to(dims, static_cast<int64_t>(axis));
  for (int64_t e = 0; e < a.out; ++e) {
    double p = sourcePosition(coordinates, a, e);
    Taps taps;
    if (byNearest)
      taps = {{std::clamp<int64_t>(nearest(n.stringAttr("nearest_mode"), p), 0, a.in - 1)}, {1}};
    else
      taps = interpolate(n, a, p);
    bool extrapolated =
        coordinates == "tf_crop_and_resize" && (p < 0 || p > static_cast<double>(a.in - 1));
    for (int64_t o = 0; o < from.outer; ++o)
      for (int64_t i = 0; i < from.inner; ++i) {
        double v = 0;
        for (size_t t = 0; t < taps.index.size(); ++t)
          v += taps.weight[t] * x.floats[static_cast<size_t>(from.index(o, taps.index[t], i))];
        out.floats[static_cast<size_t>(to.index(o, e, i))] =
            extrapolated ? n.floatAttr("extrapolation_value") : v;
      }
  }
  return out;
}

Result<Outputs> resize(const OpCall &call) {
  FUSEC_TRY(std::vector<Axis> axes, readAxes(call));
  TensorValue x = call.in(0);
  DType type = x.type;
  if (!x.isFloating()) { // interpolated in double, truncated at the end
    TensorValue wide(DType::F64, x.dims);
    for (int64_t i = 0; i < x.numElements(); ++i)
      wide.floats[static_cast<size_t>(i)] = x.number(i);
    x = std::move(wide);
  }
  bool roi = call.node.stringAttr("coordinate_transformation_mode") == "tf_crop_and_resize";
  for (size_t d = 0; d < axes.size(); ++d) {
    const Axis &a = axes[d];
    bool identity = a.scale == 1 && a.in == a.out && (!roi || (a.roiBegin == 0 && a.roiEnd == 1));
    if (a.in == 0 && a.out > 0)
      return call.fail("an empty axis cannot grow");
    Dims dims = x.dims;
    dims[d] = a.out;
    FUSEC_CHECK(call.checkSize(dims));
    if (!identity)
      x = resample(call, x, d, a);
  }
  if (isFloat(type)) {
    x.type = type;
    return Outputs{std::move(x)};
  }
  TensorValue out(type, x.dims);
  for (int64_t i = 0; i < out.numElements(); ++i)
    out.setNumber(i, x.floats[static_cast<size_t>(i)]);
  return Outputs{std::move(out)};
}

} // namespace

void addImagesResize(OpTable &t) { entry(t, OpKind::Resize) = resize; }

} // namespace fusec
