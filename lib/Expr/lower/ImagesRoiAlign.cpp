// RoiAlign: each region is cut into bins, each bin sampled at count x count points, a point read bilinearly from the
// four pixels around it. A point more than one pixel outside the image counts as 0.
//   sampling_ratio given   one reduction over the points of a bin
//   else                   how many points a bin has is data. The largest number that lies on the image, of all regions
//                          and bins, chooses a branch: a reduction over 2 x 2, 4 x 4, .. 32 x 32 points, so that small
//                          regions of a large image cost what they hold. Behind all of them:
//     average              the weights that a bin's points give each row and column of the image, then two products
//     maximum              one reduction over as many points as can lie on the image
#include "Expr/lower/Lowering.h"

#include <limits>

namespace fusec::lower {
namespace {

class RoiAligner {
public:
  explicit RoiAligner(NodeLowering &n)
      : n(n), t(computeType(n.outType())), ratio(n.node.intAttr("sampling_ratio")),
        halfPixel(n.node.intAttr("half_pixel") != 0), isMax(n.node.stringAttr("mode") == "max"),
        bins{n.node.intAttr("output_height"), n.node.intAttr("output_width")},
        extents{n.shape(0)[2], n.shape(0)[3]} {}

  void lower() {
    if (adaptive())
      byNumberOfPoints(mostPointsOfAll(), 2, n.out());
    else
      over({DimExpr(ratio), DimExpr(ratio)}, n.out());
  }

private:
  /// The points of one bin along one axis (0: rows, 1: columns), all numbers of type t.
  struct Bin {
    Val start, size, count;
  };
  struct Taps {
    Val inside;                // whether the point counts
    Val low, high;             // the pixels around it, in range
    Val lowWeight, highWeight; // sum up to 1
  };

  Bin bin(EquationBuilder &b, Val region, Val which, int d) {
    auto corner = [&](int64_t i) {
      Val x = cast(t, b.read(n.in(1), {region, b.index(i)})) * n.node.floatAttr("spatial_scale");
      return halfPixel ? x - 0.5 : x;
    };
    Val begin = corner(1 - d), whole = corner(3 - d) - begin;
    Val size = (halfPixel ? whole : max(whole, 1)) / static_cast<double>(bins[d]);
    Val count = ratio ? b.constant(t, static_cast<double>(ratio)) : ceil(size);
    return {begin + cast(t, which) * size, size, count};
  }

  /// Point `i`, a number of type t.
  Val position(const Bin &bin, Val i) { return bin.start + (i + 0.5) * bin.size / bin.count; }

  bool adaptive() const { return ratio == 0; }
  using Points = std::array<DimExpr, 2>;
  /// More points than these lie on none of the image's pixels: they are more than half a pixel apart, or one.
  Points mostPoints() const {
    return {extents[0] * DimExpr(2) + DimExpr(6), extents[1] * DimExpr(2) + DimExpr(6)};
  }
  /// Points in front of the first that may lie on the image.
  Val before(const Bin &bin) {
    return max(ceil((-1.0 - bin.start) / (bin.size / bin.count) - 0.5) - 1, 0);
  }
  /// Number `j` of the points that may lie on the image.
  Val point(const Bin &bin, Val j) { return adaptive() ? before(bin) + cast(t, j) : cast(t, j); }

  /// t []: how many points of a bin, along an axis, may lie on the image at most.
  TensorId mostPointsOfAll() {
    TensorId most[2];
    for (int d = 0; d < 2; ++d)
      most[d] =
          n.reduceTemp(d ? "mostColumns" : "mostRows", Monoid::Max, t, {}, [&](EquationBuilder &b) {
            Val region = b.reduction(n.shape(1)[0]);
            Bin of = bin(b, region, b.reduction(bins[d]), d);
            Val on = b.number(t, extents[d]) - of.start;
            Val end = floor(on / (of.size / of.count) - 0.5) + 2;
            Val points = min(of.count, end) - before(of);
            return select(gt(of.count, 0), points, points.like(0));
          });
    return n.map(n.temp("mostPoints", t, {}),
                 [&](EquationBuilder &b) { return max(b.read(most[0], {}), b.read(most[1], {})); });
  }

