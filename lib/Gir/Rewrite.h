#pragma once
#include "Gir/Gir.h"

#include <optional>
#include <set>

namespace fusec {

/// A read of memory that is not done, since the thread has kept what it would get.
struct KeptRead {
  int64_t read = 0; // its number
  int64_t from = 0; // number of the read that brought the value; 0: the thread has stored it
  MemLevel level = MemLevel::Register; // where the thread keeps it; Shared: in a place of its own
  auto operator<=>(const KeptRead &) const = default;
};

/// Of a kernel whose reads have numbers (Scalar::imm, from 1 on; a read that stands in several branches has one number
/// for all of them): what rules keep. Reads without a number stay as they are.
struct NumberedReads {
  std::optional<std::set<KeptRead>> wanted; // what may be kept; absent: everything
  std::set<KeptRead> kept;                  // in one branch at least
  std::set<int64_t> left;                   // reads that are done, in one branch at least
  bool lackedRoom = false;                  // for something that else would have been kept
};

/// What rewriting may use of a block's and a thread's own memory.
struct RewriteLimits {
  int registers =
      0; // of 32 bits a thread, for all that is live at any point (Liveness.h); 0: keep nothing
  int64_t sharedBytes = 0;           // a block, for all Shared buffers
  NumberedReads *numbered = nullptr; // absent: every read may be kept
};

/// One rule, applied wherever it holds. True where something changed; each change takes an access to memory or a
/// computation away for good, so that rules can be repeated until none holds.
bool swapMoves(GirKernel &kernel, const RewriteLimits &limits);
bool mergeMoves(GirKernel &kernel, const RewriteLimits &limits);
bool mergeWriteRead(GirKernel &kernel, const RewriteLimits &limits);
bool mergeReads(GirKernel &kernel, const RewriteLimits &limits);
bool reuseValues(GirKernel &kernel, const RewriteLimits &limits);

/// All rules to a fixpoint, between simplify and insertSyncs. What the kernel moves never rises (Traffic.h). Reads have
/// no numbers afterwards.
void rewrite(GirKernel &kernel, const RewriteLimits &limits);

} // namespace fusec
