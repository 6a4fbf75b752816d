#pragma once
// A scan whose steps all blocks take together: the step loop stands at the root and holds phases, with device-wide
// barriers between them and between the steps (a kernel's rounds, Gir.h). States lie in device memory, twice: a step
// reads the one half and writes the other, so that no block overwrites what another one still reads.
#include "Tiling/schedule/BoundSchedule.h"

namespace fusec::tiling {

/// The step loop of such a scan if this phase of the root is one; nullptr else.
const TreeNode *gridScanOf(std::span<const TreeNode> phase);
bool hasGridScan(const Schedule &schedule);

/// What a step finds of a state, what it makes of it, and a value of each step that the scan stacks.
bool isPreviousState(const Equation &scan, TensorId t);
bool isNextState(const Equation &scan, TensorId t);
bool isStacked(const Equation &scan, TensorId t);
/// From where to where a Carry statement copies states. 0: previous = init; 1: previous = next; 2: final = previous.
std::vector<std::pair<TensorId, TensorId>> carriedStates(const Equation &scan, int when);
/// The value leaves its step by device memory, at whatever level the step itself reads it: it is stacked, or a state
/// that rounds hand on. A step loop inside one block moves states by its Carry statements, from where they lie.
bool outlivesStep(const Equation &scan, TensorId t, bool inGridScan);

/// How a step's equations fall into phases, and those of a phase into parts. What reads more of another one's value
/// than belongs to its own point comes a phase later; what reads no more, and is of the same phase, is of the same
/// part.
struct StepParts {
  std::vector<int> phases; // of each equation
  std::vector<int> parts;  // of each equation: the first one of its part
  /// For a reduction in a part with maps, the dimensions of its result that the maps' axes longer than 1 are, in their
  /// order. All elements along the other dimensions belong to a point.
  std::vector<std::vector<int>> points;
};
/// `withSums`: maps may be of one part with reductions; else with maps alone.
StepParts partsOfStep(const ExprProgram &pattern, bool withSums);

} // namespace fusec::tiling
