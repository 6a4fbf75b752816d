#pragma once
// The loops of a pattern as trees have them: rows that blocks own, and nests inside of them.
#include "Tiling/candidates/ContractionRoles.h"
#include "Tiling/schedule/BoundSchedule.h"
#include "Tiling/space/SpaceNests.h"

#include <optional>
#include <vector>

namespace fusec::tiling {

/// Loops that are one axis of a schedule are named by the innermost of them.
class TreeSpace {
public:
  /// Rows that all equations share.
  explicit TreeSpace(const ScheduledProgram &program);

  const ScheduledProgram &program;
  LoopSpace space;
  std::vector<SpaceNest> nests;
  /// The rows as axes of a schedule, outermost first: neighbours that every address walks without a gap are one.
  AxisGroups rowAxes;

  const SpaceLoop &loop(int l) const { return space.loops[static_cast<size_t>(l)]; }
  const Equation &equation(int e) const { return *program.equations[static_cast<size_t>(e)]; }
  const EquationFacts &facts(int e) const { return program.facts[static_cast<size_t>(e)]; }
  /// Axis of the loop in that equation; -1: none.
  int positionOf(int l, int e) const { return loop(l).positions[static_cast<size_t>(e)]; }
  /// The usual extent, of which steps are made: 1 at least, also where what the kernel is tuned for leaves nothing.
  int64_t opt(int l) const;
  int64_t countOf(const std::vector<int> &row) const;
  /// The largest extent, if it has a bound.
  std::optional<int64_t> mostOf(int l) const { return program.mostOf(loop(l).extent); }
  /// Whether read `r` of that equation depends on the loop.
  bool depends(int e, size_t r, int l) const;
};

} // namespace fusec::tiling
