#include "Reference/OpCall.h"
#include "Support/Diag.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace fusec {

namespace {

/// columns[N, C*prod(block), L] summed into an image [N, C, image...]; inverse of im2col.
Result<Outputs> col2Im(const OpCall &call) {
  const TensorValue &x = call.in(0);
  Dims image = call.in(1).ints, block = call.in(2).ints;
  const auto &strides = call.node.intsAttr("strides"), &dilations = call.node.intsAttr("dilations"),
             &pads = call.node.intsAttr("pads");
  size_t rank = image.size();
  int64_t blockSize = 1;
  Dims positions;
  for (size_t d = 0; d < rank; ++d) {
    blockSize *= block[d];
    positions.push_back(
        (image[d] + pads[d] + pads[d + rank] - dilations[d] * (block[d] - 1) - 1) / strides[d] + 1);
  }
  int64_t count = checkedProduct(positions);
  if (x.rank() != 3 || x.dims[1] % blockSize != 0 || count != x.dims[2])
    return call.fail("columns, image and block do not fit", Diag::ShapeMismatch);
  int64_t channels = x.dims[1] / blockSize;
  Dims dims{x.dims[0], channels};
  dims.insert(dims.end(), image.begin(), image.end());
  FUSEC_CHECK(call.checkSize(dims));
  TensorValue out(x.type, dims);
  Dims imageStrides = rowMajorStrides(image);
  int64_t imageSize = checkedProduct(image);
  for (int64_t plane = 0; plane < x.dims[0] * channels; ++plane) {
    int64_t tap = 0;
    for (Walker b(block, {}); !b.done(); b.next(), ++tap) {
      int64_t column = 0;
      for (Walker p(positions, {}); !p.done(); p.next(), ++column) {
        int64_t offset = 0;
        bool inside = true;
        for (size_t d = 0; d < rank; ++d) {
          int64_t at = p[d] * strides[d] - pads[d] + b[d] * dilations[d];
          inside = inside && at >= 0 && at < image[d];
          offset += at * imageStrides[d];
        }
        if (!inside)
          continue;
        auto to = static_cast<size_t>(plane * imageSize + offset);
        auto from = static_cast<size_t>((plane * blockSize + tap) * count + column);
        if (out.isFloating())
          out.floats[to] += x.floats[from];
        else
          out.ints[to] = wrapToDType(out.type, out.ints[to] + x.ints[from]);
      }
    }
  }
  return Outputs{std::move(out)};
}

/// Limits of an axis for reflection: cell centres or, without align_corners, cell borders.
struct Border {
  double low, high;
};

double reflect(double x, Border b) {
  double range = b.high - b.low;
  if (range <= 0)
    return b.low;
  bool below = x < b.low;
  if (!below && x <= b.high)
    return x;
  // An infinite distance counts as the largest of binary32.
  double distance = std::min(below ? b.low - x : x - b.high, double{FLT_MAX});
  double rest = std::fmod(distance, 2 * range), there = std::min(rest, 2 * range - rest);
  return below ? b.low + there : b.high - there;
}

class GridSampler {
public:
  GridSampler(const OpCall &call)
      : mode(call.node.stringAttr("mode")), padding(call.node.stringAttr("padding_mode")),
        alignCorners(call.node.intAttr("align_corners")),
        dims(call.in(0).dims.begin() + 2, call.in(0).dims.end()), strides(rowMajorStrides(dims)) {
    for (int64_t n : dims) {
      double last = static_cast<double>(n - 1);
      borders.push_back(alignCorners ? Border{0, last} : Border{-0.5, last + 0.5});
    }
  }

  /// `at` holds normalised coordinates, the last axis first.
  double sample(const double *plane, const double *at) const {
    std::vector<double> x(dims.size());
    for (size_t d = 0; d < dims.size(); ++d) {
      double n = at[dims.size() - 1 - d], length = static_cast<double>(dims[d]);
      // Binary32, as the operator's type: positions decide between neighbours.
      double p = alignCorners ? (n + 1) / 2 * (length - 1) : ((n + 1) * length - 1) / 2;
      x[d] = roundToDType(DType::F32, p);
      if (mode == "nearest")
        x[d] = std::nearbyint(x[d]);
      if (std::isnan(x[d])) // no position: the first cell where there is no outside
        x[d] = padding == "zeros" ? -INFINITY : 0;
      if (x[d] < borders[d].low || x[d] > borders[d].high) {
        if (padding == "border")
          x[d] = std::clamp(x[d], 0.0, length - 1);
        else if (padding == "reflection")
          x[d] = reflect(x[d], borders[d]);
      }
    }
    return interpolate(plane, x, 0, 0);
  }

private:
  /// Offset of a cell along axis d, or -1 where padding zeros apply.
  int64_t cell(int64_t i, size_t d) const {
    if (padding == "border")
      i = std::clamp<int64_t>(i, 0, dims[d] - 1);
    else if (padding == "reflection")
      i = static_cast<int64_t>(reflect(static_cast<double>(i), borders[d]));
    return i >= 0 && i < dims[d] ? i * strides[d] : -1;
  }

