// What windows and slices take of an axis.
#include "Graph/SizeCheck.h"

#include <algorithm>

namespace fusec {

Result<DimExpr> SizeCheck::windowCount(const DimExpr &size, int64_t extent, int64_t stride,
                                       int64_t padBegin, int64_t padEnd, bool ceilMode) const {
  DimExpr padded = size + DimExpr(padBegin + padEnd), room = padded - DimExpr(extent);
  if (room.isConst() && room.constValue() < 0)
    return misfit({Misfit::Kind::Operands, "the window of " + std::to_string(extent) +
                                               " is larger than the padded size " +
                                               padded.str(symbols)});
  FUSEC_CHECK(noLess(padded, DimExpr(extent),
                     "the padded size must hold the window of " + std::to_string(extent)));
  if (!ceilMode)
    return floorDiv(room, DimExpr(stride)) + DimExpr(1);
  // A window that would start in the padding at the end does not count.
  return min(ceilDiv(room, DimExpr(stride)) + DimExpr(1),
             ceilDiv(size + DimExpr(padBegin), DimExpr(stride)));
}

/// min(v, bound), simplified where the ranges decide.
static DimExpr smaller(const DimExpr &v, const DimExpr &bound, const std::vector<Symbol> &symbols) {
  if (v.isConst() && v.constValue() > int64_t(1) << 60)
    return bound;
  auto r = (bound - v).range(symbols);
  if (r.min >= 0)
    return v;
  return r.max <= 0 ? bound : min(v, bound);
}

/// max(v, 0), likewise.
static DimExpr atLeastZero(const DimExpr &v, const std::vector<Symbol> &symbols) {
  auto r = v.range(symbols);
  if (r.min >= 0)
    return v;
  return r.max <= 0 ? DimExpr(0) : max(v, DimExpr(0));
}

static bool isFarInFront(const DimExpr &v) {
  return v.isConst() && v.constValue() < -(int64_t(1) << 60);
}

/// A start or end counted from the front.
static DimExpr fromFront(const DimExpr &v, const DimExpr &size,
                         const std::vector<Symbol> &symbols) {
  auto r = v.range(symbols);
  if (r.min >= 0)
    return v;
  if (r.max < 0)
    return v + size;
  const DimExpr isNegative = floorDiv(v, DimExpr(int64_t(1) << 62)) * DimExpr(-1); // 1 or 0
  return v + isNegative * size;
}

Result<SliceBounds> SizeCheck::slice(const DimExpr &size, const DimExpr &start, const DimExpr &end,
                                     int64_t step) const {
  if (step == 0)
    return misfit({Misfit::Kind::Value, "a step is 0"});
  auto place = [&](const DimExpr &v) {
    return isFarInFront(v) ? DimExpr(0) : atLeastZero(fromFront(v, size, symbols), symbols);
  };
  if (step > 0) {
    const DimExpr first = place(start), last = smaller(place(end), size, symbols);
    // A start beyond the end leaves nothing, clamped or not; not clamped, the size stands in the length once.
    DimExpr length = atLeastZero(last - first, symbols);
    return SliceBounds{smaller(first, size, symbols), last,
                       step == 1 ? length : ceilDiv(length, DimExpr(step))};
  }
  if (!isStatic({size, start, end})) {
    const DimExpr back = size - DimExpr(1), first = smaller(place(start), back, symbols);
    const DimExpr stop = isFarInFront(end) ? DimExpr(-1) : fromFront(end, size, symbols);
    const DimExpr last =
        smaller(stop.range(symbols).min >= -1 ? stop : max(stop, DimExpr(-1)), back, symbols);
    const DimExpr length = atLeastZero(first - last, symbols);
    const int64_t by = step == INT64_MIN ? INT64_MAX : -step;
    return SliceBounds{atLeastZero(first, symbols), last,
                       by == 1 ? length : ceilDiv(length, DimExpr(by))};
  }
  // By the operator's text the start is clamped to [0, size-1] and the end to [-1, size-1].
  auto backward = [s = size.constValue()](int64_t v, int64_t low) {
    return std::clamp<int64_t>(v < 0 ? std::max(v, -s - 1) + s : v, low, s - 1);
  };
  int64_t from = backward(start.constValue(), size.isConst(0) ? -1 : 0),
          to = backward(end.constValue(), -1);
  // -(from - to) / step, written so that no step overflows
  uint64_t span = from > to ? static_cast<uint64_t>(from - to) : 0;
  uint64_t stride = static_cast<uint64_t>(-(step + 1)) + 1;
  return SliceBounds{std::max<int64_t>(from, 0), to,
                     static_cast<int64_t>(span ? (span - 1) / stride + 1 : 0)};
}

} // namespace fusec
