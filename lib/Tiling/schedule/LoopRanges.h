#pragma once
#include "Tiling/schedule/BoundSchedule.h"

#include <span>
#include <utility>

namespace fusec::tiling {

/// Lanes of one unit that run a statement together: the value of the lanes' axis in lane 0, and how many of them stay
/// below the extent. `weight` groups are like this one.
struct LaneGroup {
  int64_t first = 0;
  int64_t active = 0;
  double weight = 1;
};

/// Steps of a scan, one after another.
struct StepRange {
  int64_t first = 0, count = 1;
};

/// The loops around one statement of a schedule, at the symbols' opt values, and what they make of each axis: how often
/// the statement runs for it, with which values, in which lanes.
class LoopRanges {
public:
  LoopRanges(const BoundSchedule &bound, const Loops &path, StepRange steps);

  bool hasLanes() const { return lanes; }
  bool hasUnits() const { return units; }
  AxisId laneAxis() const { return axisOfLanes; }
  int64_t laneStep() const { return stepOfLanes; }
  /// Steps in which the statement runs, if a step loop is around it.
  StepRange stepRange() const { return steps; }
  /// These loops where the statement runs in other steps.
  LoopRanges within(StepRange others) const;
  /// Axes with a loop here, the step of a scan among them (kStepAxis).
  const std::vector<std::pair<AxisId, double>> &iterations() const { return counts; }
  double iterations(AxisId axis) const;
  /// Times that the statement runs.
  double allIterations() const;
  int64_t extent(AxisId axis) const;
  /// Elements of the axis below these loops.
  int64_t tile(AxisId axis) const;
  /// Groups with an active lane; at most about `most` of them, evenly chosen, and always the last one.
  std::vector<LaneGroup> laneGroups(int64_t most) const;
  /// Unrolled copies of the equation's statement that share a value which depends on `positions` (bits: its axes).
  double unrolledCopies(int equation, uint64_t positions) const;

private:
  struct Loop {
    AxisId axis;
    LoopKind kind;
    int64_t step;
    int64_t piece; // of a cut tile below it (pieceOfCutTile)
  };
  std::span<const Loop> loopsOver(AxisId axis) const;
  double iterationsFrom(std::span<const Loop> loops, size_t level, int64_t tile,
                        int64_t left) const;
  void collect(std::span<const Loop> loops, size_t level, int64_t tile, LaneGroup like,
               int64_t most, std::vector<LaneGroup> &out) const;

  const Schedule &schedule;
  StepRange steps;
  std::vector<int64_t> extents;                  // of the schedule's axes
  std::vector<Loop> loops;                       // by axis, the outer ones first
  std::vector<std::pair<AxisId, double>> counts; // by axis
  bool lanes = false, units = false;
  AxisId axisOfLanes;
  int64_t stepOfLanes = 1;
};

} // namespace fusec::tiling
