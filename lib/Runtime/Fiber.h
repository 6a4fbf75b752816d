#pragma once
#include "fusec/runtime.h"

#include <cstddef>
#include <cstdint>

namespace fusec::rt {

/// Stacks for threads of a simulated block, and the switch between them: six registers and the stack pointer, no
/// system call. Each stack has an inaccessible page below it.
class FiberStacks {
public:
  FiberStacks() = default;
  FiberStacks(const FiberStacks &) = delete;
  FiberStacks &operator=(const FiberStacks &) = delete;
  ~FiberStacks();

  fusert_status reserve(int32_t count); // keeps what is there when it is enough
  /// Stack pointer of a fresh fiber that will call entry(argument) when switched to. `entry` must not return.
  void *prepare(int32_t index, void (*entry)(void *), void *argument);

private:
  static constexpr size_t kStackBytes = 256 << 10, kGuardBytes = 4096;
  uint8_t *base = nullptr;
  int32_t count = 0;
};

/// Saves the running fiber's stack pointer to *save and continues the fiber whose pointer is `load`.
extern "C" void fusertSwitchFiber(void **save, void *load);

} // namespace fusec::rt
