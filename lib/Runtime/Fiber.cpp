#include "Runtime/Fiber.h"

#include "Runtime/Error.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>

// The registers that the System V ABI lets a function keep, then the stack. A fresh fiber starts in
// fusertFiberStart with its entry in r12 and the argument in r13.
__asm__(R"(
  .text
  .hidden fusertSwitchFiber
  .globl fusertSwitchFiber
  .type fusertSwitchFiber, @function
fusertSwitchFiber:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  retq
  .size fusertSwitchFiber, .-fusertSwitchFiber

  .hidden fusertFiberStart
  .globl fusertFiberStart
  .type fusertFiberStart, @function
fusertFiberStart:
  movq %r13, %rdi
  callq *%r12
  ud2
  .size fusertFiberStart, .-fusertFiberStart
)");

extern "C" void fusertFiberStart();

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes)
#endif

namespace fusec::rt {

FiberStacks::~FiberStacks() {
  if (base)
    munmap(base, kStackBytes * static_cast<size_t>(count));
}

fusert_status FiberStacks::reserve(int32_t wanted) {
  if (wanted <= count)
    return FUSERT_OK;
  void *p = mmap(nullptr, kStackBytes * static_cast<size_t>(wanted), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (p == MAP_FAILED)
    return fail(FUSERT_NO_MEMORY, std::string("no memory for the stacks of a simulated block: ") +
                                      std::strerror(errno));
  auto *fresh = static_cast<uint8_t *>(p);
  for (int32_t i = 0; i < wanted; ++i)
    if (mprotect(fresh + kStackBytes * static_cast<size_t>(i), kGuardBytes, PROT_NONE) != 0) {
      const int error = errno;
      munmap(p, kStackBytes * static_cast<size_t>(wanted));
      return fail(FUSERT_NO_MEMORY,
                  std::string("no memory for guard pages of a simulated block's stacks: ") +
                      std::strerror(error));
    }
  if (base)
    munmap(base, kStackBytes * static_cast<size_t>(count));
  base = fresh;
  count = wanted;
  return FUSERT_OK;
}

void *FiberStacks::prepare(int32_t index, void (*entry)(void *), void *argument) {
  // A fiber that was given up in the middle of a call left its frames' red zones behind.
  ASAN_UNPOISON_MEMORY_REGION(base + kStackBytes * static_cast<size_t>(index) + kGuardBytes,
                              kStackBytes - kGuardBytes);
  auto *top = reinterpret_cast<uint64_t *>(base + kStackBytes * static_cast<size_t>(index + 1));
  // From the top: alignment, return address (fusertFiberStart), rbp, rbx, r12, r13, r14, r15. At the call in
  // fusertFiberStart the stack is aligned to 16.
  *--top = 0;
  *--top = 0;
  *--top = reinterpret_cast<uint64_t>(&fusertFiberStart);
  *--top = 0;
  *--top = 0;
  *--top = reinterpret_cast<uint64_t>(entry);
  *--top = reinterpret_cast<uint64_t>(argument);
  *--top = 0;
  *--top = 0;
  return top;
}

} // namespace fusec::rt
