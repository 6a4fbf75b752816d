// Finds the blocks of earlier phases that a block needs, from the access maps.
//
//   block m:16 { block n:64 { .. compute e0 } }     # 8 x 12 blocks make e0 [i, j], i by m and j by n
//   counters
//   block r:4 { .. compute e1 }                     # e1 [i] sums %e0[i, j] over j
//
// Block r of the second phase computes rows 4r to 4r + 3 and reads these rows of e0, with all j: blocks m = 4r floordiv
// 16 to (4r + 3) floordiv 16, whatever n. So there are 8 counters, one for each m; 12 blocks raise each, and block r
// waits for the counters of its rows. An index goes through interval arithmetic over what the block's loops leave open;
// where that does not see through it (a gather), the block waits for all tiles of the axis, which is always right.
#include "Tiling/schedule/PhaseSignals.h"

#include "Gir/Scope.h"
#include "Support/OptValues.h"
#include "Tiling/schedule/Message.h"
#include "fusec/bundle_format.h"

#include <algorithm>
#include <map>
#include <set>

namespace fusec::tiling {

namespace {

/// Least and greatest value, inclusive.
using Bounds = std::pair<NodeId, NodeId>;

/// Bounds of index expressions of one equation over what one block computes of it, by interval arithmetic over what the
/// loops over blocks leave open. Made as nodes of `out`, in which Axis k is the number of the k-th of these loops.
class BlockRanges {
public:
  /// `blocks`: the loops over blocks around the equation, which has this number in the schedule. `boxes`: of what is
  /// staged for it, boxes (StagedTile.h) that have room for any place where a tile of a fused axis may begin.
  BlockRanges(const BoundSchedule &bound, const Loops &blocks, int number, bool boxes, Body &out)
      : bound(bound), blocks(blocks), number(number), equation(bound.equation(number)),
        boxes(boxes), out(out) {}

  /// The bounds of a number whose digits are these indices, outermost first. nullopt if they are not understood, or no
  /// block loop matters to them.
  std::optional<Bounds> ofDigits(const std::vector<NodeId> &indices,
                                 const std::vector<DimExpr> &extents) {
    if (std::optional<Bounds> whole = asWholeAxis(indices, extents))
      return hasAxis(whole->first) ? whole : std::nullopt;
    Bounds sum{out.index(0), out.index(0)};
    for (size_t d = 0; d < indices.size(); ++d) {
      const std::optional<Bounds> digit = bounds(indices[d]);
      if (!digit)
        return std::nullopt;
      for (auto [total, own] :
           {std::pair{&sum.first, digit->first}, std::pair{&sum.second, digit->second}})
        *total =
            out.binary(ScalarOp::Add, out.binary(ScalarOp::Mul, *total, out.dim(extents[d])), own);
    }
    return hasAxis(sum.first) || hasAxis(sum.second) ? std::optional(sum) : std::nullopt;
  }

private:
  bool hasAxis(NodeId id) const {
    const std::vector<NodeId> all = out.reachable({id});
    return std::ranges::any_of(all, [&](NodeId n) { return out[n].op == ScalarOp::Axis; });
  }

  /// The tile that the block loop over a schedule's axis leaves to one block. It is whole even where the extent cuts
  /// it, as staged tiles are.
  std::optional<Bounds> tileOf(AxisId axis) {
    for (size_t k = 0; k < blocks.size(); ++k) {
      if (blocks[k]->axis != axis)
        continue;
      const int64_t step = blocks[k]->step;
      const NodeId first =
          out.binary(ScalarOp::Mul, out.axis(static_cast<int32_t>(k)), out.index(step));
      const NodeId end = out.binary(ScalarOp::Add, first, out.index(step - 1));
      return Bounds{first, end};
    }
    return std::nullopt;
  }

  /// The indices are all positions of one of the schedule's axes, in its order.
  std::optional<Bounds> asWholeAxis(const std::vector<NodeId> &indices,
                                    const std::vector<DimExpr> &extents) {
    std::vector<int> positions;
    for (size_t d = 0; d < indices.size(); ++d) {
      const Scalar &index = equation.body[indices[d]];
      if (index.op != ScalarOp::Axis ||
          equation.axes[static_cast<size_t>(index.index)].extent != extents[d])
        return std::nullopt;
      positions.push_back(index.index);
    }
    const AxisId a = bound.axisOf(number, positions.front());
    const AxisUse *use = bound.use(a, number);
    return use && use->positions == positions ? tileOf(a) : std::nullopt;
  }

