#include "Tiling/counts/MemoryRequests.h"

#include "Expr/Cascade.h"
#include "Support/OptValues.h"
#include "Tiling/counts/StagedCopyCounter.h"
#include "Tiling/schedule/PersistentReads.h"
#include "Tiling/schedule/ReadReuse.h"

#include <algorithm>
#include <set>

namespace fusec {

using namespace tiling;

namespace {

/// Reads that a statement makes: each once, those in the indices of a guarded read under its predicate. With
/// `operandsStand`, what an operand stands for is not computed where the operand is read.
class LiveReads {
public:
  LiveReads(const BoundSchedule &bound, int equation, const std::vector<NodeId> &roots,
            bool operandsStand)
      : bound(bound), equation(equation), operandsStand(operandsStand),
        visited(bound.equation(equation).body.nodes.size()) {
    for (NodeId root : roots)
      visit(root, {});
  }

  std::vector<const Operand *> operands;
  std::vector<GuardedRead> memory;

private:
  void visit(NodeId id, const std::vector<NodeId> &guards) {
    if (visited[id])
      return;
    visited[id] = true;
    const Scalar &node = bound.equation(equation).body[id];
    if (node.op != ScalarOp::Read && node.op != ScalarOp::ReadIf) {
      for (NodeId arg : node.args)
        visit(arg, guards);
      return;
    }
    const int ordinal = bound.facts(equation).ordinalOf(id);
    if (const Operand *operand = operandsStand ? bound.operand(equation, ordinal) : nullptr) {
      operands.push_back(operand);
      return;
    }
    std::vector<NodeId> inside = guards;
    if (node.op == ScalarOp::ReadIf) {
      visit(node.args[0], guards);
      visit(node.args[1], guards);
      inside.push_back(node.args[0]);
    }
    if (bound.level(node.index) == MemLevel::Register && bound.program.producer(node.index) >= 0)
      return;
    // What an address has beside its axes may be read too: a row that a constant index names.
    if (const auto &access = bound.facts(equation).accesses[ordinal];
        !access || !access->rests.empty())
      for (NodeId index : indexOperands(node))
        visit(index, inside);
    memory.push_back({id, std::move(inside)});
  }

  const BoundSchedule &bound;
  const int equation;
  const bool operandsStand;
  std::vector<bool> visited; // nodes of the body
};

/// What is asked for by a statement of which a share of the turns have accesses together.
template <typename Count> AccessCount inShares(const TurnsTogether &together, const Count &count) {
  AccessCount asked = count(together);
  if (together.turns > 1 && together.share < 1)
    asked.sectors =
        together.share * asked.sectors + (1 - together.share) * count(TurnsTogether()).sectors;
  return asked;
}

/// Adds `part` of what is asked for.
void addRead(MemoryRequests &moved, const AccessCount &asked, double part = 1) {
  moved.readBytes += part * asked.bytes;
  moved.readSectors += part * asked.sectors;
  moved.fromData = moved.fromData || asked.fromData;
}
void addWritten(MemoryRequests &moved, const AccessCount &asked) {
  moved.writtenBytes += asked.bytes;
  moved.writtenSectors += asked.sectors;
  moved.fromData = moved.fromData || asked.fromData;
}

void addCopy(MemoryRequests &moved, const AccessContext &context, TensorId from, TensorId to,
             double times, const ScanPlace &source) {
  const AccessCount straight = straightCopy(context, to, times, {});
  if (context.bound.level(from) == MemLevel::Shared)
    moved.sharedBytes += straight.bytes;
  else
    addRead(moved, straightCopy(context, to, times, source));
  if (context.bound.level(to) == MemLevel::Shared)
    moved.sharedBytes += straight.bytes;
  else
    addWritten(moved, straight);
}

/// The part of reads of a tile that is done: on a CPU lanes that all read one element read it once.
double vectorShare(const AccessContext &context, const Operand &operand, const LoopRanges &loops) {
  if (!context.vectorLanes || !loops.hasLanes())
    return 1;
  const bool varies = std::ranges::any_of(operand.digits, [&](const LayoutDigit &digit) {
    return digit.index >= 0 || digit.axis == loops.laneAxis();
  });
  return varies ? 1 : 1.0 / context.bound.schedule.lanes;
}

class RequestCounter {
public:
  RequestCounter(const BoundSchedule &bound, const Target &target, Effort effort)
      : bound(bound), schedule(bound.schedule), context{bound, target.vectorLanes, effort},
        scan(bound.scan()) {
    steps.count = scan ? bound.valueOf(scan->steps) : 1;
  }

