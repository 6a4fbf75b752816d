// The rules of a schedule of topk: a selection finds places in order, each by one pass over the row; a sort is done by
// the whole block.
#include "Tiling/schedule/Schedule.h"
#include "Tiling/verify/Rules.h"

namespace fusec::tiling {

namespace {

/// A statement and the loops around it, outermost first.
struct Place {
  LeafKind leaf;
  std::vector<const TreeNode *> loops;
};

void collect(const std::vector<TreeNode> &nodes, int equation, std::vector<const TreeNode *> &loops,
             std::vector<Place> &places) {
  for (const TreeNode &node : nodes) {
    if (node.isLoop) {
      loops.push_back(&node);
      collect(node.children, equation, loops, places);
      loops.pop_back();
    } else if (node.target == equation && node.leaf != LeafKind::Stage &&
               node.leaf != LeafKind::Carry) {
      places.push_back({node.leaf, loops});
    }
  }
}

enum class Role { Row, Place, Searched };

class Rules {
public:
  Rules(const Schedule &schedule, const ExprProgram &pattern, int equation)
      : schedule(schedule), e(*scheduledEquations(pattern)[equation]),
        who("e" + std::to_string(equation)) {
    std::vector<const TreeNode *> loops;
    collect(schedule.tree, equation, loops, places);
  }

  std::vector<std::string> run() {
    std::vector<LeafKind> order;
    for (const Place &p : places)
      order.push_back(p.leaf);
    bool sorts = order == std::vector{LeafKind::Sort, LeafKind::Store};
    bool selects =
        order == std::vector{LeafKind::Init, LeafKind::Compute, LeafKind::Combine, LeafKind::Store};
    require(sorts || selects, "is found by init, compute, combine and store, or by sort and store");
    for (const Place &p : places)
      for (const TreeNode *loop : p.loops)
        if (role(*loop) == Role::Row)
          require(loop->loop == LoopKind::Block || loop->loop == LoopKind::Seq ||
                      (selects && loop->loop == LoopKind::Unit),
                  "has its rows in block, sequential or, for a selection, unit loops");
    if (sorts)
      for (const Place &p : places)
        for (const TreeNode *loop : p.loops)
          require(role(*loop) == Role::Row, "is sorted inside loops over rows alone");
    if (selects)
      selection();
    for (const Place &p : places)
      everyRow(p);
    return std::move(broken);
  }

private:
  void require(bool holds, const std::string &rule) {
    std::string text = who + " " + rule;
    if (!holds && std::count(broken.begin(), broken.end(), text) == 0)
      broken.push_back(text);
  }

  void everyRow(const Place &place) {
    for (const ScheduleAxis &axis : schedule.axes) {
      if (role(axis) != Role::Row || axis.extent.isConst(1))
        continue;
      int64_t step = 0;
      for (const TreeNode *loop : place.loops)
        if (loop->axis != kStepAxis && &schedule.axes[loop->axis] == &axis)
          step = loop->step;
      require(step == 1, "is found in every row");
    }
  }

  Role role(const TreeNode &loop) const {
    return loop.axis == kStepAxis ? Role::Row // refused elsewhere
                                  : role(schedule.axes[loop.axis]);
  }

  Role role(const ScheduleAxis &axis) const {
    const AxisUse &use = axis.uses[0];
    if (use.reduction)
      return Role::Searched;
    return std::count(use.positions.begin(), use.positions.end(), e.numSpatial - 1) != 0
               ? Role::Place
               : Role::Row;
  }

  void selection() {
    // All four statements share the loops over rows and places; below them the row is searched by compute.
    const std::vector<const TreeNode *> &shared = places[0].loops;
    bool inPlaces = false;
    int64_t placeStep = e.axes[e.numSpatial - 1].extent.isConst(1) ? 1 : 0;
    for (const TreeNode *loop : shared) {
      if (role(*loop) == Role::Place) {
        require(loop->loop == LoopKind::Seq, "finds its places one after another");
        inPlaces = true;
        placeStep = loop->step;
      } else {
        require(role(*loop) == Role::Row, "is searched inside its passes");
        require(!inPlaces, "has its rows around its places");
      }
    }
    require(placeStep == 1, "finds every place");
    int64_t searchStep = e.axes[e.numSpatial].extent.isConst(1) ? 1 : 0;
    for (const Place &p : places) {
      bool computes = p.leaf == LeafKind::Compute;
      bool same = p.loops.size() >= shared.size() &&
                  std::equal(shared.begin(), shared.end(), p.loops.begin()) &&
                  (computes || p.loops.size() == shared.size());
      require(same, "has init, combine and store of a pass side by side");
      for (size_t i = shared.size(); same && computes && i < p.loops.size(); ++i) {
        require(role(*p.loops[i]) == Role::Searched, "searches one row in a pass");
        searchStep = p.loops[i]->step;
      }
    }
    require(searchStep == 1, "looks at every element");
  }

  const Schedule &schedule;
  const Equation &e;
  std::string who;
  std::vector<Place> places;
  std::vector<std::string> broken;
};

} // namespace

std::vector<std::string> topKProblems(const Schedule &schedule, const ExprProgram &pattern,
                                      int equation) {
  return Rules(schedule, pattern, equation).run();
}

} // namespace fusec::tiling
