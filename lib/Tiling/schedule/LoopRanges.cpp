// A Seq loop inside another loop over its axis ends at the extent; loops of constant trips (Unit, Lane, Unroll) run on
// past it. With extent 100:
//
//   block m:64 { unit m:8 { seq m:1 { .. } } }    8 units, 64 + 36 iterations: the last three units have none or four
//   block m:64 { lane m:2 { unroll m:1 { .. } } }  128 iterations, 28 of them beyond the extent
//
// A cut tile that is done in pieces has its iterations of these.
#include "Tiling/schedule/LoopRanges.h"

#include "Tiling/schedule/CutTiles.h"

#include <algorithm>
#include <cassert>

namespace fusec::tiling {

static int64_t ceilOf(int64_t a, int64_t b) { return (a + b - 1) / b; }

LoopRanges::LoopRanges(const BoundSchedule &bound, const Loops &path, StepRange steps)
    : schedule(bound.schedule), steps(steps) {
  extents.reserve(schedule.axes.size());
  for (const ScheduleAxis &axis : schedule.axes)
    extents.push_back(bound.valueOf(axis.extent));
  loops.reserve(path.size());
  for (const LoopNode *around : path) {
    const auto behind =
        std::upper_bound(loops.begin(), loops.end(), around->axis,
                         [](AxisId axis, const Loop &loop) { return axis < loop.axis; });
    loops.insert(behind,
                 {around->axis, around->kind, around->step, pieceOfCutTile(bound, *around)});
    units = units || around->kind == LoopKind::Unit;
    if (around->kind == LoopKind::Lane) {
      lanes = true;
      axisOfLanes = around->axis;
      stepOfLanes = around->step;
    }
  }
  for (const Loop &loop : loops)
    if (const AxisId axis = loop.axis; counts.empty() || counts.back().first != axis)
      counts.push_back({axis, axis == kStepAxis ? double(steps.count)
                                                : iterationsFrom(loopsOver(axis), 0, extent(axis),
                                                                 extent(axis))});
}

LoopRanges LoopRanges::within(StepRange others) const {
  LoopRanges out = *this;
  out.steps = others;
  for (auto &[axis, count] : out.counts)
    if (axis == kStepAxis)
      count = double(others.count);
  return out;
}

double LoopRanges::allIterations() const {
  double product = 1;
  for (const auto &[axis, count] : counts)
    product *= count;
  return product;
}

double LoopRanges::iterations(AxisId axis) const {
  const auto at =
      std::ranges::find_if(counts, [&](const auto &count) { return count.first == axis; });
  assert(at != counts.end() && "the axis has a loop here");
  return at->second;
}

std::span<const LoopRanges::Loop> LoopRanges::loopsOver(AxisId axis) const {
  const auto isOver = [&](const Loop &loop) { return loop.axis == axis; };
  const auto begin = std::ranges::find_if(loops, isOver);
  return {begin, std::find_if_not(begin, loops.end(), isOver)};
}

int64_t LoopRanges::extent(AxisId axis) const {
  return axis == kStepAxis ? steps.count : extents[axis];
}

int64_t LoopRanges::tile(AxisId axis) const {
  const std::span<const Loop> over = loopsOver(axis);
  return over.empty() ? extent(axis) : over.back().step;
}

/// Iterations of the loops from `level` on, over a tile that begins `left` elements before the axis' extent, or beyond.
double LoopRanges::iterationsFrom(std::span<const Loop> loops, size_t level, int64_t tile,
                                  int64_t left) const {
  if (level == loops.size())
    return 1;
  const Loop &loop = loops[level];
  const bool cut = level == 0 || loop.kind == LoopKind::Seq;
  const int64_t piece = level > 0 && loops[level - 1].step == tile ? loops[level - 1].piece : 0;
  const int64_t inPieces = piece > 0 && left < tile
                               ? std::min(tile, ceilOf(std::max<int64_t>(left, 0), piece) * piece)
                               : tile;
  const int64_t trip = ceilOf(cut ? std::clamp<int64_t>(left, 0, tile) : inPieces, loop.step);
  const int64_t full = std::clamp<int64_t>(left / loop.step, 0, trip);
  double sum = 0;
  if (full > 0)
    sum += double(full) * iterationsFrom(loops, level + 1, loop.step, loop.step);
  const bool part = full < trip && left > full * loop.step;
  if (part)
    sum += iterationsFrom(loops, level + 1, loop.step, left - full * loop.step);
  if (const int64_t beyond = trip - full - part; beyond > 0)
    sum += double(beyond) * iterationsFrom(loops, level + 1, loop.step, 0);
  return sum;
}

std::vector<LaneGroup> LoopRanges::laneGroups(int64_t most) const {
  std::vector<LaneGroup> out;
  if (axisOfLanes == kStepAxis || axisOfLanes < 0)
    return out;
  collect(loopsOver(axisOfLanes), 0, extent(axisOfLanes), {}, most, out);
  return out;
}

/// Adds the groups inside the loops from `level` on: a tile that begins where `like` does and weighs as much.
void LoopRanges::collect(std::span<const Loop> loops, size_t level, int64_t tile, LaneGroup like,
                         int64_t most, std::vector<LaneGroup> &out) const {
  const int64_t left = std::max<int64_t>(extent(axisOfLanes) - like.first, 0);
  if (level == loops.size()) {
    like.active = std::min<int64_t>(ceilOf(left, stepOfLanes), schedule.lanes);
    if (like.active > 0)
      out.push_back(like);
    return;
  }
  const Loop &loop = loops[level];
  if (loop.kind == LoopKind::Lane)
    return collect(loops, level + 1, loop.step, like, most, out);
  const bool cut = level == 0 || loop.kind == LoopKind::Seq;
  const int64_t trip = ceilOf(cut ? std::min(tile, left) : tile, loop.step);
  const int64_t taken = std::min(trip, std::max<int64_t>(2, most));
  for (int64_t i = 0; i < taken; ++i) {
    const bool last = i + 1 == taken;
    // Odd distances meet every place of a sector.
    int64_t at = last ? trip - 1 : taken == trip ? i : i * ((trip - 1) / (taken - 1));
    const double each = last || taken == trip ? 1 : double(trip - 1) / double(taken - 1);
    collect(loops, level + 1, loop.step, {like.first + at * loop.step, 0, like.weight * each},
            std::max<int64_t>(1, most / taken), out);
  }
}

double LoopRanges::unrolledCopies(int equation, uint64_t positions) const {
  double copies = 1;
  for (size_t i = 0; i < loops.size(); ++i) {
    const AxisId axis = loops[i].axis;
    if (loops[i].kind != LoopKind::Unroll || axis < 0)
      continue;
    const AxisUse *use = schedule.axes[axis].in(equation);
    const bool varies = use && use->meets(positions);
    const bool outermost = i == 0 || loops[i - 1].axis != axis;
    if (!varies)
      copies *= double(ceilOf(outermost ? extent(axis) : loops[i - 1].step, loops[i].step));
  }
  return copies;
}

} // namespace fusec::tiling
