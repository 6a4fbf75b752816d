// The rules of a schedule. A dump edited by hand passes here before it is lowered.
#include "Tiling/verify/Verify.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/schedule/FlatAccess.h"
#include "Tiling/schedule/PersistentReads.h"
#include "Tiling/schedule/Schedule.h"
#include "Tiling/schedule/SharedBuffers.h"
#include "Tiling/verify/RuleChecker.h"
#include "Tiling/verify/Rules.h"

#include <algorithm>
#include <set>

namespace fusec {

using tiling::BoundSchedule, tiling::EquationForm, tiling::Loops, tiling::Statement;

namespace {

// So that no product of four tiles, in bytes, is beyond 64 bits.
constexpr int64_t kLargestStep = 1 << 15; // beyond the extent
constexpr int64_t kLargestPad = 1024;

class Verifier : tiling::RuleChecker {
public:
  explicit Verifier(const BoundSchedule &bound) : RuleChecker(bound), schedule(bound.schedule) {}

  Status run() {
    require(std::min(schedule.units, schedule.lanes) >= 1, "units and lanes are at least 1, given ",
            std::min(schedule.units, schedule.lanes));
    std::set<std::string> names;
    for (const ScheduleAxis &axis : schedule.axes) {
      require(names.insert(axis.name).second, axis, " is declared once, given two of that name");
      verifyAxis(axis);
    }
    verifyCoverage();
    if (none()) { // the rest looks axes up
      for (const Operand &operand : schedule.operands)
        verifyOperand(operand);
      std::set<TensorId> levels;
      for (const EdgeLevel &edge : schedule.edges) {
        const std::string &name = bound.program.tensor(edge.tensor).name;
        require(bound.program.tensor(edge.tensor).kind == TensorKind::Temp, "edge ", name,
                " is a value inside the pattern, given one that crosses its border");
        require(levels.insert(edge.tensor).second, "edge ", name, " has one level, given ",
                edge.level, " as well");
      }
      add(tiling::reuseProblems(bound));
      for (std::span<const TreeNode> phase : phasesOf(schedule.tree)) {
        if (const LoopNode *loop = tiling::gridScanOf(phase); loop && bound.scan())
          verifyGridScan(*loop);
        else
          verifyPhase(phase);
      }
      add(tiling::stepProblems(bound));
      verifyLeaves();
      verifyPhases();
    }
    if (none()) { // the statements name what exists
      add(tiling::operandProblems(bound));
      verifyPlaces();
      add(tiling::flowProblems(bound));
      add(tiling::blockProblems(bound));
      add(tiling::scatterProblems(bound));
      add(tiling::kernelProblems(bound, nullptr));
    }
    return status();
  }

private:
  bool isEquation(int e) const { return e >= 0 && e < bound.numEquations(); }

  void verifyAxis(const ScheduleAxis &axis) {
    std::set<int> seen;
    require(!axis.uses.empty(), axis, " stands for axes of equations, given none");
    for (const AxisUse &use : axis.uses) {
      require(!use.equations.empty() && !use.positions.empty(), axis,
              " stands for axes of equations, given none");
      for (int e : use.equations) {
        require(isEquation(e), axis, " names equations that exist, given e", e);
        require(seen.insert(e).second, axis, " names each equation once, given e", e, " twice");
        DimExpr extent(1);
        for (int position : use.positions) {
          bool exists = isEquation(e) && position >= 0 &&
                        position < static_cast<int>(bound.equation(e).axes.size());
          require(exists, axis, " names positions that e", e, " has, given ", position);
          if (!exists)
            return;
          require((position >= bound.equation(e).numSpatial) == use.reduction, axis, " is ",
                  use.reduction ? "spatial (" : "reduction (", position, ") of e", e, ", given ",
                  use.reduction ? "reduction" : "spatial");
          extent = extent * bound.equation(e).axes[position].extent;
        }
        require(extent == axis.extent, axis, " has the extent ", axis.extent,
                " in all its equations, given ", extent, " in e", e);
      }
    }
  }

