#include "Reference/OpCall.h"

#include <algorithm>
#include <cmath>

namespace fusec {
namespace {

struct Tap {
  int64_t low = 0, high = 0;
  double fraction = 0;
};

/// The pixels around a position on an axis of `extent`; nullopt more than one pixel outside.
std::optional<Tap> tapAt(double y, int64_t extent) {
  if (!(y >= -1 && y <= static_cast<double>(extent)))
    return std::nullopt;
  y = std::fmax(y, 0);
  Tap tap;
  tap.low = static_cast<int64_t>(y);
  if (tap.low >= extent - 1)
    return Tap{extent - 1, extent - 1, 0};
  tap.high = tap.low + 1;
  tap.fraction = y - static_cast<double>(tap.low);
  return tap;
}

/// Positions decide which pixels count: they are computed in F, the operator's own type or the next wider one.
template <typename F> class Aligner {
public:
  explicit Aligner(const OpCall &call)
      : ratio(call.node.intAttr("sampling_ratio")), halfPixel(call.node.intAttr("half_pixel")),
        scale(static_cast<F>(call.node.floatAttr("spatial_scale"))) {}

  /// The points of bin `which` of `bins`, between two corners.
  std::vector<std::optional<Tap>> points(double from, double to, int64_t which, int64_t bins,
                                         int64_t extent) const {
    const F offset = halfPixel ? F(0.5) : F(0);
    const F begin = static_cast<F>(from) * scale - offset,
            end = static_cast<F>(to) * scale - offset;
    F whole = end - begin;
    if (!halfPixel)
      whole = std::max(whole, F(1));
    const F size = whole / static_cast<F>(bins);
    const auto count = ratio ? ratio : static_cast<int64_t>(std::ceil(size));
    std::vector<std::optional<Tap>> list;
    for (int64_t i = 0; i < count; ++i) {
      F y = begin + static_cast<F>(which) * size +
            (static_cast<F>(i) + F(0.5)) * size / static_cast<F>(count);
      list.push_back(tapAt(y, extent));
    }
    return list;
  }

private:
  int64_t ratio;
  bool halfPixel;
  F scale;
};

template <typename F> Outputs align(const OpCall &call) {
  const TensorValue &x = call.in(0), &rois = call.in(1), &images = call.in(2);
  const bool isMax = call.node.stringAttr("mode") == "max";
  const int64_t channels = x.dims[1], height = x.dims[2], width = x.dims[3],
                rows = call.node.intAttr("output_height"),
                columns = call.node.intAttr("output_width");
  const Aligner<F> aligner(call);
  TensorValue out(x.type, {rois.dims[0], channels, rows, columns});
  size_t next = 0;
  for (int64_t r = 0; r < rois.dims[0]; ++r) {
    const double *corner = rois.floats.data() + r * 4;
    int64_t image = images.ints[static_cast<size_t>(r)];
    image = std::clamp<int64_t>(image < 0 ? image + x.dims[0] : image, 0, x.dims[0] - 1);
    for (int64_t c = 0; c < channels; ++c) {
      const double *plane = x.floats.data() + (image * channels + c) * height * width;
      for (int64_t bin = 0; bin < rows * columns; ++bin) {
        auto ys = aligner.points(corner[1], corner[3], bin / columns, rows, height);
        auto xs = aligner.points(corner[0], corner[2], bin % columns, columns, width);
        double sum = 0, largest = -INFINITY;
        for (const auto &y : ys)
          for (const auto &at : xs) {
            if (!y || !at) {
              largest = std::fmax(largest, 0);
              continue;
            }
            const double v[4] = {
                (1 - y->fraction) * (1 - at->fraction) * plane[y->low * width + at->low],
                (1 - y->fraction) * at->fraction * plane[y->low * width + at->high],
                y->fraction * (1 - at->fraction) * plane[y->high * width + at->low],
                y->fraction * at->fraction * plane[y->high * width + at->high]};
            for (double part : v) {
              sum += part;
              largest = std::fmax(largest, part);
            }
          }
        const size_t count = ys.size() * xs.size();
        out.floats[next++] = count == 0 ? 0 : isMax ? largest : sum / static_cast<double>(count);
      }
    }
  }
  return Outputs{std::move(out)};
}

Result<Outputs> roiAlign(const OpCall &call) {
  return call.in(0).type == DType::F64 ? align<double>(call) : align<float>(call);
}

} // namespace

void addImagesRoiAlign(OpTable &t) { entry(t, OpKind::RoiAlign) = roiAlign; }

} // namespace fusec
