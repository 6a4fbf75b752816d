#pragma once
#include "Target/Target.h"

namespace fusec {

// One table a vendor; lookupTarget searches them in this order.
std::vector<Target> cpuTargets();
std::vector<Target> nvidiaTargets();
std::vector<Target> amdTargets();

} // namespace fusec
