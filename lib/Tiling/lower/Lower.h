#pragma once
#include "Gir/Rewrite.h"
#include "Target/Target.h"
#include "Tiling/schedule/Schedule.h"

#include <set>

namespace fusec {

/// What a parameter of a lowered kernel stands for: a tensor of the pattern as it is scheduled (inputs, outputs, and
/// internal tensors whose edge level is Global), or the packed copy of a constant operand.
struct KernelParam {
  TensorId tensor = -1;
  OperandIndex operand{}; // when packed
  int64_t copies =
      1; // of the tensor, one behind the other: states of which one is read and one written
};

struct LoweredKernel {
  GirKernel kernel; // syncs inserted by gir passes afterwards, shared memory not yet allocated
  std::vector<KernelParam> params;
  std::vector<std::string_view> rules; // Gir's that held somewhere (rewrite), by name
  std::vector<ReadPlace> reads; // of Compute statements, by their number in the kernel less 1
};

/// Schedule -> Gir. `symbols` may carry stronger facts than the pattern's own table (a variant's guards), which
/// save bounds checks. Loops of the tree become loops of the kernel one to one; what the tree leaves open is
/// decided here: storage of accumulators and edges, bounds checks, cooperative copies.
///
/// Bounds. Where tiles do not divide an extent, the statements under the loop that steps over tiles are made
/// twice: `if the tile is full { no checks } else { checks }`, so that full tiles pay nothing.
///
/// Example (m 100 in tiles of 8, everything else divisible):
///   block m:8 { init; seq k:1 { unroll m:1 { lane n:1 { compute } } }; store }
/// becomes
///   phase (m0 in 13) { if 8*m0 + 8 <= 100 { ... } else { reads clamp m to 99, stores test 8*m0 + i < 100 } }
Result<LoweredKernel> lowerSchedule(const ExprProgram &pattern, const Schedule &schedule,
                                    const std::vector<Symbol> &symbols);

/// Extents of a packed operand, one a digit.
Shape packedShape(const Schedule &schedule, const Operand &operand);

/// What threads of this target may keep: on a GPU half of a thread's registers, 32 bits each, hold values, the other
/// half addresses and what is being computed; and the bytes that a block has. On a CPU nothing: a core reads a row
/// again from its first cache as fast as from anywhere else.
RewriteLimits rewriteLimits(const Target &target);

/// The kernel of a schedule, rewritten, without barriers. BadIr where its threads cannot keep what the schedule says.
Result<LoweredKernel> lowerAndRewrite(const ExprProgram &pattern, const Schedule &schedule,
                                      const std::vector<Symbol> &symbols, const Target &target);

/// Reads that are kept from one place in all branches.
std::set<KeptRead> keptEverywhere(const NumberedReads &numbered);

} // namespace fusec
