// The rules that tie a schedule's statements to each other: an accumulator is a register of the loops around its
// Compute, and whoever sets, folds, stores or reads it stands in the same ones.
#include "Tiling/verify/Rules.h"

#include "Tiling/schedule/Schedule.h"
#include "Tiling/schedule/StagedTile.h"
#include "Tiling/verify/RuleChecker.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace fusec::tiling {

namespace {

/// Copies of a statement: what the compiler writes out, and with it the time that it takes, is bounded.
constexpr int64_t kMaxCopies = 256;

bool repeats(const LoopNode &loop) {
  return loop.kind == LoopKind::Block || loop.kind == LoopKind::Seq;
}

/// A leaf that stands in the lanes around a statement, beside it; null where there is none. A combine goes over lanes
/// itself, with barriers between: those around it only say whose elements it folds.
const LeafNode *besideInLanes(const Statement &statement, const std::vector<Statement> &all) {
  const LoopNode *lanes = innermost(statement.loops, LoopKind::Lane);
  const auto beside = std::ranges::find_if(all, [&](const Statement &other) {
    return lanes && other.leaf != statement.leaf && other.isInside(lanes);
  });
  return beside == all.end() ? nullptr : beside->leaf;
}

class Flow : RuleChecker {
public:
  explicit Flow(const BoundSchedule &bound)
      : RuleChecker(bound), schedule(bound.schedule), places(bound.statements()) {}

  std::vector<std::string> run() {
    for (const Statement &place : places)
      verifyCopies(place);
    for (int e = 0; e < bound.numEquations(); ++e)
      if (bound.facts(e).form != EquationForm::TopK)
        verifyEquation(e);
    for (int e = 0; e < bound.numEquations(); ++e)
      for (NodeId read : bound.facts(e).reads)
        verifyRead(e, read);
    return list();
  }

  /// Values that every reader finds in the registers in which they are made; what nobody reads is none.
  std::vector<TensorId> readInRegisters() {
    std::map<TensorId, bool> fits;
    for (int reader = 0; reader < bound.numEquations(); ++reader)
      for (NodeId read : bound.facts(reader).reads) {
        const TensorId t = bound.equation(reader).body[read].index;
        const int maker = bound.program.producer(t);
        if (maker < 0)
          continue;
        const std::vector<const Statement *> makes = bound.statements(LeafKind::Compute, maker),
                                             reads = bound.statements(LeafKind::Compute, reader);
        const bool plain = makes.size() == 1 && reads.size() == 1 &&
                           bound.equation(maker).outputs.size() == 1 &&
                           !bound.operand(reader, bound.facts(reader).ordinalOf(read)) &&
                           (bound.facts(maker).isPlain() || bound.facts(maker).reduces());
        if (plain)
          readsRegister(*makes[0], *reads[0], reader, read, maker);
        auto it = fits.emplace(t, true).first;
        it->second = it->second && plain && none();
        clear();
      }
    for (const Equation *e : bound.program.equations) {
      for (TensorId t : e->opaqueInputs)
        fits.erase(t);
      fits.erase(e->base);
    }
    std::vector<TensorId> found;
    for (auto [t, all] : fits)
      if (all)
        found.push_back(t);
    return found;
  }

private:
  bool reduces(const LoopNode &loop, int equation) const {
    const AxisUse *use = bound.use(loop.axis, equation);
    return use && use->reduction;
  }

  void verifyCopies(const Statement &place) {
    std::map<AxisId, DimExpr> tiles;
    int64_t copies = 1;
    for (const LoopNode *loop : place.loops) {
      if (loop->axis == kStepAxis)
        continue;
      auto [tile, first] = tiles.try_emplace(loop->axis, schedule.axes[loop->axis].extent);
      if (loop->kind == LoopKind::Unroll && tile->second.isConst() && copies <= kMaxCopies)
        copies *= std::min((tile->second.constValue() - 1) / loop->step + 1, kMaxCopies + 1);
      tile->second = DimExpr(loop->step);
    }
    require(copies <= kMaxCopies, "unroll loops make at most ", kMaxCopies,
            " copies of a statement, given more of ", place);
  }

