#pragma once
#include "Bundle/Model.h"
#include "Driver/State.h"

namespace fusec {

/// The compiled model as the bundle writer takes it. Weights point into the constants of `state`, which must outlive
/// the result.
bundle::Model bundleModel(const CompileState &state);

} // namespace fusec
