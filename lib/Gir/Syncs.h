#pragma once
#include "Gir/Gir.h"

#include <functional>

namespace fusec {

/// Inserts barriers as insertSyncs does (Passes.h), where `overlap(a, b)` says which Shared buffers have bytes in
/// common. Sync statements that are there already count.
void insertSyncs(GirKernel &kernel, const std::function<bool(BufferId, BufferId)> &overlap);

/// Takes apart the Lane loops in which a unit reads what another one stores, so that a barrier can stand between: for
/// kernels of several units.
void splitLanes(GirKernel &kernel, const std::function<bool(BufferId, BufferId)> &overlap);

/// True if a thread may read from the buffer what another thread has stored.
bool isSynchronised(const GirKernel &kernel, BufferId b);

} // namespace fusec
