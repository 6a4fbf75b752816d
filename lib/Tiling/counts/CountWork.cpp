#include "Tiling/counts/CountWork.h"

#include "Expr/OpWeight.h"
#include "Expr/transforms/Profile.h"
#include "Tiling/counts/CacheMisses.h"
#include "Tiling/counts/LaneAccess.h"
#include "Tiling/counts/MemoryRequests.h"
#include "Tiling/counts/Neighbours.h"
#include "Tiling/counts/OnChipStorage.h"
#include "Tiling/counts/StatementWork.h"
#include "Tiling/schedule/LoopRanges.h"
#include "Tiling/schedule/PersistentReads.h"
#include "Tiling/schedule/Phases.h"
#include "Tiling/schedule/ReadReuse.h"
#include "Tiling/schedule/StagedTile.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ranges>
#include <set>

namespace fusec {

using namespace tiling;

namespace {

class Counter {
public:
  Counter(const BoundSchedule &bound, const Target &target, const Traffic *traffic)
      : bound(bound), schedule(bound.schedule), target(target) {
    counts.unitsPerBlock = 1;
    if (isPack(schedule.tree))
      walkParts();
    else
      walk(schedule.tree);
    if (traffic)
      addMemory(*traffic);
  }
  /// Counts parts side by side on a GPU, each of which counts so much alone.
  Counter(const BoundSchedule &bound, const Target &target, const Traffic &traffic,
          const std::vector<cost::Counts> &parts)
      : counts(cost::sideBySide(parts)), bound(bound), schedule(bound.schedule), target(target) {
    addTraffic(traffic);
    addFromMemory();
  }
  cost::Counts counts;

private:
  void addTraffic(const Traffic &traffic) {
    counts.constantBytes = 0;
    counts.readBytes = traffic.readBytes;
    counts.writtenBytes = traffic.writtenBytes;
    for (size_t t = 0; t < bound.program.expr.tensors.size(); ++t) {
      const Tensor &tensor = bound.program.tensor(t);
      if (goesOut(static_cast<TensorId>(t))) {
        counts.writtenBytes += bound.program.allBytesOf(static_cast<TensorId>(t));
        counts.readBytes += bound.program.allBytesOf(static_cast<TensorId>(t));
      }
      if (tensor.kind == TensorKind::Constant)
        counts.constantBytes += traffic.readOf[t];
    }
  }

  void addMemory(const Traffic &traffic) {
    addTraffic(traffic);
    const OnChipStorage storage = storageOf(bound);
    counts.registersPerThread = storage.registersPerThread;
    counts.sharedBytesPerBlock = storage.sharedBytes;
    if (target.nearestIsCache) {
      // What a cache does not hold comes from the level behind it.
      const std::vector<MissedBytes> missed = missedBytes(bound, storage, target, counts.blocks);
      std::ranges::transform(missed, counts.levelBytes.begin() + 1, &MissedBytes::all);
      addWaitsOfProducts(missed);
      counts.stagedBytes = stagedBytes(bound, traffic);
      if (!parts.empty())
        takeTurns(traffic);
      return;
    }
    const MemoryRequests moved = movedBytes(bound, target, Effort::Quick);
    counts.levelBytes[0] = moved.sharedBytes;
    counts.levelBytes[1] = (moved.readSectors + moved.writtenSectors) * kSectorBytes;
    addFromMemory();
  }

  /// Products step through panels too fast for a core to ask for the next lines in time: what comes of these from a
  /// cache that cores share, it waits for, whatever else there is to do.
  void addWaitsOfProducts(const std::vector<MissedBytes> &missed) {
    double bytes = 0;
    for (size_t level = 0; level + 1 < missed.size(); ++level)
      if (target.memory[level + 1].ofDevice)
        bytes += missed[level].awaited;
    const double seconds = bytes / counts.blocks / target.core.rereadBytesPerSec,
                 vectorsPerSec = target.flopsPerSec / (2.0 * target.lanes);
    counts.stalls += seconds * vectorsPerSec / counts.unitsPerBlock;
  }

