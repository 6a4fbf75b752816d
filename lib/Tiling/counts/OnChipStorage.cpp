#include "Tiling/counts/OnChipStorage.h"

#include "Expr/Cascade.h"
#include "Gir/Liveness.h"
#include "Tiling/counts/LaneAccess.h"
#include "Tiling/schedule/ReadReuse.h"
#include "Tiling/schedule/SharedBuffers.h"
#include "Tiling/schedule/StagedTile.h"

#include <algorithm>
#include <map>

namespace fusec::tiling {

namespace {

class Storage {
public:
  explicit Storage(const BoundSchedule &bound)
      : bound(bound), schedule(bound.schedule), statements(bound.statements()),
        whole(bound.scan() && !bound.gridScan()) {
    std::map<const LoopNode *, LiveRange> repeated;
    for (const Statement &statement : statements) {
      for (TensorId value : valuesReadBy(bound, *statement.leaf))
        readingLeaves[value].push_back(statement.order);
      for (const LoopNode *loop : statement.loops)
        if (repeats(*loop))
          repeated[loop].include(pointOf(statement.order), pointOf(statement.order + 1) - 1);
    }
    for (const auto &[loop, range] : repeated)
      live.loops.push_back(range);
  }

  OnChipStorage run() {
    OnChipStorage out;
    std::vector<HeldRegisters> held;
    std::vector<PlacedBuffer> shared;
    for (int e = 0; e < bound.numEquations(); ++e) {
      const Equation &equation = bound.equation(e);
      const Loops *loops = bound.loopsOf(e);
      if (!loops || bound.facts(e).form == EquationForm::TopK)
        continue;
      const bool reduces = bound.facts(e).reduces();
      const DType type =
          reduces ? equation.accumulateType : bound.program.tensor(equation.outputs[0]).type;
      if (reduces || bound.level(equation.outputs[0]) == MemLevel::Register)
        hold(e, copies(e, *loops), type, held);
      if (reduces && schedule.units > 1 && bound.has(LeafKind::Combine, e) &&
          sharesReduction(bound, e, LoopKind::Unit)) {
        const double ofLane = double(schedule.units) * double(sizeInBytes(type));
        shared.push_back(placed(ofLane * (lanesKeep(bound, e) ? schedule.lanes : 1),
                                rangeOf([&](const LeafNode &leaf) {
                                  return leaf.kind == LeafKind::Combine && leaf.equation == e;
                                })));
      }
    }
    const ReuseStorage kept = reuseStorage(bound);
    for (const ReuseStorage::Value &value : kept.registers)
      held.push_back({live.closeOverLoops(keptRange(value)), value.registersPerThread});
    const std::vector<double> registers = heldAt(held, pointOf(statements.size()));
    out.registersPerThread = kRegistersForAddresses + *std::ranges::max_element(registers);
    for (OperandIndex o{0}; o < OperandIndex(schedule.operands.size()); ++o)
      if (const auto stages = bound.stages(o);
          !stages.empty() && !isStoreElided(bound, schedule.operands[o])) {
        const Operand &operand = schedule.operands[o];
        out.operands[o] = stagedBytes(operand, stages[0]->loops, &Storage::valueOf);
        shared.push_back(
            placed(stagedBytes(operand, stages[0]->loops, &Storage::mostOf), stagedRange(o)));
      }
    out.buffers = sharedBuffers(bound);
    std::map<TensorId, PlacedBuffer> edges;
    for (const auto &[tensor, buffer] : out.buffers) {
      if (isStoreElided(bound, tensor))
        continue;
      out.edges[tensor] = edgeBytes(tensor, &Storage::valueOf, false);
      const LiveRange range = edgeRange(tensor);
      auto [known, isNew] =
          edges.try_emplace(buffer, placed(edgeBytes(buffer, &Storage::mostOf, true), range));
      if (!isNew)
        known->second.ranges[0].include(range.first, range.last);
    }
    for (const auto &[buffer, edge] : edges)
      shared.push_back(edge);
    out.sharedBytes = kept.sharedBytes + double(placeBuffers(shared));
    return out;
  }

private:
  /// Where a leaf reads, of points as Gir has them (Liveness): it writes at the next one.
  static int pointOf(size_t leaf) { return 2 * static_cast<int>(leaf); }

