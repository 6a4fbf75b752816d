#include "Tiling/counts/OnChipStorage.h"

#include "Expr/Cascade.h"
#include "Gir/Liveness.h"
#include "Tiling/schedule/ReadReuse.h"
#include "Tiling/schedule/StagedTile.h"

#include <algorithm>
#include <map>
#include <set>

namespace fusec::tiling {

namespace {

using Chain = std::vector<const TreeNode *>; // loops around a statement, outermost first

class Storage {
public:
  explicit Storage(const BoundSchedule &bound)
      : bound(bound), schedule(bound.schedule()), pattern(bound.program()),
        equations(bound.equations()), whole(bound.scan() && !bound.gridScan()) {
    Chain chain;
    visit(schedule.tree, chain);
    for (size_t i = 0; i < leaves.size(); ++i)
      for (TensorId value : bound.valuesReadBy(*leaves[i]))
        readingLeaves[value].push_back(i);
    for (const auto &[equation, around] : computes)
      for (NodeId read : bound.facts(equation).reads)
        readers[equations[equation]->body[read].index].push_back(&around);
  }

  OnChipStorage run() {
    OnChipStorage out;
    std::vector<HeldRegisters> held;
    double lanePartials = 0; // of units and lanes: one equation's lie where another's did
    for (size_t e = 0; e < equations.size(); ++e) {
      const Equation &equation = *equations[e];
      auto at = computes.find(static_cast<int>(e));
      if (at == computes.end() || equation.kind == EquationKind::Opaque)
        continue;
      const bool reduces = equation.kind == EquationKind::Reduction;
      const DType type =
          reduces ? equation.accumulateType : pattern.tensors[equation.outputs[0]].type;
      if (reduces || bound.level(equation.outputs[0]) == MemLevel::Register)
        hold(static_cast<int>(e), copies(static_cast<int>(e), at->second), type, held);
      if (reduces && schedule.units > 1 && combines.count(static_cast<int>(e)) &&
          sharesReduction(schedule, static_cast<int>(e), at->second, LoopKind::Unit)) {
        const double ofLane = double(schedule.units) * double(sizeInBytes(type));
        if (lanesKeep(schedule, static_cast<int>(e), at->second))
          lanePartials = std::max(lanePartials, ofLane * schedule.lanes);
        else
          out.sharedBytes += ofLane;
      }
    }
    const ReuseStorage kept = reuseStorage(bound);
    for (const ReuseStorage::Value &value : kept.registers)
      held.push_back({live.closeOverLoops(keptRange(value)), value.registersPerThread});
    const std::vector<double> registers = heldAt(held, pointOf(leaves.size()));
    out.registersPerThread =
        kRegistersForAddresses + *std::max_element(registers.begin(), registers.end());
    out.sharedBytes += lanePartials + kept.sharedBytes;
    for (const auto &[operand, chain] : stages)
      if (!isStoreElided(bound, schedule.operands[operand]))
        out.sharedBytes += out.operands[operand] = stagedBytes(schedule.operands[operand], chain);
    for (const EdgeLevel &edge : schedule.edges)
      if (edge.level == MemLevel::Shared && !isStoreElided(bound, edge.tensor))
        out.sharedBytes += out.edges[edge.tensor] = edgeBytes(edge.tensor);
    return out;
  }

private:
  /// Where a leaf reads, of points as Gir has them (Liveness): it writes at the next one.
  static int pointOf(size_t leaf) { return 2 * static_cast<int>(leaf); }

  bool isOnce(const TreeNode &node, const Chain &around) const {
    return node.axis >= 0 && schedule.axes[node.axis].extent.isConst() &&
           tileOf(around, around.size(), node.axis) <= node.step;
  }

