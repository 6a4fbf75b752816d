#include "Tiling/lower/TreeLowering.h"

#include "Gir/Product.h"
#include "Gir/ResidentGrid.h"
#include "Tiling/schedule/CutTiles.h"

#include <algorithm>

namespace fusec::lowering {

using Mode = PersistentValues::Mode;

namespace {

bool isConstantTrip(LoopKind kind) {
  return kind == LoopKind::Unit || kind == LoopKind::Lane || kind == LoopKind::Unroll;
}

/// True if the first loop over `axis` below `nodes` has a constant trip and no loop inside that ends at the extent, as
/// a unit's loop over its rows does.
bool nextLoopIsConstantTrip(std::span<const TreeNode> nodes, AxisId axis) {
  return std::ranges::any_of(nodes, [&](const TreeNode &n) {
    const LoopNode *loop = n.loop();
    if (!loop || loop->axis != axis)
      return nextLoopIsConstantTrip(n.children(), axis);
    return isConstantTrip(loop->kind) &&
           (loop->kind != LoopKind::Unit || !anyNode(loop->children, [&](const TreeNode &inner) {
              const LoopNode *seq = inner.loop(LoopKind::Seq);
              return seq && seq->axis == axis;
            }));
  });
}

bool isAroundCombine(const LoopNode &loop) {
  return loop.kind == LoopKind::Lane &&
         anyNode(loop.children, [](const TreeNode &n) { return n.leaf(LeafKind::Combine); });
}

/// True for what merges the partial results of a block's units, and nothing else.
bool mergesUnits(const BoundSchedule &bound, const TreeNode &node) {
  if (const LeafNode *leaf = node.leaf())
    return leaf->kind == LeafKind::Combine && bound.schedule.units > 1 &&
           tiling::sharesReduction(bound, leaf->equation, LoopKind::Unit);
  return std::ranges::all_of(node.children(),
                             [&](const TreeNode &child) { return mergesUnits(bound, child); });
}

/// True if no other loops run over the axis.
bool isWalkedByLanes(std::span<const TreeNode> nodes, AxisId axis) {
  return !anyNode(nodes, [&](const TreeNode &node) {
    const LoopNode *loop = node.loop();
    return loop && loop->axis == axis && loop->kind != LoopKind::Lane;
  });
}

} // namespace

TreeLowering::TreeLowering(LoweringParts &parts) : parts(parts) {
  for (size_t e = 0; e < parts.bound.program.equations.size(); ++e)
    equations.push_back(lowerEquation(parts, static_cast<int>(e)));
}

/// Where threads keep persistent values, the statements exist twice: for a grid of which all blocks are resident, and
/// for any other.
void TreeLowering::lowerBlock(std::span<const TreeNode> nodes, Stmts &result) {
  Mode &mode = parts.persistent.mode;
  if (mode == Mode::Off)
    return lowerChildren(nodes, result);
  Stmt choice;
  choice.kind = StmtKind::If;
  choice.predicate = residentTest(parts.writer.kernel);
  lowerChildren(nodes, choice.body);
  if (mode == Mode::Use) {
    mode = Mode::Off;
    lowerChildren(nodes, choice.elseBody);
    mode = Mode::Use;
  }
  result.push_back(std::move(choice));
}

void TreeLowering::lowerAll(std::span<const TreeNode> nodes, Stmts &result) {
  for (const TreeNode &node : nodes)
    node.loop() ? lowerLoop(*node.loop(), result) : lowerLeaf(*node.leaf(), result);
}

void TreeLowering::lowerLoop(const LoopNode &node, Stmts &result) {
  Body &body = parts.writer.body;
  const bool isStep = node.axis == kStepAxis;
  const std::string axis = isStep ? "step" : parts.bound.schedule.axes[node.axis].name;
  if (endsInOneCutRound(node))
    return lowerWholeAndCutRounds(node, result);
  if (isAroundCombine(node))
    return lowerAroundCombine(node, result);
  const NodeId trip = loops.trip(node);
  if (isConstantTrip(node.kind) && body[trip].op != ScalarOp::Const)
    return parts.writer.problem(node, " has a constant trip, given ", parts.bound.trip(node),
                                "; tile a loop around it");
  Stmt loop = parts.writer.loop(node.kind, trip, axis);
  loops.path.push_back({&node, loop.var});

  // A constant-trip loop that is the first one over its axis may cover more than the extent.
  const bool isFirst = std::ranges::count_if(loops.path, [&](const PathLoop &l) {
                         return l.node->axis == node.axis;
                       }) == 1;
  const bool runsPast = !isStep && isFirst && isConstantTrip(node.kind) &&
                        loops.extent(node.axis) != DimExpr(body[trip].imm * node.step) &&
                        loops.checked.insert(node.axis).second;
  lowerChildren(node.children, loop.body);
  nameKernel(node, loop);
  parts.persistent.unrollOverRegisters(loop, axis);
  if (runsPast)
    loops.checked.erase(node.axis);
  loops.path.pop_back();
  result.push_back(std::move(loop));
}

/// Gives the outermost of a micro-kernel's loops, `node`, its name. Where a tile that may be cut reads operands under
/// conditions its loops are as any others.
void TreeLowering::nameKernel(const LoopNode &node, Stmt &loop) {
  const auto isOfTile = [](const LoopNode &one) {
    return (one.kind == LoopKind::Unroll || one.kind == LoopKind::Lane) && one.children.size() == 1;
  };
  const size_t depth = loops.path.size();
  if (!isOfTile(node) || (depth > 1 && isOfTile(*loops.path[depth - 2].node)))
    return;
  const LoopNode *inside = &node;
  const LeafNode *leaf = nullptr;
  for (; inside && isOfTile(*inside); inside = inside->children[0].loop())
    leaf = inside->children[0].leaf(LeafKind::Compute);
  if (!leaf || leaf->kernel.empty())
    return;
  if (productOf(parts.writer.kernel, loop)) {
    loop.kernel = leaf->kernel;
  } else if (loops.checked.empty()) {
    parts.writer.problem(*leaf, " reads both factors at places of their own, in any case, given a "
                                "read that depends on others; leave the kernel out");
  }
}

/// Lanes around a Combine say of which of their elements it is. The loops over lanes in which it takes place are its
/// own, with barriers between them.
void TreeLowering::lowerAroundCombine(const LoopNode &lanes, Stmts &result) {
  loops.path.push_back({&lanes, -1, parts.writer.body.index(0)});
  lowerAll(lanes.children, result);
  loops.path.pop_back();
}

/// True for a loop that steps over tiles whose inside is covered by constant-trip loops.
bool TreeLowering::stepsOverTiles(const LoopNode &loop) const {
  return loop.axis != kStepAxis && !isConstantTrip(loop.kind) &&
         nextLoopIsConstantTrip(loop.children, loop.axis);
}

/// True for a GPU's loop of nothing but sums, each of one result a lane, over all of an axis of which one round, the
/// last, may be cut. A round that is a tile of products has several reads anyhow, and few registers left; CPUs guess
/// which round it is and read ahead.
bool TreeLowering::endsInOneCutRound(const LoopNode &loop) const {
  const bool onlySums = !anyNode(loop.children, [&](const TreeNode &n) {
    return n.leaf() ? n.leaf()->kind != LeafKind::Compute : n.loop()->axis != loop.axis;
  });
  return parts.writer.units > 1 && loop.kind == LoopKind::Seq && onlySums && stepsOverTiles(loop) &&
         parts.persistent.mode == Mode::Off && !inCutTile() &&
         !loops.extent(loop.axis).divisibleBy(loop.step, parts.writer.kernel.symbols) &&
         std::ranges::none_of(loops.path,
                              [&](const PathLoop &l) { return l.node->axis == loop.axis; });
}

/// The rounds over whole tiles, and behind them the one that may be cut. A round that had to ask which it is would hold
/// back its reads until the answer is known: AMD's back end has one of them on its way then, in place of several.
void TreeLowering::lowerWholeAndCutRounds(const LoopNode &node, Stmts &result) {
  KernelWriter &writer = parts.writer;
  const DimExpr &extent = loops.extent(node.axis);
  const DimExpr whole = floorDiv(extent, DimExpr(node.step));
  if (!whole.isConst(0)) {
    Stmt loop =
        writer.loop(node.kind, writer.body.dim(whole), parts.bound.schedule.axes[node.axis].name);
    loops.path.push_back({&node, loop.var});
    lowerAll(node.children, loop.body);
    loops.path.pop_back();
    result.push_back(std::move(loop));
  }
  Stmts last;
  loops.path.push_back({&node, -1, writer.body.dim(whole)});
  lowerCut(node.children, {node.axis}, last);
  loops.path.pop_back();
  const NodeId isLeft =
      writer.less(writer.body.dim(whole * DimExpr(node.step)), writer.body.dim(extent));
  writer.guarded(extent.isConst() ? kNoNode : isLeft, std::move(last), result);
}

/// Axes whose tile below the innermost loop may be cut at the extent, and of which that is not yet known. Block loops
/// come in chains that are all asked at the innermost.
std::vector<AxisId> TreeLowering::axesCutHere() const {
  std::vector<AxisId> cut;
  const std::vector<PathLoop> &path = loops.path;
  for (size_t i = path.size(); i-- > 0;) {
    const LoopNode &loop = *path[i].node;
    if (i + 1 < path.size() && loop.kind != LoopKind::Block)
      break;
    if (stepsOverTiles(loop) && loops.checked.count(loop.axis) == 0 &&
        !loops.extent(loop.axis).divisibleBy(loop.step, parts.writer.kernel.symbols))
      cut.push_back(loop.axis);
    if (loop.kind != LoopKind::Block)
      break;
  }
  return cut;
}

/// True inside of the version for cut tiles: another one would only save the checks of one axis in a rare tile.
bool TreeLowering::inCutTile() const {
  return std::ranges::any_of(loops.checked, [&](AxisId a) { return checkedByLanes.count(a) == 0; });
}

/// Statements of one tree level. If the loop around them steps over tiles that may be cut at the extent, they are made
/// for a full tile and for a cut one.
void TreeLowering::lowerChildren(std::span<const TreeNode> nodes, Stmts &result) {
  const std::vector<AxisId> cut = axesCutHere();
  if (cut.empty())
    return lowerAll(nodes, result);
  // A GPU's lanes ask for themselves where units combine what they have: a second version of that would have barriers
  // and buffers of its own.
  const auto byLanes = std::ranges::find_if(cut, [&](AxisId a) {
    return parts.writer.units > 1 && isWalkedByLanes(nodes, a) &&
           anyNode(nodes, [](const TreeNode &n) { return n.leaf(LeafKind::Combine); });
  });
  if (byLanes != cut.end()) {
    loops.checked.insert(*byLanes);
    checkedByLanes.insert(*byLanes);
    lowerChildren(nodes, result);
    checkedByLanes.erase(*byLanes);
    loops.checked.erase(*byLanes);
    return;
  }
  // Neither does what merges units' sums ask for bounds.
  while (!nodes.empty()) {
    const auto merge =
        std::ranges::find_if(nodes, [&](const TreeNode &n) { return mergesUnits(parts.bound, n); });
    const size_t before = merge - nodes.begin(), with = std::min(before + 1, nodes.size());
    if (before > 0)
      lowerBothVersions(nodes.first(before), cut, result);
    lowerAll(nodes.subspan(before, with - before), result);
    nodes = nodes.subspan(with);
  }
}

void TreeLowering::lowerBothVersions(std::span<const TreeNode> nodes,
                                     const std::vector<AxisId> &cut, Stmts &result) {
  if (inCutTile())
    return lowerCut(nodes, cut, result);
  KernelWriter &writer = parts.writer;
  Stmt choice;
  choice.kind = StmtKind::If;
  for (AxisId a : cut) {
    const int64_t tile = loops.tile(a);
    const NodeId end = writer.add(loops.axisValue(a), writer.body.index(tile));
    choice.predicate = writer.body.logicalAnd(choice.predicate,
                                              writer.atMost(end, writer.body.dim(loops.extent(a))));
  }
  lowerAll(nodes, choice.body);
  lowerCut(nodes, cut, choice.elseBody);
  result.push_back(std::move(choice));
}

void TreeLowering::lowerCut(std::span<const TreeNode> nodes, const std::vector<AxisId> &cut,
                            Stmts &result) {
  loops.checked.insert(cut.begin(), cut.end());
  lowerPieces(nodes, cut, result);
  for (AxisId a : cut)
    loops.checked.erase(a);
}

/// Statements of a tile that may be cut: in pieces along the axes that cut it, of which those beyond an extent are left
/// out.
void TreeLowering::lowerPieces(std::span<const TreeNode> nodes, std::span<const AxisId> cut,
                               Stmts &result) {
  if (cut.empty())
    return lowerAll(nodes, result);
  const AxisId axis = cut.front();
  const LoopNode *tile = tiling::innermost(loops.nodes(), axis);
  const int64_t step = tile ? tiling::pieceOfCutTile(parts.bound, *tile) : 0;
  if (step == 0)
    return lowerPieces(nodes, cut.subspan(1), result);
  KernelWriter &writer = parts.writer;
  Body &body = writer.body;
  const NodeId left = writer.sub(body.dim(loops.extent(axis)), loops.axisValue(axis)),
               most = writer.min(left, body.index(tile->step - 1)),
               pieces = writer.div(writer.add(most, body.index(step - 1)), body.index(step));
  Stmt loop = writer.loop(LoopKind::Seq, pieces, parts.bound.schedule.axes[axis].name);
  const LoopNode piece{LoopKind::Seq, axis, step};
  loops.path.push_back({&piece, loop.var});
  lowerPieces(nodes, cut.subspan(1), loop.body);
  loops.path.pop_back();
  if (loops.checked.size() == 1) // nothing else makes this version run
    return result.push_back(std::move(loop));
  Stmt choice;
  choice.kind = StmtKind::If;
  choice.predicate = writer.atMost(body.index(tile->step), left);
  loops.checked.erase(axis);
  lowerPieces(nodes, cut.subspan(1), choice.body);
  loops.checked.insert(axis);
  choice.elseBody.push_back(std::move(loop));
  result.push_back(std::move(choice));
}

void TreeLowering::lowerLeaf(const LeafNode &leaf, Stmts &result) {
  if (leaf.kind == LeafKind::Compute)
    return lowerCompute(leaf, result);
  if (parts.persistent.mode == PersistentValues::Mode::Fill)
    return;
  const auto equation = static_cast<size_t>(leaf.equation);
  switch (leaf.kind) {
  case LeafKind::Init: return equations[equation]->init(result);
  case LeafKind::Correct: return equations[equation]->correct(leaf.rank, result);
  case LeafKind::Combine: return equations[equation]->combine(result);
  case LeafKind::Sort: return equations[equation]->sort(result);
  case LeafKind::Select: return equations[equation]->select(result);
  case LeafKind::Store: return equations[equation]->store(result);
  case LeafKind::Stage: return stages.stage(leaf.operand, result);
  case LeafKind::Carry: return parts.steps.carry(leaf.carry, result);
  case LeafKind::Compute:
  case LeafKind::Barrier:
  case LeafKind::Counters: return; // the last two end a phase (phasesOf)
  }
}

void TreeLowering::lowerCompute(const LeafNode &compute, Stmts &result) {
  PersistentValues &persistent = parts.persistent;
  if (persistent.mode == Mode::Fill)
    return persistent.fill(parts.reads, compute.equation, result);
  parts.reads.computeRank = compute.rank;
  if (persistent.mode == Mode::Use && !parts.bound.scan()) {
    persistent.mode = Mode::Fill;
    persistent.fill(parts.reads, compute.equation, result);
    persistent.mode = Mode::Use;
  }
  equations[static_cast<size_t>(compute.equation)]->compute(compute.rank, result);
  parts.reads.computeRank = -1;
}

} // namespace fusec::lowering