  MemoryRequests run() {
    if (!scan && bound.numEquations() == 1 && bound.facts(0).form == EquationForm::Scatter)
      addCopy(moved, context, bound.equation(0).base, bound.equation(0).outputs[0], 1, {});
    for (const Statement &statement : bound.statements()) {
      around = &statement.loops;
      leaf(*statement.leaf, LoopRanges(bound, statement.loops, stepsOf(*statement.leaf)));
    }
    return moved;
  }

private:
  using Bounds = SectorCounter::Bounds;

  /// A map is computed where it is stored: not at all in a step whose value its one place does not take.
  StepRange stepsOf(const LeafNode &leaf) const {
    if (!scan || leaf.kind != LeafKind::Compute ||
        bound.facts(leaf.equation).form != EquationForm::Map)
      return steps;
    const TensorId t = bound.equation(leaf.equation).outputs[0];
    const std::vector<ScanPlace> places = writtenPlaces(bound, t);
    return places.size() == 1 && bound.level(t) == MemLevel::Global ? places[0].within : steps;
  }

  void leaf(const LeafNode &node, const LoopRanges &loops) {
    switch (node.kind) {
    case LeafKind::Init:
    case LeafKind::Sort:
    case LeafKind::Select:
    case LeafKind::Barrier:
    case LeafKind::Counters: return;
    case LeafKind::Stage: return stage(schedule.operands[node.operand], loops);
    case LeafKind::Carry: return carry(node.carry, loops.allIterations());
    case LeafKind::Combine: return combine(node.equation, loops);
    case LeafKind::Store: return store(node.equation, loops);
    case LeafKind::Compute: return compute(node, loops);
    case LeafKind::Correct:
      return readAll(node.equation, correctionsOfRank(bound.equation(node.equation), node.rank), -1,
                     loops);
    }
  }

  SectorCounter meter(int equation, const LoopRanges &loops, Bounds bounds) const {
    return {context, equation, loops, bounds};
  }

  void carry(int when, double timesDone) {
    for (const auto &[from, to] : carriedStates(*scan, when)) {
      ScanPlace source = when == 0 ? ScanPlace{} : readPlace(bound, from);
      if (when == 2) // as the step after the last one would find it
        source.within = {steps.count, 1};
      addCopy(moved, context, from, to, timesDone, source);
    }
  }

  void stage(const Operand &operand, const LoopRanges &loops) {
    const LiveReads all(bound, operand.equation, bodyRoots(bound.equation(operand.equation)), true);
    if (std::ranges::count(all.operands, &operand) == 0)
      return; // not read, as its copies are not
    const NodeId read = bound.facts(operand.equation).reads[operand.read];
    const LiveReads reads(bound, operand.equation, {read}, false);
    const StagedCopy staged = countStagedCopy(context, operand, reads.memory, loops);
    addRead(moved, staged.read);
    if (!isStoreElided(bound, operand))
      moved.sharedBytes += staged.sharedBytes;
  }

  /// Partial results of units meet in shared memory, and every thread reads them all: once for each accumulator, which
  /// Unroll loops around are over.
  void combine(int equation, const LoopRanges &loops) {
    const Equation &e = bound.equation(equation);
    if (schedule.units == 1 || !sharesReduction(bound, equation, LoopKind::Unit))
      return;
    double bytes =
        double(sizeInBytes(e.accumulateType)) * std::max<double>(1, double(e.states.size()));
    if (bound.facts(equation).reduces() && isArgMonoid(e.monoid))
      bytes += 8;
    const double lanes = schedule.lanes, written = lanesKeep(bound, equation) ? lanes : 1,
                 times = loops.allIterations() / (loops.hasLanes() ? lanes : 1);
    moved.sharedBytes += times * bytes * schedule.units * (written + schedule.units * lanes);
  }

  void write(const SectorCounter &here, int number, size_t output, const ScanPlace &place) {
    const Equation &e = bound.equation(number);
    const TensorId t = e.outputs[output];
    const Address address = here.addressOf(outputAccess(e, bound.program.tensor(t)), t, place);
    const TurnsTogether own =
        context.vectorLanes ? TurnsTogether() : turnsOfStore(bound, number, t, *around);
    addWritten(moved, inShares(own, [&](const TurnsTogether &together) {
                 return here.affine(address, bound.program.bytesOf(t), true, together);
               }));
  }

