// rewrite: the rules of data movement, to a fixpoint.
//
// Guarantees: no rule holds any more, or there is no room for what it would keep; the kernel moves no more Global
// elements than before, after each rule. Each rule takes an access or a computation away and none puts one back, so
// the rounds end. Needs a kernel without barriers, or one whose barriers may stay; stands between simplify and
// insertSyncs, which puts only the barriers that what is left needs.
#include "Gir/Rewrite.h"

#include "Gir/Passes.h"
#include "Gir/Traffic.h"

#include <cassert>

namespace fusec {

void rewrite(GirKernel &kernel, const RewriteLimits &limits) {
  using Rule = bool (*)(GirKernel &, const RewriteLimits &);
  constexpr Rule kRules[] = {swapMoves, mergeMoves, reuseValues, mergeWriteRead, mergeReads};
  simplify(kernel);
  for (bool changed = true; changed;) {
    changed = false;
    for (Rule rule : kRules) {
      [[maybe_unused]] const ElementTraffic before = globalTraffic(kernel);
      if (!rule(kernel, limits))
        continue;
      changed = true;
      simplify(kernel);
      assert(isMonotone(before, globalTraffic(kernel)) && "rewriting moves no more than before");
    }
  }
}

} // namespace fusec
