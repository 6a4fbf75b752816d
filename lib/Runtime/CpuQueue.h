#pragma once
#include "Runtime/Device.h"

namespace fusec::rt {

/// The native functions of a program. Outlives the queues over it.
struct CpuCode {
  const bundle::Program *program = nullptr;
  std::vector<fusec_cpu_kernel> entries; // of each kernel
  int64_t scratchBytes = 0;              // the most that one of them asks for
};

/// Runs them on the threads that the options ask for: one phase after another, its blocks side by side.
fusert_status createCpuQueue(const CpuCode &code, const QueueOptions &options,
                             std::unique_ptr<Queue> &queue);

} // namespace fusec::rt
