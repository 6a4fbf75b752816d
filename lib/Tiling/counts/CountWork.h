#pragma once
#include "Cost/Cost.h"
#include "Tiling/counts/CompulsoryTraffic.h"
#include "Tiling/schedule/BoundSchedule.h"

#include <optional>

namespace fusec {

namespace tiling {
/// The number of block barriers in `nodes`, one phase of a GPU's kernel or a part of a pack, summed over the iterations
/// of their loops. A barrier is needed where a thread reads what another one has written, or writes what others still
/// read; it is found in the loop tree by the rules that insertSyncs (Gir/Passes.h) follows in the code. Barriers inside
/// topk's own statements are not counted here.
double blockBarriers(const BoundSchedule &bound, std::span<const TreeNode> nodes);
/// Takes the bytes of tensors that these equations find held, all of them, from what they must read, and says what they
/// are. `own`: which of the program's equations are meant.
cost::Counts discountPersistentReads(const BoundSchedule &bound, const std::vector<bool> &own,
                                     Traffic &traffic);

/// Whether the target holds all blocks of the phases at once, no thread with more registers than it has, and has a
/// barrier for them.
bool areResident(const std::vector<cost::Counts> &phases, const Target &target);

/// Whether all blocks of a schedule are resident, with the persistent values of its steps and phases.
bool isResident(const BoundSchedule &bound, const Target &target);
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