  Bounds axis(int position) {
    const DimExpr &extent = equation.axes[static_cast<size_t>(position)].extent;
    const Bounds all{out.index(0), last(extent)};
    const AxisId a = bound.axisOf(number, position);
    const std::optional<Bounds> tile = tileOf(a);
    const AxisUse *use = bound.use(a, number);
    // Along an axis that is not the first one the tile may go over from one row to the next.
    if (!tile || !use || use->positions.front() != position)
      return all;
    DimExpr inner(1);
    for (size_t p = 1; p < use->positions.size(); ++p)
      inner = inner * equation.axes[static_cast<size_t>(use->positions[p])].extent;
    NodeId end = tile->second;
    if (boxes)
      end = out.binary(ScalarOp::Add, end, last(inner));
    return {out.binary(ScalarOp::FloorDiv, tile->first, out.dim(inner)),
            out.binary(ScalarOp::FloorDiv, end, out.dim(inner))};
  }

  /// A constant or a size above 0.
  std::optional<DimExpr> positive(NodeId id) const {
    const Scalar &s = equation.body[id];
    if (s.op == ScalarOp::Const && !isFloat(s.type) && s.imm > 0)
      return DimExpr(s.imm);
    return s.op == ScalarOp::Dim ? std::optional(s.dim) : std::nullopt;
  }

  std::optional<Bounds> bounds(NodeId id) {
    const Scalar &s = equation.body[id];
    switch (s.op) {
    case ScalarOp::Axis: return axis(s.index);
    case ScalarOp::Const: return Bounds{out.index(s.imm), out.index(s.imm)};
    case ScalarOp::Dim: return Bounds{out.dim(s.dim), out.dim(s.dim)};
    case ScalarOp::Add:
    case ScalarOp::Sub:
    case ScalarOp::Min:
    case ScalarOp::Max: {
      const std::optional<Bounds> a = bounds(s.args[0]), b = bounds(s.args[1]);
      if (!a || !b)
        return std::nullopt;
      const bool turns = s.op == ScalarOp::Sub;
      return Bounds{out.binary(s.op, a->first, turns ? b->second : b->first),
                    out.binary(s.op, a->second, turns ? b->first : b->second)};
    }
    case ScalarOp::Mul:
    case ScalarOp::FloorDiv: {
      if (const Scalar &by = equation.body[s.args[1]];
          s.op == ScalarOp::Mul && by.op == ScalarOp::Const && by.imm < 0) {
        const std::optional<Bounds> a = bounds(s.args[0]);
        if (!a)
          return std::nullopt;
        return Bounds{out.binary(s.op, a->second, out.index(by.imm)),
                      out.binary(s.op, a->first, out.index(by.imm))};
      }
      std::optional<DimExpr> by = positive(s.args[1]);
      const bool swapped = !by && s.op == ScalarOp::Mul;
      if (swapped)
        by = positive(s.args[0]);
      const std::optional<Bounds> a = by ? bounds(s.args[swapped ? 1 : 0]) : std::nullopt;
      if (!a)
        return std::nullopt;
      return Bounds{out.binary(s.op, a->first, out.dim(*by)),
                    out.binary(s.op, a->second, out.dim(*by))};
    }
    case ScalarOp::FloorMod:
      if (const std::optional<DimExpr> by = positive(s.args[1]))
        return Bounds{out.index(0), last(*by)};
      return std::nullopt;
    default: return std::nullopt;
    }
  }

  NodeId last(const DimExpr &extent) { return out.dim(extent - DimExpr(1)); }

  const BoundSchedule &bound;
  const Loops &blocks;
  const int number;
  const Equation &equation;
  const bool boxes;
  Body &out;
};

/// A part of a phase: the loops over its blocks, and the equations inside.
struct Part {
  size_t phase = 0, part = 0;
  Loops blocks; // outermost first
  std::set<int> equations;
};

std::vector<Part> partsOfPhases(const BoundSchedule &bound) {
  std::vector<Part> parts;
  for (size_t p = 0; p < bound.phases().size(); ++p)
    for (size_t number = 0; std::span<const TreeNode> nodes : sideBySide(bound.phases()[p])) {
      parts.push_back({p, number++, {}, equationsIn(nodes, bound.schedule)});
      while (const LoopNode *block = onlyBlockLoop(nodes)) {
        parts.back().blocks.push_back(block);
        nodes = block->children;
      }
    }
  return parts;
}

/// What one part needs of another one.
struct Need {
  size_t maker = 0, reader = 0; // parts
  Body bounds;
  std::vector<std::optional<Bounds>> tiles; // one a block loop of the maker; nullopt: all
  bool isFirst = true;                      // no read yet
};

class Finder {
public:
  explicit Finder(const BoundSchedule &bound)
      : bound(bound), schedule(bound.schedule), parts(partsOfPhases(bound)) {
    for (const TreeNode &node : schedule.tree)
      if (node.isBorder()) {
        firstSideBySide.push_back(node.leaf(LeafKind::Counters) ? firstSideBySide.back()
                                                                : firstSideBySide.size());
      }
  }