  void verifyPlaces() {
    const std::map<TensorId, TensorId> buffers = tiling::sharedBuffers(bound);
    for (const EdgeLevel &edge : schedule.edges)
      if (edge.in >= 0)
        require(buffers.at(edge.tensor) != edge.tensor &&
                    tiling::mayTakePlace(bound, edge.tensor, edge.in),
                "edge ", bound.program.tensor(edge.tensor).name,
                " takes the place of an edge above it, of the same type and shape, that its map is "
                "the last to read, each element at its own point, in the memory of a block of one "
                "unit, given that of ",
                bound.program.tensor(edge.in).name);
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
                "axis ", i, " of e", e, ", extent ", bound.equation(e).axes[i].extent,
                ", stands in one axis of the schedule, given ", stands[i]);
    }
  }

  void verifyOperand(const Operand &operand) {
    const ReadPlace place{operand.equation, 0, operand.read};
    if (!isEquation(operand.equation))
      return require(false, operand, " is of an equation that exists, given ", place);
    const Equation &e = bound.equation(operand.equation);
    const std::vector<NodeId> &reads = bound.facts(operand.equation).reads;
    if (operand.read < 0 || operand.read >= static_cast<int>(reads.size()))
      return require(false, operand, " is one of ", reads.size(), " reads from r0 on, given ",
                     place);
    require(operand.level != MemLevel::Register, operand, " is shared or global, given register");
    require(!operand.digits.empty(), operand, " has digits, given none");
    require(operand.padElements >= 0 && operand.padElements <= kLargestPad, operand,
            " is padded by 0 to ", kLargestPad, " elements, given pad ", operand.padElements);
    const Tensor &tensor = bound.program.tensor(bound.program.tensorOf(operand));
    size_t rank = tensor.shape.size();
    for (const LayoutDigit &digit : operand.digits) {
      require(digit.divide >= 1 && digit.modulus >= 0, operand,
              " has digits with positive numbers behind / and %, given ", digit);
      require(digit.index >= 0 ? digit.index < static_cast<int>(rank) : digit.axis >= 0, operand,
              " has digits of axes, or of the ", rank, " indices from [0] on, given ", digit);
      require((digit.index >= 0) == (operand.digits[0].index >= 0), operand,
              " has digits of axes alone or of indices alone, given ", operand.digits[0], " and ",
              digit);
      require(digit.index >= 0 || digit.axis < 0 || schedule.axes[digit.axis].in(operand.equation),
              operand, " has digits of axes of e", operand.equation, ", given ", digit);
    }
    if (operand.level == MemLevel::Global) {
      require(tensor.kind == TensorKind::Constant && operand.digits[0].index < 0, operand,
              " is global, a constant repacked by digits of axes, given ", operand.digits, " of ",
              tensor.name, tensor.kind == TensorKind::Constant ? "" : ", which is no constant",
              "; a copy in a block's memory is shared");
      require(flatAccess(e, reads[operand.read], bound.program.expr).has_value(), operand,
              " repacks what is read at affine addresses, given ", place,
              ", whose are not; leave it out");
    } else if (operand.digits[0].index >= 0) {
      bool padded = e.body[reads[operand.read]].op == ScalarOp::ReadIf;
      require(operand.digits.size() == rank, operand, " has a digit for each of the ", rank,
              " indices, given ", operand.digits);
      require(!padded || paddingBounds(e, reads[operand.read], bound.program.expr), operand,
              " copies by indices what constants bound, given ", place,
              " with other bounds; give it digits of axes");
    }
  }

  void verifyPhase(std::span<const TreeNode> phase) {
    verifyTree(phase, true);
    ++phases;
    require(!phase.empty(), "every phase has statements, given none in phase ", phases);
    if (isPack(phase))
      verifyParts(phase);
  }

  /// All blocks take a scan's steps together, and every one of them passes each barrier once a step. The states of the
  /// step before lie in memory that this step does not write.
  void verifyGridScan(const LoopNode &loop) {
    require(loop.kind == LoopKind::Seq && loop.step == 1 && !rounds,
            "steps of blocks stand in one seq step:1, given ", loop, rounds ? " as well" : "");
    rounds = true;
    for (std::span<const TreeNode> phase : phasesOf(loop.children))
      verifyPhase(phase);
    const Equation &scan = *bound.scan();
    std::set<TensorId> states;
    for (const ScanCarry &carry : scan.carries)
      require(states.insert(carry.next).second,
              "steps that blocks take together give each state a value of its own, given ",
              bound.program.tensor(carry.next).name, " for two; take all steps inside each block");
    for (const ScanCarry &carry : scan.carries)
      require(bound.level(carry.previous) == MemLevel::Global, "edge ",
              bound.program.tensor(carry.previous).name,
              ", which blocks share from step to step, is global, given ",
              bound.level(carry.previous));
  }

