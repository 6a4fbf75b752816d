// The rules that tie a schedule's statements to each other: an accumulator is a register of the loops around its
// Compute, and whoever sets, folds, stores or reads it stands in the same ones.
#include "Tiling/VerifyFlow.h"

#include "Tiling/Access.h"
#include "Tiling/BrokenRules.h"
#include "Tiling/StagedTile.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace fusec::tiling {

namespace {

/// Copies of a statement: what the compiler writes out, and with it the time that it takes, is bounded.
constexpr int64_t kMaxCopies = 1024;

/// A statement and the loops around it, outermost first.
struct Place {
  const TreeNode *leaf;
  std::vector<const TreeNode *> loops;
  size_t order; // among all statements

  bool isInside(const TreeNode *loop) const {
    return std::find(loops.begin(), loops.end(), loop) != loops.end();
  }
};

bool repeats(const TreeNode &loop) {
  return loop.loop == LoopKind::Block || loop.loop == LoopKind::Seq;
}

class Flow {
public:
  Flow(const Schedule &schedule, const ExprProgram &pattern)
      : schedule(schedule), equations(scheduledEquations(pattern)) {
    std::vector<const TreeNode *> loops;
    collect(schedule.tree, loops);
  }

  std::vector<std::string> run() {
    for (const Place &place : places)
      verifyCopies(place);
    for (size_t o = 0; o < schedule.operands.size(); ++o)
      verifyOperand(static_cast<int>(o));
    for (size_t e = 0; e < equations.size(); ++e)
      if (equations[e]->kind != EquationKind::Opaque)
        verifyEquation(static_cast<int>(e));
    for (size_t e = 0; e < equations.size(); ++e)
      for (NodeId read : readsOf(*equations[e]))
        verifyRead(static_cast<int>(e), read);
    return broken.list();
  }

private:
  void require(bool holds, std::string rule) { broken.require(holds, std::move(rule)); }

  void collect(const std::vector<TreeNode> &nodes, std::vector<const TreeNode *> &loops) {
    for (const TreeNode &node : nodes) {
      if (!node.isLoop) {
        places.push_back({&node, loops, places.size()});
        continue;
      }
      loops.push_back(&node);
      collect(node.children, loops);
      loops.pop_back();
    }
  }

  std::vector<const Place *> find(LeafKind leaf, int target) const {
    std::vector<const Place *> found;
    for (const Place &place : places)
      if (place.leaf->leaf == leaf && place.leaf->target == target)
        found.push_back(&place);
    return found;
  }

  const AxisUse *useOf(const TreeNode &loop, int equation) const {
    return loop.axis == kStepAxis ? nullptr : schedule.axes[loop.axis].in(equation);
  }
  bool reduces(const TreeNode &loop, int equation) const {
    const AxisUse *use = useOf(loop, equation);
    return use && use->reduction;
  }
  std::string nameOf(const TreeNode &loop) const {
    return std::string(name(loop.loop)) + " loop over " +
           (loop.axis == kStepAxis ? "step" : schedule.axes[loop.axis].name);
  }

  void verifyCopies(const Place &place) {
    std::map<AxisId, DimExpr> tiles;
    int64_t copies = 1;
    for (const TreeNode *loop : place.loops) {
      if (loop->axis == kStepAxis)
        continue;
      auto [tile, first] = tiles.try_emplace(loop->axis, schedule.axes[loop->axis].extent);
      if (loop->loop == LoopKind::Unroll && tile->second.isConst() && copies <= kMaxCopies)
        copies *= std::min((tile->second.constValue() - 1) / loop->step + 1, kMaxCopies + 1);
      tile->second = DimExpr(loop->step);
    }
    require(copies <= kMaxCopies,
            "unroll loops make at most " + std::to_string(kMaxCopies) + " copies of a statement");
  }

  /// Packed: digits of an axis, from the fastest on, are its number in a mixed radix, so that no two elements share a
  /// place. Staged: each digit is a whole axis or index, and stands once.
  void verifyOperand(int o) {
    const Operand &operand = schedule.operands[o];
    const Equation &e = *equations[operand.equation];
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
      const uint64_t needed = axisDependence(e.body, readsOf(e)[operand.read]);
      for (size_t p = 0; p < e.axes.size(); ++p)
        if (const AxisId a = axisOf(schedule, e, operand.equation, static_cast<int>(p));
            a >= 0 && (needed >> p & 1) != 0)
          digits[a];
      for (auto &[axis, list] : digits)
        require(axis >= 0 && isRadix(list, schedule.axes[axis].extent),
                who + " keeps every element along " +
                    (axis >= 0 ? schedule.axes[axis].name : "step") + " at a place of its own");
      return;
    }
    const std::vector<const Place *> stages = find(LeafKind::Stage, o);
    require(stages.size() == 1, who + " is staged once");
    for (const Place *stage : stages) {
      require(std::none_of(stage->loops.begin(), stage->loops.end(),
                           [&](const TreeNode *loop) {
                             return loop->loop == LoopKind::Lane || loop->loop == LoopKind::Unit;
                           }),
              who + " is staged by all units and lanes together");
      for (const Place *compute : find(LeafKind::Compute, operand.equation))
        require(stage->order < compute->order &&
                    std::all_of(
                        stage->loops.begin(), stage->loops.end(),
                        [&](const TreeNode *loop) { return compute->isInside(loop); }),
                who + " is staged in front of what reads it, in loops around both");
    }
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