  void verifyEquation(int e) {
    const Equation &equation = bound.equation(e);
    const std::vector<const Statement *> computes = bound.statements(LeafKind::Compute, e);
    if (computes.empty())
      return;
    for (const Statement *compute : computes)
      covers(*compute, e, true);
    if (bound.facts(e).form == EquationForm::Map && isInMemory(e))
      oneWriter(*computes[0], e);
    if (!bound.facts(e).reduces())
      return;
    const Statement &compute = *computes[0];
    bool shared = false; // partial results in several lanes or units
    for (const LoopNode *loop : compute.loops) {
      require(loop->kind != LoopKind::Block || !reduces(*loop, e), "blocks share no sum, given ",
              *loop, " around ", *compute.leaf, ", which sums over it; make it seq");
      shared =
          shared ||
          ((loop->kind == LoopKind::Lane || (loop->kind == LoopKind::Unit && schedule.units > 1)) &&
           reduces(*loop, e));
    }
    require(!shared || bound.has(LeafKind::Combine, e), "e", e,
            ", which lanes or units sum together, has a combine, given none");
    const bool leaves = std::ranges::any_of(
        equation.outputs, [&](TensorId t) { return bound.level(t) == MemLevel::Global; });
    require(!leaves || bound.has(LeafKind::Store, e), "e", e,
            " has a store, or its result an edge in register or shared, given neither");
    size_t last = computes.back()->order;
    for (LeafKind leaf : {LeafKind::Combine, LeafKind::Store}) {
      const std::vector<const Statement *> found = bound.statements(leaf, e);
      for (const Statement *place : found) {
        require(found.size() <= 1, *place->leaf, " stands once, given ", found);
        if (const LeafNode *beside = besideInLanes(*place, places))
          require(leaf != LeafKind::Combine, *place->leaf,
                  " stands alone in lanes around it, given ", beside, " there too");
        require(place->order > last, "e", e,
                " has init, compute, combine and store in this order, given ", *place->leaf,
                " earlier");
        last = place->order;
      }
    }
    const std::vector<const Statement *> inits = bound.statements(LeafKind::Init, e);
    require(inits.size() == 1 && inits[0]->order < compute.order, "one init e", e,
            " stands before ", *compute.leaf, ", given ", inits,
            inits.size() == 1 ? ", behind it" : "");
    for (const Statement &place : places) {
      const LeafKind leaf = place.leaf->kind;
      if (place.leaf->equation != e || leaf == LeafKind::Correct)
        continue;
      if (leaf == LeafKind::Store) {
        covers(place, e, false);
        if (isInMemory(e))
          oneWriter(place, e);
      }
      if (leaf != LeafKind::Compute || place.leaf->rank > 0)
        sameRegister(compute, place, leaf == LeafKind::Store || leaf == LeafKind::Compute,
                     leaf != LeafKind::Compute);
    }
  }

  /// The loops around a statement take every point of its axes.
  void covers(const Statement &place, int e, bool reduction) {
    for (size_t a = 0; a < schedule.axes.size(); ++a) {
      const ScheduleAxis &axis = schedule.axes[a];
      const AxisUse *use = axis.in(e);
      if (!use || (use->reduction && !reduction) || axis.extent.isConst(1))
        continue;
      require(bound.tile(AxisId(a), place.loops).isConst(1), "the loops around ", *place.leaf,
              " take every element of ", axis, ", the innermost with step 1, given ",
              innermost(place.loops, AxisId(a)));
    }
  }

  bool isInMemory(int e) const {
    return std::ranges::any_of(bound.equation(e).outputs,
                               [&](TensorId t) { return bound.level(t) != MemLevel::Register; });
  }

