#include "Tiling/space/TreeSpace.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace fusec::tiling {

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

TreeSpace::TreeSpace(const ScheduledProgram &program, bool staged)
    : program(program), space(loopSpace(program.equations)), nests(spaceNests(space)),
      rowAxes(mergedRows(space, program)), hasRows(!rowAxes.empty()) {
  for (size_t l = 0; l < space.loops.size(); ++l)
    merged.push_back({static_cast<int>(l)});
  if (staged) {
    joinRows();
    joinSums();
  }
  for (const std::vector<int> &row : rowAxes)
    for (int l : row)
      merged[static_cast<size_t>(l)] = row;
}

/// Whether something that columns of a contraction read, and that no equation inside makes, differs from row to row.
static bool columnsDiffer(const TreeSpace &tree, const std::vector<int> &row) {
  return std::ranges::any_of(tree.nests, [&](const SpaceNest &nest) {
    if (!nest.tiled)
      return false;
    const int main = nest.equations[0], columns = nest.spatial.back();
    const EquationFacts &facts = tree.facts(main);
    for (size_t r = 0; r < facts.reads.size(); ++r)
      if (!std::ranges::count(tree.space.reads, facts.tensors[r], &InsideRead::tensor) &&
          tree.depends(main, r, columns) &&
          std::ranges::any_of(row, [&](int l) { return tree.depends(main, r, l); }))
        return true;
    return false;
  });
}

void TreeSpace::joinRows() {
  AxisGroups outside;
  std::vector<int> rows;
  for (const std::vector<int> &row : rowAxes)
    if (columnsDiffer(*this, row))
      outside.push_back(row);
    else
      rows.insert(rows.end(), row.begin(), row.end());
  if (rows.empty())
    return;
  outside.push_back(rows);
  rowAxes = std::move(outside);
}

void TreeSpace::joinSums() {
  for (SpaceNest &nest : nests) {
    if (!nest.tiled)
      continue;
    const auto isAlone = [&](int l) {
      return std::ranges::count_if(loop(l).positions, [](int p) { return p >= 0; }) == 1;
    };
    std::vector<int> joined, others;
    for (int l : nest.reduced)
      (isAlone(l) ? joined : others).push_back(l);
    if (joined.size() < 2)
      continue;
    for (int l : joined)
      merged[static_cast<size_t>(l)] = joined;
    nest.reduced = std::move(others);
    nest.reduced.push_back(joined.back());
  }
}

TreeSpace::TreeSpace(const ScheduledProgram &program, const TreeRoles &roles)
    : program(program), space(loopSpace(program.equations)), hasRows(!roles.rows.empty()),
      merged(space.loops.size()) {
  const auto loopsOf = [&](const std::vector<int> &positions) {
    std::vector<int> loops;
    for (int p : positions)
      loops.push_back(space.loopOf[0][static_cast<size_t>(p)]);
    return loops;
  };
  // The name of the axis that these are.
  const auto merge = [&](const std::vector<int> &positions) {
    const std::vector<int> loops = loopsOf(positions);
    for (int l : loops)
      merged[static_cast<size_t>(l)] = loops;
    return loops.back();
  };
  space.rows.clear();
  AxisGroups rows = roles.outside;
  if (hasRows)
    rows.push_back(roles.rows);
  for (const std::vector<int> &positions : rows) {
    merge(positions);
    rowAxes.push_back(loopsOf(positions));
    std::ranges::copy(rowAxes.back(), std::back_inserter(space.rows));
  }
  nests = spaceNests(space);
  assert(nests.size() == 1);
  nests[0].spatial = {merge(roles.columns)};
  nests[0].reduced.clear();
  for (const std::vector<int> &positions : roles.sums)
    nests[0].reduced.push_back(merge(positions));
}

DimExpr TreeSpace::extent(int l) const {
  DimExpr product(1);
  for (int one : axisOf(l))
    product = product * loop(one).extent;
  return product;
}

int64_t TreeSpace::opt(int l) const { return countOf(axisOf(l)); }

int64_t TreeSpace::countOf(const std::vector<int> &row) const {
  int64_t count = 1;
  for (int l : row)
    count *= std::max<int64_t>(1, program.valueOf(loop(l).extent));
  return count;
}

bool TreeSpace::depends(int e, size_t r, int l) const {
  const uint64_t axes = facts(e).axes[static_cast<size_t>(facts(e).reads[r])];
  return std::ranges::any_of(axisOf(l),
                             [&](int one) { return (axes >> positionOf(one, e) & 1) != 0; });
}

} // namespace fusec::tiling
