#include "Gir/Passes.h"

#include "Gir/Rewrite.h"

namespace fusec {
namespace {

/// Room for texts that name no target: half of a GPU thread's registers and a block's Shared memory.
constexpr RewriteLimits kTextLimits{127, 48 << 10};

Pass<GirKernel> girPass(std::string_view name, std::string_view summary,
                        std::function<void(GirKernel &)> run) {
  return {name, summary, [run = std::move(run)](GirKernel &kernel) {
            run(kernel);
            return success();
          }};
}

Pass<GirKernel> ruleAlone(std::string_view name, std::string_view summary,
                          bool (*rule)(GirKernel &, const RewriteLimits &)) {
  return girPass(name, summary, [rule](GirKernel &kernel) {
    simplify(kernel);
    rule(kernel, kTextLimits);
    simplify(kernel);
  });
}

} // namespace

std::vector<Pass<GirKernel>> kernelPasses(bool isCpu) {
  std::vector<Pass<GirKernel>> passes = {girPass(
      "drop-unused-scratch", "drops scratch parameters that nothing accesses", dropUnusedScratch)};
  if (isCpu)
    passes.push_back(girPass(
        "delay-stores", "writes a row while the next one's functions are computed", delayStores));
  passes.push_back(girPass(
      "insert-syncs", "inserts the barriers that shared and global buffers need", insertSyncs));
  passes.push_back(girPass("allocate", "gives shared buffers their offsets", allocate));
  return passes;
}

std::vector<Pass<GirKernel>> girPasses() {
  std::vector<Pass<GirKernel>> passes = {
      girPass("simplify", "drops control and buffers that do nothing", simplify),
      ruleAlone("swap-moves", "computes behind scratch memory that values pass through", swapMoves),
      ruleAlone("merge-moves",
                "reads values where they came from before they passed through scratch memory",
                mergeMoves),
      ruleAlone("reuse-values", "computes once what a thread needs in several nests", reuseValues),
      ruleAlone("merge-write-read", "hands on in registers what a thread reads back",
                mergeWriteRead),
      ruleAlone("merge-reads", "reads what a thread has read once", mergeReads),
      girPass("rewrite", "the rules of data movement, to a fixpoint",
              [](GirKernel &kernel) { rewrite(kernel, kTextLimits); }),
      girPass("canonicalise", "numbers and names as the text does", canonicalise),
  };
  for (Pass<GirKernel> &pass : kernelPasses(true))
    passes.push_back(std::move(pass));
  return passes;
}

} // namespace fusec
