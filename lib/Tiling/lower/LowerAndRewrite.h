#pragma once
#include "Gir/Rewrite.h"
#include "Target/Target.h"
#include "Tiling/lower/Lower.h"

#include <set>

namespace fusec {

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
