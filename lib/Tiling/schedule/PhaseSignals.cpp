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
#include "Tiling/schedule/BlockRanges.h"
#include "Tiling/schedule/FlatAccess.h"
#include "fusec/bundle_format.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace fusec::tiling {

namespace {

/// A part of a phase: the loops over its blocks, and the equations inside.
struct Part {
  size_t phase = 0, part = 0;
  std::vector<const TreeNode *> blocks; // outermost first
  std::set<int> equations;
};

std::vector<Part> partsOfPhases(const Schedule &schedule) {
  std::vector<Part> parts;
  const std::vector<std::span<const TreeNode>> phases = phasesOf(schedule.tree);
  for (size_t p = 0; p < phases.size(); ++p) {
    auto add = [&](size_t number, std::span<const TreeNode> nodes) {
      Part part{p, number, {}, equationsIn(nodes, schedule)};
      while (nodes.size() == 1 && nodes[0].isLoop && nodes[0].loop == LoopKind::Block) {
        part.blocks.push_back(&nodes[0]);
        nodes = nodes[0].children;
      }
      parts.push_back(std::move(part));
    };
    if (isPack(phases[p]))
      for (size_t n = 0; n < phases[p].size(); ++n)
        add(n, phases[p].subspan(n, 1));
    else
      add(0, phases[p]);
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
      : bound(bound), schedule(bound.schedule()), pattern(bound.program()),
        equations(bound.equations()), parts(partsOfPhases(schedule)) {
    for (const TreeNode &node : schedule.tree)
      if (node.isBorder()) {
        firstSideBySide.push_back(node.leaf == LeafKind::Counters ? firstSideBySide.back()
                                                                  : firstSideBySide.size());
      }
  }

  PhaseSignals run() {
    if (!hasCounters(schedule.tree))
      return {};
    if (bound.scan())
      return failed("a scan's steps have barriers between them");
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
    if (countingSteps() > double(kMostCountingSteps) / 2)
      return failed("blocks are too many to prove that each counter gets what it waits for");
    return std::move(result);
  }

private:
  static bool hasCounters(const std::vector<TreeNode> &nodes) {
    return std::any_of(nodes.begin(), nodes.end(), [](const TreeNode &node) {
      return (!node.isLoop && node.leaf == LeafKind::Counters) || hasCounters(node.children);
    });
  }

  static PhaseSignals failed(std::string why) {
    PhaseSignals none;
    none.problems.push_back(std::move(why));
    return none;
  }

  double optOf(const DimExpr &size) const {
    return double(size.evaluate(bound.symbols()).value_or(INT64_MAX));
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
      for (const TreeNode *block : part.blocks)
        blocks *= optOf(tripOf(*block));
      const double choices = double(part.part + 1); // of the part
      ofPhase[part.phase] += blocks * (each + choices);
    }
    double most = 0;
    for (size_t phase : counting)
      most = std::max(most, ofPhase.at(phase));
    return most;
  }

  int64_t mostOf(const DimExpr &count) const {
    const int64_t last = rangeOfExtent(count, pattern.symbols).max;
    return last == INT64_MAX ? last : last + 1;
  }

  DimExpr tripOf(const TreeNode &block) const { return bound.trip(block); }

  void find(size_t maker, size_t reader) {
    Need need{maker, reader, {}, {}, true};
    need.bounds.symbolTable = pattern.symbols;
    for (const TreeNode *block : parts[reader].blocks)
      need.bounds.axisRanges.push_back(rangeOfExtent(tripOf(*block), pattern.symbols));
    need.tiles.resize(parts[maker].blocks.size());
    for (int r : parts[reader].equations)
      for (NodeId read : readsOf(*equations[r]))
        for (int m : parts[maker].equations) {
          const std::vector<TensorId> &made = equations[m]->outputs;
          if (std::count(made.begin(), made.end(), equations[r]->body[read].index) != 0)
            take(need, m, r, read);
        }
    if (!need.isFirst)
      needs.push_back(std::move(need));
  }

  /// The tiles that one read touches, added to those of the others.
  void take(Need &need, int maker, int reader, NodeId read) {
    const Equation &e = *equations[reader];
    const std::vector<NodeId> indices = indexOperands(e.body[read]);
    for (size_t k = 0; k < need.tiles.size(); ++k) {
      const TreeNode &block = *parts[need.maker].blocks[k];
      const AxisUse *use = bound.use(block.axis, maker);
      if (use && use->reduction) {
        result.problems.push_back("blocks share the sums of e" + std::to_string(maker) +
                                  ", which have no tile of their own");
        return;
      }
      std::optional<Bounds> tiles;
      if (use) {
        std::vector<NodeId> digits;
        std::vector<DimExpr> extents;
        for (int position : use->positions) {
          digits.push_back(indices[static_cast<size_t>(position)]);
          extents.push_back(equations[maker]->axes[static_cast<size_t>(position)].extent);
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
    const std::vector<NodeId> reads = readsOf(*equations[reader]);
    return std::any_of(
        schedule.operands.begin(), schedule.operands.end(), [&](const Operand &operand) {
          return operand.equation == reader && reads[static_cast<size_t>(operand.read)] == read &&
                 operand.level == MemLevel::Shared && operand.digits[0].index >= 0;
        });
  }

  /// The loop's iterations that hold these values of its axis; where a read is suppressed past the axis' ends there are
  /// none.
  Bounds tilesOf(Body &body, const Bounds &values, const TreeNode &block) const {
    const NodeId step = body.index(block.step), zero = body.index(0),
                 last = body.dim(tripOf(block) - DimExpr(1));
    return {body.binary(ScalarOp::Max, body.binary(ScalarOp::FloorDiv, values.first, step), zero),
            body.binary(ScalarOp::Min, body.binary(ScalarOp::FloorDiv, values.second, step), last)};
  }

  /// A counter for each tile of the axes of which some reader needs less than all, as far as there is room.
  void addSet(size_t maker, int64_t room) {
    const Part &part = parts[maker];
    SignalSet set{part.phase, part.part, {}, {}, 1, 1};
    for (size_t k = 0; k < part.blocks.size(); ++k) {
      const DimExpr trip = tripOf(*part.blocks[k]);
      const bool matters = std::any_of(needs.begin(), needs.end(), [&](const Need &need) {
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
  const ExprProgram &pattern;
  const std::vector<const Equation *> &equations;
  const std::vector<Part> parts;
  std::vector<size_t> firstSideBySide = {0}; // of each phase: the first one that no barrier ends
  std::vector<Need> needs;
  PhaseSignals result;
};

} // namespace

PhaseSignals phaseSignals(const BoundSchedule &bound) { return Finder(bound).run(); }

} // namespace fusec::tiling
