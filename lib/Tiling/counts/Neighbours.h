#pragma once
// Accesses that serve several turns of a thread at once (Codegen/Neighbours.h), seen from a schedule.
#include "Tiling/counts/LaneAccess.h"

namespace fusec::tiling {

/// Turns of an Unroll loop over `axis` whose elements a thread of a GPU finds side by side: so many share an access. In
/// tiles that the axis' end cuts each makes its own: `share` is that of the turns in others.
struct TurnsTogether {
  AxisId axis{};
  int64_t turns = 1;
  double share = 1;

  /// Accesses that a turn makes, on average.
  double accessesOfTurn() const { return share / double(turns) + 1 - share; }

  /// The turn that makes the access in which an axis' value is served.
  int64_t first(AxisId of, int64_t value) const {
    return turns > 1 && of == axis ? value - value % turns : value;
  }
};

/// Turns that a read by a statement inside the loops serves: of its operand's copy, where it is `staged`, else of
/// where the tensor lies.
TurnsTogether turnsOfRead(const BoundSchedule &bound, const ReadPlace &read, const Loops &loops,
                          const StagedExtents &staged);
/// Turns that stores of an equation's result at its own points serve.
TurnsTogether turnsOfStore(const BoundSchedule &bound, int equation, TensorId tensor,
                           const Loops &loops);

/// What such an access takes of the time of one that brings four bytes to each lane, for one of the turns that it
/// serves. Lanes that find elements of their own move those bytes whatever the accesses are; where all find the same,
/// it is moved once.
double timeOfTurn(const TurnsTogether &together, int64_t elementBytes, bool ofEachLane);

/// Whether lanes of a unit read elements of their own.
bool variesByLane(const BoundSchedule &bound, const ReadPlace &read, const Loops &loops);
/// Whether device memory is asked, not the block's own, nor what the thread keeps.
bool readsDevice(const BoundSchedule &bound, const ReadPlace &read);

} // namespace fusec::tiling
