// The rules of a schedule. A dump edited by hand passes here before it is lowered.
#include "Tiling/verify/Verify.h"
#include "Expr/Cascade.h"
#include "Support/Diag.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/schedule/FlatAccess.h"
#include "Tiling/schedule/GridScan.h"
#include "Tiling/schedule/PersistentReads.h"
#include "Tiling/schedule/Schedule.h"
#include "Tiling/verify/RuleChecker.h"
#include "Tiling/verify/Rules.h"

#include <algorithm>
#include <set>

namespace fusec {

using tiling::BoundSchedule, tiling::Loops, tiling::Statement;

namespace {

// So that no product of four tiles, in bytes, is beyond 64 bits.
constexpr int64_t kLargestStep = 1 << 15; // beyond the extent
constexpr int64_t kLargestPad = 1024;

class Verifier {
public:
  explicit Verifier(const BoundSchedule &bound)
      : bound(bound), schedule(bound.schedule()), pattern(bound.program()) {}

  Status run() {
    require(schedule.units >= 1 && schedule.lanes >= 1, "units and lanes are positive");
    std::set<std::string> names;
    for (const ScheduleAxis &axis : schedule.axes) {
      require(names.insert(axis.name).second, "no two axes are called " + axis.name);
      verifyAxis(axis);
    }
    verifyCoverage();
    if (broken.none()) { // the rest looks axes up
      for (const Operand &operand : schedule.operands)
        verifyOperand(operand);
      std::set<TensorId> levels;
      for (const EdgeLevel &edge : schedule.edges) {
        const std::string who = "edge " + pattern.tensors[edge.tensor].name;
        require(pattern.tensors[edge.tensor].kind == TensorKind::Temp,
                who + " is a value inside the pattern");
        require(levels.insert(edge.tensor).second, who + " has one level");
      }
      broken.add(tiling::reuseProblems(bound));
      for (std::span<const TreeNode> phase : phasesOf(schedule.tree)) {
        if (const LoopNode *loop = tiling::gridScanOf(phase); loop && bound.scan())
          verifyGridScan(*loop);
        else
          verifyPhase(phase);
      }
      broken.add(tiling::stepProblems(bound));
      verifyLeaves();
      verifyPhases();
    }
    if (broken.none()) { // the statements name what exists
      broken.add(tiling::operandProblems(bound));
      broken.add(tiling::flowProblems(bound));
      broken.add(tiling::blockProblems(bound));
      broken.add(tiling::scatterProblems(bound));
    }
    return broken.status(schedule);
  }

private:
  void require(bool holds, const std::string &rule) { broken.require(holds, rule); }

  bool isEquation(int e) const { return e >= 0 && e < bound.numEquations(); }

  void verifyAxis(const ScheduleAxis &axis) {
    std::string who = "axis " + axis.name;
    std::set<int> seen;
    require(!axis.uses.empty(), who + " stands for axes of an equation");
    for (const AxisUse &use : axis.uses) {
      require(!use.equations.empty() && !use.positions.empty(),
              who + " stands for axes of an equation");
      for (int e : use.equations) {
        require(isEquation(e), who + " names an equation of the pattern");
        require(seen.insert(e).second, who + " is one thing in each equation");
        DimExpr extent(1);
        for (int position : use.positions) {
          bool exists = isEquation(e) && position >= 0 &&
                        position < static_cast<int>(bound.equation(e).axes.size());
          require(exists, who + " names axes that exist");
          if (!exists)
            return;
          require((position >= bound.equation(e).numSpatial) == use.reduction,
                  who + " is of one kind, spatial or reduced");
          extent = extent * bound.equation(e).axes[position].extent;
        }
        require(extent == axis.extent, who + " has one extent in all its equations");
      }
    }
  }

