#include "Graph/Passes.h"

namespace fusec {

std::vector<Pass<Graph>> graphPasses(const GraphPassOptions &options) {
  auto with = [&](Result<Graph> (*run)(Graph, const GraphPassOptions &)) {
    return [run, options](Graph &graph) -> Status {
      FUSEC_TRY(graph, run(std::move(graph), options));
      return success();
    };
  };
  return {
      {"fold-constants", "compute small constant nodes", with(foldConstants)},
      {"eliminate-identities", "remove nodes that return their operand", with(eliminateIdentities)},
      {"eliminate-common-subexpressions", "keep one of equal nodes",
       with(eliminateCommonSubexpressions)},
      {"merge-concatenations", "make Concats of Concats along one axis one node",
       with(mergeConcatenations)},
      {"eliminate-dead-code", "remove what no output needs, put nodes in order and renumber values",
       with(eliminateDeadCode)},
  };
}

} // namespace fusec