  bool repeats(const LoopNode &loop) const {
    const bool isOnce = loop.axis >= 0 && schedule.axes[loop.axis].extent.isConst() &&
                        bound.valueOf(bound.tile(loop)) <= loop.step;
    return (loop.kind == LoopKind::Seq || loop.kind == LoopKind::Unroll) && !isOnce;
  }

  static PlacedBuffer placed(double bytes, LiveRange range) {
    constexpr double kTooMuch = 1e15; // for any block
    return {.ranges = {range}, .bytes = static_cast<int64_t>(std::min(bytes, kTooMuch))};
  }

  /// A buffer of the block is taken at both points of a statement: other units may be behind.
  template <class Uses> LiveRange rangeOf(Uses uses) const {
    LiveRange range;
    for (const Statement &statement : statements)
      if (uses(*statement.leaf))
        range.include(pointOf(statement.order), pointOf(statement.order) + 1);
    return live.closeOverLoops(range);
  }

  LiveRange stagedRange(OperandIndex operand) const {
    const int reader = schedule.operands[operand].equation;
    return rangeOf([&](const LeafNode &leaf) {
      return leaf.kind == LeafKind::Stage
                 ? leaf.operand == operand
                 : leaf.kind == LeafKind::Compute && leaf.equation == reader;
    });
  }

  LiveRange edgeRange(TensorId tensor) const {
    const int producer = bound.program.producer(tensor);
    LiveRange range;
    if (whole || producer < 0) {
      range.include(0, pointOf(statements.size()));
      return range;
    }
    return rangeOf([&](const LeafNode &leaf) {
      return (leaf.equation == producer &&
              (leaf.kind == LeafKind::Store || !bound.facts(producer).reduces())) ||
             readsValue(bound, leaf, tensor);
    });
  }

  LiveRange keptRange(const ReuseStorage::Value &value) const {
    LiveRange range;
    if (value.leaves.empty())
      range.include(0, pointOf(statements.size()) - 1);
    for (const Statement &statement : statements)
      for (size_t k = 0; k < value.leaves.size(); ++k)
        if (statement.leaf == value.leaves[k]) {
          const int at = pointOf(statement.order) + (k == 0 && value.stored);
          range.include(at, at);
        }
    return range;
  }

  /// The accumulators of an equation. Of a cascade's, those of another set of points and those that they stood on
  /// before (lower/CascadeLowering.cpp) are free when the threads' states have met.
  void hold(int equation, double elements, DType type, std::vector<HeldRegisters> &held) const {
    const Equation &e = bound.equation(equation);
    const LiveRange values = live.closeOverLoops(accumulatorRange(equation, true));
    const double registers = elements * double(registersFor(1, type));
    if (bound.facts(equation).form != EquationForm::Cascade) {
      held.push_back({values, registers});
      if (bound.facts(equation).reduces() && isArgMonoid(e.monoid))
        held.push_back({values, elements * double(registersFor(1, DType::I64))});
      return;
    }
    const std::vector<int> ranks = stateRanks(e);
    const auto others =
        double(ranks.size() + ranks.size() - std::ranges::count(ranks, lastRank(e)));
    held.push_back({values, registers * double(ranks.size())});
    held.push_back({live.closeOverLoops(accumulatorRange(equation, false)), registers * others});
  }

  /// From the first statement that writes an accumulator to the last that reads it. With `values` to where the result
  /// is read: by a Store, and by those that need it where it stays in registers or no Store puts it elsewhere.
  LiveRange accumulatorRange(int equation, bool values) const {
    const std::vector<TensorId> &outputs = bound.equation(equation).outputs;
    const bool isMap = !bound.facts(equation).reduces();
    const bool handsOn = values && (!bound.has(LeafKind::Store, equation) ||
                                    std::ranges::any_of(outputs, [&](TensorId t) {
                                      return bound.level(t) == MemLevel::Register;
                                    }));
    LiveRange range;
    for (const Statement &statement : statements) {
      const LeafNode &leaf = *statement.leaf;
      const int reads = pointOf(statement.order), writes = reads + 1;
      if (leaf.equation != equation)
        continue;
      if (leaf.kind != LeafKind::Store)
        range.include(leaf.kind == LeafKind::Init || isMap ? writes : reads, writes);
      else if (values)
        range.include(reads, reads);
    }
    for (size_t o = 0; handsOn && o < outputs.size(); ++o)
      if (const auto it = readingLeaves.find(outputs[o]); it != readingLeaves.end())
        for (size_t leaf : it->second)
          range.include(pointOf(leaf), pointOf(leaf));
    return range;
  }

