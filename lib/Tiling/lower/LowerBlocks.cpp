// The blocks of a phase: parts side by side, and what blocks of phases side by side tell each other
// (schedule/PhaseSignals.h).
#include "Tiling/lower/LowerContext.h"

namespace fusec::lowering {

namespace {

const TreeNode *nextBlockLoop(std::span<const TreeNode> nodes) {
  return nodes.size() == 1 && nodes[0].isLoop && nodes[0].loop == LoopKind::Block ? &nodes[0]
                                                                                  : nullptr;
}

/// `ends[p]`: the first block behind those of part p.
std::vector<Stmt> choiceOfParts(Body &body, NodeId block, std::span<const DimExpr> ends,
                                std::span<std::vector<Stmt>> parts) {
  if (parts.size() == 1)
    return std::move(parts[0]);
  const size_t half = parts.size() / 2;
  Stmt choice;
  choice.kind = StmtKind::If;
  choice.predicate = body.binary(ScalarOp::Lt, block, body.dim(ends[half - 1]));
  choice.body = choiceOfParts(body, block, ends.first(half), parts.first(half));
  choice.elseBody = choiceOfParts(body, block, ends.subspan(half), parts.subspan(half));
  std::vector<Stmt> statements;
  statements.push_back(std::move(choice));
  return statements;
}

} // namespace

/// Parts side by side share one grid: the first part has the first blocks. With two parts of [8] and [3,2] blocks,
///   phase (b in 14) { if b < 8 { .. m = b .. } else { .. i = (b - 8) / 2, j = (b - 8) mod 2 .. } }
/// More parts are halved by each choice, so that statements nest no deeper than the parts' number has digits.
Phase Lowering::lowerParts(std::span<const TreeNode> parts, std::optional<size_t> number) {
  Phase phase;
  std::vector<std::vector<const TreeNode *>> chains;
  std::vector<DimExpr> ends; // of each part's blocks
  for (const TreeNode &part : parts) {
    DimExpr blocks(1);
    std::vector<const TreeNode *> chain;
    for (const TreeNode *node = &part; node; node = nextBlockLoop(node->children)) {
      chain.push_back(node);
      blocks = blocks * ceilDiv(extent(node->axis), DimExpr(node->step));
    }
    chains.push_back(std::move(chain));
    ends.push_back(ends.empty() ? blocks : ends.back() + blocks);
  }
  const VarId var = newVar("part", LoopKind::Block, rangeOfExtent(ends.back(), symbols));
  phase.blocks.push_back({var, ends.back()});
  std::vector<std::vector<Stmt>> lowered(parts.size());
  for (size_t p = 0; p < parts.size(); ++p) {
    NodeId rest = body.axis(var);
    if (p > 0)
      rest = body.binary(ScalarOp::Sub, rest, body.dim(ends[p - 1]));
    for (size_t i = 0; i < chains[p].size(); ++i) {
      const TreeNode &node = *chains[p][i];
      DimExpr inner(1);
      for (size_t j = i + 1; j < chains[p].size(); ++j)
        inner = inner * ceilDiv(extent(chains[p][j]->axis), DimExpr(chains[p][j]->step));
      const bool single = ceilDiv(extent(node.axis), DimExpr(node.step)).isConst(1);
      NodeId value =
          single ? body.index(0) : body.binary(ScalarOp::FloorDiv, rest, body.dim(inner));
      rest = body.binary(ScalarOp::FloorMod, rest, body.dim(inner));
      path.push_back({&node, node.axis, node.step, LoopKind::Block, -1, value});
    }
    if (number)
      waitForTiles(*number, p, lowered[p]);
    lowerBlock(chains[p].back()->children, lowered[p]);
    if (number)
      signalTile(*number, p, lowered[p]);
    path.clear();
  }
  phase.body = choiceOfParts(body, body.axis(var), ends, lowered);
  return phase;
}

Phase Lowering::lowerTree(std::span<const TreeNode> level, std::optional<size_t> number) {
  if (isPack(level))
    return lowerParts(level, number);
  Phase phase;
  while (level.size() == 1 && level[0].isLoop && level[0].loop == LoopKind::Block) {
    const TreeNode &node = level[0];
    DimExpr trip = ceilDiv(extent(node.axis), DimExpr(node.step));
    VarId var =
        newVar(schedule.axes[node.axis].name, LoopKind::Block, rangeOfExtent(trip, symbols));
    phase.blocks.push_back({var, trip});
    path.push_back({&node, node.axis, node.step, LoopKind::Block, var});
    level = node.children;
  }
  if (number)
    waitForTiles(*number, 0, phase.body);
  lowerBlock(level, phase.body);
  if (number)
    signalTile(*number, 0, phase.body);
  path.clear();
  return phase;
}

void Lowering::declareCounters() {
  counters = tiling::phaseSignals(schedule, pattern);
  for (const tiling::SignalSet &set : counters.sets) {
    std::string name = "done" + std::to_string(set.phase);
    if (set.part > 0)
      name += "_" + std::to_string(set.part);
    kernel.counters.push_back({std::move(name), set.count});
  }
}

/// In front of a part's statements: `path` holds its loops over blocks. Tiles of several axes are waited for by rows:
///   seq m in 2 { wait %done0[(first + m)*12 + 3, (first + m)*12 + 5] for 1 }
void Lowering::waitForTiles(size_t phase, size_t part, std::vector<Stmt> &result) {
  for (const tiling::SignalWait &wait : counters.waits) {
    if (wait.phase != phase || wait.part != part)
      continue;
    const tiling::SignalSet &set = counters.sets[wait.set];
    auto imported = [&](NodeId id) {
      return body.import(wait.bounds, id, [&](const Scalar &copied, NodeId) {
        return copied.op == ScalarOp::Axis ? loopValue(path[static_cast<size_t>(copied.index)])
                                           : kNoNode;
      });
    };
    NodeId row = body.index(0), first = body.index(0), last = body.index(0);
    std::vector<Stmt> loops; // outermost first
    for (size_t i = 0; i < wait.tiles.size(); ++i) {
      row = body.binary(ScalarOp::Mul, row, body.dim(set.trips[i]));
      first = imported(wait.tiles[i].first);
      last = imported(wait.tiles[i].second);
      if (i + 1 == wait.tiles.size())
        break;
      Stmt loop;
      loop.kind = StmtKind::Loop;
      loop.trip =
          body.binary(ScalarOp::Add, body.binary(ScalarOp::Sub, last, first), body.index(1));
      IndexRange range = rangeOfExtent(set.trips[i], symbols);
      loop.var = newVar("tile", LoopKind::Seq, range);
      row = body.binary(ScalarOp::Add, row, body.binary(ScalarOp::Add, first, body.axis(loop.var)));
      loops.push_back(std::move(loop));
    }
    Stmt stmt;
    stmt.kind = StmtKind::Wait;
    stmt.counter = static_cast<CounterId>(wait.set);
    stmt.indices = {body.binary(ScalarOp::Add, row, first), body.binary(ScalarOp::Add, row, last)};
    stmt.value = body.dim(set.signals);
    while (!loops.empty()) {
      loops.back().body.push_back(std::move(stmt));
      stmt = std::move(loops.back());
      loops.pop_back();
    }
    result.push_back(std::move(stmt));
  }
}

/// Behind a part's statements.
void Lowering::signalTile(size_t phase, size_t part, std::vector<Stmt> &result) {
  for (size_t s = 0; s < counters.sets.size(); ++s) {
    const tiling::SignalSet &set = counters.sets[s];
    if (set.phase != phase || set.part != part)
      continue;
    NodeId index = body.index(0);
    for (size_t i = 0; i < set.axes.size(); ++i)
      index = body.binary(ScalarOp::Add, body.binary(ScalarOp::Mul, index, body.dim(set.trips[i])),
                          loopValue(path[set.axes[i]]));
    Stmt stmt;
    stmt.kind = StmtKind::Signal;
    stmt.counter = static_cast<CounterId>(s);
    stmt.indices = {index};
    result.push_back(std::move(stmt));
  }
}

} // namespace fusec::lowering