  void verifyTree(std::span<const TreeNode> nodes, bool blocksAllowed) {
    for (const TreeNode &node : nodes) {
      if (const LeafNode *leaf = node.leaf()) {
        // Blocks that do not come here, or come here more often than others, would be waited for in vain.
        require(!leaf->isBorder(), *leaf,
                " stands at the root or in the step loop there, given inside ", path);
        continue;
      }
      const LoopNode &loop = *node.loop();
      if (loop.step < 1) { // what follows divides by it
        require(false, loop, " has a step of at least 1, given ", loop.step);
        continue;
      }
      require(loop.step <= kLargestStep || loop.axis == kStepAxis ||
                  schedule.axes[loop.axis].extent.range(bound.program.expr.symbols).max >=
                      loop.step,
              loop, " has a step of at most ", kLargestStep, ", or its axis' extent, given ",
              loop.step);
      require(!loop.children.empty(), loop, " has statements inside, given none");
      require(loop.kind != LoopKind::Block ||
                  (blocksAllowed && (nodes.size() == 1 || (path.empty() && isPack(nodes)))),
              "block loops are a chain at the root, or several side by side, given ", loop,
              nodes.size() > 1 ? " beside others" : "", ", loops around it: ", path);
      require(loop.axis != kStepAxis || (bound.scan() && loop.kind == LoopKind::Seq),
              "only a scan has steps, in a seq loop, given ", loop, bound.scan() ? "" : " without");
      for (const LoopNode *outer : path) {
        require(loop.kind != outer->kind ||
                    (loop.kind != LoopKind::Unit && loop.kind != LoopKind::Lane &&
                     (loop.kind != LoopKind::Block || loop.axis != outer->axis)),
                loop, " is not inside another one of its kind, given ", *outer, " around it");
        require(outer->axis != loop.axis || outer->step % loop.step == 0, loop,
                " has a step that divides that of ", *outer, " around it, given ", loop.step);
      }
      path.push_back(&loop);
      verifyTree(loop.children, blocksAllowed && loop.kind == LoopKind::Block);
      path.pop_back();
    }
  }

  /// Parts run in no order: what one makes, no other one reads.
  void verifyParts(std::span<const TreeNode> parts) {
    std::vector<int> partOf(bound.program.equations.size(), -1);
    for (const Statement &statement : bound.statements())
      for (size_t p = 0; p < parts.size(); ++p)
        if (const LeafNode &leaf = *statement.leaf; leaf.kind == LeafKind::Compute &&
                                                    isEquation(leaf.equation) &&
                                                    statement.isInside(parts[p].loop()))
          partOf[leaf.equation] = static_cast<int>(p);
    for (int to = 0; to < bound.numEquations(); ++to)
      for (TensorId t : bound.facts(to).tensors)
        if (const int from = bound.program.producer(t); from >= 0)
          require(partOf[from] < 0 || partOf[to] < 0 || partOf[from] == partOf[to],
                  "parts side by side do not read each other's values, given e", to,
                  ", which reads ", bound.program.tensor(t).name, " of e", from,
                  "; put a barrier between them");
  }

