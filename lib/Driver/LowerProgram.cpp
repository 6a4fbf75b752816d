#include "Driver/State.h"
#include "Expr/Lower.h"
#include "Expr/Passes.h"
#include "Reference/ExprFold.h"

namespace fusec {

Result<ExprProgram> lowerProgram(const Graph &graph, bool composed) {
  FUSEC_TRY(ExprProgram program, lowerGraph(graph));
  FUSEC_CHECK(verify(program));
  program = foldConstants(std::move(program));
  FUSEC_CHECK(verify(program));
  for (const ExprPass &pass : exprPasses()) {
    if (!composed && pass.run == compose)
      continue;
    program = pass.run(std::move(program));
    FUSEC_CHECK(verify(program));
  }
  return program;
}

} // namespace fusec
