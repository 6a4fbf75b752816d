// The rules of a schedule of topk: a selection finds places in order, each by one pass over the row; a sort is done by
// the whole block.
#include "Tiling/verify/RuleChecker.h"
#include "Tiling/verify/Rules.h"

namespace fusec::tiling {

namespace {

enum class Role { Row, Place, Searched };

class Rules {
public:
  Rules(const BoundSchedule &bound, int equation)
      : bound(bound), schedule(bound.schedule()), e(bound.equation(equation)),
        who("e" + std::to_string(equation)) {
    for (const Statement &statement : bound.statements())
      if (statement.leaf->equation == equation)
        places.push_back(statement);
  }

  std::vector<std::string> run() {
    std::vector<LeafKind> order;
    for (const Statement &p : places)
      order.push_back(p.leaf->kind);
    bool sorts = order == std::vector{LeafKind::Sort, LeafKind::Store};
    bool selects =
        order == std::vector{LeafKind::Init, LeafKind::Compute, LeafKind::Combine, LeafKind::Store};
    require(sorts || selects, "is found by init, compute, combine and store, or by sort and store");
    for (const Statement &p : places)
      for (const LoopNode *loop : p.loops)
        if (role(*loop) == Role::Row)
          require(loop->kind == LoopKind::Block || loop->kind == LoopKind::Seq ||
                      (selects && loop->kind == LoopKind::Unit),
                  "has its rows in block, sequential or, for a selection, unit loops");
    if (sorts)
      for (const Statement &p : places)
        for (const LoopNode *loop : p.loops)
          require(role(*loop) == Role::Row, "is sorted inside loops over rows alone");
    if (selects)
      selection();
    for (const Statement &p : places)
      everyRow(p);
    return broken.list();
  }

private:
  void require(bool holds, const std::string &rule) { broken.require(holds, who + " " + rule); }

  void everyRow(const Statement &place) {
    for (size_t a = 0; a < schedule.axes.size(); ++a)
      require(role(schedule.axes[a]) != Role::Row ||
                  bound.tile(static_cast<AxisId>(a), place.loops).isConst(1),
              "is found in every row");
  }

  Role role(const LoopNode &loop) const {
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
    const Loops &shared = places[0].loops;
    bool inPlaces = false;
    int64_t placeStep = e.axes[e.numSpatial - 1].extent.isConst(1) ? 1 : 0;
    for (const LoopNode *loop : shared) {
      if (role(*loop) == Role::Place) {
        require(loop->kind == LoopKind::Seq, "finds its places one after another");
        inPlaces = true;
        placeStep = loop->step;
      } else {
        require(role(*loop) == Role::Row, "is searched inside its passes");
        require(!inPlaces, "has its rows around its places");
      }
    }
    require(placeStep == 1, "finds every place");
    int64_t searchStep = e.axes[e.numSpatial].extent.isConst(1) ? 1 : 0;
    for (const Statement &p : places) {
      bool computes = p.leaf->kind == LeafKind::Compute;
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

  const BoundSchedule &bound;
  const Schedule &schedule;
  const Equation &e;
  std::string who;
  std::vector<Statement> places;
  RuleChecker broken;
};

} // namespace

std::vector<std::string> topKProblems(const BoundSchedule &bound, int equation) {
  return Rules(bound, equation).run();
}

} // namespace fusec::tiling