  /// Every equation is computed once, reductions after their accumulators were set; operands are staged.
  void verifyLeaves() {
    std::set<int> initialised;
    std::vector<int> computed(bound.program.equations.size(), 0);
    for (const Statement &statement : bound.statements()) {
      const LeafNode *leaf = statement.leaf;
      if (leaf->isBorder())
        continue;
      if (leaf->kind == LeafKind::Stage) {
        const bool exists =
            leaf->operand >= 0 && leaf->operand < OperandIndex(schedule.operands.size());
        const Operand *operand = exists ? &schedule.operands[leaf->operand] : nullptr;
        require(exists && operand->level == MemLevel::Shared,
                "a stage takes an operand that is shared, given ", operand);
        continue;
      }
      if (leaf->kind == LeafKind::Carry) {
        require(bound.scan() && leaf->carry >= 0 && leaf->carry <= 2,
                "a scan has carry 0, 1 and 2, given ", leaf, bound.scan() ? "" : " without one");
        continue;
      }
      const int e = leaf->equation;
      if (!isEquation(e)) {
        require(false, "statements name equations that exist, given ", leaf);
        continue;
      }
      const bool isTopK = bound.facts(e).form == EquationForm::TopK;
      const bool reduces = isTopK || bound.facts(e).reduces();
      if (leaf->findsPlaces()) {
        ++computed[e];
        require(isTopK, "only a topk is sorted or selected, given ", leaf, ", which is none");
      } else if (leaf->kind == LeafKind::Correct) {
        require(bound.facts(e).form == EquationForm::Cascade, "only cascades are corrected, given ",
                leaf, ", which is none");
      } else if (leaf->kind == LeafKind::Compute) {
        computed[e] += leaf->rank == 0;
        require(!reduces || initialised.count(e), "init e", e, " stands before ", leaf,
                ", given none there");
      } else {
        require(reduces, "only reductions and topk have init, combine and store, given ", leaf,
                ", which is none");
        if (leaf->kind == LeafKind::Init)
          initialised.insert(e);
      }
    }
    for (int e = 0; e < bound.numEquations(); ++e) {
      require(computed[e] == 1, "e", e, " is computed by one statement, given ", computed[e]);
      if (bound.facts(e).form == EquationForm::TopK)
        add(tiling::topKProblems(bound, e));
      else
        computeOrder(e);
    }
  }

  /// What proves that no value is read before the barrier behind its producer: a value that crosses a barrier lies in
  /// device memory, and its producer's phase comes first. Inside a phase a block reads only what it makes itself
  /// (Flow.cpp, Blocks.cpp).
  void verifyPhases() {
    if (bound.phases().size() == 1 || !none())
      return;
    require(!bound.scan() || rounds,
            "a scan runs in one phase, or all phases of a step stand in seq step:1, given ", phases,
            " at the root");
    const std::vector<int> phaseOf = phaseOfEquations(bound);
    for (int p = 0; p < std::ssize(bound.phases()); ++p)
      for (int e : tiling::equationsIn(bound.phases()[p], schedule))
        require(phaseOf[e] == p, "the statements of e", e, " stand in phase ", phaseOf[e] + 1,
                " with its compute, given some in phase ", p + 1);
    for (int reader = 0; reader < bound.numEquations(); ++reader)
      for (TensorId t : bound.facts(reader).tensors) {
        const int maker = bound.program.producer(t);
        if (maker < 0 || phaseOf[maker] == phaseOf[reader])
          continue;
        const std::string &name = bound.program.tensor(t).name;
        require(phaseOf[maker] < phaseOf[reader], "e", reader, " reads ", name,
                " in a phase behind that of e", maker, ", which makes it, given phase ",
                phaseOf[reader] + 1, " before phase ", phaseOf[maker] + 1);
        require(bound.level(t) == MemLevel::Global, "edge ", name,
                " is global, since it crosses a barrier from e", maker, " to e", reader, ", given ",
                bound.level(t));
      }
  }

  /// A cascade's statements follow each other in one tile, each Compute in loops of its own over the tile's vectors;
  /// others have one Compute.
  void computeOrder(int equation) {
    const bool cascades = bound.facts(equation).form == EquationForm::Cascade;
    const int last = bound.facts(equation).ranks() - 1;
    std::vector<const Statement *> found;
    std::vector<std::pair<LeafKind, int>> wanted;
    for (const Statement &statement : bound.statements())
      if (const LeafNode *leaf = statement.leaf;
          (leaf->kind == LeafKind::Compute || leaf->kind == LeafKind::Correct) &&
          leaf->equation == equation)
        found.push_back(&statement);
    for (int rank = 0; rank <= last; ++rank) {
      wanted.push_back({LeafKind::Compute, rank});
      if (cascades)
        wanted.push_back({LeafKind::Correct, rank + 1});
    }
    auto ranked = [](const Statement *s) { return std::pair(s->leaf->kind, s->leaf->rank); };
    const bool inOrder = std::ranges::equal(found, wanted, {}, ranked);
    require(inOrder, "e", equation,
            cascades ? " has a compute of each rank up to " : " has one compute, of rank ", last,
            cascades ? ", behind each a correct of the next rank, given " : ", given ", found);
    for (const Statement *statement : found)
      require(!cascades || !inOrder || isInTile(*statement, found.back()->loops), "e", equation,
              " has its corrects side by side, each behind unroll or lane loops with the compute "
              "before it, given ",
              statement, ", and ", found.back());
  }

