#pragma once
#include "Gir/Gir.h"

#include <functional>

namespace fusec {

/// Inserts barriers as insertSyncs does (Passes.h), where `overlap(a, b)` says which Shared buffers have bytes in
/// common. Sync statements that are there already count.
void insertSyncs(GirKernel &kernel, const std::function<bool(BufferId, BufferId)> &overlap);

} // namespace fusec
