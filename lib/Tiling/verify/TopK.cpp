// The rules of a schedule of topk: a selection finds places in order, each by one pass over the row, or one unit does,
// by tiles; a sort is done by the whole block.
#include "Tiling/verify/RuleChecker.h"
#include "Tiling/verify/Rules.h"

namespace fusec::tiling {

namespace {

enum class Role { Row, Place, Searched };

class Rules : RuleChecker {
public:
  Rules(const BoundSchedule &bound, int equation)
      : RuleChecker(bound), schedule(bound.schedule), e(bound.equation(equation)),
        number(equation) {
    for (const Statement &statement : bound.statements())
      if (statement.leaf->equation == equation)
        places.push_back(statement);
  }

  std::vector<std::string> run() {
    std::vector<const LeafNode *> given;
    for (const Statement &p : places)
      given.push_back(p.leaf);
    auto are = [&](std::initializer_list<LeafKind> order) {
      return std::ranges::equal(given, order, {}, &LeafNode::kind);
    };
    const bool sorts = are({LeafKind::Sort, LeafKind::Store});
    const bool selects =
        are({LeafKind::Init, LeafKind::Compute, LeafKind::Combine, LeafKind::Store});
    const bool byTiles = are({LeafKind::Select, LeafKind::Store}), inOne = sorts || byTiles;
    require(inOne || selects,
            "is found by init, compute, combine and store, or by sort or select and store, given ",
            given);
    for (const Statement &p : places)
      for (const LoopNode *loop : p.loops)
        if (role(*loop) == Role::Row)
          require(
              loop->kind == LoopKind::Block || loop->kind == LoopKind::Seq ||
                  (selects && loop->kind == LoopKind::Unit),
              "has its rows in block and seq loops and, where it is computed, unit loops, given ",
              *loop);
    const int threads = schedule.units * schedule.lanes;
    if (sorts) // rounds of pairs take the row up to a multiple of all of them
      require((threads & (threads - 1)) == 0, "is sorted by a power of two of threads, given ",
              threads);
    if (byTiles)
      require(schedule.units == 1, "is selected by one unit, given ", schedule.units);
    if (inOne)
      for (const Statement &p : places)
        for (const LoopNode *loop : p.loops)
          require(role(*loop) == Role::Row, "is ", sorts ? "sorted" : "selected",
                  " inside loops over rows alone, given ", *loop);
    if (selects)
      selection();
    for (const Statement &p : places)
      everyRow(p);
    return list();
  }

private:
  template <typename... Pieces> void require(bool holds, const Pieces &...rule) {
    RuleChecker::require(holds, "e", number, " ", rule...);
  }

  void everyRow(const Statement &place) {
    for (AxisId a{0}; a < std::ssize(schedule.axes); ++a)
      require(role(schedule.axes[a]) != Role::Row || bound.tile(a, place.loops).isConst(1),
              "is found in every row of ", schedule.axes[a],
              ", the innermost loop with step 1, given ", innermost(place.loops, a));
  }

  Role role(const LoopNode &loop) const {
    return loop.axis == kStepAxis ? Role::Row // refused elsewhere
                                  : role(schedule.axes[loop.axis]);
  }

  Role role(const ScheduleAxis &axis) const {
    const AxisUse &use = axis.uses[0];
    if (use.reduction)
      return Role::Searched;
    return std::ranges::count(use.positions, e.numSpatial - 1) != 0 ? Role::Place : Role::Row;
  }

  void selection() {
    // All four statements share the loops over rows and places; below them the row is searched by compute.
    const Loops &shared = places[0].loops;
    bool inPlaces = false;
    const LoopNode *inner = nullptr;
    auto covers = [&](int axis) {
      return inner ? inner->step == 1 : e.axes[axis].extent.isConst(1);
    };
    for (const LoopNode *loop : shared) {
      if (role(*loop) == Role::Place) {
        require(loop->kind == LoopKind::Seq,
                "finds its places one after another, in seq loops, given ", *loop);
        inPlaces = true;
        inner = loop;
      } else {
        require(role(*loop) == Role::Row, "is searched inside its passes, by compute alone, given ",
                *loop);
        require(!inPlaces, "has its rows around its places, given ", shared);
      }
    }
    require(covers(e.numSpatial - 1), "finds every place, the innermost loop with step 1, given ",
            inner);
    inner = nullptr;
    for (const Statement &p : places) {
      bool computes = p.leaf->kind == LeafKind::Compute;
      bool same = p.loops.size() >= shared.size() &&
                  std::equal(shared.begin(), shared.end(), p.loops.begin()) &&
                  (computes || p.loops.size() == shared.size());
      require(same, "has init, combine and store of a pass side by side, compute inside, given ",
              p);
      for (size_t i = shared.size(); same && computes && i < p.loops.size(); ++i) {
        inner = p.loops[i];
        require(role(*inner) == Role::Searched, "searches one row in a pass, given ", inner);
      }
    }
    require(covers(e.numSpatial), "looks at every element, the innermost loop with step 1, given ",
            inner);
  }

  const Schedule &schedule;
  const Equation &e;
  const int number;
  std::vector<Statement> places;
};

} // namespace

std::vector<std::string> topKProblems(const BoundSchedule &bound, int equation) {
  return Rules(bound, equation).run();
}

} // namespace fusec::tiling
