#include "Graph/Passes.h"

namespace fusec {

const std::vector<GraphPass> &graphPasses() {
  static const std::vector<GraphPass> passes = {
      {"fold-constants", "compute small constant nodes", foldConstants},
      {"eliminate-identities", "remove nodes that return their operand", eliminateIdentities},
      {"eliminate-common-subexpressions", "keep one of equal nodes", eliminateCommonSubexpressions},
      {"eliminate-dead-code", "remove what no output needs, put nodes in order and renumber values",
       eliminateDeadCode},
  };
  return passes;
}

} // namespace fusec
