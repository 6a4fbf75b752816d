// Resize, one axis after the other. Nearest neighbours by a whole factor are index arithmetic; every other axis
// of known size gets a table of taps, made here: constant indices and weights, read by position. Positions are
// computed with the four basic operations only, so that every builder makes the same tables: what a scale divides in
// f32, as ONNX Runtime does it, since the nearest element hangs on the rounding.
#include "Expr/lower/Lowering.h"
#include "Graph/ResizeRule.h"
#include "Support/Diag.h"

#include <algorithm>
#include <cmath>

namespace fusec::lower {
namespace {

struct ResizedAxis {
  float scale = 1; // as given, or output / input size
  float width = 1; // what the scale makes of the input's size, before that is rounded
  int64_t in = 1, out = 1;
  double roiBegin = 0, roiEnd = 1;

  void scaleBy(float by) {
    scale = by;
    width = by * static_cast<float>(in);
  }
};

struct TapTable {
  int64_t taps = 1;
  std::vector<int64_t> index;  // [out * taps]
  std::vector<double> weight;  // likewise
  std::vector<int64_t> beyond; // [out]: 1 where the extrapolation value stands
};

double sourcePosition(const std::string &mode, const ResizedAxis &a, int64_t i) {
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
  return mode == "half_pixel_symmetric"
             ? in / 2 * (1 - static_cast<double>(a.out) / width) + halfPixel
             : halfPixel;
}

int64_t nearest(const std::string &mode, double x) {
  double low = std::floor(x), ratio = x - low;
  if (ratio == 0 || mode == "floor")
    return static_cast<int64_t>(low);
  bool up = mode == "ceil" || (mode == "round_prefer_ceil" ? ratio >= 0.5 : ratio > 0.5);
  return static_cast<int64_t>(low) + up;
}

double cubicWeight(double distance, double a) {
  double d = std::fabs(distance);
  if (d <= 1)
    return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/// With base = ceil(x) - 1 the taps are base + first, base + first + 1, ...; positions outside the input read its
/// edge, or count for nothing with exclude_outside. Antialiasing stretches the filter when shrinking.
void interpolate(const Node &n, const ResizedAxis &a, double x, TapTable &table) {
  bool cubic = n.stringAttr("mode") == "cubic";
  double stretch = n.intAttr("antialias") ? std::min<double>(a.scale, 1) : 1;
  auto first = static_cast<int64_t>(std::floor(-(cubic ? 2.0 : 1.0) / stretch)) + 1;
  double base = std::ceil(x) - 1, ratio = x - base, sum = 0;
  table.taps = 2 - 2 * first;
  for (int64_t i = first; i <= 1 - first; ++i) {
    double distance = (static_cast<double>(i) - ratio) * stretch;
    double w = cubic ? cubicWeight(distance, n.floatAttr("cubic_coeff_a"))
                     : std::max(0.0, 1 - std::fabs(distance));
    int64_t index = static_cast<int64_t>(base) + i;
    if ((index < 0 || index >= a.in) && n.intAttr("exclude_outside"))
      w = 0;
    sum += w;
    table.index.push_back(std::clamp<int64_t>(index, 0, a.in - 1));
    table.weight.push_back(w);
  }
  for (auto w = table.weight.end() - static_cast<std::ptrdiff_t>(table.taps);
       w != table.weight.end(); ++w)
    *w = sum == 0 ? *w : *w / sum;
}

TapTable tapsOf(const Node &n, const ResizedAxis &a) {
  const std::string &coordinates = n.stringAttr("coordinate_transformation_mode");
  TapTable table;
  for (int64_t i = 0; i < a.out; ++i) {
    double x = sourcePosition(coordinates, a, i);
    if (n.stringAttr("mode") == "nearest") {
      table.index.push_back(
          std::clamp<int64_t>(nearest(n.stringAttr("nearest_mode"), x), 0, a.in - 1));
      table.weight.push_back(1);
    } else {
      interpolate(n, a, x, table);
    }
    bool beyond =
        coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(a.in - 1));
    table.beyond.push_back(beyond);
  }
  return table;
}

/// The factor f when index i of the table is i / f everywhere (0: none).
int64_t wholeFactor(const TapTable &t, const ResizedAxis &a) {
  if (t.taps != 1 || a.in == 0 || a.out % a.in != 0)
    return 0;
  int64_t factor = a.out / a.in;
  for (int64_t i = 0; i < a.out; ++i)
    if (t.index[static_cast<size_t>(i)] != i / factor || t.beyond[static_cast<size_t>(i)])
      return 0;
  return factor;
}

ConstantRef weightConstant(DType t, const TapTable &table) {
  std::vector<uint8_t> bytes;
  for (double w : table.weight)
    appendElement(bytes, t, w);
  return makeConstant(t, {static_cast<int64_t>(table.beyond.size()), table.taps}, std::move(bytes));
}

/// Entries that the tables of one axis may have; larger ones are beyond any image.
constexpr double kMaxTableEntries = 1 << 26;

bool fitsTable(const Node &n, const ResizedAxis &a) {
  double taps = 4;
  if (n.stringAttr("mode") != "nearest" && n.intAttr("antialias"))
    taps = 4 / std::min<double>(a.scale, 1) + 2;
  return static_cast<double>(a.out) * taps <= kMaxTableEntries;
}

/// Resamples one axis of `x` into `out`, which has type `t`.
void resample(NodeLowering &n, TensorId out, TensorId x, size_t axis, const ResizedAxis &a,
              DType t) {
  TapTable table = tapsOf(n.node, a);
  std::string suffix = std::to_string(axis);
  if (int64_t factor = wholeFactor(table, a)) {
    n.map(out, [&](EquationBuilder &b) {
      std::vector<Val> at = b.axes;
      at[axis] = floorDiv(at[axis], factor);
      return cast(t, b.read(x, at));
    });
    return;
  }
  TensorId index = n.constant("index" + suffix, makeIntConstant({a.out, table.taps}, table.index));
  bool weighted = table.taps > 1;
  TensorId weight = weighted ? n.constant("weight" + suffix, weightConstant(t, table)) : -1;
  bool extrapolates = std::count(table.beyond.begin(), table.beyond.end(), 1) > 0;
  TensorId beyond =
      extrapolates ? n.constant("beyond" + suffix, makeIntConstant({a.out}, table.beyond)) : -1;
  n.map(out, [&](EquationBuilder &b) {
    std::vector<Val> at = b.axes;
    Val place = b.axis(axis), sum = b.constant(t, 0);
    for (int64_t k = 0; k < table.taps; ++k) {
      at[axis] = b.read(index, {place, b.index(k)});
      Val term = cast(t, b.read(x, at));
      if (weighted)
        term = term * b.read(weight, {place, b.index(k)});
      sum = k == 0 ? term : sum + term;
    }
    if (!extrapolates)
      return sum;
    Val flag = ne(b.read(beyond, {place}), b.index(0));
    return select(flag, sum.like(n.node.floatAttr("extrapolation_value")), sum);
  });
}

/// Scales and regions of all axes, from the constant operands and the shapes.
Result<std::vector<ResizedAxis>> readAxes(NodeLowering &n) {
  const std::vector<int64_t> &axes = n.node.intsAttr("axes");
  const std::string &policy = n.node.stringAttr("keep_aspect_ratio_policy");
  auto operand = [&](size_t i) { return n.has(i) ? n.inValue(i).constant : nullptr; };
  ConstantRef roi = operand(1), scales = operand(2), sizes = operand(3);
  if (scales && scales->numElements() == 0)
    scales = nullptr;
  std::vector<ResizedAxis> list(n.shape(0).size());
  std::vector<float> ratios; // of sizes
  for (size_t d = 0; d < list.size(); ++d) {
    if (n.shape(0)[d].isConst() && n.outShape()[d].isConst()) {
      list[d].in = n.shape(0)[d].constValue();
      list[d].out = n.outShape()[d].constValue();
    } else if (n.shape(0)[d] != n.outShape()[d]) {
      return n.fail("resized axes must have known sizes", Diag::UnsupportedShape);
    }
  }
  for (size_t k = 0; k < axes.size(); ++k) {
    ResizedAxis &a = list[static_cast<size_t>(axes[k])];
    if (scales) {
      a.scaleBy(static_cast<float>(scales->floatAt(static_cast<int64_t>(k))));
    } else {
      int64_t wanted = sizes ? sizes->intAt(static_cast<int64_t>(k)) : a.out;
      a.width = static_cast<float>(wanted);
      a.scale = a.width / static_cast<float>(a.in);
      ratios.push_back(a.scale);
    }
    if (roi && n.node.stringAttr("coordinate_transformation_mode") == "tf_crop_and_resize") {
      a.roiBegin = roi->floatAt(static_cast<int64_t>(k));
      a.roiEnd = roi->floatAt(static_cast<int64_t>(k + axes.size()));
    }
  }
  if (!ratios.empty() && policy != "stretch")
    for (int64_t d : axes)
      list[static_cast<size_t>(d)].scaleBy(keptScale(ratios, policy, applyToNumbers));
  return list;
}

Status resize(NodeLowering &n) {
  FUSEC_TRY(std::vector<ResizedAxis> axes, readAxes(n));
  // Integers are interpolated in f64 and truncated at the end.
  bool moves = n.node.stringAttr("mode") == "nearest";
  DType t = moves ? n.outType() : isFloat(n.type(0)) ? computeType(n.type(0)) : DType::F64;
  TensorId x = n.in(0);
  Shape shape = n.shape(0);
  for (size_t d = 0; d < axes.size(); ++d) {
    const ResizedAxis &a = axes[d];
    if (a.scale == 1 && a.in == a.out && a.roiBegin == 0 && a.roiEnd == 1)
      continue;
    if (!fitsTable(n.node, a))
      return n.fail("axis " + std::to_string(d) + " is resized to " + std::to_string(a.out) +
                        " elements; the table of weights would be larger than 2^26 entries",
                    Diag::LimitExceeded);
    shape[d] = n.outShape()[d];
    TensorId out = n.temp("axis" + std::to_string(d), t, shape);
    resample(n, out, x, d, a, t);
    x = out;
  }
  n.copy(n.out(), x);
  return success();
}

} // namespace

void addImagesResize(HandlerTable &table) { table[OpKind::Resize] = resize; }

} // namespace fusec::lower
