#include "Tiling/schedule/Statements.h"

#include <algorithm>

namespace fusec::tiling {

size_t commonLoops(const Loops &a, const Loops &b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                             a.begin());
}

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

std::set<int> equationsIn(std::span<const TreeNode> nodes, const Schedule &schedule) {
  std::set<int> found;
  for (const TreeNode &node : nodes)
    if (node.isLoop)
      found.merge(equationsIn(node.children, schedule));
    else if (node.leaf == LeafKind::Stage)
      found.insert(schedule.operands[static_cast<size_t>(node.target)].equation);
    else if (node.leaf != LeafKind::Carry && !node.isBorder())
      found.insert(node.target);
  return found;
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

} // namespace fusec::tiling
