// The rules of operands: where each element of a constant that is repacked lies, and when a tile is staged.
#include "Tiling/verify/RuleChecker.h"
#include "Tiling/verify/Rules.h"

#include <algorithm>
#include <map>
#include <set>

namespace fusec::tiling {

namespace {

class Operands {
public:
  explicit Operands(const BoundSchedule &bound)
      : bound(bound), schedule(bound.schedule()), symbols(bound.program().symbols) {}

  std::vector<std::string> run() {
    for (size_t o = 0; o < schedule.operands.size(); ++o)
      verifyOperand(static_cast<int>(o));
    return broken.list();
  }

private:
  void require(bool holds, std::string rule) { broken.require(holds, std::move(rule)); }

  /// Packed: digits of an axis, from the fastest on, are its number in a mixed radix, so that no two elements share a
  /// place. Staged: each digit is a whole axis or index, and stands once.
  void verifyOperand(int o) {
    const Operand &operand = schedule.operands[o];
    const Equation &e = bound.equation(operand.equation);
    const std::string who = "operand " + operand.name;
    std::set<int> indices;
    std::map<AxisId, std::vector<LayoutDigit>> digits;
    for (const LayoutDigit &digit : operand.digits) {
      if (digit.index >= 0)
        require(indices.insert(digit.index).second, who + " has each index of its tensor once");
      else
        digits[digit.axis].push_back(digit);
      require(operand.level == MemLevel::Global || (digit.divide == 1 && digit.modulus == 0),
              who + " is staged by whole axes");
    }
    if (operand.level == MemLevel::Global) {
      const uint64_t needed = neededAxes(operand);
      for (size_t p = 0; p < e.axes.size(); ++p)
        if (const AxisId a = bound.axisOf(operand.equation, static_cast<int>(p));
            a >= 0 && (needed >> p & 1) != 0)
          digits[a];
      for (auto &[axis, list] : digits)
        require(axis >= 0 && isRadix(list, schedule.axes[axis].extent),
                who + " keeps every element along " +
                    (axis >= 0 ? schedule.axes[axis].name : "step") + " at a place of its own");
      return;
    }
    const std::vector<const Statement *> stages = bound.statements(LeafKind::Stage, o);
    require(stages.size() == 1, who + " is staged once");
    for (const Statement *stage : stages) {
      require(std::none_of(stage->loops.begin(), stage->loops.end(),
                           [&](const LoopNode *loop) {
                             return loop->kind == LoopKind::Lane || loop->kind == LoopKind::Unit;
                           }),
              who + " is staged by all units and lanes together");
      for (const Statement *compute : bound.statements(LeafKind::Compute, operand.equation))
        require(stage->order < compute->order &&
                    std::all_of(
                        stage->loops.begin(), stage->loops.end(),
                        [&](const LoopNode *loop) { return compute->isInside(loop); }),
                who + " is staged in front of what reads it, in loops around both");
      for (const Statement *compute : bound.statements(LeafKind::Compute, operand.equation))
        staysInTile(operand, *stage, *compute);
    }
  }

  /// Along an axis without a loop around the stage its tile ends with the axis. Points beyond, where loops of a
  /// constant trip go that do not divide it, are summed all the same, and never stored.
  void staysInTile(const Operand &operand, const Statement &stage, const Statement &compute) {
    const Equation &e = bound.equation(operand.equation);
    if (e.kind != EquationKind::Reduction)
      return;
    const uint64_t needed = neededAxes(operand);
    for (int p = 0; p < e.numSpatial; ++p) {
      const AxisId a = bound.axisOf(operand.equation, p);
      auto isOver = [&](const LoopNode *loop) { return loop->axis == a; };
      if (a < 0 || (needed >> p & 1) == 0 ||
          std::any_of(stage.loops.begin(), stage.loops.end(), isOver))
        continue;
      const auto first = std::find_if(compute.loops.begin(), compute.loops.end(), isOver);
      const bool isCut =
          std::all_of(compute.loops.begin(), compute.loops.end(), [&](const LoopNode *loop) {
            return !isOver(loop) || loop->kind == LoopKind::Seq || loop->kind == LoopKind::Block;
          });
      require(first == compute.loops.end() || isCut ||
                  schedule.axes[a].extent.divisibleBy((*first)->step, symbols),
              "the tile of " + operand.name + " ends with " + schedule.axes[a].name +
                  ", and the loops inside of it touch no more: they divide it");
    }
  }

  /// Axes of the equation that the operand's read depends on, as bits.
  uint64_t neededAxes(const Operand &operand) const {
    return bound.facts(operand.equation).axes[bound.node(operand)];
  }

  static bool isRadix(std::vector<LayoutDigit> list, const DimExpr &extent) {
    std::sort(list.begin(), list.end(),
              [](const LayoutDigit &a, const LayoutDigit &b) { return a.divide < b.divide; });
    int64_t covered = 1; // 0: all
    for (const LayoutDigit &digit : list) {
      if (digit.divide != covered || (digit.modulus != 0 && digit.modulus > INT64_MAX / covered))
        return false;
      covered *= digit.modulus;
    }
    return !list.empty() && (covered == 0 || (extent.isConst() && extent.constValue() <= covered));
  }

  const BoundSchedule &bound;
  const Schedule &schedule;
  const std::vector<Symbol> &symbols;
  RuleChecker broken;
};

} // namespace

std::vector<std::string> operandProblems(const BoundSchedule &bound) {
  return Operands(bound).run();
}

} // namespace fusec::tiling
