#pragma once
#include "Fusion/Plan.h"

#include <map>

namespace fusec {

/// Tensors that an equation reads (a scan's body and initial values included, what its own body makes excluded), in
/// order of first use, without repetition.
std::vector<TensorId> tensorsRead(const Equation &equation);
/// Tensors that an equation writes and other equations can read.
std::vector<TensorId> tensorsWritten(const Equation &equation);

/// Equations of one kernel in the order in which it runs them, and where a phase begins (Pattern::phaseStarts).
struct Group {
  std::vector<const Equation *> equations;
  std::vector<int> phaseStarts;
};

/// Cuts equations out of a program. `isUsedOutside` says whether a tensor that they write is read elsewhere or is an
/// output of the model; the others become internal temps. `arguments` gets the program's tensor for each argument.
ExprProgram cutProgram(const ExprProgram &program, const std::vector<const Equation *> &equations,
                       const std::function<bool(TensorId)> &isUsedOutside,
                       std::vector<TensorId> &arguments);
/// Cuts a group out of a program as cutProgram does, with a name and a signature. Takes twice as long as cutProgram.
Pattern cutPattern(const ExprProgram &program, const Group &group,
                   const std::function<bool(TensorId)> &isUsedOutside,
                   std::vector<TensorId> &arguments);

/// Adds how many equations and control items read each tensor.
void countUses(const std::vector<Item> &items, std::map<TensorId, int> &uses);
/// Tensors that a control item itself moves or tests.
std::vector<TensorId> controlReads(const Control &control);
/// The step of a control item, without its inner steps.
PlanStep controlStep(const Control &control);
/// Launch of one group; its pattern is added to the plan unless an equal one is there. `uses`: equations and control
/// items that read each tensor; an output of the model counts as one.
PlanStep launchStep(const ExprProgram &program, const Group &group,
                    const std::map<TensorId, int> &uses, Plan &plan,
                    std::map<Hash128, int> &signatures);

} // namespace fusec
