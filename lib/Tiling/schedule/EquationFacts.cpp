#include "Tiling/schedule/EquationFacts.h"

#include "Expr/Cascade.h"
#include "Tiling/schedule/Schedule.h"

#include <algorithm>

namespace fusec::tiling {

EquationFacts::EquationFacts(const Equation &equation, const ExprProgram &program)
    : equation(equation), reads(readsOf(equation)) {
  for (NodeId read : reads)
    accesses.push_back(flatAccess(equation, read, program));
  const Body &body = equation.body;
  axes = axisDependences(body, static_cast<NodeId>(body.nodes.size()) - 1);
  for (int rank = 0; rank <= std::max(0, lastRank(equation)); ++rank)
    neededOfRank.push_back(neededBeside({}, rank));
}

std::vector<bool> EquationFacts::neededBeside(const std::vector<NodeId> &atHand, int rank) const {
  return equation.body.neededBeside(atHand, resultsOfRank(equation, rank));
}

int EquationFacts::ordinalOf(NodeId read) const {
  return static_cast<int>(std::find(reads.begin(), reads.end(), read) - reads.begin());
}

uint64_t EquationFacts::decidingAxes(NodeId read) const {
  const Body &body = equation.body;
  uint64_t found = axes[read];
  for (size_t r = 0; r < reads.size(); ++r) {
    if (reads[r] == read || (accesses[r] && accesses[r]->rests.empty()))
      continue;
    const std::vector<NodeId> inside = body.reachable(indexOperands(body[reads[r]]));
    if (std::find(inside.begin(), inside.end(), read) != inside.end())
      found |= axes[reads[r]];
  }
  return found;
}

std::vector<EquationFacts> factsOf(const ExprProgram &program) {
  const std::vector<const Equation *> equations = scheduledEquations(program);
  std::vector<EquationFacts> facts;
  facts.reserve(equations.size());
  for (const Equation *equation : equations)
    facts.emplace_back(*equation, program);
  return facts;
}

} // namespace fusec::tiling
