#pragma once
#include "Gir/Gir.h"

namespace fusec {

/// What rewriting may use of a block's and a thread's own memory.
struct RewriteLimits {
  int registers =
      0; // of 32 bits a thread, for all that the kernel's text holds in registers; 0: keep nothing
  int64_t sharedBytes = 0; // a block, for all Shared buffers
};

/// One rule, applied wherever it holds. True where something changed; each change takes an access to memory or a
/// computation away for good, so that rules can be repeated until none holds.
bool swapMoves(GirKernel &kernel, const RewriteLimits &limits);
bool mergeMoves(GirKernel &kernel, const RewriteLimits &limits);
bool mergeWriteRead(GirKernel &kernel, const RewriteLimits &limits);
bool mergeReads(GirKernel &kernel, const RewriteLimits &limits);
bool reuseValues(GirKernel &kernel, const RewriteLimits &limits);

/// All rules to a fixpoint, between simplify and insertSyncs. What the kernel moves never rises (Traffic.h).
void rewrite(GirKernel &kernel, const RewriteLimits &limits);

} // namespace fusec