  void storeOutputs(int equation, const LoopRanges &loops) {
    const Equation &e = bound.equation(equation);
    const SectorCounter here = meter(equation, loops, Bounds::All);
    for (size_t o = 0; o < e.outputs.size(); ++o) {
      const TensorId t = e.outputs[o];
      const double bytes = here.threads(true) * double(bound.program.bytesOf(t));
      if (isStoreElided(bound, t)) {
        storeKept(t, bytes, 1);
        continue;
      }
      storeKept(t, bytes, 2);
      if (bound.level(t) == MemLevel::Shared)
        moved.sharedBytes += bytes;
      for (const ScanPlace &place : writtenPlaces(bound, t)) {
        if (place.within.count == loops.stepRange().count) {
          write(here, equation, o, place);
          continue;
        }
        const LoopRanges fewer = loops.within(place.within);
        write(meter(equation, fewer, Bounds::All), equation, o, place);
      }
    }
  }

  /// A thread that keeps in shared memory what it stores writes it there and, where it is stored at all, reads it back.
  void storeKept(TensorId t, double bytes, double accesses) {
    const bool kept = std::ranges::any_of(schedule.kept, [&](const ReusedRead &k) {
      return !k.from && k.level == MemLevel::Shared && bound.program.tensorOf(k.read) == t;
    });
    if (kept)
      moved.sharedBytes += accesses * bytes;
  }

  void store(int equation, const LoopRanges &loops) {
    storeOutputs(equation, loops);
    const Equation &e = bound.equation(equation);
    if (bound.facts(equation).form == EquationForm::TopK) // the element that was found
      readRow(outputAccess(e, bound.program.tensor(e.outputs[0])),
              meter(equation, loops, Bounds::All), e);
  }

  /// A read of topk's operand.
  void readRow(const FlatAccess &access, const SectorCounter &here, const Equation &e) {
    const TensorId t = e.opaqueInputs[0];
    addRead(moved, here.affine(here.addressOf(access, t, {}), bound.program.bytesOf(t), false));
  }

  /// `rank`: of the Compute statement that reads; -1: another one.
  void readAll(int equation, const std::vector<NodeId> &roots, int rank, const LoopRanges &loops) {
    const LiveReads reads(bound, equation, roots, true);
    for (const Operand *o : reads.operands)
      fetch({equation, rank, o->read}, loops, [&](const auto &times) { readOperand(*o, times); });
    for (const GuardedRead &read : reads.memory) {
      fetch({equation, rank, bound.facts(equation).ordinalOf(read.read)}, loops,
            [&](const LoopRanges &times) { readMemory(equation, read, times); });
      storeForReader(bound.equation(equation).body[read.read].index, loops);
    }
  }

  /// A read of memory: done each time, not at all where it is kept, or once in front of all rounds where these hold it.
  /// One of those rounds for itself, as a program without a scan, has no part in that.
  template <typename Read>
  void fetch(const ReadPlace &place, const LoopRanges &loops, const Read &read) {
    const ReusedRead *kept = schedule.kept.empty() ? nullptr : keptFor(place, loops);
    if (!kept)
      return read(loops);
    if (!isPersistent(schedule, *kept) || !scan)
      return;
    const LoopRanges once = loops.within({0, 1});
    read(once);
    if (kept->level == MemLevel::Shared)
      moved.sharedBytes += threadBytes(place, once);
  }

  /// Shared memory that a thread keeps values in is read instead; where they come from, each is written to it first.
  const ReusedRead *keptFor(const ReadPlace &place, const LoopRanges &loops) {
    const ReusedRead *kept = bound.reuse(place);
    const bool brings = std::ranges::any_of(schedule.kept, [&](const ReusedRead &other) {
      return other.from == place && other.level == MemLevel::Shared &&
             !isPersistent(schedule, other);
    });
    if (const bool shared = kept && kept->level == MemLevel::Shared; shared || brings)
      moved.sharedBytes += (shared ? 1 : 2) * threadBytes(place, loops);
    return kept;
  }

  /// An element for each time that a thread does the statement.
  double threadBytes(const ReadPlace &place, const LoopRanges &loops) const {
    const bool map = bound.facts(place.equation).form == EquationForm::Map;
    const SectorCounter here = meter(place.equation, loops, map ? Bounds::All : Bounds::Reduction);
    return double(bound.program.bytesOf(bound.program.tensorOf(place))) * here.threads(false);
  }

  void compute(const LeafNode &node, const LoopRanges &loops) {
    const int equation = node.equation;
    const Equation &e = bound.equation(equation);
    const EquationForm form = bound.facts(equation).form;
    if (form == EquationForm::TopK) {
      FlatAccess row;
      row.stride = stridesOf(bound.program.tensor(e.opaqueInputs[0]).shape);
      row.stride.back() = DimExpr(0);
      row.stride.push_back(DimExpr(1));
      row.stride.resize(e.axes.size(), DimExpr(0));
      return readRow(row, meter(equation, loops, Bounds::Reduction), e);
    }
    readAll(equation, resultsOfRank(e, node.rank), node.rank, loops);
    if (form == EquationForm::Map)
      storeOutputs(equation, loops);
    else if (form == EquationForm::Scatter)
      update(node, loops);
  }

