#pragma once
#include "Codegen/TargetHooks.h"

namespace fusec {

/// The machine that sim kernels run on.
const Target &simHost();
/// A GPU kernel as x86-64 code for the runtime's Sim device: the emitter's module with lanes as threads, where each
/// access to global or shared memory is announced to a hook and fusec.gpu.* are hooks too (bundle_format.h).
std::unique_ptr<TargetHooks> makeSimHooks();

} // namespace fusec