  /// Every axis of an equation stands in one axis of the schedule; those of length 1 may be left out.
  void verifyCoverage() {
    for (int e = 0; e < bound.numEquations(); ++e) {
      std::vector<int> stands(bound.equation(e).axes.size(), 0);
      for (const ScheduleAxis &axis : schedule.axes)
        if (const AxisUse *use = axis.in(e))
          for (int position : use->positions)
            if (position >= 0 && position < static_cast<int>(stands.size()))
              ++stands[position];
      for (size_t i = 0; i < stands.size(); ++i)
        require(stands[i] == 1 || (stands[i] == 0 && bound.equation(e).axes[i].extent.isConst(1)),
                "axis " + std::to_string(i) + " of e" + std::to_string(e) +
                    " stands in one axis of the schedule");
    }
  }

  void verifyOperand(const Operand &operand) {
    std::string who = "operand " + operand.name;
    if (!isEquation(operand.equation))
      return require(false, who + " belongs to an equation of the pattern");
    const Equation &e = bound.equation(operand.equation);
    const std::vector<NodeId> &reads = bound.facts(operand.equation).reads;
    if (operand.read < 0 || operand.read >= static_cast<int>(reads.size()))
      return require(false, who + " is a read of its equation");
    require(operand.level != MemLevel::Register, who + " is shared or global");
    require(!operand.digits.empty(), who + " has a layout");
    require(operand.padElements >= 0 && operand.padElements <= kLargestPad,
            who + " is padded by 0 to " + std::to_string(kLargestPad) + " elements");
    const Tensor &tensor = pattern.tensors[e.body[reads[operand.read]].index];
    size_t rank = tensor.shape.size();
    for (const LayoutDigit &digit : operand.digits) {
      require(digit.divide >= 1 && digit.modulus >= 0, who + " divides by positive numbers");
      require(digit.index >= 0 ? digit.index < static_cast<int>(rank) : digit.axis >= 0,
              who + " has digits of axes, or of indices that the tensor has");
      require((digit.index >= 0) == (operand.digits[0].index >= 0),
              who + " has digits of one kind");
      require(digit.index >= 0 || digit.axis < 0 || schedule.axes[digit.axis].in(operand.equation),
              who + " has digits of its equation's axes");
    }
    if (operand.level == MemLevel::Global) {
      require(tensor.kind == TensorKind::Constant && operand.digits[0].index < 0,
              who + " is a constant repacked by axes");
      require(flatAccess(e, reads[operand.read], pattern).has_value(),
              who + " is read at affine addresses");
    } else if (operand.digits[0].index >= 0) {
      bool padded = e.body[reads[operand.read]].op == ScalarOp::ReadIf;
      require(operand.digits.size() == rank, who + " has a digit for every index");
      require(!padded || paddingBounds(e, reads[operand.read], pattern),
              who + " is padded by constants");
    }
  }

  void verifyPhase(std::span<const TreeNode> phase) {
    verifyTree(phase, true);
    require(!phase.empty(), "every phase has statements");
    if (isPack(phase))
      verifyParts(phase);
  }

  /// All blocks take a scan's steps together, and every one of them passes each barrier once a step. The states of the
  /// step before lie in memory that this step does not write.
  void verifyGridScan(const LoopNode &loop) {
    require(loop.kind == LoopKind::Seq && loop.step == 1 && !rounds,
            "only a scan has a step loop, and it is sequential");
    rounds = true;
    for (std::span<const TreeNode> phase : phasesOf(loop.children))
      verifyPhase(phase);
    const Equation &scan = *bound.scan();
    std::set<TensorId> states;
    for (const ScanCarry &carry : scan.carries)
      require(states.insert(carry.next).second,
              "states of steps that blocks share are values of their own");
    for (const ScanCarry &carry : scan.carries)
      require(bound.level(carry.previous) == MemLevel::Global,
              "what blocks share from step to step lies in device memory, " +
                  pattern.tensors[carry.previous].name + " too");
  }

