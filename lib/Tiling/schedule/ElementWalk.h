#pragma once

// How the loops around a statement go through the elements of a tensor that it reads.

#include "Tiling/schedule/BoundSchedule.h"

#include <optional>
#include <span>

namespace fusec::tiling {

/// Loops around the equation's Compute; null where it has none, or stands beside other parts of its phase: their
/// blocks come first or behind it.
const Loops *loopsAround(const BoundSchedule &bound, int equation);

/// How an address moves with a schedule's axis: runs of elements at equal distances, outermost first.
using Runs = std::vector<std::pair<DimExpr, DimExpr>>; // elements, distance

Runs runsOf(const Equation &e, const FlatAccess &access, std::span<const int> positions);

/// A read that all threads do where the statement is done, of memory that keeps it; nothing for others.
std::optional<FlatAccess> plainAccess(const BoundSchedule &bound, const ReadPlace &place);

/// The loops that count the elements which a thread holds have as many steps in every block.
bool haveConstantTrips(const BoundSchedule &bound, const ReadPlace &place, const Loops &loops);

/// Whether the lanes, and the units where there are several, share the statement's work.
bool areShared(const Schedule &schedule, const Loops &loops);

} // namespace fusec::tiling
