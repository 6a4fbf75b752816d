#pragma once
#include "Target/Target.h"
#include "Tiling/schedule/BoundSchedule.h"

namespace fusec::tiling {

/// Names a micro-kernel of the target (Target/MicroKernel.h) at each Compute that has none and whose loops one can
/// make: the first of the table by the rules of schedules (verify/Kernels.cpp). Nothing else changes.
void nameKernels(Schedule &schedule, const ScheduledProgram &program, const Target &target);

} // namespace fusec::tiling