  /// Whether bins of so many points along each axis are better summed up one by one.
  bool isWorthBranch(int64_t points) const {
    const Points all = mostPoints();
    const DimExpr whole = isMax ? all[0] * all[1] : extents[0] * extents[1];
    return points <= 32 && (!whole.isConst() || points * points < whole.constValue());
  }

  void byNumberOfPoints(TensorId most, int64_t points, TensorId out) {
    if (!isWorthBranch(points))
      return isMax ? over(mostPoints(), out) : productOfWeights(out);
    Control branch;
    branch.onnxNodes = {n.node.name};
    branch.name = n.l.program.tensors[out].name;
    branch.condition = n.map(n.temp("fits", DType::Bool, {}), [&](EquationBuilder &b) {
      return le(b.read(most, {}), static_cast<double>(points));
    });
    auto yield = [&](std::vector<TensorId> &yields) {
      return yields.emplace_back(n.temp("sampled", n.outType(), n.outShape()));
    };
    branch.thenItems =
        n.l.nested([&] { over({DimExpr(points), DimExpr(points)}, yield(branch.thenYields)); });
    branch.elseItems =
        n.l.nested([&] { byNumberOfPoints(most, points * 2, yield(branch.elseYields)); });
    branch.results = {out};
    n.l.items->push_back({std::move(branch)});
  }

  void over(const Points &points, TensorId out) {
    if (isMax)
      maximum(points, out);
    else
      average(points, out);
  }

  Taps taps(EquationBuilder &b, Val y, int d) {
    Val last = b.index(extents[d] - 1);
    Taps r;
    r.inside = both(ge(y, -1), le(y, b.number(t, extents[d])));
    y = max(y, 0);
    Val cell = cast(DType::I64, y);
    r.low = min(max(cell, 0), last);
    r.high = min(r.low + 1, last);
    r.highWeight = select(le(last, cell), y.like(0), y - cast(t, r.low));
    r.lowWeight = 1.0 - r.highWeight;
    return r;
  }

  Val image(EquationBuilder &b) { return wrapIndex(b.read(n.in(2), {b.axis(0)}), n.shape(0)[0]); }

  /// Reads the four pixels around a point, each with its weight.
  std::array<Val, 4> weighted(EquationBuilder &b, const Taps &y, const Taps &x) {
    Val inside = both(y.inside, x.inside), which = image(b);
    auto term = [&](Val row, Val column, Val weight) {
      Val v = b.readIf(inside, n.in(0), {which, b.axis(1), row, column}, b.constant(n.type(0), 0));
      return weight * cast(t, v);
    };
    return {term(y.low, x.low, y.lowWeight * x.lowWeight),
            term(y.low, x.high, y.lowWeight * x.highWeight),
            term(y.high, x.low, y.highWeight * x.lowWeight),
            term(y.high, x.high, y.highWeight * x.highWeight)};
  }

  /// f of the points of a bin that stand in a reduction; `otherwise` for those that the bin does not have.
  template <typename F>
  Val ofPoints(EquationBuilder &b, const Points &points, double otherwise, F f) {
    std::array<Taps, 2> at;
    Val counts; // whether there is such a point
    for (int d = 0; d < 2; ++d) {
      Bin of = bin(b, b.axis(0), b.axis(static_cast<size_t>(2 + d)), d);
      Val i = point(of, b.reduction(points[d]));
      at[d] = taps(b, position(of, i), d);
      if (adaptive())
        counts = both(counts, lt(i, of.count));
    }
    Val v = f(weighted(b, at[0], at[1]));
    return select(counts, v, v.like(otherwise));
  }