  /// Adds what parts side by side read and write, each for itself.
  void takeTurns(const Traffic &traffic) {
    for (size_t p = 0; p < parts.size(); ++p) {
      std::set<TensorId> reads, writes;
      for (int equation : computedBy[p]) {
        const Equation &e = bound.equation(equation);
        const std::vector<TensorId> &tensors = bound.facts(equation).tensors;
        reads.insert(tensors.begin(), tensors.end());
        reads.insert(e.opaqueInputs.begin(), e.opaqueInputs.end());
        writes.insert(e.outputs.begin(), e.outputs.end());
      }
      for (TensorId t : reads) {
        parts[p].readBytes += traffic.readOf[t];
        if (bound.program.tensor(t).kind == TensorKind::Constant)
          parts[p].constantBytes += traffic.readOf[t];
      }
      for (TensorId t : writes) {
        const bool comesBack = goesOut(t);
        parts[p].writtenBytes += comesBack || bound.program.tensor(t).kind != TensorKind::Temp
                                     ? bound.program.allBytesOf(t)
                                     : 0;
        parts[p].readBytes += comesBack ? bound.program.allBytesOf(t) : 0;
      }
    }
    cost::takeTurns(counts, parts, target);
  }

  /// On a GPU: what memory is asked for follows from what the last cache is.
  void addFromMemory() {
    const double asked = counts.levelBytes[1];
    // What is read again comes from the last cache, as far as that holds what the kernel touches.
    const double touched = counts.readBytes + counts.writtenBytes;
    const double held =
        cost::cacheShare(touched, double(target.memory[target.memory.size() - 2].capacityBytes));
    counts.levelBytes[target.memory.size() - 1] =
        held < 1 && asked > touched ? touched + (asked - touched) * (1 - held) : 0;
  }

  /// A value inside the pattern that has no place closer: it goes to device memory and comes back.
  bool goesOut(TensorId t) const {
    return bound.program.tensor(t).kind == TensorKind::Temp && !bound.scan() &&
           !isStoreElided(bound, t) && bound.level(t) == MemLevel::Global;
  }

  /// Counts the statements below these nodes, which are a block's.
  void walk(std::span<const TreeNode> nodes) {
    std::set<const LoopNode *> seen;
    const Statement *before = nullptr;
    for (const Statement &statement : bound.statements()) {
      if (nodes.size() == 1 && nodes[0].loop() && !statement.isInside(nodes[0].loop()))
        continue;
      const bool besideStage =
          before && before->leaf->kind == LeafKind::Stage && before->loops == statement.loops;
      before = &statement;
      loops = statement.loops;
      double times = 1;
      for (const LoopNode *loop : loops) {
        const double trip = bound.optTrip(*loop);
        if (loop->kind == LoopKind::Seq || loop->kind == LoopKind::Unroll)
          times *= trip;
        if (loop->kind == LoopKind::Unit)
          counts.unitsPerBlock = std::max(counts.unitsPerBlock, trip);
        if (loop->kind == LoopKind::Block && seen.insert(loop).second)
          counts.blocks *= trip;
      }
      const double share = shareThatRuns();
      counts.longestBlock = std::max(counts.longestBlock, 1 / share);
      leaf(*statement.leaf, times * share);
      if (statement.leaf->kind == LeafKind::Stage && !besideStage && target.blocksHaveUnits())
        counts.fills += times * share;
    }
    if (target.blocksHaveUnits())
      counts.barriers += blockBarriers(bound, nodes);
  }

  /// What a block has on average of the times that the statement runs in a whole one: the last along an axis ends at
  /// the extent. Extents that are known have tiles that suit them, and what is left of a block counts as all of it.
  double shareThatRuns() const {
    double share = 1;
    const auto isCut = [&](const LoopNode *loop) {
      return (loop->kind == LoopKind::Seq || loop->kind == LoopKind::Unroll) && loop->axis >= 0 &&
             !schedule.axes[loop->axis].extent.isConst() && bound.tile(*loop).isConst();
    };
    if (std::ranges::none_of(loops, isCut))
      return share;
    const LoopRanges ranges(bound, loops, {});
    for (const auto &[axis, iterations] : ranges.iterations()) {
      if (axis < 0 || schedule.axes[axis].extent.isConst())
        continue;
      double whole = 1;
      for (const LoopNode *loop : loops)
        whole *= loop->axis == axis ? bound.optTrip(*loop) : 1;
      share *= whole > 0 ? iterations / whole : 1;
    }
    return share;
  }