  void verifyTree(std::span<const TreeNode> nodes, bool blocksAllowed) {
    for (const TreeNode &node : nodes) {
      if (node.leaf()) {
        // Blocks that do not come here, or come here more often than others, would be waited for in vain.
        require(!node.isBorder(),
                "barriers stand at the root, where every block passes each of them once");
        continue;
      }
      const LoopNode &loop = *node.loop();
      std::string who = std::string(name(loop.kind)) + " loop over " +
                        (loop.axis == kStepAxis ? "step" : schedule.axes[loop.axis].name);
      if (loop.step < 1) { // what follows divides by it
        require(false, who + " has a positive step");
        continue;
      }
      require(loop.step <= kLargestStep || loop.axis == kStepAxis ||
                  schedule.axes[loop.axis].extent.range(pattern.symbols).max >= loop.step,
              who + " has a step of at most " + std::to_string(kLargestStep) +
                  ", or of what its axis has");
      require(!loop.children.empty(), who + " is not empty");
      require(loop.kind != LoopKind::Block ||
                  (blocksAllowed && (nodes.size() == 1 || (path.empty() && isPack(nodes)))),
              "block loops are a chain at the root, or several side by side; " + who + " is not");
      require(loop.axis != kStepAxis || (bound.scan() && loop.kind == LoopKind::Seq),
              "only a scan has a step loop, and it is sequential");
      for (const LoopNode *outer : path) {
        require(loop.kind != outer->kind ||
                    (loop.kind != LoopKind::Unit && loop.kind != LoopKind::Lane &&
                     (loop.kind != LoopKind::Block || loop.axis != outer->axis)),
                who + " is not inside another one of its kind");
        require(outer->axis != loop.axis || outer->step % loop.step == 0,
                who + " divides the step of the loop around it");
      }
      path.push_back(&loop);
      verifyTree(loop.children, blocksAllowed && loop.kind == LoopKind::Block);
      path.pop_back();
    }
  }

  /// Parts run in no order: what one makes, no other one reads.
  void verifyParts(std::span<const TreeNode> parts) {
    std::vector<int> partOf(bound.equations().size(), -1);
    for (const Statement &statement : bound.statements())
      for (size_t p = 0; p < parts.size(); ++p)
        if (const LeafNode &leaf = *statement.leaf; leaf.kind == LeafKind::Compute &&
                                                    isEquation(leaf.equation) &&
                                                    statement.isInside(parts[p].loop()))
          partOf[leaf.equation] = static_cast<int>(p);
    for (int from = 0; from < bound.numEquations(); ++from)
      for (int to = 0; to < bound.numEquations(); ++to)
        for (NodeId read : bound.facts(to).reads) {
          const TensorId t = bound.equation(to).body[read].index;
          const bool reads = std::count(bound.equation(from).outputs.begin(),
                                        bound.equation(from).outputs.end(), t) != 0;
          require(!reads || partOf[from] < 0 || partOf[to] < 0 || partOf[from] == partOf[to],
                  "parts side by side do not read each other's values; e" + std::to_string(to) +
                      " reads that of e" + std::to_string(from));
        }
  }