  bool isFirstReader(const Statement &place, TensorId t) const {
    return std::none_of(places.begin(), places.begin() + place.order, [&](const Statement &before) {
      return readsValue(bound, *before.leaf, t);
    });
  }

  /// Threads side by side store elements of their own at `place`: what each of them has, one alone would have to.
  void oneWriter(const Statement &place, int e) {
    for (const LoopNode *loop : place.loops) {
      const bool parallel =
          loop->kind == LoopKind::Lane || (loop->kind == LoopKind::Unit && schedule.units > 1) ||
          (loop->kind == LoopKind::Block &&
           std::ranges::any_of(bound.equation(e).outputs,
                               [&](TensorId t) { return bound.level(t) == MemLevel::Global; }));
      const AxisUse *use = bound.use(loop->axis, e);
      require(!parallel || (use && !use->reduction), "one thread stores an element of e", e,
              ", given several at ", *place.leaf, " in ", *loop, "; store it outside of that loop");
    }
  }

  /// The statement at `place` finds the register that `compute` makes: it stands in the same repeated loops, the same
  /// unrolled ones but those over axes of which it names an element, and (`onLanes`) on the same lanes and units; past
  /// the reduced loops where `past`.
  void sameRegister(const Statement &compute, const Statement &place, bool onLanes, bool past,
                    const std::set<AxisId> &named = {}) {
    const int e = compute.leaf->equation;
    using Key =
        std::tuple<AxisId, LoopKind, int64_t, int64_t>; // step, and that of the loop around it
    auto held = [&](const Statement &p) {
      std::vector<Key> keys;
      std::map<AxisId, int64_t> around;
      for (const LoopNode *loop : p.loops) {
        const AxisUse *use = bound.use(loop->axis, e);
        if (!use || use->reduction || named.count(loop->axis) != 0)
          continue;
        const bool parallel =
            loop->kind == LoopKind::Lane || (loop->kind == LoopKind::Unit && schedule.units > 1);
        if (loop->kind == LoopKind::Unroll || (onLanes && parallel))
          keys.push_back({loop->axis, loop->kind, loop->step, around[loop->axis]});
        around[loop->axis] = loop->step;
      }
      std::ranges::sort(keys);
      return keys;
    };
    for (const LoopNode *loop : compute.loops) {
      const bool reduced = reduces(*loop, e);
      require(reduced || !repeats(*loop) || place.isInside(loop), *place.leaf,
              " has a register of ", *compute.leaf, " and stands in the same ", *loop,
              ", given inside ", place.loops);
      require(!reduced || !past || !place.isInside(loop), *loop, ", which sums e", e,
              ", ends before ", *place.leaf, " or begins behind it, given around it");
    }
    require(held(compute) == held(place), *place.leaf, " has a register of ", *compute.leaf,
            " and stands in the same unroll, lane and unit loops, given inside ", place.loops,
            ", and compute inside ", compute.loops);
  }

  /// True if the read's index along `position` of its maker is the reader's own value of the same schedule axis.
  bool readsOwn(int reader, NodeId read, int maker, int position) const {
    const Equation &e = bound.equation(reader);
    const std::vector<NodeId> indices = indexOperands(e.body[read]);
    if (position >= static_cast<int>(indices.size()))
      return false;
    const Scalar &index = e.body[indices[position]];
    if (index.op != ScalarOp::Axis)
      return false;
    const AxisId a = bound.axisOf(maker, position);
    if (a < 0 || bound.axisOf(reader, index.index) != a)
      return false;
    const std::vector<int> &made = bound.use(a, maker)->positions;
    const std::vector<int> &here = bound.use(a, reader)->positions;
    return std::ranges::find(made, position) - made.begin() ==
           std::ranges::find(here, index.index) - here.begin();
  }

