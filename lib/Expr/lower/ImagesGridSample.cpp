// GridSample: x[N,C,D...] read at grid[N,out...,rank], whose last axis holds normalised coordinates, the last
// spatial axis first. Each output is a weighted sum over 1, 2 or 4 cells an axis, read where they exist.
#include "Expr/lower/Lowering.h"

namespace fusec::lower {
namespace {

struct SampledAxis {
  std::vector<Val> cell;   // i64 index of each tap
  std::vector<Val> weight; // empty for nearest
};

/// Back and forth between two borders. Far away, where neighbouring numbers are further apart than the borders, the
/// rest is anywhere between these, and as far as a number can be it counts as this far.
Val reflect(Val x, Val low, Val high) {
  constexpr double farthest = 0x1p100;
  Val range = high - low, below = lt(x, low);
  Val distance = min(select(below, low - x, x - high), farthest);
  Val turns = floor(distance / range), rest = min(max(distance - turns * range, 0), range);
  Val even = eq(floor(turns * 0.5) * 2, turns);
  Val fromLow = eq(below, even);
  Val inside = select(fromLow, low + rest, high - rest);
  Val outside = either(below, lt(high, x));
  return select(le(range, 0), low, select(outside, inside, x));
}

Val cubicWeight(Val distance) {
  constexpr double a = -0.75;
  Val s = abs(distance);
  Val near = ((s * (a + 2) - (a + 3)) * s * s) + 1, far = ((s * a - 5 * a) * s + 8 * a) * s - 4 * a;
  return select(le(s, 1), near, far);
}

/// So far outside the data no tap of a position is inside.
constexpr double kReach = 3;

class Sampler {
public:
  explicit Sampler(NodeLowering &n)
      : n(n), mode(n.node.stringAttr("mode")), padding(n.node.stringAttr("padding_mode")),
        alignCorners(n.node.intAttr("align_corners")), rank(n.shape(0).size() - 2) {}

  Val sample(EquationBuilder &b) {
    std::vector<SampledAxis> axes;
    for (size_t d = 0; d < rank; ++d)
      axes.push_back(axis(b, d));
    return sum(b, axes, {b.axis(0), b.axis(1)}, Val{});
  }

private:
  SampledAxis axis(EquationBuilder &b, size_t d) {
    const DimExpr &extent = n.shape(0)[2 + d];
    std::vector<Val> at{b.axis(0)};
    at.insert(at.end(), b.axes.begin() + 2, b.axes.end());
    at.push_back(b.index(static_cast<int64_t>(rank - 1 - d)));
    // Positions decide between neighbours: they are computed in f32, as the operator's own type.
    Val g = cast(DType::F32, b.read(n.in(1), at)), length = b.number(DType::F32, extent);
    Val low = g.like(alignCorners ? 0 : -0.5), high = length - (alignCorners ? 1 : 0.5);
    Val x = alignCorners ? (g + 1) / 2 * (length - 1) : ((g + 1) * length - 1) / 2;
    if (mode == "nearest")
      x = roundEven(x);
    // What is no position (NaN) or one beyond all integers is brought to where all arithmetic is finite.
    if (padding == "zeros")
      x = select(both(le(x.like(-kReach), x), le(x, length + kReach)), x, x.like(-kReach));
    else
      x = select(isNan(x), x.like(0), x);
    if (padding == "border")
      x = select(either(lt(x, low), lt(high, x)), min(max(x, 0), length - 1), x);
    else if (padding == "reflection")
      x = reflect(x, low, high);
    Val base = floor(x), t = x - base;
    SampledAxis result;
    bool cubic = mode == "cubic", single = mode == "nearest";
    for (int k = cubic ? -1 : 0; k <= (cubic ? 2 : single ? 0 : 1); ++k) {
      Val cell = base + k;
      if (padding == "reflection")
        cell = reflect(cell, low, high);
      Val i = cast(DType::I64, cell);
      if (padding == "border")
        i = min(max(i, 0), i.likeDim(extent - 1));
      result.cell.push_back(i);
      if (!single)
        result.weight.push_back(cubic ? cubicWeight(t - k) : k == 0 ? 1.0 - t : t);
    }
    return result;
  }

  Val sum(EquationBuilder &b, const std::vector<SampledAxis> &axes, const std::vector<Val> &at,
          Val inside) {
    DType t = computeType(n.type(0));
    size_t d = at.size() - 2;
    if (d == axes.size())
      return cast(t, b.readIf(inside, n.in(0), at, b.constant(n.type(0), 0)));
    Val total;
    for (size_t k = 0; k < axes[d].cell.size(); ++k) {
      Val i = axes[d].cell[k];
      Val term = sum(b, axes, concat(at, {i}), both(inside, inRange(i, n.shape(0)[2 + d])));
      if (!axes[d].weight.empty())
        term = term * cast(t, axes[d].weight[k]);
      total = k == 0 ? term : total + term;
    }
    return total;
  }

  NodeLowering &n;
  std::string mode, padding;
  bool alignCorners;
  size_t rank;
};

Status gridSample(NodeLowering &n) {
  Sampler sampler(n);
  n.map(n.out(), [&](EquationBuilder &b) { return cast(n.outType(), sampler.sample(b)); });
  return success();
}

} // namespace

void addImagesGridSample(HandlerTable &table) { table[OpKind::GridSample] = gridSample; }

} // namespace fusec::lower