  /// Every equation is computed once, reductions after their accumulators were set; operands are staged.
  void verifyLeaves() {
    std::set<int> initialised;
    std::vector<int> computed(bound.equations().size(), 0);
    for (const Statement &statement : bound.statements()) {
      const LeafNode *leaf = statement.leaf;
      if (leaf->isBorder())
        continue;
      if (leaf->kind == LeafKind::Stage) {
        require(leaf->operand >= 0 && leaf->operand < static_cast<int>(schedule.operands.size()) &&
                    schedule.operands[leaf->operand].level == MemLevel::Shared,
                "stage takes a shared operand");
        continue;
      }
      if (leaf->kind == LeafKind::Carry) {
        require(bound.scan() && leaf->carry >= 0 && leaf->carry <= 2,
                "carry 0, 1 or 2 belongs to a scan");
        continue;
      }
      if (!isEquation(leaf->equation)) {
        require(false, "statements name equations of the pattern");
        continue;
      }
      std::string who = "e" + std::to_string(leaf->equation);
      bool isTopK = bound.equation(leaf->equation).kind == EquationKind::Opaque;
      bool reduces = isTopK || bound.equation(leaf->equation).kind == EquationKind::Reduction;
      if (leaf->kind == LeafKind::Sort) {
        ++computed[leaf->equation];
        require(isTopK, std::string("only topk is sorted; ") + who + " is none");
      } else if (leaf->kind == LeafKind::Correct) {
        require(!bound.equation(leaf->equation).states.empty(),
                "only cascades are corrected; " + who + " is none");
      } else if (leaf->kind == LeafKind::Compute) {
        computed[leaf->equation] += leaf->rank == 0;
        require(!reduces || initialised.count(leaf->equation),
                who + " is initialised before it is computed");
      } else {
        require(reduces,
                std::string("only reductions have init, combine and store; ") + who + " is none");
        if (leaf->kind == LeafKind::Init)
          initialised.insert(leaf->equation);
      }
    }
    for (size_t e = 0; e < computed.size(); ++e) {
      require(computed[e] == 1, "e" + std::to_string(e) + " is computed by one statement");
      cascadeOrder(e);
      if (bound.equation(e).kind == EquationKind::Opaque)
        broken.add(tiling::topKProblems(bound, e));
    }
  }

  /// What proves that no value is read before the barrier behind its producer: a value that crosses a barrier lies in
  /// device memory, and its producer's phase comes first. Inside a phase a block reads only what it makes itself
  /// (Flow.cpp, Blocks.cpp).
  void verifyPhases() {
    if (bound.phases().size() == 1 || !broken.none())
      return;
    require(!bound.scan() || rounds,
            "a scan runs in one phase, or all phases of a step stand in its loop");
    const std::vector<int> phaseOf = bound.phaseOfEquations();
    for (int p = 0; p < static_cast<int>(bound.phases().size()); ++p)
      for (int e : tiling::equationsIn(bound.phases()[p], schedule))
        require(phaseOf[e] == p, "the statements of e" + std::to_string(e) + " stand in one phase");
    for (int reader = 0; reader < bound.numEquations(); ++reader)
      for (NodeId read : bound.facts(reader).reads) {
        const TensorId t = bound.equation(reader).body[read].index;
        const int maker = bound.producer(t);
        if (maker < 0 || phaseOf[maker] == phaseOf[reader])
          continue;
        const std::string who =
            "e" + std::to_string(reader) + " reads what e" + std::to_string(maker) + " makes";
        require(phaseOf[maker] < phaseOf[reader], who + " behind the barrier after it");
        require(bound.level(t) == MemLevel::Global, who + " across a barrier, from device memory");
      }
  }

  /// A cascade's statements follow each other in one tile, each Compute in loops of its own over the tile's vectors.
  void cascadeOrder(int equation) {
    const bool cascades = !bound.equation(equation).states.empty();
    const int last = std::max(0, lastRank(bound.equation(equation)));
    const std::string who = "e" + std::to_string(equation);
    std::vector<std::pair<LeafKind, int>> found, wanted;
    for (const Statement &statement : bound.statements())
      if (const LeafNode *leaf = statement.leaf;
          (leaf->kind == LeafKind::Compute || leaf->kind == LeafKind::Correct) &&
          leaf->equation == equation)
        found.push_back({leaf->kind, leaf->rank});
    if (bound.equation(equation).kind == EquationKind::Opaque)
      return;
    for (int rank = 0; rank <= last; ++rank) {
      wanted.push_back({LeafKind::Compute, rank});
      if (cascades)
        wanted.push_back({LeafKind::Correct, rank + 1});
    }
    require(found == wanted, who + " computes and corrects its ranks one after the other");
    if (cascades)
      require(inOneTile(schedule.tree, equation, last),
              who +
                  " has its ranks in one tile, corrections outside of the loops over its vectors");
  }

