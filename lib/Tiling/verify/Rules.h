#pragma once
// What a schedule's statements must agree on so that every value is made before it is read, where it is read.
#include "Tiling/schedule/BoundSchedule.h"

namespace fusec::tiling {

/// The rules of layouts and staged tiles that the schedule breaks. Its axes, operands and leaves have been verified, as
/// for those below.
std::vector<std::string> operandProblems(const BoundSchedule &bound);

/// The rules of loops and registers; topk has rules of its own.
std::vector<std::string> flowProblems(const BoundSchedule &bound);

/// Values inside the pattern for which registers are the lowest level that these rules allow: all readers are threads
/// that made them, in the same turn of every loop.
std::vector<TensorId> readInRegisters(const BoundSchedule &bound);

/// The rule that lets blocks run in any order, broken: values that go from block to block within a phase, or to the
/// next one without a barrier or a counter (Blocks.cpp).
std::vector<std::string> blockProblems(const BoundSchedule &bound);

/// Whether points of a scatter that differ along this axis go to elements of their own, whatever else they are.
bool hasOwnElements(const Equation &scatter, int position);

/// The rules of a schedule of topk that this one breaks. Its axes have been verified.
std::vector<std::string> topKProblems(const BoundSchedule &bound, int equation);

/// The rules of loops around scatters that the schedule breaks.
std::vector<std::string> scatterProblems(const BoundSchedule &bound);

/// The rules that the list breaks, but for whether a thread has what it is to keep: that shows when it is lowered.
std::vector<std::string> reuseProblems(const BoundSchedule &bound);

/// The rules of a scan's steps and of the Carry statements around them that the schedule breaks; none without a scan.
std::vector<std::string> stepProblems(const BoundSchedule &bound);

/// The rules of micro-kernels that the schedule breaks. `target`: null where it is not known, so that kernels are any
/// target's.
std::vector<std::string> kernelProblems(const BoundSchedule &bound, const Target *target);

/// Why rounds cannot hold what the read finds, in the loops of its Compute; empty where they can.
std::string obstacleInGridScan(const BoundSchedule &bound, const ReadPlace &place,
                               const Loops &loops);

} // namespace fusec::tiling
