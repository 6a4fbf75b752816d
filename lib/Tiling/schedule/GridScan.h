#pragma once
// A scan whose steps all blocks take together: the step loop stands at the root and holds phases, with device-wide
// barriers between them and between the steps (a kernel's rounds, Gir.h). States lie in device memory, twice: a step
// reads the one half and writes the other, so that no block overwrites what another one still reads.
#include "Tiling/schedule/BoundSchedule.h"

namespace fusec::tiling {

/// The step loop of such a scan if this phase of the root is one; nullptr else.
const LoopNode *gridScanOf(std::span<const TreeNode> phase);
bool hasGridScan(const Schedule &schedule);

/// What a step finds of a state, what it makes of it, and a value of each step that the scan stacks.
bool isPreviousState(const Equation &scan, TensorId t);
bool isNextState(const Equation &scan, TensorId t);
bool isStacked(const Equation &scan, TensorId t);
/// From where to where a Carry statement copies states. 0: previous = init; 1: previous = next; 2: final = previous.
std::vector<std::pair<TensorId, TensorId>> carriedStates(const Equation &scan, int when);
/// The value leaves its step by device memory, at whatever level the step itself reads it: it is stacked, or a state
/// that rounds hand on. A step loop inside one block moves states by its Carry statements, from where they lie.
bool outlivesStep(const BoundSchedule &bound, TensorId t);

} // namespace fusec::tiling