  /// Whether a cascade's statement is of the tile whose corrects stand in these loops: a correct in them, a compute in
  /// unroll and lane loops inside of them.
  static bool isInTile(const Statement &statement, const Loops &tile) {
    const size_t around = tiling::commonLoops(statement.loops, tile);
    const std::span inside = std::span(statement.loops).subspan(around);
    return around == tile.size() && inside.empty() == (statement.leaf->kind == LeafKind::Correct) &&
           std::all_of(inside.begin(), inside.end(), [](const LoopNode *loop) {
             return loop->kind == LoopKind::Unroll || loop->kind == LoopKind::Lane;
           });
  }

  const Schedule &schedule;
  Loops path;
  int phases = 0;      // seen so far
  bool rounds = false; // a scan's steps hold phases
};

Status verify(const BoundSchedule &bound) {
  tiling::RuleChecker broken(bound);
  broken.require(bound.program.exists, "via names alternatives that apply to the pattern, given ",
                 bound.schedule.via);
  return broken.none() ? Verifier(bound).run() : broken.status();
}

/// Requires that blocks of the target have such units and lanes, and that each of these takes one round of the loops
/// over them.
void verifyUnits(const BoundSchedule &bound, const Target &target, tiling::RuleChecker &broken) {
  const Schedule &schedule = bound.schedule;
  broken.require(schedule.units <= target.maxUnits, "a block of ", target.name, " has ",
                 target.maxUnits == 1 ? "one unit"
                                      : "1 to " + std::to_string(target.maxUnits) + " units",
                 ", given ", schedule.units);
  broken.require(schedule.lanes == target.lanes, "a unit of ", target.name, " has ", target.lanes,
                 " lanes, given ", schedule.lanes);
  if (!broken.none())
    return;
  for (const Statement &statement : bound.statements())
    for (const LoopNode *loop : statement.loops) {
      const bool isUnit = loop->kind == LoopKind::Unit;
      const int wanted = isUnit ? schedule.units : schedule.lanes;
      const DimExpr trip = bound.trip(*loop);
      broken.require(
          loop->axis < 0 || (!isUnit && loop->kind != LoopKind::Lane) || trip.isConst(wanted), loop,
          " has a round for each of the ", wanted, isUnit ? " units" : " lanes", ", given ", trip);
    }
}

/// What keeps the target from holding all blocks of the schedule at once.
std::string notResident(const BoundSchedule &bound, const Target &target) {
  if (!cost::joinsPhases(target))
    return "no such barrier";
  for (const cost::Counts &phase : WorkMeter(bound.program, target).residentPhases(bound)) {
    if (phase.registersPerThread > target.vectorRegisters)
      return tiling::message(bound, static_cast<int64_t>(phase.registersPerThread),
                             " registers a thread, of which it has ", target.vectorRegisters);
    if (const int64_t held = cost::residentBlocks(phase, target); double(held) < phase.blocks)
      return tiling::message(bound, static_cast<int64_t>(phase.blocks),
                             " blocks, of which it holds ", held);
  }
  return {};
}

} // namespace

Status verify(const Schedule &schedule, const ExprProgram &pattern) {
  return verify(BoundSchedule(schedule, pattern));
}

Status verify(const Schedule &schedule, const ExprProgram &pattern, const Target &target) {
  const BoundSchedule bound(schedule, pattern);
  FUSEC_CHECK(verify(bound));
  tiling::RuleChecker broken(bound);
  broken.require(!tiling::hasTooManyAxes(schedule, target), "on a CPU it has ", tiling::kMostAxes,
                 " axes at most, given ", schedule.axes.size());
  if (broken.none())
    verifyUnits(bound, target, broken);
  if (broken.none())
    broken.add(tiling::kernelProblems(bound, &target));
  if (broken.none() && tiling::hasPersistentReads(schedule))
    broken.require(tiling::isResident(bound, target),
                   "reads are kept from round to round and phase to phase where ", target.name,
                   " holds all blocks at once, with their registers and shared memory, and has a "
                   "barrier for them, given ",
                   notResident(bound, target), "; leave those keep lines out");
  return broken.status();
}

} // namespace fusec