  /// The list of siblings that holds the equation's statements, corrections directly and computes under Unroll and Lane
  /// loops.
  bool inOneTile(std::span<const TreeNode> nodes, int equation, int last) const {
    const auto isOf = [&](const LeafNode *leaf) { return leaf && leaf->equation == equation; };
    int corrections = 0, computes = 0;
    for (const TreeNode &node : nodes) {
      corrections += isOf(node.leaf(LeafKind::Correct));
      const auto isVector = [](const LoopNode *loop) {
        return loop && (loop->kind == LoopKind::Unroll || loop->kind == LoopKind::Lane);
      };
      const LoopNode *inner = node.loop();
      while (isVector(inner) && !inner->children.empty() && inner->children[0].loop())
        inner = inner->children[0].loop();
      computes += isVector(inner) &&
                  std::any_of(inner->children.begin(), inner->children.end(),
                              [&](const TreeNode &n) { return isOf(n.leaf(LeafKind::Compute)); });
    }
    if (corrections == last + 1 && computes == last + 1)
      return true;
    return std::any_of(nodes.begin(), nodes.end(), [&](const TreeNode &node) {
      return node.loop() && inOneTile(node.children(), equation, last);
    });
  }

  const BoundSchedule &bound;
  const Schedule &schedule;
  const ExprProgram &pattern;
  Loops path;
  bool rounds = false; // a scan's steps hold phases
  tiling::RuleChecker broken;
};

Status brokenRule(const Schedule &schedule, const std::string &rule) {
  return Diagnostic{Diag::BadIr, "schedule " + schedule.name, "broken rule: " + rule};
}

Status verify(const BoundSchedule &bound) {
  return bound.exists() ? Verifier(bound).run()
                        : brokenRule(bound.schedule(), "its alternatives apply to the pattern");
}

/// Verifies that blocks of the target have such units and lanes, and that each of these takes one round of the loops
/// over them.
Status verifyUnits(const BoundSchedule &bound, const Target &target) {
  const Schedule &schedule = bound.schedule();
  tiling::RuleChecker broken;
  broken.require(schedule.units <= target.maxUnits,
                 "a block of " + target.name + " has " +
                     (target.maxUnits == 1 ? "one unit"
                                           : "1 to " + std::to_string(target.maxUnits) + " units") +
                     ", given " + std::to_string(schedule.units));
  broken.require(schedule.lanes == target.lanes,
                 "a unit of " + target.name + " has " + std::to_string(target.lanes) +
                     " lanes, given " + std::to_string(schedule.lanes));
  if (!broken.none())
    return broken.status(schedule);
  for (const Statement &statement : bound.statements())
    for (const LoopNode *loop : statement.loops) {
      const bool isUnit = loop->kind == LoopKind::Unit;
      const int wanted = isUnit ? schedule.units : schedule.lanes;
      broken.require(loop->axis < 0 || (!isUnit && loop->kind != LoopKind::Lane) ||
                         bound.trip(*loop).isConst(wanted),
                     std::string(name(loop->kind)) + " loop over " +
                         (loop->axis < 0 ? "step" : schedule.axes[loop->axis].name) +
                         " has a round for each of the " + std::to_string(wanted) +
                         (isUnit ? " units" : " lanes"));
    }
  return broken.status(schedule);
}

} // namespace

Status verify(const Schedule &schedule, const ExprProgram &pattern) {
  return verify(BoundSchedule(schedule, pattern));
}

Status verify(const Schedule &schedule, const ExprProgram &pattern, const Target &target) {
  const BoundSchedule bound(schedule, pattern);
  FUSEC_CHECK(verify(bound));
  if (tiling::hasTooManyAxes(schedule, target))
    return brokenRule(schedule,
                      "on a CPU it has " + std::to_string(tiling::kMostAxes) + " axes at most");
  FUSEC_CHECK(verifyUnits(bound, target));
  if (tiling::hasPersistentReads(schedule) && !tiling::isResident(bound, target))
    return brokenRule(schedule, "rounds and phases hold values where " + target.name +
                                    " holds all blocks at once, with their registers and shared "
                                    "memory, and has a barrier for them");
  return success();
}

} // namespace fusec
