#pragma once
#include "fusec/runtime.h"

namespace fusec::rt {

/// fusert_calibrate (runtime.h) with options that are complete and valid.
fusert_status calibrate(const fusert_calibrate_options &options, fusert_figure_fn take, void *user);

} // namespace fusec::rt
