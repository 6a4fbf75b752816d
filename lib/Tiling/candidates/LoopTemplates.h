#pragma once
// Trees of single equations from which the schedules of scans and of stitched patterns are put together: inside the
// loops that all equations share, one piece follows another.
#include "Tiling/candidates/ScheduleBuilder.h"

#include <map>

namespace fusec::tiling {

/// A map: `units` units side by side, each with `unroll` vectors a step.
Schedule mapLoops(const View &view, int units, int unroll);
/// A reduction with lanes along the last spatial axis, up to `maxVectors` of them at once to hide the fma's latency;
/// constants repacked for that. For one unit.
Schedule columnLoops(const View &view, int64_t maxVectors);
/// A reduction with a unit for each output, its lanes along the innermost reduced axis.
Schedule rowLoops(const View &view, int units);
/// A reduction with a lane for each output, which walks the reduced axes alone: for sums shorter than a unit.
Schedule laneLoops(const View &view, int units);
/// A reduction to one value by all lanes of `units` units, `unroll` vectors a step.
Schedule valueLoops(const View &view, int units, int unroll);

/// A reduction whose lanes have an output each while all units share the last reduced axis, `unroll` elements of it at
/// once: for sums of elements that lie apart, of outputs that lie side by side.
Schedule tileLoops(const View &view, int units, int unroll);
/// A reduction inside each of the rows that a block's lanes own, with `unroll` of its outputs at once in each unit.
/// Axis 0 is the caller's, of the rows.
Schedule rowLaneLoops(const View &view, int units, int unroll);
/// Loops of several units over the reduced axis k of so many terms, each with `unroll` of them a step.
std::vector<LoopNode> sharedByUnits(AxisId k, int64_t terms, int units, int unroll);

/// Adds the axes and operands of `piece` to `into` and returns its tree with the new numbers. `same`: axes of the piece
/// that are axes of `into`.
std::vector<TreeNode> spliceLoops(Schedule &into, Schedule piece, const std::string &suffix,
                                  const std::map<AxisId, AxisId> &same = {});

/// The loops of a nest around its statements, `computes` by the rank of a cascade's states; what is no cascade has rank
/// 0. Those of each rank walk a tile, a unit's vectors of one step, before the next rank's do.
TreeNode rankByRank(std::vector<LoopNode> loops, const std::vector<std::vector<LeafNode>> &computes,
                    const std::vector<const Equation *> &equations);

} // namespace fusec::tiling
