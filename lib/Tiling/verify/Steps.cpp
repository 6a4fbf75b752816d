// The rules of a scan's steps: its states are set before the first one, handed on after each, and leave after the last.
#include "Tiling/verify/Rules.h"

#include "Tiling/verify/RuleChecker.h"

#include <algorithm>

namespace fusec::tiling {

namespace {

bool isSteps(const LoopNode *loop) { return loop->axis == kStepAxis; }

class Steps : RuleChecker {
public:
  explicit Steps(const BoundSchedule &bound)
      : RuleChecker(bound), scan(*bound.scan()), rounds(bound.gridScan() != nullptr),
        places(bound.statements()) {}

  std::vector<std::string> run() {
    verifyLoop();
    verifyCarries();
    // Carry statements of a block's own steps move states from memory to memory.
    for (size_t c = 0; !rounds && c < scan.carries.size(); ++c)
      for (const TensorId t : {scan.carries[c].previous, scan.carries[c].next})
        require(bound.level(t) != MemLevel::Register, "edge ", bound.program.tensor(t).name,
                ", which a step hands to the next one, is shared or global, given register");
    return list();
  }

private:
  /// All that a step does stands in one loop at the root.
  void verifyLoop() {
    for (const Statement &place : places) {
      if (!loop && !place.loops.empty() && isSteps(place.loops[0]))
        loop = place.loops[0];
      const bool isCarry = place.leaf->kind == LeafKind::Carry;
      const bool inStep = loop && place.isInside(loop);
      require(!isCarry || (place.leaf->carry == 1 ? inStep && place.loops.size() == 1
                                                  : place.loops.empty()),
              "carry 1 stands in the step loop itself, 0 and 2 outside of all loops, given ",
              place);
      require(isCarry || place.leaf->isBorder() ||
                  (inStep && std::ranges::count_if(place.loops, isSteps) == 1),
              "the statements of a scan stand in one step loop, at the root, given ", place);
      if (!isCarry && inStep) {
        begin = std::min(begin, place.order);
        end = place.order;
      }
    }
  }

  void verifyCarries() {
    auto carries = [&](int when) {
      std::vector<const Statement *> found;
      for (const Statement &place : places)
        if (place.leaf->carry == when)
          found.push_back(&place);
      return found;
    };
    const std::vector<const Statement *> first = carries(0), each = carries(1), last = carries(2);
    require(first.size() == 1 && first[0]->order < begin,
            "one carry 0 sets a scan's states, before its steps, given ", first);
    require(rounds ? each.empty() : each.size() == 1 && each[0]->order > end,
            rounds ? "steps that blocks take together hand their states on without a carry 1"
                   : "one carry 1 hands a scan's states on, at the end of a step",
            ", given ", each);
    const bool leaves =
        std::ranges::any_of(scan.carries, [](const ScanCarry &carry) { return carry.final >= 0; });
    require(last.empty() ? !leaves : last.size() == 1 && last[0]->order > end,
            leaves ? "one carry 2 takes" : "at most one carry 2 takes",
            " the last states of a scan, after its steps, given ", last);
  }

  const Equation &scan;
  const bool rounds;
  const std::vector<Statement> &places;
  const LoopNode *loop = nullptr;
  size_t begin = SIZE_MAX, end = 0; // the first and last of the step's statements, but for Carry
};

} // namespace

std::vector<std::string> stepProblems(const BoundSchedule &bound) {
  return bound.scan() ? Steps(bound).run() : std::vector<std::string>();
}

} // namespace fusec::tiling
