#pragma once
// The words that schedules and kernels share.
#include <cstdint>
#include <string_view>

namespace fusec {

/// Where a buffer lives. Register: private to one lane (GPU: a thread's registers; CPU: one element of a
/// vector register). Shared: private to one block (GPU: shared memory; CPU: a core's own scratch, cached).
/// Global: device memory, a parameter of the kernel.
enum class MemLevel : uint8_t { Register, Shared, Global };
std::string_view name(MemLevel level);

/// Loops. Block: spread over the grid (only in Phase::blocks). Unit: spread over the parallel units of a block
/// (warps; a CPU has one). Lane: spread over the lanes of a unit (threads of a warp; elements of an LLVM
/// vector). Seq: in order. Unroll: in order and unrolled by the emitter.
enum class LoopKind : uint8_t { Block, Unit, Lane, Seq, Unroll };
std::string_view name(LoopKind kind);

} // namespace fusec