  /// What one equation makes and another reads is made before, and by the same block and turn of the loops that both
  /// stand in; from a register it is read in the loops that it was made in.
  void verifyRead(int reader, NodeId read) {
    const TensorId t = bound.equation(reader).body[read].index;
    const int maker = bound.program.producer(t);
    if (maker < 0 || maker == reader)
      return;
    const Statement *compute = nullptr, *last = nullptr;
    for (const Statement &place : places) {
      const LeafKind leaf = place.leaf->kind;
      if (place.leaf->equation != maker || leaf == LeafKind::Init)
        continue;
      last = &place;
      if (!compute && leaf == LeafKind::Compute)
        compute = &place;
    }
    if (!last)
      return;
    const MemLevel level = bound.level(t);
    for (const Statement &place : places) {
      const bool stages = place.leaf->kind == LeafKind::Stage;
      if (equationOf(*place.leaf, schedule) != reader ||
          (stages ? bound.facts(reader).reads[schedule.operands[place.leaf->operand].read] != read
                  : place.leaf->kind != LeafKind::Compute))
        continue;
      require(last->order < place.order, *place.leaf, ", which reads ", nameOf(t),
              ", stands behind ", *last->leaf, ", given before it");
      for (const LoopNode *loop : last->loops)
        if (repeats(*loop) && place.isInside(loop))
          ownTurn(*loop, reader, read, maker);
      // A level above registers without a store: one is made of the register, in front of the reader.
      const bool held = level == MemLevel::Register ||
                        (level == MemLevel::Shared && bound.facts(maker).reduces() &&
                         !bound.has(LeafKind::Store, maker));
      if (!compute || !held)
        continue;
      readsRegister(*compute, place, reader, read, maker);
      if (level != MemLevel::Register && isFirstReader(place, t))
        oneWriter(place, maker); // where that store will stand
    }
  }

  const std::string &nameOf(TensorId t) const { return bound.program.tensor(t).name; }

  void readsRegister(const Statement &compute, const Statement &place, int reader, NodeId read,
                     int maker) {
    const Equation &made = bound.equation(maker);
    const std::string &value = nameOf(bound.equation(reader).body[read].index);
    require(bound.facts(maker).form != EquationForm::Map || made.outputs.size() == 1, "edge ",
            value, " is a register, which holds one result, given e", maker, " with ",
            made.outputs.size());
    std::set<AxisId> named;
    for (int p = 0; p < made.numSpatial; ++p) {
      const AxisId a = bound.axisOf(maker, p);
      const bool isNamed = a >= 0 && namedElement(bound, maker, a, reader, read).has_value();
      if (isNamed)
        named.insert(a);
      require(isNamed || made.axes[p].extent.isConst(1) || readsOwn(reader, read, maker, p), "e",
              reader, " reads ", value, " of e", maker,
              " in a register, at its own point, given another one at index ", p,
              "; a value that others read is shared or global");
    }
    sameRegister(compute, place, true, true, named);
  }

  /// Blocks run in any order and turns one after the other: of a value that each makes a part of, a statement in the
  /// same loop reads that part.
  void ownTurn(const LoopNode &loop, int reader, NodeId read, int maker) {
    const AxisUse *use = bound.use(loop.axis, maker);
    if (!use)
      return; // each block or turn makes all of it
    auto requireOwn = [&](bool own, auto... given) {
      require(own, "e", reader, " reads of e", maker, " inside ", loop,
              " what the same turn makes, given ", given..., "; end that loop between them");
    };
    requireOwn(!use->reduction, "a sum of which each turn makes a part");
    for (int position : use->positions)
      requireOwn(readsOwn(reader, read, maker, position), "what other turns make along its index ",
                 position);
  }

  const Schedule &schedule;
  const std::vector<Statement> &places;
};

} // namespace

std::vector<TensorId> readInRegisters(const BoundSchedule &bound) {
  return Flow(bound).readInRegisters();
}

std::vector<std::string> flowProblems(const BoundSchedule &bound) { return Flow(bound).run(); }

} // namespace fusec::tiling