  void visit(const std::vector<TreeNode> &nodes, Chain &chain) {
    for (const TreeNode &node : nodes) {
      if (node.isLoop) {
        const int from = pointOf(leaves.size());
        const bool repeats =
            (node.loop == LoopKind::Seq || node.loop == LoopKind::Unroll) && !isOnce(node, chain);
        chain.push_back(&node);
        visit(node.children, chain);
        chain.pop_back();
        if (repeats)
          live.loops.push_back({from, pointOf(leaves.size()) - 1});
        continue;
      }
      leaves.push_back(&node);
      if (node.leaf == LeafKind::Compute)
        computes.emplace(node.target, chain);
      if (node.leaf == LeafKind::Store)
        stores.emplace(node.target, chain);
      if (node.leaf == LeafKind::Stage)
        stages.emplace(node.target, chain);
      if (node.leaf == LeafKind::Combine)
        combines.insert(node.target);
    }
  }

  LiveRange keptRange(const ReuseStorage::Value &value) const {
    LiveRange range;
    if (value.leaves.empty())
      range.include(0, pointOf(leaves.size()) - 1);
    for (size_t i = 0; i < leaves.size(); ++i)
      for (size_t k = 0; k < value.leaves.size(); ++k)
        if (leaves[i] == value.leaves[k]) {
          const int at = pointOf(i) + (k == 0 && value.stored);
          range.include(at, at);
        }
    return range;
  }

  /// The accumulators of an equation. Of a cascade's, those of another set of points and those that they stood on
  /// before (lower/CascadeLowering.h) are free when the threads' states have met.
  void hold(int equation, double elements, DType type, std::vector<HeldRegisters> &held) const {
    const Equation &e = *equations[equation];
    const LiveRange values = live.closeOverLoops(accumulatorRange(equation, true));
    const double registers = elements * double(registersFor(1, type));
    if (e.states.empty()) {
      held.push_back({values, registers});
      if (e.kind == EquationKind::Reduction && isArgMonoid(e.monoid))
        held.push_back({values, elements * double(registersFor(1, DType::I64))});
      return;
    }
    const std::vector<int> ranks = stateRanks(e);
    const auto others =
        double(ranks.size() + ranks.size() - std::count(ranks.begin(), ranks.end(), lastRank(e)));
    held.push_back({values, registers * double(ranks.size())});
    held.push_back({live.closeOverLoops(accumulatorRange(equation, false)), registers * others});
  }

  /// From the first statement that writes an accumulator to the last that reads it. With `values` to where the result
  /// is read: by a Store, and by those that need it where it stays in registers or no Store puts it elsewhere.
  LiveRange accumulatorRange(int equation, bool values) const {
    const std::vector<TensorId> &outputs = equations[equation]->outputs;
    const bool isMap = equations[equation]->kind != EquationKind::Reduction;
    const bool handsOn = values && (stores.count(equation) == 0 ||
                                    std::any_of(outputs.begin(), outputs.end(), [&](TensorId t) {
                                      return bound.level(t) == MemLevel::Register;
                                    }));
    LiveRange range;
    for (size_t i = 0; i < leaves.size(); ++i) {
      const TreeNode &leaf = *leaves[i];
      const int reads = pointOf(i), writes = reads + 1;
      if (leaf.isBorder() || leaf.leaf == LeafKind::Carry || leaf.leaf == LeafKind::Stage ||
          leaf.target != equation)
        continue;
      if (leaf.leaf != LeafKind::Store)
        range.include(leaf.leaf == LeafKind::Init || isMap ? writes : reads, writes);
      else if (values)
        range.include(reads, reads);
    }
    for (size_t o = 0; handsOn && o < outputs.size(); ++o)
      if (const auto it = readingLeaves.find(outputs[o]); it != readingLeaves.end())
        for (size_t leaf : it->second)
          range.include(pointOf(leaf), pointOf(leaf));
    return range;
  }

  int64_t tileOf(const Chain &chain, size_t length, AxisId axis) const {
    int64_t tile = bound.valueOf(schedule.axes[axis].extent);
    for (size_t i = 0; i < length; ++i)
      if (chain[i]->axis == axis)
        tile = chain[i]->step;
    return tile;
  }

