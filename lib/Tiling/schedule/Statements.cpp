#include "Tiling/schedule/Statements.h"

#include <algorithm>

namespace fusec::tiling {

bool Statement::isInside(const TreeNode *loop) const {
  return std::find(loops.begin(), loops.end(), loop) != loops.end();
}

static void collect(const std::vector<TreeNode> &nodes, Loops &loops,
                    std::vector<Statement> &places) {
  for (const TreeNode &node : nodes) {
    if (!node.isLoop) {
      places.push_back({&node, loops, places.size()});
      continue;
    }
    loops.push_back(&node);
    collect(node.children, loops, places);
    loops.pop_back();
  }
}

std::vector<Statement> statementsOf(const Schedule &schedule) {
  std::vector<Statement> places;
  Loops loops;
  collect(schedule.tree, loops, places);
  return places;
}

bool findCompute(const std::vector<TreeNode> &nodes, int equation, Loops &loops) {
  for (const TreeNode &node : nodes) {
    if (!node.isLoop) {
      if (node.leaf == LeafKind::Compute && node.target == equation)
        return true;
      continue;
    }
    loops.push_back(&node);
    if (findCompute(node.children, equation, loops))
      return true;
    loops.pop_back();
  }
  return false;
}

void addStored(const std::vector<TreeNode> &nodes, std::set<int> &equations) {
  for (const TreeNode &node : nodes) {
    if (!node.isLoop && node.leaf == LeafKind::Store)
      equations.insert(node.target);
    addStored(node.children, equations);
  }
}

static bool runsOver(const Schedule &schedule, int equation, const Loops &loops, LoopKind kind,
                     bool reduced) {
  return std::any_of(loops.begin(), loops.end(), [&](const TreeNode *loop) {
    const AxisUse *use = loop->loop == kind && loop->axis >= 0
                             ? schedule.axes[static_cast<size_t>(loop->axis)].in(equation)
                             : nullptr;
    return use && use->reduction == reduced;
  });
}

bool sharesReduction(const Schedule &schedule, int equation, const Loops &loops, LoopKind kind) {
  return runsOver(schedule, equation, loops, kind, true);
}

bool lanesKeep(const Schedule &schedule, int equation, const Loops &loops) {
  return runsOver(schedule, equation, loops, LoopKind::Lane, false);
}

/// The loops around each equation's first Compute there, outermost first.
static void addComputes(std::span<const TreeNode> nodes, Loops &around,
                        std::map<int, Loops> &into) {
  for (const TreeNode &node : nodes) {
    if (node.isLoop) {
      around.push_back(&node);
      addComputes(node.children, around, into);
      around.pop_back();
    } else if (node.leaf == LeafKind::Compute) {
      into.emplace(node.target, around);
    }
  }
}

std::map<int, Loops> computesOf(std::span<const TreeNode> nodes) {
  std::map<int, Loops> found;
  Loops around;
  addComputes(nodes, around, found);
  return found;
}

} // namespace fusec::tiling