  void verifyEquation(int e) {
    const Equation &equation = *equations[e];
    const std::string who = "e" + std::to_string(e);
    const std::vector<const Place *> computes = find(LeafKind::Compute, e);
    if (computes.empty())
      return;
    for (const Place *compute : computes)
      covers(*compute, e, true);
    if (equation.kind != EquationKind::Reduction)
      return;
    const Place &compute = *computes[0];
    bool shared = false; // partial results in several lanes or units
    for (const TreeNode *loop : compute.loops) {
      require(loop->loop != LoopKind::Block || !reduces(*loop, e),
              "blocks do not share a reduction; " + nameOf(*loop) + " of " + who + " is reduced");
      shared =
          shared ||
          ((loop->loop == LoopKind::Lane || (loop->loop == LoopKind::Unit && schedule.units > 1)) &&
           reduces(*loop, e));
    }
    require(!shared || !find(LeafKind::Combine, e).empty(),
            who + " sums over lanes or units and has a combine");
    const bool leaves = std::any_of(equation.outputs.begin(), equation.outputs.end(),
                                    [&](TensorId t) { return !edgeOf(t); });
    require(!leaves || !find(LeafKind::Store, e).empty(),
            who + " has a store, or an edge level for its result");
    size_t last = computes.back()->order;
    for (LeafKind leaf : {LeafKind::Combine, LeafKind::Store}) {
      const std::vector<const Place *> found = find(leaf, e);
      require(found.size() <= 1, who + " is combined and stored once");
      for (const Place *place : found) {
        require(place->order > last,
                who + " is initialised, computed, combined and stored in this order");
        last = place->order;
      }
    }
    const std::vector<const Place *> inits = find(LeafKind::Init, e);
    require(inits.size() == 1 && inits[0]->order < compute.order,
            who + " is initialised once, before it is computed");
    for (const Place &place : places) {
      const LeafKind leaf = place.leaf->leaf;
      if (place.leaf->target != e || leaf == LeafKind::Stage || leaf == LeafKind::Carry ||
          place.leaf->isBorder() || leaf == LeafKind::Correct)
        continue;
      if (leaf == LeafKind::Store)
        covers(place, e, false);
      if (leaf != LeafKind::Compute || place.leaf->rank > 0)
        sameRegister(compute, place, e, leaf == LeafKind::Store || leaf == LeafKind::Compute,
                     leaf != LeafKind::Compute, "the statements of " + who);
    }
  }

  /// The loops around a statement take every point of its axes.
  void covers(const Place &place, int e, bool reduction) {
    for (size_t a = 0; a < schedule.axes.size(); ++a) {
      const ScheduleAxis &axis = schedule.axes[a];
      const AxisUse *use = axis.in(e);
      if (!use || (use->reduction && !reduction) || axis.extent.isConst(1))
        continue;
      int64_t step = 0;
      for (const TreeNode *loop : place.loops)
        if (loop->axis == static_cast<AxisId>(a))
          step = loop->step;
      require(step == 1, "the loops around e" + std::to_string(e) + " take every element of " +
                             axis.name + ", the innermost has step 1");
    }
  }

  /// The statement at `place` finds the register that the Compute of `e` makes: it stands in the same repeated loops,
  /// the same unrolled ones, and (`onLanes`) on the same lanes and units; past the reduced loops where `past`.
  void sameRegister(const Place &compute, const Place &place, int e, bool onLanes, bool past,
                    const std::string &who) {
    using Key =
        std::tuple<AxisId, LoopKind, int64_t, int64_t>; // step, and that of the loop around it
    auto held = [&](const Place &p) {
      std::vector<Key> keys;
      std::map<AxisId, int64_t> around;
      for (const TreeNode *loop : p.loops) {
        const AxisUse *use = useOf(*loop, e);
        if (!use || use->reduction)
          continue;
        const bool parallel =
            loop->loop == LoopKind::Lane || (loop->loop == LoopKind::Unit && schedule.units > 1);
        if (loop->loop == LoopKind::Unroll || (onLanes && parallel))
          keys.push_back({loop->axis, loop->loop, loop->step, around[loop->axis]});
        around[loop->axis] = loop->step;
      }
      std::sort(keys.begin(), keys.end());
      return keys;
    };
    for (const TreeNode *loop : compute.loops) {
      const bool reduced = reduces(*loop, e);
      require(reduced || !repeats(*loop) || place.isInside(loop),
              who + " stand in one " + nameOf(*loop) + ", as their register does");
      require(!reduced || !past || !place.isInside(loop),
              "the " + nameOf(*loop) + " that sums e" + std::to_string(e) +
                  " ends before other statements take its result");
    }
    require(held(compute) == held(place),
            who + " stand in the same unroll, lane and unit loops, as their register does");
  }

