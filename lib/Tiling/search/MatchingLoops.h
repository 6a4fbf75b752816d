#pragma once
// What threads hold from one phase of a kernel to a later one (schedule/PersistentReads.h): both go through the same
// elements of a tensor by the same loops, so that the block of a number, and each of its threads, comes to the same
// ones again.
#include "Tiling/schedule/BoundSchedule.h"

namespace fusec::tiling {

/// A map by the loops of a statement that reads the same tensor, in an earlier phase.
struct MatchedLoops {
  Schedule schedule;                                 // of the map alone
  std::vector<std::pair<ReadPlace, ReadPlace>> held; // of the map, and where it has them from
};
/// `bound`: the earlier phase as a kernel of its own, `map`: a pattern of one map. Nothing where no statement of the
/// one reads, by constant numbers of steps, what the other reads.
std::optional<MatchedLoops> matchLoops(const BoundSchedule &bound, const ExprProgram &map);

} // namespace fusec::tiling
