#pragma once
// A scan whose steps all blocks take together: the step loop stands at the root and holds phases, with device-wide
// barriers between them and between the steps (a kernel's rounds, Gir.h). States lie in device memory, twice: a step
// reads the one half and writes the other, so that no block overwrites what another one still reads.
#include "Tiling/Schedule.h"

namespace fusec::tiling {

/// The step loop of such a scan if this phase of the root is one; nullptr else.
const TreeNode *roundsOf(std::span<const TreeNode> phase);
bool hasRounds(const Schedule &schedule);

/// True if a map reads, of a tensor of the extents of its domain, the element at its own place.
bool readsOwnElement(const ExprProgram &pattern, const Equation &reader, NodeId read);

/// The equations of a step by phase: what reads more of another one's value than the own element comes a phase later.
std::vector<int> phasesOfStep(const ExprProgram &pattern);

/// Where a scan's value goes, and in which part of the steps: what is stacked from a later step on skips those before.
std::vector<double> placesOf(const Schedule &schedule, const ExprProgram &pattern, TensorId t,
                             const std::vector<int64_t> &symbols);

/// One phase of one round as a schedule: of a program whose equations, numbered as before, are no scan's, and in which
/// the tensors are what they are to this phase.
struct RoundPart {
  std::vector<bool> own; // equations: those of the phase
  ExprProgram program;
  Schedule schedule;
};
std::vector<RoundPart> partsOfRound(const Schedule &schedule, const ExprProgram &pattern);

} // namespace fusec::tiling
