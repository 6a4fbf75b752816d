#pragma once

#include "Cost/Cost.h"
#include "Tiling/counts/CompulsoryTraffic.h"
#include "Tiling/schedule/BoundSchedule.h"

namespace fusec::tiling {

/// Takes the bytes of tensors that these equations find held, all of them, from what they must read, and says what they
/// are. `own`: which of the program's equations are meant.
cost::Counts discountPersistentReads(const BoundSchedule &bound, const std::vector<bool> &own,
                                     Traffic &traffic);

/// Whether the target holds all blocks of the phases at once, no thread with more registers than it has, and has a
/// barrier for them.
bool areResident(const std::vector<cost::Counts> &phases, const Target &target);

/// Whether all blocks of a schedule are resident, with the persistent values of its steps and phases.
bool isResident(const BoundSchedule &bound, const Target &target);

} // namespace fusec::tiling
