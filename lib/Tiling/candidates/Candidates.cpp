#include "Tiling/candidates/Candidates.h"

#include "Expr/Rows.h"
#include "Expr/transforms/Profile.h"

#include <algorithm>
#include <cassert>

namespace fusec::tiling {

bool isFinishedReduction(const ScheduledProgram &program) {
  const std::vector<const Equation *> &equations = program.equations;
  return equations.size() == 2 && finishesReduction(*equations[0], *equations[1]) &&
         program.expr.tensors[equations[0]->outputs[0]].kind == TensorKind::Temp;
}

Candidates plainCandidates(const ScheduledProgram &program, const Target &target,
                           const WorkMeter &meter) {
  if (program.scan)
    return scanCandidates(program, target);
  const std::vector<const Equation *> &equations = program.equations;
  const Equation &first = *equations[0];
  if ((equations.size() > 1 && !isFinishedReduction(program)) || !first.states.empty()) {
    // Contractions need tiles, which a nest among others has not.
    return std::ranges::any_of(equations, [](const Equation *e) { return isContraction(*e); })
               ? Candidates{}
               : stitchCandidates(program, target, meter);
  }
  View view = makeView(program, target, 0, equations.size() == 2 ? 1 : -1);
  switch (first.kind) {
  case EquationKind::Map: return mapCandidates(view);
  case EquationKind::Scatter: return scatterCandidates(view);
  case EquationKind::Reduction:
    return sharesFactor(first) ? Candidates{} : reductionCandidates(view);
  case EquationKind::Opaque: return topKCandidates(view);
  case EquationKind::Scan: break;
  }
  assert(false && "scans are patterns of their own");
  return Candidates{};
}

} // namespace fusec::tiling
