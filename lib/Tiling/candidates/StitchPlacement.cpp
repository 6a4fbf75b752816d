#include "Tiling/candidates/StitchPlacement.h"

#include "Tiling/candidates/ScheduleBuilder.h"

#include <algorithm>

namespace fusec::tiling {

void StitchPlacement::place(const FusedNest &nest, size_t i, Schedule &schedule) {
  const Equation &e = *program.equations[nest.equations[i]];
  std::vector<int> inner;
  for (int p : nest.dims[i])
    if (p < e.numSpatial)
      inner.push_back(p);
  for (TensorId t : e.outputs) {
    MemLevel &level = levels[t] = MemLevel::Global;
    if (program.expr.tensors[t].kind != TensorKind::Temp || !isRead(t))
      continue;
    const bool registers = e.outputs.size() == 1 || !e.states.empty();
    if (registers && (inner.empty() || staysIn(nest, t))) {
      level = MemLevel::Register;
    } else {
      DimExpr elements(1);
      for (int p : inner)
        elements = elements * e.axes[p].extent;
      const std::optional<int64_t> most = program.mostOf(elements);
      const int64_t bytes =
          most ? roundUp(*most * sizeInBytes(program.expr.tensors[t].type), 128) : INT64_MAX;
      if (bytes > sharedLeft)
        continue;
      sharedLeft -= bytes;
      level = MemLevel::Shared;
    }
    schedule.edges.push_back({t, level});
  }
}

/// True if no equation outside of the nest reads the tensor.
bool StitchPlacement::staysIn(const FusedNest &nest, TensorId t) const {
  for (size_t e = 0; e < program.facts.size(); ++e)
    if (reads(program.facts[e], t) && std::ranges::count(nest.equations, static_cast<int>(e)) == 0)
      return false;
  return true;
}

bool StitchPlacement::isRead(TensorId t) const {
  return std::ranges::any_of(program.facts,
                             [&](const EquationFacts &facts) { return reads(facts, t); });
}

bool StitchPlacement::reads(const EquationFacts &facts, TensorId t) {
  return std::ranges::any_of(facts.reads,
                             [&](NodeId read) { return facts.equation.body[read].index == t; });
}

} // namespace fusec::tiling
