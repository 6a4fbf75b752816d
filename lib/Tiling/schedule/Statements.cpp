#include "Tiling/schedule/Statements.h"

#include "Tiling/schedule/FlatAccess.h"

#include <algorithm>

namespace fusec::tiling {

bool Statement::isInside(const TreeNode *loop) const {
  return std::find(loops.begin(), loops.end(), loop) != loops.end();
}

static void collect(const std::vector<TreeNode> &nodes, std::vector<const TreeNode *> &loops,
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
  std::vector<const TreeNode *> loops;
  collect(schedule.tree, loops, places);
  return places;
}

std::vector<const Statement *> statementsOf(const std::vector<Statement> &all, LeafKind leaf,
                                            int target) {
  std::vector<const Statement *> found;
  for (const Statement &place : all)
    if (place.leaf->leaf == leaf && place.leaf->target == target)
      found.push_back(&place);
  return found;
}

bool findCompute(const std::vector<TreeNode> &nodes, int equation,
                 std::vector<const TreeNode *> &loops) {
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

std::vector<TensorId> valuesReadBy(const TreeNode &leaf, const Schedule &schedule,
                                   const std::vector<const Equation *> &equations) {
  std::vector<TensorId> values;
  if (leaf.leaf == LeafKind::Stage) {
    const Operand &operand = schedule.operands[leaf.target];
    const Equation &e = *equations[operand.equation];
    values.push_back(e.body[readsOf(e)[operand.read]].index);
  } else if (leaf.leaf == LeafKind::Compute || leaf.leaf == LeafKind::Sort) {
    const Equation &e = *equations[leaf.target];
    for (NodeId read : readsOf(e))
      values.push_back(e.body[read].index);
  }
  return values;
}

bool readsValue(const TreeNode &leaf, TensorId value, const Schedule &schedule,
                const std::vector<const Equation *> &equations) {
  const std::vector<TensorId> values = valuesReadBy(leaf, schedule, equations);
  return std::find(values.begin(), values.end(), value) != values.end();
}

static bool runsOver(const Schedule &schedule, int equation,
                     const std::vector<const TreeNode *> &loops, LoopKind kind, bool reduced) {
  return std::any_of(loops.begin(), loops.end(), [&](const TreeNode *loop) {
    const AxisUse *use = loop->loop == kind && loop->axis >= 0
                             ? schedule.axes[static_cast<size_t>(loop->axis)].in(equation)
                             : nullptr;
    return use && use->reduction == reduced;
  });
}

bool sharesReduction(const Schedule &schedule, int equation,
                     const std::vector<const TreeNode *> &loops, LoopKind kind) {
  return runsOver(schedule, equation, loops, kind, true);
}

bool lanesKeep(const Schedule &schedule, int equation, const std::vector<const TreeNode *> &loops) {
  return runsOver(schedule, equation, loops, LoopKind::Lane, false);
}

std::vector<int> phasesOfEquations(const Schedule &schedule, size_t equations) {
  std::vector<int> phases(equations, 0);
  int borders = 0;
  for (const Statement &place : statementsOf(schedule)) {
    if (place.leaf->isBorder())
      ++borders;
    else if (place.leaf->leaf == LeafKind::Compute || place.leaf->leaf == LeafKind::Sort)
      phases[static_cast<size_t>(place.leaf->target)] = borders;
  }
  return phases;
}

/// The loops around each equation's first Compute there, outermost first.
static void addComputes(std::span<const TreeNode> nodes, std::vector<const TreeNode *> &around,
                        std::map<int, std::vector<const TreeNode *>> &into) {
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

std::map<int, std::vector<const TreeNode *>> computesOf(std::span<const TreeNode> nodes) {
  std::map<int, std::vector<const TreeNode *>> found;
  std::vector<const TreeNode *> around;
  addComputes(nodes, around, found);
  return found;
}

} // namespace fusec::tiling