  /// A scatter's points go where data says.
  void update(const LeafNode &node, const LoopRanges &loops) {
    const int equation = node.equation;
    const Equation &e = bound.equation(equation);
    // Asked whether it lies inside, and again where it is stored.
    if (context.effort == Effort::Thorough) {
      std::vector<NodeId> tested = e.scatterIndex;
      if (e.scatterPredicate != kNoNode)
        tested.push_back(e.scatterPredicate);
      readAll(equation, tested, node.rank, loops);
    }
    const TensorId t = e.outputs[0];
    const AccessCount written =
        meter(equation, loops, Bounds::All).write(e.scatterIndex, t, e.scatterPredicate);
    addWritten(moved, written);
    if (e.combiner != Combiner::Assign)
      addRead(moved, written);
  }

  /// Part of a read that is left where unrolled copies of the statement do it once.
  double inCommon(int equation, NodeId read, const LoopRanges &loops) const {
    if (context.effort == Effort::Thorough)
      return 1;
    return 1 / loops.unrolledCopies(equation, bound.facts(equation).axes[read]);
  }

  void readMemory(int equation, const GuardedRead &read, const LoopRanges &loops) {
    const Equation &e = bound.equation(equation);
    Bounds bounds = Bounds::All;
    if (bound.facts(equation).reduces()) {
      bounds = Bounds::Reduction;
      const uint64_t axes = bound.facts(equation).decidingAxes(read.read);
      const AxisId lane = loops.hasLanes() ? loops.laneAxis() : AxisId();
      const AxisUse *use = bound.use(lane, equation);
      for (size_t i = 0; use && i < use->positions.size(); ++i)
        if (axes >> use->positions[i] & 1)
          bounds = Bounds::ReductionAndLanes;
    }
    // A read that is the index of a guarded one comes where that is wanted.
    const size_t ownGuards = e.body[read.read].op == ScalarOp::ReadIf ? 1 : 0;
    const TurnsTogether own =
        context.vectorLanes || read.guards.size() > ownGuards
            ? TurnsTogether()
            : turnsOfRead(bound, {equation, 0, bound.facts(equation).ordinalOf(read.read)}, *around,
                          {});
    const SectorCounter here = meter(equation, loops, bounds);
    const AccessCount asked = inShares(own, [&](const TurnsTogether &together) {
      return here.read(read.read, read.guards, together);
    });
    const double part = inCommon(equation, read.read, loops);
    if (bound.level(e.body[read.read].index) == MemLevel::Shared)
      moved.sharedBytes += part * asked.bytes;
    else
      addRead(moved, asked, part);
  }

  void readOperand(const Operand &operand, const LoopRanges &loops) {
    const Equation &e = bound.equation(operand.equation);
    const NodeId read = bound.facts(operand.equation).reads[operand.read];
    const double part = inCommon(operand.equation, read, loops);
    const int64_t bytes = bound.program.bytesOf(e.body[read].index);
    // A map's points beyond the extents are not computed; a sum's tile is, where it may be cut.
    const bool map = bound.facts(operand.equation).form == EquationForm::Map;
    const SectorCounter here =
        meter(operand.equation, loops, map ? Bounds::All : Bounds::Reduction);
    if (operand.level == MemLevel::Shared) {
      moved.sharedBytes +=
          part * vectorShare(context, operand, loops) * here.threads(map) * double(bytes);
      return;
    }
    addRead(moved, here.affine(packedAddress(bound, operand), bytes, false), part);
  }

  /// Where the tree has no store of a sum that is kept in shared memory, the lowering puts it before the first reader.
  void storeForReader(TensorId tensor, const LoopRanges &loops) {
    const int producer = bound.program.producer(tensor);
    if (producer < 0 || bound.level(tensor) != MemLevel::Shared ||
        !bound.facts(producer).reduces() || bound.has(LeafKind::Store, producer) ||
        !stored.insert(producer).second)
      return;
    storeOutputs(producer, loops);
  }

  const BoundSchedule &bound;
  const Schedule &schedule;
  const AccessContext context;
  const Equation *scan;
  StepRange steps;
  const Loops *around = nullptr; // the statement
  std::set<int> stored;          // equations without a Store, in front of a reader
  MemoryRequests moved;
};

} // namespace

MemoryRequests movedBytes(const BoundSchedule &bound, const Target &target, Effort effort) {
  return RequestCounter(bound, target, effort).run();
}

} // namespace fusec