  void average(const Points &points, TensorId out) {
    TensorId sum = n.reduceTemp("sum", Monoid::Sum, t, n.outShape(), [&](EquationBuilder &b) {
      return ofPoints(b, points, 0, [](const auto &v) { return v[0] + v[1] + v[2] + v[3]; });
    });
    n.map(out, [&](EquationBuilder &b) {
      Val v = b.read(sum, b.axes);
      if (!adaptive())
        return cast(n.outType(), v / static_cast<double>(ratio * ratio));
      for (int d = 0; d < 2; ++d)
        v = v / max(bin(b, b.axis(0), b.axis(static_cast<size_t>(2 + d)), d).count, 1);
      return cast(n.outType(), v);
    });
  }

  void maximum(const Points &points, TensorId out) {
    const double lowest = -std::numeric_limits<double>::infinity();
    TensorId largest = n.reduceTemp("max", Monoid::Max, t, n.outShape(), [&](EquationBuilder &b) {
      return ofPoints(b, points, lowest,
                      [](const auto &v) { return max(max(v[0], v[1]), max(v[2], v[3])); });
    });
    n.map(out, [&](EquationBuilder &b) {
      Val v = b.read(largest, b.axes);
      if (!adaptive())
        return cast(n.outType(), v);
      Val any, allInside; // points that were passed over are outside the image, and count as 0
      for (int d = 0; d < 2; ++d) {
        Bin of = bin(b, b.axis(0), b.axis(static_cast<size_t>(2 + d)), d);
        any = both(any, gt(of.count, 0));
        for (Val i : {of.count.like(0), of.count - 1})
          allInside = both(allInside, taps(b, position(of, i), d).inside);
      }
      v = select(allInside, v, max(v, 0));
      return cast(n.outType(), select(any, v, v.like(0)));
    });
  }

  /// [regions, bins, extent]: what the points of a bin give each pixel of an axis, on the average.
  TensorId weights(const char *suffix, int d) {
    const Shape shape{n.shape(1)[0], bins[d], extents[d]};
    return n.reduceTemp(suffix, Monoid::Sum, t, shape, [&](EquationBuilder &b) {
      Bin of = bin(b, b.axis(0), b.axis(1), d);
      Val i = point(of, b.reduction(mostPoints()[d]));
      Taps at = taps(b, position(of, i), d);
      Val zero = of.size.like(0);
      Val weight = select(eq(b.axis(2), at.low), at.lowWeight, zero) +
                   select(eq(b.axis(2), at.high), at.highWeight, zero);
      return select(both(lt(i, of.count), at.inside), weight / max(of.count, 1), zero);
    });
  }

  void productOfWeights(TensorId out) {
    TensorId rows = weights("rows", 0), columns = weights("columns", 1);
    const Shape &shape = n.outShape();
    TensorId part = n.reduceTemp("part", Monoid::Sum, t, {shape[0], shape[1], shape[2], extents[1]},
                                 [&](EquationBuilder &b) {
                                   Val h = b.reduction(extents[0]);
                                   Val x = b.read(n.in(0), {image(b), b.axis(1), h, b.axis(3)});
                                   return b.read(rows, {b.axis(0), b.axis(2), h}) * cast(t, x);
                                 });
    n.reduceTo(out, "sum", Monoid::Sum, t, [&](EquationBuilder &b) {
      Val w = b.reduction(extents[1]);
      return b.read(columns, {b.axis(0), b.axis(3), w}) *
             b.read(part, {b.axis(0), b.axis(1), b.axis(2), w});
    });
  }

  NodeLowering &n;
  DType t;
  int64_t ratio;
  bool halfPixel, isMax;
  std::array<int64_t, 2> bins;
  std::array<DimExpr, 2> extents;
};

Status roiAlign(NodeLowering &n) {
  RoiAligner(n).lower();
  return success();
}

} // namespace

void addImagesRoiAlign(HandlerTable &table) { table[OpKind::RoiAlign] = roiAlign; }

} // namespace fusec::lower
