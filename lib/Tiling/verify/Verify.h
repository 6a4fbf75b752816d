#pragma once

#include "Tiling/schedule/Schedule.h"

namespace fusec {

/// The rules of a schedule. Success, or BadIr with a diagnostic for each rule that it breaks.
Status verify(const Schedule &schedule, const ExprProgram &pattern);
/// Verifies as above, and that blocks of the target have such units and lanes.
Status verify(const Schedule &schedule, const ExprProgram &pattern, const Target &target);

} // namespace fusec
