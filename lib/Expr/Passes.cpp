#include "Expr/Passes.h"

namespace fusec {

const std::vector<ExprPass> &exprPasses() {
  static const std::vector<ExprPass> passes = {
      {"simplify", "fold indices, predicates and constants under the ranges of axes and symbols",
       simplify},
      {"compose", "write maps into the equations that read them", compose},
      {"split-axes", "split reduction axes that divisions take apart", splitAxes},
      {"cse", "compute equal equations once", eliminateCommonEquations},
      {"channels-last", "store images between convolutions with the channel innermost",
       channelsLast},
      {"dead-code", "remove what no output needs and renumber in the order of the text",
       eliminateDeadCode},
  };
  return passes;
}

} // namespace fusec