  PhaseSignals run() {
    if (!anyNode(schedule.tree, [](const TreeNode &n) { return n.leaf(LeafKind::Counters); }))
      return {};
    if (bound.scan())
      return failed("a scan's phases have barriers between them, given counters");
    for (size_t reader = 0; reader < parts.size(); ++reader)
      for (size_t maker = 0; maker < reader; ++maker)
        if (parts[maker].phase < parts[reader].phase &&
            parts[maker].phase >= firstSideBySide[parts[reader].phase])
          find(maker, reader);
    if (!result.problems.empty())
      return failed(result.problems.front());
    std::set<size_t> makers;
    for (const Need &need : needs)
      makers.insert(need.maker);
    std::map<size_t, size_t> setOf; // maker -> set
    for (size_t maker : makers) {
      setOf[maker] = result.sets.size();
      addSet(maker, int64_t{FUSEC_GRID_COUNTERS} / int64_t(makers.size()));
    }
    for (Need &need : needs)
      addWait(need, setOf.at(need.maker));
    if (const double steps = countingSteps(); steps > double(kMostCountingSteps) / 2)
      return failed(message(bound, "counters stand where at most ", kMostCountingSteps / 2,
                            " steps prove that each gets what is waited for, given ",
                            static_cast<int64_t>(std::min(steps, 9e18)),
                            "; put a barrier in their place"));
    return std::move(result);
  }

private:
  static PhaseSignals failed(std::string why) {
    PhaseSignals none;
    none.problems.push_back(std::move(why));
    return none;
  }

  double optOf(const DimExpr &size) const {
    return double(size.evaluate(bound.program.symbols).value_or(INT64_MAX));
  }

  /// An upper bound of the statements that Gir/VerifyCounters.cpp visits in the phase with the most, over all its
  /// blocks and with those that choose a block's part. Phases without signals and waits have none.
  double countingSteps() const {
    std::map<size_t, double> ofPhase;
    std::set<size_t> counting;
    for (const Part &part : parts) {
      double each = 0;
      for (const SignalSet &set : result.sets)
        each += set.phase == part.phase && set.part == part.part;
      for (const SignalWait &wait : result.waits)
        if (wait.phase == part.phase && wait.part == part.part) {
          double rows = 1; // of tiles, the last axis along each
          const std::vector<DimExpr> &trips = result.sets[wait.set].trips;
          for (size_t i = 0; i + 1 < trips.size(); ++i)
            rows *= optOf(trips[i]);
          each += 2 * rows + 1;
        }
      if (each > 0)
        counting.insert(part.phase);
      double blocks = 1;
      for (const LoopNode *block : part.blocks)
        blocks *= optOf(bound.trip(*block));
      const double choices = double(part.part + 1); // of the part
      ofPhase[part.phase] += blocks * (each + choices);
    }
    double most = 0;
    for (size_t phase : counting)
      most = std::max(most, ofPhase.at(phase));
    return most;
  }

  int64_t mostOf(const DimExpr &count) const {
    const int64_t last = rangeOfExtent(count, bound.program.expr.symbols).max;
    return last == INT64_MAX ? last : last + 1;
  }

  void find(size_t maker, size_t reader) {
    Need need{maker, reader, {}, {}, true};
    need.bounds.symbolTable = bound.program.expr.symbols;
    for (const LoopNode *block : parts[reader].blocks)
      need.bounds.axisRanges.push_back(
          rangeOfExtent(bound.trip(*block), bound.program.expr.symbols));
    need.tiles.resize(parts[maker].blocks.size());
    for (int r : parts[reader].equations)
      for (NodeId read : bound.facts(r).reads)
        if (const int m = bound.program.producer(bound.equation(r).body[read].index);
            parts[maker].equations.count(m) != 0)
          take(need, m, r, read);
    if (!need.isFirst)
      needs.push_back(std::move(need));
  }

