#pragma once
// What it costs a CPU that a vector's lanes do not lie side by side.
#include "Tiling/schedule/EquationFacts.h"
#include "Tiling/schedule/Schedule.h"

#include <map>

namespace fusec::tiling {

/// Cycles to store a lane that is not contiguous with its neighbour: a CPU stores such lanes one by one, and issues
/// nothing else meanwhile (AMD EPYC, Zen 4: 4.3 to 7.5 ns for 16).
constexpr double kStoreCyclesALane = 1.5;

/// The stagedExtents of Shared operands, by their position in the schedule.
using StagedExtents = std::map<int, std::vector<int64_t>>;

double elementsOf(const std::vector<int64_t> &extents);

/// Loads that a Stage of such a tile takes a core the time of: elements that do not lie side by side come one by one.
double loadsOfStage(const Schedule &schedule, const ExprProgram &pattern,
                    const EquationFacts &reader, const Operand &operand,
                    const std::vector<int64_t> &extents);

/// One read of an equation, both by position.
struct ReadOrdinal {
  int equation, read;
};

/// Turns of an Unroll loop around the lanes that lie side by side, where the path to a leaf has one: of what lanes that
/// lie apart store, or of a read, they make rows of memory that shuffles turn (Codegen/Turns.cpp). 1 where none do.
double turnsStored(const Schedule &schedule, const Equation &e, int equation,
                   const std::vector<const TreeNode *> &path, const std::vector<double> &trips);
double turnsRead(const Schedule &schedule, const EquationFacts &facts, ReadOrdinal read,
                 AxisId laneAxis, const std::vector<const TreeNode *> &path,
                 const std::vector<double> &trips);

/// Whether lanes along the axis find what they read neither at one place nor side by side. `staged`: null where the
/// distance does not matter in buffers, as in a GPU's shared memory, which serves all lanes at once.
bool lanesLieApart(const Schedule &schedule, const EquationFacts &facts, ReadOrdinal read,
                   AxisId laneAxis, const StagedExtents *staged);

} // namespace fusec::tiling
