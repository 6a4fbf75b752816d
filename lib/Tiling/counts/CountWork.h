#pragma once
#include "Cost/Cost.h"
#include "Tiling/counts/CompulsoryTraffic.h"
#include "Tiling/schedule/BoundSchedule.h"

#include <optional>

namespace fusec {

namespace tiling {
/// Counts one phase, whose compulsory bytes are known. The schedule's equations are numbered as the program's.
cost::Counts phaseCounts(const BoundSchedule &bound, const Target &target, const Traffic &traffic);
/// Counts a schedule with rounds: a step's phases, as often as there are steps, behind what is done once; as if all
/// blocks were resident.
std::vector<cost::Counts> gridScanCounts(const BoundSchedule &bound, const Target &target);
} // namespace tiling

/// Counts the work of schedules of one program, which their alternatives have made, over their loop trees at the
/// symbols' opt values. What all of them share is counted once. The program outlives it.
class WorkMeter {
public:
  WorkMeter(const tiling::ScheduledProgram &program, const Target &target)
      : about(program), target(target) {}

  const tiling::ScheduledProgram &program() const { return about; }

  /// Counts each phase. Where blocks take turns, rounds and phases read anew what they would hold.
  std::vector<cost::Counts> phases(const tiling::BoundSchedule &bound);
  std::vector<cost::Counts> phases(const Schedule &schedule) {
    return phases(tiling::BoundSchedule(schedule, about));
  }
  /// Counts each phase as if all blocks were resident.
  std::vector<cost::Counts> residentPhases(const tiling::BoundSchedule &bound);
  /// Counts a schedule of parts side by side, each of which counts so much alone.
  cost::Counts pack(const Schedule &schedule, const std::vector<cost::Counts> &parts);
  /// Work of one phase without what its memory costs, which takes most of the time to count: for choices that do not
  /// change it.
  cost::Counts instructions(const Schedule &schedule) const;

private:
  const tiling::ScheduledProgram &about;
  const Target &target;
  std::optional<Traffic> traffic; // of all equations in one phase
};

/// Work of one schedule, counted over its loop tree at the symbols' opt values: one entry a phase.
std::vector<cost::Counts> countWork(const tiling::BoundSchedule &bound, const Target &target);

} // namespace fusec
