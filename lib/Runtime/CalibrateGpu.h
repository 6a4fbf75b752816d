#pragma once
#include "fusec/runtime.h"

namespace fusec::rt {

/// fusert_calibrate of the first NVIDIA device that the driver has; `target` is "cuda" for any, or its architecture.
fusert_status calibrateGpu(const fusert_calibrate_options &options, fusert_figure_fn take,
                           void *user);

} // namespace fusec::rt
