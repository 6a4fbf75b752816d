#pragma once
#include "Tiling/schedule/BoundSchedule.h"

#include <map>

namespace fusec::tiling {

/// Whether tiles of both hold the same elements in the same bytes.
inline bool areAlike(const ScheduledProgram &program, TensorId a, TensorId b) {
  return program.tensor(a).type == program.tensor(b).type &&
         program.tensor(a).shape == program.tensor(b).shape;
}

/// Whether the result of a map may take the place of a tensor in a block's memory that it is the last to read, each
/// element at its own point: as the weights of a softmax take that of the scores. A block's one unit does all of it.
bool mayTakePlace(const BoundSchedule &bound, TensorId result, TensorId source);

/// Lets the edges of a block's memory take the place of others where they may.
void takePlaces(Schedule &schedule, const ScheduledProgram &program);

/// For each edge in a block's memory the one in whose buffer it lies: itself, or that of one in front of it in the
/// list, whose place it takes.
std::map<TensorId, TensorId> sharedBuffers(const BoundSchedule &bound);

/// Elements from one row of an edge's tile to the next, where it has several rows of so many. A core's begin where its
/// vectors do: a masked store of the last elements of one row else delays loads of the next. So do those of a GPU's
/// block of one unit, which no generator gives several rows.
constexpr int64_t rowOfTile(const Schedule &schedule, int64_t elements) {
  const int64_t lanes = schedule.units == 1 ? schedule.lanes : 1;
  return elements > lanes ? (elements + lanes - 1) / lanes * lanes : elements;
}

} // namespace fusec::tiling
