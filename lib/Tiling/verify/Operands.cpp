// The rules of operands: where each element of a constant that is repacked lies, and when a tile is staged.
#include "Tiling/verify/RuleChecker.h"
#include "Tiling/verify/Rules.h"

#include <algorithm>
#include <map>
#include <set>

namespace fusec::tiling {

namespace {

class Operands : RuleChecker {
public:
  explicit Operands(const BoundSchedule &bound)
      : RuleChecker(bound), schedule(bound.schedule), symbols(bound.program.expr.symbols) {}

  std::vector<std::string> run() {
    for (size_t o = 0; o < schedule.operands.size(); ++o)
      verifyOperand(OperandIndex(o));
    return list();
  }

private:
  /// Packed: digits of an axis, from the fastest on, are its number in a mixed radix, so that no two elements share a
  /// place. Staged: each digit is a whole axis or index, and stands once.
  void verifyOperand(OperandIndex o) {
    const Operand &operand = schedule.operands[o];
    const Equation &e = bound.equation(operand.equation);
    std::set<int> indices;
    std::map<AxisId, std::vector<LayoutDigit>> digits;
    for (const LayoutDigit &digit : operand.digits) {
      if (digit.index >= 0)
        require(indices.insert(digit.index).second, operand, " has each index once, given ", digit,
                " twice");
      else
        digits[digit.axis].push_back(digit);
      require(operand.level == MemLevel::Global || (digit.divide == 1 && digit.modulus == 0),
              operand, " is staged by whole axes or indices, given ", digit);
    }
    if (operand.level == MemLevel::Global) {
      const uint64_t needed = neededAxes(operand);
      for (size_t p = 0; p < e.axes.size(); ++p)
        if (const AxisId a = bound.axisOf(operand.equation, static_cast<int>(p));
            a >= 0 && (needed >> p & 1) != 0)
          digits[a];
      for (auto &[axis, list] : digits)
        require(axis >= 0 && isRadix(list, schedule.axes[axis].extent), operand,
                " keeps every element along ", LayoutDigit{axis},
                " at a place of its own, as n/16 and n%16 do, given ", list);
      return;
    }
    const std::vector<const Statement *> stages = bound.stages(o);
    require(stages.size() == 1, operand, " is staged once, given ", stages);
    for (const Statement *stage : stages) {
      require(!innermost(stage->loops, LoopKind::Lane) && !innermost(stage->loops, LoopKind::Unit),
              operand, " is staged outside of unit and lane loops, by all of them together, given ",
              *stage);
      for (const Statement *compute : bound.statements(LeafKind::Compute, operand.equation))
        require(
            stage->order < compute->order &&
                std::ranges::all_of(
                    stage->loops, [&](const LoopNode *loop) { return compute->isInside(loop); }),
            operand, " is staged in front of ", *compute->leaf, ", in loops around both, given ",
            *stage, stage->order < compute->order ? "" : ", behind it");
      for (const Statement *compute : bound.statements(LeafKind::Compute, operand.equation))
        staysInTile(operand, *stage, *compute);
    }
  }

  /// Along an axis without a loop around the stage its tile ends with the axis. Points beyond, where loops of a
  /// constant trip go that do not divide it, are summed all the same, and never stored.
  void staysInTile(const Operand &operand, const Statement &stage, const Statement &compute) {
    const Equation &e = bound.equation(operand.equation);
    if (!bound.facts(operand.equation).reduces())
      return;
    const uint64_t needed = neededAxes(operand);
    for (int p = 0; p < e.numSpatial; ++p) {
      const AxisId a = bound.axisOf(operand.equation, p);
      auto isOver = [&](const LoopNode *loop) { return loop->axis == a; };
      if (a < 0 || (needed >> p & 1) == 0 || innermost(stage.loops, a))
        continue;
      const auto first = std::ranges::find_if(compute.loops, isOver);
      const bool isCut = std::ranges::all_of(compute.loops, [&](const LoopNode *loop) {
        return !isOver(loop) || loop->kind == LoopKind::Seq || loop->kind == LoopKind::Block;
      });
      const LoopNode *outer = first == compute.loops.end() ? nullptr : *first;
      require(!outer || isCut || schedule.axes[a].extent.divisibleBy(outer->step, symbols),
              "loops inside the tile of ", operand, " have steps that divide the extent of ",
              schedule.axes[a], ", ", schedule.axes[a].extent, ", given ", outer, " around ",
              *compute.leaf, "; or put a loop over it around ", *stage.leaf);
    }
  }

  /// Axes of the equation that the operand's read depends on, as bits.
  uint64_t neededAxes(const Operand &operand) const {
    return bound.facts(operand.equation).axes[bound.program.nodeOf(operand)];
  }

  static bool isRadix(std::vector<LayoutDigit> list, const DimExpr &extent) {
    std::ranges::sort(
        list, [](const LayoutDigit &a, const LayoutDigit &b) { return a.divide < b.divide; });
    int64_t covered = 1; // 0: all
    for (const LayoutDigit &digit : list) {
      if (digit.divide != covered || (digit.modulus != 0 && digit.modulus > INT64_MAX / covered))
        return false;
      covered *= digit.modulus;
    }
    return !list.empty() && (covered == 0 || (extent.isConst() && extent.constValue() <= covered));
  }

  const Schedule &schedule;
  const std::vector<Symbol> &symbols;
};

} // namespace

std::vector<std::string> operandProblems(const BoundSchedule &bound) {
  return Operands(bound).run();
}

} // namespace fusec::tiling