  /// Elements of an equation's accumulator in each thread: one an iteration of the Unroll loops over spatial axes, and
  /// over the first reduced one where a Combine folds them.
  double copies(int equation, const Chain &chain) const {
    const Equation &e = *equations[equation];
    const bool folds =
        e.states.empty() && !isTupleMonoid(e.monoid) && combines.count(equation) != 0;
    double product = 1;
    for (size_t i = 0; i < chain.size(); ++i) {
      if (chain[i]->loop != LoopKind::Unroll || chain[i]->axis < 0)
        continue;
      const AxisUse *use = schedule.axes[chain[i]->axis].in(equation);
      if (use && use->reduction && !folds)
        continue;
      const int64_t tile = tileOf(chain, i, chain[i]->axis);
      product *= double((tile + chain[i]->step - 1) / chain[i]->step);
    }
    return product;
  }

  double stagedBytes(const Operand &operand, const Chain &chain) const {
    const Equation &e = *equations[operand.equation];
    const std::vector<int64_t> extents = stagedExtents(
        schedule, e, operand, [&](AxisId axis) { return tileOf(chain, chain.size(), axis); });
    double elements = 1;
    for (size_t d = 0; d < extents.size(); ++d)
      elements *= double(extents[d] + (d + 1 == extents.size() ? operand.padElements : 0));
    const TensorId tensor = e.body[readsOf(e)[operand.read]].index;
    return elements * double(sizeInBytes(pattern.tensors[tensor].type));
  }

  /// The tile of an inner value below the loops that its producer and its readers have in common; units and lanes share
  /// one.
  double edgeBytes(TensorId tensor) {
    const double size = double(sizeInBytes(pattern.tensors[tensor].type));
    int producer = -1;
    for (size_t e = 0; e < equations.size(); ++e)
      if (std::count(equations[e]->outputs.begin(), equations[e]->outputs.end(), tensor))
        producer = static_cast<int>(e);
    if (whole || producer < 0)
      return size * double(bound.valueOf(numElements(pattern.tensors[tensor].shape)));
    const auto &where =
        equations[producer]->kind == EquationKind::Reduction && stores.count(producer) ? stores
                                                                                       : computes;
    auto own = where.find(producer);
    if (own == where.end())
      return 0;
    size_t common = 0;
    for (; common < own->second.size(); ++common) {
      const TreeNode *loop = own->second[common];
      bool shared = loop->loop != LoopKind::Unit && loop->loop != LoopKind::Lane;
      for (const Chain *chain : readers[tensor])
        shared = shared && common < chain->size() && (*chain)[common] == loop;
      if (!shared)
        break;
    }
    double elements = 1;
    for (size_t a = 0; a < schedule.axes.size(); ++a)
      if (const AxisUse *use = schedule.axes[a].in(producer); use && !use->reduction)
        elements *= double(tileOf(own->second, common, static_cast<AxisId>(a)));
    return size * elements;
  }

  const BoundSchedule &bound;
  const Schedule &schedule;
  const ExprProgram &pattern;
  const std::vector<const Equation *> &equations;
  const bool whole; // a block that takes all steps holds all of a value
  std::map<int, Chain> computes, stores, stages;
  std::vector<const TreeNode *> leaves; // in tree order
  std::map<TensorId, std::vector<size_t>> readingLeaves;
  Liveness live;                                          // the loops around them
  std::map<TensorId, std::vector<const Chain *>> readers; // around what reads a tensor
  std::set<int> combines;
};

} // namespace

OnChipStorage storageOf(const BoundSchedule &bound) {
  const Schedule &schedule = bound.schedule();
  OnChipStorage out = Storage(bound).run();
  if (!isPack(schedule.tree))
    return out;
  // A block is of one part.
  Schedule part = schedule;
  out.registersPerThread = out.sharedBytes = 0;
  for (const TreeNode &tree : schedule.tree) {
    part.tree = {tree};
    const OnChipStorage own = Storage(BoundSchedule(part, bound.context())).run();
    out.registersPerThread = std::max(out.registersPerThread, own.registersPerThread);
    out.sharedBytes = std::max(out.sharedBytes, own.sharedBytes);
  }
  return out;
}

} // namespace fusec::tiling
