#pragma once
// Where a stitched block keeps what its equations hand to each other.
#include "Tiling/candidates/FusedNests.h"
#include "Tiling/schedule/BoundSchedule.h"

#include <map>

namespace fusec::tiling {

class StitchPlacement {
public:
  explicit StitchPlacement(const ScheduledProgram &program) : program(program) {}

  int64_t sharedLeft = 0; // bytes of the block's own memory, for each row that it has at once

  /// Levels of the values that member i of the nest makes and the program keeps to itself, as edges of the schedule:
  /// registers for one value a row and for what the nest alone reads, then the block's memory while there is room.
  void place(const FusedNest &nest, size_t i, Schedule &schedule);
  /// The level of a value that a placed member makes.
  MemLevel of(TensorId t) const { return levels.at(t); }

private:
  bool staysIn(const FusedNest &nest, TensorId t) const;
  bool isRead(TensorId t) const;
  static bool reads(const EquationFacts &facts, TensorId t);

  const ScheduledProgram &program;
  std::map<TensorId, MemLevel> levels;
};

} // namespace fusec::tiling
