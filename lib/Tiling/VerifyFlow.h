#pragma once
// What a schedule's statements must agree on so that every value is made before it is read, where it is read.
#include "Tiling/Schedule.h"

namespace fusec::tiling {

/// The rules of loops, registers and layouts that the schedule breaks. Its axes, operands and leaves have been
/// verified; topk has rules of its own.
std::vector<std::string> flowProblems(const Schedule &schedule, const ExprProgram &pattern);

/// The rule that lets blocks run in any order, broken: values that go from block to block within a phase, or to the
/// next one without a barrier or a counter (VerifyBlocks.cpp).
std::vector<std::string> blockProblems(const Schedule &schedule, const ExprProgram &pattern);

} // namespace fusec::tiling