  void walkParts() {
    for (const TreeNode &part : schedule.tree) {
      counts = cost::Counts();
      computedBy.emplace_back();
      walk({&part, 1});
      parts.push_back(counts);
    }
    counts = cost::sideBySide(parts);
  }

  /// Share of its statement's iterations that compute a value which depends on `axes`: it is computed once for all
  /// iterations of an Unroll loop along others.
  double shared(int equation, uint64_t axes) const {
    double factor = 1;
    for (const LoopNode *loop : loops)
      if (const AxisUse *use = bound.use(loop->axis, equation);
          loop->kind == LoopKind::Unroll && use && !use->meets(axes))
        factor /= bound.optTrip(*loop);
    return factor;
  }

  /// Share of its statement's iterations that compute a part of an address in front of loops in order that it does not
  /// depend on (Codegen/HoistDivisions.h): the rows of a product that divisions find are found once for all terms of
  /// its sum. Not on a GPU, whose compilers make them anew where registers limit the threads of a core, and not in a
  /// cascade, whose states change in each turn.
  double outsideLoops(int equation, uint64_t axes) const {
    if (!target.vectorLanes || bound.facts(equation).form == EquationForm::Cascade)
      return 1;
    double factor = 1;
    for (const LoopNode *loop : loops | std::views::reverse) {
      if (loop->kind == LoopKind::Unroll || loop->kind == LoopKind::Lane)
        continue;
      const AxisUse *use = bound.use(loop->axis, equation);
      if (loop->kind != LoopKind::Seq || !use || use->meets(axes))
        break;
      factor /= std::max(1.0, double(bound.optTrip(*loop)));
    }
    return factor;
  }

  /// Nodes that a Compute evaluates. What lies in a layout of its own is found without the indices of the read, and
  /// padding has been written out there.
  std::vector<bool> evaluatedAt(const LeafNode &compute) const {
    const EquationFacts &known = bound.facts(compute.equation);
    std::vector<NodeId> found;
    for (size_t r = 0; r < known.reads.size(); ++r)
      if (bound.operand(compute.equation, static_cast<int>(r)))
        found.push_back(known.reads[r]);
    return found.empty() ? known.neededOfRank[compute.rank]
                         : known.neededBeside(found, compute.rank);
  }

  void stage(OperandIndex index, double times) {
    const Operand &operand = schedule.operands[index];
    const EquationFacts &reader = bound.facts(operand.equation);
    const std::vector<int64_t> extents = stagedExtents(bound, operand, loops);
    staged[index] = extents;
    const double copies =
        times * elementsOf(extents) / (double(schedule.units) * double(schedule.lanes));
    const NodeId read = reader.reads[operand.read];
    bool findsPlaces = reader.equation.body[read].op == ScalarOp::ReadIf;
    if (target.nearestIsCache) {
      counts.stagedLoads += times * loadsOfStage(bound, operand, extents, target);
      findsPlaces = !reader.accesses[operand.read];
      if (findsPlaces)
        counts.gathers += copies * schedule.lanes;
    } else {
      // A flat number is taken apart into the tile's digits: quotient and remainder of a 32-bit constant.
      constexpr double kOpsOfDigit = 5;
      counts.vectorLoads += (1 + storesInTurn(operand, extents)) * copies;
      const auto digits = std::ranges::count_if(extents, [](int64_t extent) { return extent > 1; });
      counts.vectorOps += kOpsOfDigit * copies * double(std::max<int64_t>(digits - 1, 0));
    }
    // Each thread finds out whether its element is padding; a CPU's loops do so for whole vectors, or rows.
    if (findsPlaces)
      for (NodeId id : reader.equation.body.reachable({read}))
        counts.vectorOps += copies * weightOf(reader.equation.body[id].op);
  }