  double interpolate(const double *plane, const std::vector<double> &x, size_t d,
                     int64_t offset) const {
    if (d == dims.size())
      return plane[offset];
    double base = std::floor(x[d]), t = x[d] - base;
    if (std::fabs(base) >= 1e15) // far outside
      return 0;
    double weights[4] = {0, 1 - t, t, 0};
    if (mode == "nearest") {
      weights[1] = 1;
      weights[2] = 0;
    } else if (mode == "cubic" || mode == "bicubic") {
      constexpr double a = -0.75;
      for (int k = 0; k < 4; ++k) {
        double s = std::fabs(t - (k - 1));
        weights[k] = s <= 1 ? ((a + 2) * s - (a + 3)) * s * s + 1
                            : ((a * s - 5 * a) * s + 8 * a) * s - 4 * a;
      }
    }
    double sum = 0;
    for (int k = 0; k < 4; ++k) {
      int64_t next = weights[k] == 0 ? -1 : cell(static_cast<int64_t>(base) + k - 1, d);
      if (next >= 0)
        sum += weights[k] * interpolate(plane, x, d + 1, offset + next);
    }
    return sum;
  }

  std::string mode, padding;
  bool alignCorners;
  Dims dims, strides;
  std::vector<Border> borders;
};

/// x[N, C, D...], grid[N, out..., rank] -> [N, C, out...].
Result<Outputs> gridSample(const OpCall &call) {
  const TensorValue &x = call.in(0), &grid = call.in(1);
  if (x.rank() < 3 || grid.rank() != x.rank() || grid.dims[0] != x.dims[0] ||
      grid.dims.back() != x.rank() - 2)
    return call.fail("input and grid do not fit", Diag::ShapeMismatch);
  Dims dims{x.dims[0], x.dims[1]};
  dims.insert(dims.end(), grid.dims.begin() + 1, grid.dims.end() - 1);
  TensorValue out(x.type, dims);
  GridSampler sampler(call);
  int64_t points = x.dims[0] ? grid.numElements() / x.dims[0] / (x.rank() - 2) : 0;
  int64_t cells = x.dims[0] * x.dims[1] > 0 ? x.numElements() / (x.dims[0] * x.dims[1]) : 0;
  for (int64_t plane = 0; cells && plane < x.dims[0] * x.dims[1]; ++plane)
    for (int64_t p = 0; p < points; ++p) {
      const double *at = grid.floats.data() + (plane / x.dims[1] * points + p) * (x.rank() - 2);
      out.floats[static_cast<size_t>(plane * points + p)] =
          sampler.sample(x.floats.data() + plane * cells, at);
    }
  return Outputs{std::move(out)};
}

/// Whether the intersection of two boxes is more than `threshold` of their union.
bool overlap(const double *a, const double *b, double threshold) {
  const double width = std::min(a[2], b[2]) - std::max(a[0], b[0]),
               height = std::min(a[3], b[3]) - std::max(a[1], b[1]);
  if (!(width > 0 && height > 0))
    return false;
  const double both = width * height;
  auto area = [](const double *box) { return (box[2] - box[0]) * (box[3] - box[1]); };
  return both > threshold * (area(a) + area(b) - both);
}

Result<Outputs> keptBoxes(const OpCall &call) {
  const TensorValue &boxes = call.in(0), &order = call.in(1), &allowed = call.in(2);
  const double threshold = call.in(3).floats[0];
  const int64_t limit = call.in(4).ints[0], classes = order.dims[1], count = order.dims[2];
  TensorValue out(DType::Bool, order.dims);
  for (int64_t row = 0; row < order.dims[0] * classes; ++row) {
    const double *own = boxes.floats.data() + row / classes * count * 4;
    std::vector<const double *> kept;
    for (int64_t i = row * count; i < (row + 1) * count; ++i) {
      const double *box = own + order.ints[static_cast<size_t>(i)] * 4;
      if (allowed.ints[static_cast<size_t>(i)] == 0 || static_cast<int64_t>(kept.size()) >= limit ||
          std::any_of(kept.begin(), kept.end(),
                      [&](const double *other) { return overlap(box, other, threshold); }))
        continue;
      kept.push_back(box);
      out.ints[static_cast<size_t>(i)] = 1;
    }
  }
  return Outputs{std::move(out)};
}

} // namespace

void addImages(OpTable &t) {
  entry(t, OpKind::KeptBoxes) = keptBoxes;
  entry(t, OpKind::Col2Im) = col2Im;
  entry(t, OpKind::GridSample) = gridSample;
}

} // namespace fusec
