#pragma once
#include <string_view>

namespace fusec::rt {

/// x86-64 level that the processor and the operating system support: 1 to 4.
int cpuLevel();
/// Level that a target name asks for ("x86-64-v3": 3), 0 when it is no such name.
int levelOfTarget(std::string_view target);

} // namespace fusec::rt
