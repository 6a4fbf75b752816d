#include "Tiling/lower/PhaseLowering.h"

namespace fusec::lowering {

using Mode = PersistentValues::Mode;

void PhaseLowering::lowerAll() {
  GirKernel &kernel = writer.kernel;
  if (!bound.scan() && bound.numEquations() == 1 &&
      bound.facts(0).form == tiling::EquationForm::Scatter)
    kernel.phases.push_back(copyOfBase(bound.equation(0)));
  addCounters();
  std::vector<bool> waits = {false};
  for (const TreeNode &node : bound.schedule.tree)
    if (node.isBorder())
      waits.push_back(node.leaf(LeafKind::Counters) != nullptr);
  PersistentValues &persistent = parts.persistent;
  if (!bound.scan())
    persistent.begin();
  size_t number = 0;
  for (std::span<const TreeNode> phase : phasesOf(bound.schedule.tree)) {
    if (const LoopNode *loop = tiling::gridScanOf(phase)) {
      lowerGridScan(*loop);
    } else {
      persistent.mode = persistent.areReadIn(phase) ? Mode::Use : Mode::Off;
      kernel.phases.push_back(lowerPhase(phase, number));
      persistent.mode = Mode::Off;
      kernel.phases.back().waiting = waits[number];
    }
    ++number;
  }
}

/// A scatter's output starts as a copy of its base, made by all blocks before the first update.
Phase PhaseLowering::copyOfBase(const Equation &scatter) {
  constexpr int64_t kPerLane = 16;
  const int64_t chunk = int64_t{writer.units} * writer.lanes * kPerLane;
  const Shape &shape = bound.program.tensor(scatter.outputs[0]).shape;
  const DimExpr total = numElements(shape);
  // A cache that is in place already has none to copy.
  const DimExpr first = shape.empty()
                            ? DimExpr(0)
                            : scatter.steps * numElements(Shape(shape.begin() + 1, shape.end()));
  Phase phase;
  const VarId block = writer.newVar("copy", LoopKind::Block, {0, INT64_MAX, std::nullopt});
  phase.blocks.push_back({block, ceilDiv(total - first, DimExpr(chunk))});
  const NodeId origin =
      writer.add(writer.mul(body.axis(block), body.index(chunk)), body.dim(first));
  const NodeId count = writer.min(body.index(chunk), writer.sub(body.dim(total), origin));
  const BufferId source = parts.buffers.global(scatter.base),
                 target = parts.buffers.global(scatter.outputs[0]);
  auto emit = [&](NodeId flat) {
    const NodeId index = writer.add(origin, flat);
    return Stmts{storeStmt(target, {index}, writer.read(source, {index}))};
  };
  writer.cooperative(count, emit, phase.body);
  return phase;
}

/// A scan's step loop over phases of the whole grid.
void PhaseLowering::lowerGridScan(const LoopNode &loop) {
  std::vector<Phase> &phases = writer.kernel.phases;
  PersistentValues &persistent = parts.persistent;
  const std::vector<std::span<const TreeNode>> inside = phasesOf(loop.children);
  const auto phasesBefore = static_cast<int>(phases.size());
  persistent.begin();
  persistent.mode = persistent.reads.empty() ? Mode::Off : Mode::Fill;
  int filled = -1;
  for (const tiling::PersistentRead &read : persistent.reads) {
    if (read.phase == filled)
      continue;
    filled = read.phase;
    Phase fill = lowerPhase(inside[static_cast<size_t>(read.phase - phasesBefore)]);
    fill.waiting = !phases.empty(); // reads what the kernel does not write
    phases.push_back(std::move(fill));
  }
  Rounds rounds;
  rounds.count = bound.scan()->steps;
  rounds.var = parts.steps.gridStep = writer.newVar(
      "step", LoopKind::Seq, rangeOfExtent(bound.scan()->steps, writer.kernel.symbols));
  rounds.first = phases.size();
  for (std::span<const TreeNode> phase : inside) {
    persistent.mode = persistent.reads.empty() ? Mode::Off : Mode::Use;
    phases.push_back(lowerPhase(phase));
  }
  persistent.mode = Mode::Off;
  rounds.last = phases.size();
  writer.kernel.rounds = std::move(rounds);
}

Phase PhaseLowering::lowerPhase(std::span<const TreeNode> level, std::optional<size_t> number) {
  if (isPack(level))
    return lowerParts(level, number);
  Phase phase;
  while (const LoopNode *node = onlyBlockLoop(level)) {
    const DimExpr trip = bound.trip(*node);
    const VarId var = writer.newVar(bound.schedule.axes[node->axis].name, LoopKind::Block,
                                    rangeOfExtent(trip, writer.kernel.symbols));
    phase.blocks.push_back({var, trip});
    parts.loops.path.push_back({node, var});
    level = node->children;
  }
  phase.body = lowerPart(level, number, 0);
  return phase;
}

/// Statements of the phase or of one part of it, below its loops over blocks, which are left.
Stmts PhaseLowering::lowerPart(std::span<const TreeNode> nodes, std::optional<size_t> number,
                               size_t part) {
  Stmts result;
  for (const tiling::SignalWait &wait : signals.waits)
    if (wait.phase == number && wait.part == part)
      waitForTiles(wait, result);
  tree.lowerBlock(nodes, result);
  for (size_t s = 0; s < signals.sets.size(); ++s)
    if (signals.sets[s].phase == number && signals.sets[s].part == part)
      signalTile(s, result);
  parts.loops.path.clear();
  return result;
}

/// Parts side by side share one grid: the first part has the first blocks. With two parts of [8] and [3,2] blocks,
///   phase (b in 14) { if b < 8 { .. m = b .. } else { .. i = (b - 8) / 2, j = (b - 8) mod 2 .. } }
Phase PhaseLowering::lowerParts(std::span<const TreeNode> nodes, std::optional<size_t> number) {
  std::vector<Loops> chains;
  std::vector<DimExpr> ends; // of each part's blocks
  for (const TreeNode &part : nodes) {
    DimExpr blocks(1);
    Loops chain;
    for (const LoopNode *node = part.loop(); node; node = onlyBlockLoop(node->children)) {
      chain.push_back(node);
      blocks = blocks * bound.trip(*node);
    }
    chains.push_back(std::move(chain));
    ends.push_back(ends.empty() ? blocks : ends.back() + blocks);
  }
  Phase phase;
  const VarId var =
      writer.newVar("part", LoopKind::Block, rangeOfExtent(ends.back(), writer.kernel.symbols));
  phase.blocks.push_back({var, ends.back()});
  std::vector<Stmts> lowered;
  for (size_t p = 0; p < nodes.size(); ++p) {
    NodeId block = body.axis(var);
    if (p > 0)
      block = writer.sub(block, body.dim(ends[p - 1]));
    enterPart(chains[p], block);
    lowered.push_back(lowerPart(chains[p].back()->children, number, p));
  }
  phase.body = chooseBy(body.axis(var), ends, lowered);
  return phase;
}

/// Puts a part's loops over blocks on the path, numbered by the digits of `block`.
void PhaseLowering::enterPart(std::span<const LoopNode *const> chain, NodeId block) {
  for (size_t i = 0; i < chain.size(); ++i) {
    DimExpr inner(1);
    for (const LoopNode *node : chain.subspan(i + 1))
      inner = inner * bound.trip(*node);
    const NodeId value =
        bound.trip(*chain[i]).isConst(1) ? body.index(0) : writer.div(block, body.dim(inner));
    block = writer.mod(block, body.dim(inner));
    parts.loops.path.push_back({chain[i], -1, value});
  }
}

/// `ends[p]`: the first block behind those of part p. Each choice halves the parts, so that statements nest no deeper
/// than the parts' number has digits.
Stmts PhaseLowering::chooseBy(NodeId block, std::span<const DimExpr> ends,
                              std::span<Stmts> statements) {
  if (statements.size() == 1)
    return std::move(statements[0]);
  const size_t half = statements.size() / 2;
  const NodeId isBefore = writer.less(block, body.dim(ends[half - 1]));
  Stmts before = chooseBy(block, ends.first(half), statements.first(half));
  Stmts behind = chooseBy(block, ends.subspan(half), statements.subspan(half));
  return {ifStmt(isBefore, std::move(before), std::move(behind))};
}

void PhaseLowering::addCounters() {
  signals = tiling::phaseSignals(bound);
  for (const tiling::SignalSet &set : signals.sets) {
    std::string name = "done" + std::to_string(set.phase);
    if (set.part > 0)
      name += "_" + std::to_string(set.part);
    writer.kernel.counters.push_back({std::move(name), set.count});
  }
}

/// In front of a part's statements: `path` holds its loops over blocks. Tiles of several axes are waited for by rows:
///   seq m in 2 { wait %done0[(first + m)*12 + 3, (first + m)*12 + 5] for 1 }
void PhaseLowering::waitForTiles(const tiling::SignalWait &wait, Stmts &result) {
  LoopState &loops = parts.loops;
  const tiling::SignalSet &set = signals.sets[wait.set];
  auto imported = [&](NodeId id) {
    return body.import(wait.bounds, id, [&](const Scalar &copied, NodeId) {
      return copied.op == ScalarOp::Axis
                 ? loops.value(loops.path[static_cast<size_t>(copied.index)])
                 : kNoNode;
    });
  };
  NodeId row = body.index(0), first = body.index(0), last = body.index(0);
  Stmts rows; // loops, outermost first
  for (size_t i = 0; i < wait.tiles.size(); ++i) {
    row = writer.mul(row, body.dim(set.trips[i]));
    first = imported(wait.tiles[i].first);
    last = imported(wait.tiles[i].second);
    if (i + 1 == wait.tiles.size())
      break;
    Stmt loop;
    loop.kind = StmtKind::Loop;
    loop.trip = writer.add(writer.sub(last, first), body.index(1));
    loop.var =
        writer.newVar("tile", LoopKind::Seq, rangeOfExtent(set.trips[i], writer.kernel.symbols));
    row = writer.add(row, writer.add(first, body.axis(loop.var)));
    rows.push_back(std::move(loop));
  }
  Stmt stmt;
  stmt.kind = StmtKind::Wait;
  stmt.counter = static_cast<CounterId>(wait.set);
  stmt.indices = {writer.add(row, first), writer.add(row, last)};
  stmt.value = body.dim(set.signals);
  for (; !rows.empty(); rows.pop_back()) {
    rows.back().body.push_back(std::move(stmt));
    stmt = std::move(rows.back());
  }
  result.push_back(std::move(stmt));
}

/// Behind a part's statements.
void PhaseLowering::signalTile(size_t number, Stmts &result) {
  const tiling::SignalSet &set = signals.sets[number];
  NodeId index = body.index(0);
  for (size_t i = 0; i < set.axes.size(); ++i)
    index = writer.add(writer.mul(index, body.dim(set.trips[i])),
                       parts.loops.value(parts.loops.path[set.axes[i]]));
  Stmt stmt;
  stmt.kind = StmtKind::Signal;
  stmt.counter = static_cast<CounterId>(number);
  stmt.indices = {index};
  result.push_back(std::move(stmt));
}

} // namespace fusec::lowering
