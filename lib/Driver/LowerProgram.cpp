#include "Driver/State.h"
#include "Expr/Lower.h"
#include "Reference/ExprFold.h"
#include "Support/RunPasses.h"

namespace fusec {

std::vector<Pass<ExprProgram>> equationPasses(bool composed) {
  std::vector<Pass<ExprProgram>> passes = {
      exprPass("fold-constants", "compute what depends on constants alone", foldConstants)};
  for (Pass<ExprProgram> &pass : exprPasses(composed))
    passes.push_back(std::move(pass));
  return passes;
}

Result<ExprProgram> lowerProgram(const Graph &graph, bool composed, const PassObserver &observer) {
  return runPasses<ExprProgram>([&] { return lowerGraph(graph); }, equationPasses(composed),
                                observer);
}

} // namespace fusec