  /// Elements of an equation's accumulator in each thread: one an iteration of the Unroll loops over spatial axes, and
  /// over the first reduced one where a Combine folds them, but for neighbours of a lane.
  double copies(int equation, const Loops &loops) const {
    const Equation &e = bound.equation(equation);
    const bool folds = bound.facts(equation).form != EquationForm::Cascade &&
                       !isTupleMonoid(e.monoid) && bound.has(LeafKind::Combine, equation);
    double product = 1;
    bool hasParts = !folds;
    for (size_t i = 0; i < loops.size(); ++i) {
      const LoopNode *loop = loops[i];
      if (loop->kind != LoopKind::Unroll || loop->axis < 0)
        continue;
      const AxisUse *use = bound.use(loop->axis, equation);
      const bool reduces = use && use->reduction;
      if (reduces && (hasParts || isInsideLanes(loops, i)))
        continue;
      hasParts = hasParts || reduces;
      product *= bound.optTrip(*loop);
    }
    return product;
  }

  using Size = int64_t (Storage::*)(const DimExpr &) const;

  double stagedBytes(const Operand &operand, const Loops &loops, Size sizeOf) const {
    std::vector<int64_t> extents =
        stagedExtents(schedule, bound.equation(operand.equation), operand,
                      [&](AxisId axis) { return (this->*sizeOf)(bound.tile(axis, loops)); });
    extents.back() += operand.padElements;
    return elementsOf(extents) * double(bound.program.bytesOf(bound.program.tensorOf(operand)));
  }

  /// The tile of an inner value below the loops that its producer and its readers have in common; units and lanes share
  /// one.
  double edgeBytes(TensorId tensor, Size sizeOf, bool withGaps) const {
    const int producer = bound.program.producer(tensor);
    if (whole || producer < 0)
      return double((this->*sizeOf)(numElements(bound.program.tensor(tensor).shape))) *
             double(bound.program.bytesOf(tensor));
    const std::optional<Loops> around = loopsOfEdge(bound, tensor);
    if (!around)
      return 0;
    double elements = 1;
    int64_t last = 1;
    for (size_t a = 0; a < schedule.axes.size(); ++a)
      if (const AxisUse *use = schedule.axes[a].in(producer); use && !use->reduction) {
        elements *= double(last);
        last = (this->*sizeOf)(bound.tile(AxisId(a), *around));
      }
    elements *= double(withGaps && elements > 1 ? rowOfTile(schedule, last) : last);
    return double(bound.program.bytesOf(tensor)) * elements;
  }

  int64_t valueOf(const DimExpr &size) const { return bound.valueOf(size); }

  /// Room is made for the largest; what has no bound gets none, and is no legal schedule.
  int64_t mostOf(const DimExpr &size) const {
    return bound.program.mostOf(size).value_or(bound.valueOf(size));
  }

  const BoundSchedule &bound;
  const Schedule &schedule;
  const std::vector<Statement> &statements;
  const bool whole; // a block that takes all steps holds all of a value
  std::map<TensorId, std::vector<size_t>> readingLeaves;
  Liveness live; // the loops around the statements
};

} // namespace

OnChipStorage storageOf(const BoundSchedule &bound) {
  const Schedule &schedule = bound.schedule;
  OnChipStorage out = Storage(bound).run();
  if (!isPack(schedule.tree))
    return out;
  // A block is of one part.
  Schedule part = schedule;
  out.registersPerThread = out.sharedBytes = 0;
  for (const TreeNode &tree : schedule.tree) {
    part.tree = {tree};
    const OnChipStorage own = Storage(BoundSchedule(part, bound.program)).run();
    out.registersPerThread = std::max(out.registersPerThread, own.registersPerThread);
    out.sharedBytes = std::max(out.sharedBytes, own.sharedBytes);
  }
  return out;
}

} // namespace fusec::tiling