  /// Turns in which a GPU's shared memory takes what the lanes of a unit store of a copy: words of one bank come one
  /// after the other.
  double storesInTurn(const Operand &operand, const std::vector<int64_t> &extents) const {
    constexpr int64_t kBanks = 32, kWord = 4; // bytes
    const std::vector<size_t> order = copyOrder(bound, operand, extents).digits;
    if (order.empty())
      return 1;
    int64_t distance = 1; // elements between what neighbouring lanes store
    for (size_t d = order[0] + 1; d < extents.size(); ++d)
      distance *= extents[d] + (d + 1 == extents.size() ? operand.padElements : 0);
    const int64_t bytes = distance * bound.program.bytesOf(bound.program.tensorOf(operand));
    if (bytes % kWord != 0)
      return 1;
    const int64_t inBank = std::gcd(bytes / kWord, kBanks);
    return double(std::clamp<int64_t>(extents[order[0]] * inBank / kBanks, 1, inBank));
  }

  void leaf(const LeafNode &node, double times) {
    if (node.kind == LeafKind::Stage)
      return stage(node.operand, times);
    if (!computedBy.empty() && (node.kind == LeafKind::Compute || node.findsPlaces()))
      computedBy.back().insert(node.equation);
    const EquationForm form =
        node.equation < 0 ? EquationForm::Scan : bound.facts(node.equation).form;
    if (form == EquationForm::TopK)
      return addTopKWork(bound, {node, loops, times}, target.vectorLanes, counts);
    if (node.kind == LeafKind::Compute)
      return compute(node, times);
    if (node.kind == LeafKind::Store)
      return addStores(node.equation, times);
    if (form == EquationForm::Cascade)
      return addCascadeWork(bound, {node, loops, times}, counts);
    if (node.kind == LeafKind::Combine)
      counts.vectorOps += 10 * times;
    else
      counts.vectorLoads += times;
  }

  void compute(const LeafNode &node, double times) {
    const bool vectorLanes = target.vectorLanes;
    const EquationFacts &known = bound.facts(node.equation);
    const Equation &e = known.equation;
    const std::vector<bool> needed = evaluatedAt(node);
    const double opsBefore = counts.vectorOps, loadsBefore = counts.vectorLoads;
    const LoopNode *lanes = innermost(loops, LoopKind::Lane);
    const AxisId laneAxis = lanes ? lanes->axis : AxisId();
    const std::optional<LanePattern> written =
        vectorLanes && lanes ? lanePattern(bound, node.equation, loops) : std::nullopt;
    double rows = 1; // in which the lanes of one read lie
    for (size_t r = 0; r < known.reads.size(); ++r) {
      const NodeId read = known.reads[r];
      if (!needed[read])
        continue;
      const ReadPlace place{node.equation, node.rank, static_cast<int>(r)};
      const ReusedRead *kept = bound.reuse(place);
      if (kept && kept->level == MemLevel::Register)
        continue;
      double loads = times * shared(node.equation, known.axes[read]);
      if (!lanes || !lanesLieApart(bound, place, laneAxis, vectorLanes ? &staged : nullptr)) {
        vectorLanes ? void(counts.vectorLoads += loads) : addThreadRead(place, loads);
      } else if (const auto vectors =
                     written ? written->loads(read, schedule.lanes) : std::nullopt) {
        counts.vectorLoads += *vectors * loads;
        counts.vectorOps += *vectors * loads; // shuffles
      } else if (const double turns = vectorLanes ? turnsRead(bound, place, laneAxis, loops) : 1;
                 turns > 1) {
        addColumns(loads, turns);
        rows = schedule.lanes;
      } else {
        counts.gathers += loads * schedule.lanes;
        if (vectorLanes && placesAreDivided(bound, place, laneAxis))
          counts.vectorOps += loads * schedule.lanes * kDividedPlaceOps;
        rows = schedule.lanes;
        counts.reads += !vectorLanes && readsDevice(bound, place) ? loads : 0;
      }
    }
    for (size_t id = 0; id < needed.size(); ++id)
      if (double weight = needed[id] ? weightOf(e.body.nodes[id].op) : 0;
          weight > 0 && !(written && written->isConstant(static_cast<NodeId>(id))) &&
          !(vectorLanes && isDigitOfVectors(e, static_cast<NodeId>(id), schedule.lanes)))
        counts.vectorOps +=
            times * weight * shared(node.equation, known.axes[id]) *
            (e.body.nodes[id].type == DType::I64 ? outsideLoops(node.equation, known.axes[id]) : 1);
    if (const MicroKernel *kernel = target.kernel(node.kernel))
      counts.vectorOps += times * (vectorOpsPerTurn(*kernel) - weightOf(ScalarOp::Mul));
    if (!known.reduces())
      addStores(node.equation, times);
    else if (isProduct(e) && !isFloat(e.accumulateType))
      counts.vectorOps += times; // the sum, which is no part of the product
    counts.rowsAtOnce = std::max(counts.rowsAtOnce, rows * rowsAtOnce(laneAxis));
    if (!target.hidesLatency() && known.reduces())
      counts.stalls += std::max(
          0.0, chainSlots(node.equation, e, times) -
                   std::max(counts.vectorOps - opsBefore, counts.vectorLoads - loadsBefore));
  }