  /// The tiles that one read touches, added to those of the others.
  void take(Need &need, int maker, int reader, NodeId read) {
    const Equation &e = bound.equation(reader);
    const std::vector<NodeId> indices = indexOperands(e.body[read]);
    for (size_t k = 0; k < need.tiles.size(); ++k) {
      const LoopNode &block = *parts[need.maker].blocks[k];
      const AxisUse *use = bound.use(block.axis, maker);
      if (use && use->reduction) {
        result.problems.push_back(message(bound, "counters are raised by blocks with tiles of e",
                                          maker, " of their own, given ", block,
                                          ", which sums over it"));
        return;
      }
      std::optional<Bounds> tiles;
      if (use) {
        std::vector<NodeId> digits;
        std::vector<DimExpr> extents;
        for (int position : use->positions) {
          digits.push_back(indices[static_cast<size_t>(position)]);
          extents.push_back(bound.equation(maker).axes[static_cast<size_t>(position)].extent);
        }
        tiles =
            BlockRanges(bound, parts[need.reader].blocks, reader, isBox(reader, read), need.bounds)
                .ofDigits(digits, extents);
      }
      if (tiles)
        tiles = tilesOf(need.bounds, *tiles, block);
      if (need.isFirst)
        need.tiles[k] = tiles;
      else if (need.tiles[k] && tiles)
        need.tiles[k] = {need.bounds.binary(ScalarOp::Min, need.tiles[k]->first, tiles->first),
                         need.bounds.binary(ScalarOp::Max, need.tiles[k]->second, tiles->second)};
      else
        need.tiles[k] = std::nullopt;
    }
    need.isFirst = false;
  }

  /// True where the read is staged by a box of the tensor's indices.
  bool isBox(int reader, NodeId read) const {
    const Operand *operand = bound.operand(reader, bound.facts(reader).ordinalOf(read));
    return operand && operand->level == MemLevel::Shared && operand->digits[0].index >= 0;
  }

  /// The loop's iterations that hold these values of its axis; where a read is suppressed past the axis' ends there are
  /// none.
  Bounds tilesOf(Body &body, const Bounds &values, const LoopNode &block) const {
    const NodeId step = body.index(block.step), zero = body.index(0),
                 last = body.dim(bound.trip(block) - DimExpr(1));
    return {body.binary(ScalarOp::Max, body.binary(ScalarOp::FloorDiv, values.first, step), zero),
            body.binary(ScalarOp::Min, body.binary(ScalarOp::FloorDiv, values.second, step), last)};
  }

  /// A counter for each tile of the axes of which some reader needs less than all, as far as there is room.
  void addSet(size_t maker, int64_t room) {
    const Part &part = parts[maker];
    SignalSet set{part.phase, part.part, {}, {}, 1, 1};
    for (size_t k = 0; k < part.blocks.size(); ++k) {
      const DimExpr trip = bound.trip(*part.blocks[k]);
      const bool matters = std::ranges::any_of(needs, [&](const Need &need) {
        return need.maker == maker && need.tiles[k].has_value();
      });
      if (matters && mostOf(set.count * trip) <= room) {
        set.axes.push_back(k);
        set.trips.push_back(trip);
        set.count = set.count * trip;
      } else {
        set.signals = set.signals * trip;
      }
    }
    result.sets.push_back(std::move(set));
  }

  void addWait(Need &need, size_t set) {
    SignalWait wait{parts[need.reader].phase, parts[need.reader].part, set, {}, {}};
    for (size_t i = 0; i < result.sets[set].axes.size(); ++i) {
      const std::optional<Bounds> &tiles = need.tiles[result.sets[set].axes[i]];
      wait.tiles.push_back(tiles ? *tiles
                                 : Bounds{need.bounds.index(0),
                                          need.bounds.dim(result.sets[set].trips[i] - DimExpr(1))});
    }
    wait.bounds = std::move(need.bounds);
    result.waits.push_back(std::move(wait));
  }

  const BoundSchedule &bound;
  const Schedule &schedule;
  const std::vector<Part> parts;
  std::vector<size_t> firstSideBySide = {0}; // of each phase: the first one that no barrier ends
  std::vector<Need> needs;
  PhaseSignals result;
};

} // namespace

PhaseSignals phaseSignals(const BoundSchedule &bound) { return Finder(bound).run(); }

} // namespace fusec::tiling
