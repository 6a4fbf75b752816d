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

Pass<GirKernel> ruleAlone(const RewriteRule &rule) {
  return girPass(rule.name, rule.summary, [run = rule.run](GirKernel &kernel) {
    simplify(kernel);
    run(kernel, kTextLimits);
    simplify(kernel);
  });
}

} // namespace

std::vector<Pass<GirKernel>> kernelPasses(bool isCpu) {
  std::vector<Pass<GirKernel>> passes = {girPass(
      "drop-unused-scratch", "drops scratch parameters that nothing accesses", dropUnusedScratch)};
  if (isCpu) {
    passes.push_back(girPass(
        "split-borders", "asks at a border once what each term or place would ask", splitBorders));
    passes.push_back(girPass(
        "delay-stores", "writes a row while the next one's functions are computed", delayStores));
    passes.push_back(
        girPass("turn-copies", "makes squares of copies that store along columns", turnCopies));
  }
  passes.push_back(girPass(
      "insert-syncs", "inserts the barriers that shared and global buffers need", insertSyncs));
  passes.push_back(girPass("allocate", "gives shared buffers their offsets", allocate));
  return passes;
}

std::vector<Pass<GirKernel>> girPasses() {
  std::vector<Pass<GirKernel>> passes = {
      girPass("simplify", "drops control and buffers that do nothing", simplify)};
  for (const RewriteRule &rule : rewriteRules())
    passes.push_back(ruleAlone(rule));
  passes.push_back(girPass("rewrite", "the rules of data movement, to a fixpoint",
                           [](GirKernel &kernel) { rewrite(kernel, kTextLimits); }));
  passes.push_back(girPass("canonicalise", "numbers and names as the text does", canonicalise));
  for (Pass<GirKernel> &pass : kernelPasses(true))
    passes.push_back(std::move(pass));
  return passes;
}

} // namespace fusec