  /// Adds a read by a GPU's thread, done so often by the turns of its loops.
  void addThreadRead(const ReadPlace &read, double times) {
    const TurnsTogether together = turnsOfRead(bound, read, loops, staged);
    if (readsDevice(bound, read))
      counts.reads += times * together.accessesOfTurn();
    counts.vectorLoads +=
        times * timeOfTurn(together, bound.program.bytesOf(bound.program.tensorOf(read)),
                           variesByLane(bound, read, loops));
  }

  /// The time of what a micro-kernel makes in one turn of the loops around it, in vector operations.
  double vectorOpsPerTurn(const MicroKernel &kernel) const {
    return kernel.vectorOps * schedule.lanes / double(kernel.m * kernel.n * kernel.k);
  }

  /// Counts vectors that are made of `turns` loads or stores along another axis, and shuffles.
  void addColumns(double vectors, double turns) {
    counts.vectorLoads += vectors * schedule.lanes / turns;
    counts.vectorOps += vectors * std::ceil(std::log2(turns));
  }

  /// Adds stores of an equation's values at its own points. A GPU pays for sectors.
  void addStores(int equation, double times) {
    const Equation &e = bound.equation(equation);
    const LoopNode *lanes = target.vectorLanes ? innermost(loops, LoopKind::Lane) : nullptr;
    const AxisUse *use = lanes ? bound.use(lanes->axis, equation) : nullptr;
    bool sideBySide = true;
    for (int a = use ? use->positions.back() + 1 : e.numSpatial; a < e.numSpatial; ++a)
      sideBySide = sideBySide && bound.valueOf(e.axes[a].extent) == 1;
    const double turns = sideBySide ? 1 : turnsStored(bound, equation, loops);
    for (TensorId t : e.outputs) {
      const bool staysWithThread =
          bound.program.tensor(t).kind == TensorKind::Temp && bound.level(t) == MemLevel::Register;
      if (sideBySide || staysWithThread) {
        counts.vectorLoads += times * (target.vectorLanes || staysWithThread
                                           ? 1
                                           : timeOfTurn(turnsOfStore(bound, equation, t, loops),
                                                        bound.program.bytesOf(t), true));
      } else if (turns > 1) {
        addColumns(times, turns);
      } else
        counts.vectorOps += times * schedule.lanes * kStoreCyclesALane * target.core.fmaPorts;
    }
  }