  const EdgeLevel *edgeOf(TensorId t) const {
    for (const EdgeLevel &edge : schedule.edges)
      if (edge.tensor == t)
        return &edge;
    return nullptr;
  }

  /// True if the read's index along `position` of its maker is the reader's own value of the same schedule axis.
  bool readsOwn(int reader, NodeId read, int maker, int position) const {
    const Equation &e = *equations[reader];
    const std::vector<NodeId> indices = indexOperands(e.body[read]);
    if (position >= static_cast<int>(indices.size()))
      return false;
    const Scalar &index = e.body[indices[position]];
    if (index.op != ScalarOp::Axis)
      return false;
    const AxisId a = axisOf(schedule, *equations[maker], maker, position);
    if (a < 0 || axisOf(schedule, e, reader, index.index) != a)
      return false;
    const std::vector<int> &made = schedule.axes[a].in(maker)->positions;
    const std::vector<int> &here = schedule.axes[a].in(reader)->positions;
    return std::find(made.begin(), made.end(), position) - made.begin() ==
           std::find(here.begin(), here.end(), index.index) - here.begin();
  }

  /// What one equation makes and another reads is made before, and by the same block and turn of the loops that both
  /// stand in; from a register it is read in the loops that it was made in.
  void verifyRead(int reader, NodeId read) {
    const TensorId t = equations[reader]->body[read].index;
    for (int maker = 0; maker < static_cast<int>(equations.size()); ++maker) {
      const Equation &made = *equations[maker];
      if (maker == reader || std::count(made.outputs.begin(), made.outputs.end(), t) == 0)
        continue;
      const std::string who =
          "e" + std::to_string(reader) + " reads what e" + std::to_string(maker) + " makes";
      const Place *compute = nullptr, *last = nullptr;
      for (const Place &place : places) {
        const LeafKind leaf = place.leaf->leaf;
        if (place.leaf->target != maker || leaf == LeafKind::Stage || leaf == LeafKind::Carry ||
            place.leaf->isBorder() || leaf == LeafKind::Init)
          continue;
        last = &place;
        if (!compute && leaf == LeafKind::Compute)
          compute = &place;
      }
      if (!last)
        continue;
      const EdgeLevel *edge = edgeOf(t);
      for (const Place &place : places) {
        const bool stages = place.leaf->leaf == LeafKind::Stage;
        if (stages ? schedule.operands[place.leaf->target].equation != reader ||
                         readsOf(*equations[reader])[schedule.operands[place.leaf->target].read] !=
                             read
                   : place.leaf->leaf != LeafKind::Compute || place.leaf->target != reader)
          continue;
        require(last->order < place.order, who + " after it is made");
        for (const TreeNode *loop : last->loops)
          if (repeats(*loop) && place.isInside(loop))
            ownTurn(*loop, reader, read, maker, who);
        // A level above registers without a store: one is made of the register, in front of the reader.
        const bool held =
            edge && (edge->level == MemLevel::Register || (made.kind == EquationKind::Reduction &&
                                                           find(LeafKind::Store, maker).empty()));
        if (compute && held) {
          sameRegister(*compute, place, maker, true, true, who + " in a register; both");
          for (size_t p = 0; p < made.axes.size() && static_cast<int>(p) < made.numSpatial; ++p)
            require(made.axes[p].extent.isConst(1) ||
                        readsOwn(reader, read, maker, static_cast<int>(p)),
                    who + " in a register at its own point");
        }
      }
    }
  }

  /// Blocks run in any order and turns one after the other: of a value that each makes a part of, a statement in the
  /// same loop reads that part.
  void ownTurn(const TreeNode &loop, int reader, NodeId read, int maker, const std::string &who) {
    const AxisUse *use = useOf(loop, maker);
    if (!use)
      return; // each block or turn makes all of it
    bool own = !use->reduction;
    for (int position : use->positions)
      own = own && readsOwn(reader, read, maker, position);
    require(own, who + " in its own turn of the " + nameOf(loop));
  }

  const Schedule &schedule;
  std::vector<const Equation *> equations;
  std::vector<Place> places;
  BrokenRules broken;
};

} // namespace

std::vector<std::string> flowProblems(const Schedule &schedule, const ExprProgram &pattern) {
  return Flow(schedule, pattern).run();
}

} // namespace fusec::tiling
