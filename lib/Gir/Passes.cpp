#include "Gir/Passes.h"

#include "Gir/Rewrite.h"

namespace fusec {
namespace {

/// Room for texts that name no target: half of a GPU thread's registers and a block's Shared memory.
constexpr RewriteLimits kTextLimits{127, 48 << 10};

template <bool (*rule)(GirKernel &, const RewriteLimits &)> void alone(GirKernel &kernel) {
  simplify(kernel);
  rule(kernel, kTextLimits);
  simplify(kernel);
}

} // namespace

const std::vector<GirPass> &girPasses() {
  static const std::vector<GirPass> passes = {
      {"simplify", "drops control and buffers that do nothing", simplify},
      {"swap-moves", "computes behind scratch memory that values pass through", alone<swapMoves>},
      {"merge-moves", "reads values where they came from before they passed through scratch memory",
       alone<mergeMoves>},
      {"reuse-values", "computes once what a thread needs in several nests", alone<reuseValues>},
      {"merge-write-read", "hands on in registers what a thread reads back", alone<mergeWriteRead>},
      {"merge-reads", "reads what a thread has read once", alone<mergeReads>},
      {"rewrite", "the rules of data movement, to a fixpoint",
       [](GirKernel &kernel) { rewrite(kernel, kTextLimits); }},
      {"delay-stores", "writes a row while the next one's functions are computed", delayStores},
      {"insert-syncs", "inserts the barriers that shared and global buffers need", insertSyncs},
      {"allocate", "gives shared buffers their offsets", allocate},
      {"canonicalise", "numbers and names as the text does", canonicalise},
  };
  return passes;
}

} // namespace fusec
