#pragma once
// The loops of a pattern as trees have them: rows that blocks own, and nests inside of them.
#include "Tiling/candidates/ContractionRoles.h"
#include "Tiling/schedule/BoundSchedule.h"
#include "Tiling/space/SpaceNests.h"

#include <optional>
#include <vector>

namespace fusec::tiling {

/// What a contraction's axes are to a tree of it alone, as groups of axis positions that are one axis of the schedule.
struct TreeRoles {
  AxisGroups outside;       // of which a block has few points, outermost first
  std::vector<int> rows;    // of register tiles; empty: none
  std::vector<int> columns; // along which lanes run
  AxisGroups sums;          // outermost first
};

class TreeSpace {
public:
  /// Rows that all equations share. `staged`: blocks copy tiles of what rows and columns read, as on a GPU, so that
  /// loops need no common distance in memory to be one axis: those of a sum are, and rows whose points share columns.
  TreeSpace(const ScheduledProgram &program, bool staged);
  /// One contraction, the program's first equation, and the map that finishes it, if any.
  TreeSpace(const ScheduledProgram &program, const TreeRoles &roles);

  const ScheduledProgram &program;
  LoopSpace space;
  /// Loops that are one axis of a schedule are named by the innermost of them.
  std::vector<SpaceNest> nests;
  /// The rows as axes of a schedule, outermost first: neighbours that every address walks without a gap are one; on a
  /// GPU, behind the others, all whose points share what columns read.
  AxisGroups rowAxes;
  /// Whether blocks have several points of the last of rowAxes, rows of register tiles.
  bool hasRows;

  /// All loops of the axis that is named by this one.
  const std::vector<int> &axisOf(int l) const { return merged[static_cast<size_t>(l)]; }
  const SpaceLoop &loop(int l) const { return space.loops[static_cast<size_t>(l)]; }
  const Equation &equation(int e) const { return *program.equations[static_cast<size_t>(e)]; }
  const EquationFacts &facts(int e) const { return program.facts[static_cast<size_t>(e)]; }
  /// Position of the loop among the equation's axes; -1: none.
  int positionOf(int l, int e) const { return loop(l).positions[static_cast<size_t>(e)]; }
  /// Points of an axis.
  DimExpr extent(int l) const;
  /// The usual extent, of which steps are made: 1 at least, also where what the kernel is tuned for leaves nothing.
  int64_t opt(int l) const;
  int64_t countOf(const std::vector<int> &row) const;
  /// The largest extent, if it has a bound.
  std::optional<int64_t> mostOf(int l) const { return program.mostOf(extent(l)); }
  /// Whether read `r` of that equation depends on the axis.
  bool depends(int e, size_t r, int l) const;

private:
  void joinRows();
  void joinSums();

  AxisGroups merged; // by loop
};

} // namespace fusec::tiling
