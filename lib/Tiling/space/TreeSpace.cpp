#include "Tiling/space/TreeSpace.h"

#include <algorithm>

namespace fusec::tiling {

/// The rows as axes, outermost first: neighbours that every address walks without a gap are one.
static AxisGroups mergedRows(const LoopSpace &space, const ScheduledProgram &program) {
  AxisGroups rows;
  for (int row : space.rows) {
    bool joins = !rows.empty();
    for (size_t e = 0; joins && e < space.equations.size(); ++e) {
      const int before = space.loops[static_cast<size_t>(rows.back().back())].positions[e];
      joins = space.loops[static_cast<size_t>(row)].positions[e] == before + 1 &&
              mergeable(program.facts[e], before);
    }
    if (joins)
      rows.back().push_back(row);
    else
      rows.push_back({row});
  }
  return rows;
}

TreeSpace::TreeSpace(const ScheduledProgram &program)
    : program(program), space(loopSpace(program.equations)), nests(spaceNests(space)),
      rowAxes(mergedRows(space, program)) {}

int64_t TreeSpace::opt(int l) const {
  return std::max<int64_t>(1, program.valueOf(loop(l).extent));
}

int64_t TreeSpace::countOf(const std::vector<int> &row) const {
  int64_t count = 1;
  for (int l : row)
    count *= opt(l);
  return count;
}

bool TreeSpace::depends(int e, size_t r, int l) const {
  return (facts(e).axes[static_cast<size_t>(facts(e).reads[r])] >> positionOf(l, e) & 1) != 0;
}

} // namespace fusec::tiling