  /// Each step of a reduction waits for the one before it, while a core's ports have places for others. Sums side by
  /// side fill them, and so do the next elements' sums as far as a core looks ahead.
  double chainSlots(int equation, const Equation &e, double times) const {
    constexpr double kInstructionsAStep = 3; // a load, an fma, the loop's own
    const double slots = double(target.core.fmaCycles) * target.core.fmaPorts;
    double sideBySide = 1;
    for (size_t i = loops.size(); i-- > 0;) {
      const LoopNode *loop = loops[i];
      const double trip = bound.optTrip(*loop);
      if (loop->kind == LoopKind::Unroll)
        sideBySide *= trip;
      if (loop->kind != LoopKind::Seq || loop->axis < 0)
        continue;
      const AxisUse *use = bound.use(loop->axis, equation);
      if (!use || use->positions.front() < e.numSpatial)
        return 0; // elements in turn: what they sum up into is not what comes next
      const double ahead =
          double(target.core.instructionsAhead) / (trip * sideBySide * kInstructionsAStep);
      return times / sideBySide * slots / std::max(1.0, ahead);
    }
    return 0;
  }

  /// Rows that the innermost loop in order goes along side by side.
  double rowsAtOnce(AxisId laneAxis) const {
    double rows = 1;
    for (size_t i = loops.size(); i-- > 0 && loops[i]->kind != LoopKind::Seq;)
      if (loops[i]->kind == LoopKind::Unroll && loops[i]->axis != laneAxis)
        rows *= bound.optTrip(*loops[i]);
    return rows;
  }

  const BoundSchedule &bound;
  const Schedule &schedule;
  const Target &target;
  Loops loops;          // around the statement
  StagedExtents staged; // of the operands met so far
  // What each part of a pack counts by itself, and its equations.
  std::vector<cost::Counts> parts;
  std::vector<std::set<int>> computedBy;
};

} // namespace

cost::Counts tiling::phaseCounts(const BoundSchedule &bound, const Target &target,
                                 const Traffic &traffic) {
  return Counter(bound, target, &traffic).counts;
}

std::vector<cost::Counts> WorkMeter::phases(const BoundSchedule &bound) {
  std::vector<cost::Counts> counts = residentPhases(bound);
  if (hasPersistentReads(bound.schedule) && !areResident(counts, target)) {
    const Schedule anew = withoutPersistentReads(bound.schedule);
    return residentPhases(BoundSchedule(anew, about));
  }
  return counts;
}

std::vector<cost::Counts> WorkMeter::residentPhases(const BoundSchedule &bound) {
  std::vector<cost::Counts> counts;
  if (bound.gridScan())
    return gridScanCounts(bound, target);
  if (bound.phases().size() == 1) {
    if (!traffic)
      traffic = compulsoryTraffic(about.expr);
    return {phaseCounts(bound, target, *traffic)};
  }
  const PersistentStorage all = allPersistentStorage(bound);
  for (const PhaseSchedule &part : schedulesOfPhases(bound)) {
    const ScheduledProgram ofPart(part.pattern);
    const BoundSchedule phase(part.schedule, ofPart);
    Traffic own = compulsoryTraffic(part.pattern);
    discountPersistentReads(phase, std::vector<bool>(part.pattern.items.size(), true), own);
    counts.push_back(phaseCounts(phase, target, own));
    counts.back().registersPerThread += all.registers - allPersistentStorage(phase).registers;
  }
  for (size_t phase = 0; const TreeNode &node : bound.schedule.tree)
    if (node.isBorder())
      counts[++phase].waits = node.leaf(LeafKind::Counters) != nullptr;
  cost::applyWorstOccupancy(counts);
  return counts;
}

cost::Counts WorkMeter::pack(const Schedule &schedule, const std::vector<cost::Counts> &parts) {
  // What a core's caches hold depends on all parts.
  if (target.nearestIsCache)
    return phases(schedule).front();
  if (!traffic)
    traffic = compulsoryTraffic(about.expr);
  return Counter(BoundSchedule(schedule, about), target, *traffic, parts).counts;
}

cost::Counts WorkMeter::instructions(const Schedule &schedule) const {
  return Counter(BoundSchedule(schedule, about), target, nullptr).counts;
}

std::vector<cost::Counts> countWork(const BoundSchedule &bound, const Target &target) {
  return WorkMeter(bound.program, target).phases(bound);
}

} // namespace fusec
