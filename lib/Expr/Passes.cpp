#include "Expr/Passes.h"

namespace fusec {

Pass<ExprProgram> exprPass(std::string_view name, std::string_view summary,
                           ExprProgram (*run)(ExprProgram program)) {
  return {name, summary, [run](ExprProgram &program) {
            program = run(std::move(program));
            return success();
          }};
}

std::vector<Pass<ExprProgram>> exprPasses(bool composed) {
  std::vector<Pass<ExprProgram>> passes = {exprPass(
      "simplify", "fold indices, predicates and constants under the ranges of axes and symbols",
      simplify)};
  if (composed)
    passes.push_back(exprPass("compose", "write maps into the equations that read them", compose));
  for (const Pass<ExprProgram> &pass :
       {exprPass("split-dimensions",
                 "split dimensions of open size that a reshape has folded into one",
                 splitDimensions),
        exprPass("split-axes", "split reduction axes that divisions take apart", splitAxes),
        exprPass("cse", "compute equal equations once", eliminateCommonEquations),
        exprPass("channels-last", "store images between convolutions with the channel innermost",
                 channelsLast),
        exprPass("dead-code", "remove what no output needs and renumber in the order of the text",
                 eliminateDeadCode)})
    passes.push_back(pass);
  return passes;
}

} // namespace fusec
