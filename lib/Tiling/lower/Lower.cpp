#include "Support/Diag.h"
#include "Tiling/lower/LowerContext.h"
#include "Tiling/schedule/GridScan.h"
#include "Tiling/schedule/Statements.h"

#include <algorithm>

namespace fusec::lowering {

Lowering::Lowering(const ExprProgram &pattern, const Schedule &schedule,
                   const std::vector<Symbol> &symbols)
    : pattern(pattern), schedule(schedule), symbols(symbols), tree(schedule.tree),
      equations(scheduledEquations(pattern)), scan(scanOf(pattern)),
      inGridScan(tiling::hasGridScan(schedule)), kernel(out.kernel), body(out.kernel.body) {}

void Lowering::problem(std::string text) { problems.push_back(std::move(text)); }

VarId Lowering::newVar(const std::string &name, LoopKind kind, IndexRange range) {
  VarId var = static_cast<VarId>(kernel.vars.size());
  kernel.vars.push_back({name + "_" + std::to_string(var), kind});
  body.axisRanges.push_back(range);
  return var;
}

namespace {

bool findIn(const std::vector<TreeNode> &nodes,
            const std::function<bool(const TreeNode &)> &matches, TreePath &chain) {
  for (const TreeNode &node : nodes) {
    chain.push_back(&node);
    if (node.isLoop ? findIn(node.children, matches, chain) : matches(node))
      return true;
    chain.pop_back();
  }
  return false;
}

bool isConstantTrip(LoopKind kind) {
  return kind == LoopKind::Unit || kind == LoopKind::Lane || kind == LoopKind::Unroll;
}

bool hasSeqLoop(const std::vector<TreeNode> &nodes, AxisId axis) {
  return std::any_of(nodes.begin(), nodes.end(), [&](const TreeNode &n) {
    return n.isLoop &&
           ((n.axis == axis && n.loop == LoopKind::Seq) || hasSeqLoop(n.children, axis));
  });
}

/// True if the first loop over `axis` below `nodes` has a constant trip and no loop inside that ends at the extent, as
/// a unit's loop over its rows does.
bool nextLoopIsConstantTrip(const std::vector<TreeNode> &nodes, AxisId axis) {
  for (const TreeNode &node : nodes) {
    if (!node.isLoop)
      continue;
    if (node.axis == axis) {
      if (isConstantTrip(node.loop) &&
          (node.loop != LoopKind::Unit || !hasSeqLoop(node.children, axis)))
        return true;
      continue;
    }
    if (nextLoopIsConstantTrip(node.children, axis))
      return true;
  }
  return false;
}

bool hasCombine(std::span<const TreeNode> nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](const TreeNode &n) {
    return n.isLoop ? hasCombine(n.children) : n.leaf == LeafKind::Combine;
  });
}

/// No other loops run over the axis.
bool isWalkedByLanes(std::span<const TreeNode> nodes, AxisId axis) {
  return std::all_of(nodes.begin(), nodes.end(), [&](const TreeNode &n) {
    return !n.isLoop ||
           ((n.axis != axis || n.loop == LoopKind::Lane) && isWalkedByLanes(n.children, axis));
  });
}

} // namespace

std::optional<TreePath> Lowering::findLeaf(LeafKind kind, int target) const {
  TreePath chain;
  auto matches = [&](const TreeNode &leaf) { return leaf.leaf == kind && leaf.target == target; };
  if (findIn(tree, matches, chain))
    return chain;
  return std::nullopt;
}

/// Paths to the statements that read the tensor.
std::vector<TreePath> Lowering::findConsumers(TensorId tensor) const {
  std::vector<TreePath> paths;
  for (size_t e = 0; e < equations.size(); ++e) {
    std::vector<NodeId> reads = readsOf(*equations[e]);
    bool consumes = std::any_of(reads.begin(), reads.end(), [&](NodeId read) {
      return equations[e]->body[read].index == tensor;
    });
    if (auto path = consumes ? findLeaf(LeafKind::Compute, static_cast<int>(e)) : std::nullopt)
      paths.push_back(std::move(*path));
  }
  return paths;
}

int64_t Lowering::tileIn(const TreePath &chain, size_t length, AxisId axis) const {
  DimExpr tile = extent(axis);
  for (size_t i = 0; i < length; ++i)
    if (chain[i]->isLoop && chain[i]->axis == axis)
      tile = DimExpr(chain[i]->step);
  return tile.isConst() ? tile.constValue() : 0;
}

/// An edge raised above registers needs the producer's values in memory before the consumer's statements: where
/// the tree has no Store of the producer, one is put in front of the first consumer, under loops like the consumer's.
void Lowering::materialiseEdges() {
  for (const EdgeLevel &edge : schedule.edges) {
    int producer = producerOf(edge.tensor);
    if (edge.level == MemLevel::Register || producer < 0 ||
        equations[producer]->kind != EquationKind::Reduction || findLeaf(LeafKind::Store, producer))
      continue;
    auto reads = [&](const TreeNode &leaf) {
      return tiling::readsValue(leaf, edge.tensor, schedule, equations);
    };
    TreePath consumer;
    auto compute = findLeaf(LeafKind::Compute, producer);
    if (!compute || !findIn(tree, reads, consumer))
      continue;
    size_t common = 0;
    while (consumer[common] == (*compute)[common])
      ++common;
    auto &siblings = common == 0 ? tree : const_cast<TreeNode *>(consumer[common - 1])->children;
    auto place = std::find_if(siblings.begin(), siblings.end(),
                              [&](const TreeNode &n) { return &n == consumer[common]; });
    TreeNode store = *place;
    TreeNode *node = &store;
    for (size_t i = common + 1; i < consumer.size(); ++i) {
      auto position = consumer[i] - consumer[i - 1]->children.data();
      TreeNode child = node->children[position];
      node->children.assign(1, std::move(child));
      node = &node->children[0];
    }
    node->leaf = LeafKind::Store;
    node->target = producer;
    siblings.insert(place, std::move(store));
  }
}

NodeId Lowering::tripOf(const TreeNode &node) {
  if (node.axis == kStepAxis)
    return body.dim(scan->steps);
  DimExpr whole = extent(node.axis);
  bool outermost = true, unitsPastEnd = false; // units of the last block that have nothing to do
  int64_t tile = 0;
  for (const PathLoop &loop : path)
    if (loop.axis == node.axis) {
      if (loop.kind == LoopKind::Unit && !outermost)
        unitsPastEnd = !whole.divisibleBy(tile, symbols);
      outermost = false;
      tile = loop.step;
    }
  if (outermost)
    return body.dim(ceilDiv(whole, DimExpr(node.step)));
  if (tile % node.step != 0)
    problem("loop " + std::string(name(node.loop)) + " " + schedule.axes[node.axis].name + ":" +
            std::to_string(node.step) + " does not divide the " + std::to_string(tile) +
            " around it");
  if (node.loop != LoopKind::Seq || (whole.divisibleBy(tile, symbols) && !unitsPastEnd))
    return body.index(tile / node.step);
  // The last tile of an outer loop is cut at the extent.
  NodeId left = body.binary(ScalarOp::Sub, body.dim(whole), axisValue(node.axis));
  NodeId here = body.binary(ScalarOp::Min, left, body.index(tile));
  if (unitsPastEnd)
    here = body.binary(ScalarOp::Max, here, body.index(0));
  NodeId rounded = body.binary(ScalarOp::Add, here, body.index(node.step - 1));
  return body.binary(ScalarOp::FloorDiv, rounded, body.index(node.step));
}

void Lowering::lowerLoop(const TreeNode &node, std::vector<Stmt> &result) {
  Stmt loop;
  loop.kind = StmtKind::Loop;
  loop.loop = node.loop;
  loop.trip = tripOf(node);
  if (isConstantTrip(node.loop) && body[loop.trip].op != ScalarOp::Const)
    return problem("a " + std::string(name(node.loop)) + " loop over " +
                   schedule.axes[node.axis].name + " needs a constant trip");
  IndexRange range = body.rangeOf(loop.trip);
  int64_t maxTrip = range.max == INT64_MAX ? INT64_MAX : range.max - 1;
  std::string axisName = node.axis == kStepAxis ? "step" : schedule.axes[node.axis].name;
  loop.var = newVar(axisName, node.loop, {0, maxTrip, std::nullopt});
  path.push_back({&node, node.axis, node.step, node.loop, loop.var});

  // A constant-trip loop that is the first one over its axis may cover more than the extent.
  Check before = node.axis == kStepAxis ? Check::None : checks[node.axis];
  bool first = std::count_if(path.begin(), path.end(),
                             [&](const PathLoop &l) { return l.axis == node.axis; }) == 1;
  if (node.axis != kStepAxis && first && isConstantTrip(node.loop)) {
    int64_t covered = body[loop.trip].imm * node.step;
    if (extent(node.axis) != DimExpr(covered))
      checks[node.axis] = Check::Needed;
  }
  lowerChildren(node.children, loop.body);
  if (stepsOverRegisters.count(loop.var) != 0) {
    loop.loop = kernel.vars[static_cast<size_t>(loop.var)].kind = LoopKind::Unroll;
    if (body[loop.trip].op != ScalarOp::Const)
      problem("what is held in registers needs constant trips of " + axisName);
  }
  if (node.axis != kStepAxis)
    checks[node.axis] = before;
  path.pop_back();
  result.push_back(std::move(loop));
}

/// True for a loop that steps over tiles whose inside is covered by constant-trip loops.
bool Lowering::tilesOf(const TreeNode &node) const {
  return node.isLoop && node.axis != kStepAxis && !isConstantTrip(node.loop) &&
         nextLoopIsConstantTrip(node.children, node.axis);
}

/// Statements of one tree level. `path.back()` is the loop around them: if it steps over tiles that may be cut at
/// the extent, the statements are made for a full tile and for a cut one.
void Lowering::lowerChildren(std::span<const TreeNode> nodes, std::vector<Stmt> &result) {
  auto lowerAll = [&](std::vector<Stmt> &into) {
    for (const TreeNode &node : nodes) {
      if (node.isLoop)
        lowerLoop(node, into);
      else
        lowerLeaf(node, into);
    }
  };
  // Block loops come in chains whose decisions are all taken at the innermost.
  std::vector<AxisId> undecided;
  for (size_t i = path.size(); i-- > 0;) {
    const PathLoop &loop = path[i];
    bool own = i + 1 == path.size() || loop.kind == LoopKind::Block;
    if (!own)
      break;
    if (tilesOf(*loop.node) && !extent(loop.axis).divisibleBy(loop.step, symbols))
      undecided.push_back(loop.axis);
    if (loop.kind != LoopKind::Block)
      break;
  }
  std::erase_if(undecided, [&](AxisId a) { return checks[a] == Check::Needed; });
  if (undecided.empty())
    return lowerAll(result);
  // A GPU's lanes ask for themselves where units combine what they have: a second version of that would have barriers
  // and buffers of its own.
  auto lanesAlone = std::find_if(undecided.begin(), undecided.end(), [&](AxisId a) {
    return schedule.units > 1 && hasCombine(nodes) && isWalkedByLanes(nodes, a);
  });
  if (lanesAlone != undecided.end()) {
    const AxisId a = *lanesAlone;
    checks[a] = Check::Needed;
    checkedByLanes.insert(a);
    lowerChildren(nodes, result);
    checkedByLanes.erase(a);
    checks[a] = Check::None;
    return;
  }
  bool alreadyChecked = std::any_of(checks.begin(), checks.end(), [&](const auto &entry) {
    return entry.second == Check::Needed && checkedByLanes.count(entry.first) == 0;
  });
  if (alreadyChecked) { // a third version would only save the checks of one axis in a rare tile
    for (AxisId a : undecided)
      checks[a] = Check::Needed;
    lowerAll(result);
    for (AxisId a : undecided)
      checks[a] = Check::None;
    return;
  }
  Stmt choice;
  choice.kind = StmtKind::If;
  choice.predicate = kNoNode;
  for (AxisId a : undecided) {
    int64_t tile = tileAt(a, path.size());
    NodeId end = body.binary(ScalarOp::Add, axisValue(a), body.index(tile));
    choice.predicate =
        body.logicalAnd(choice.predicate, body.binary(ScalarOp::Le, end, body.dim(extent(a))));
  }
  lowerAll(choice.body);
  for (AxisId a : undecided)
    checks[a] = Check::Needed;
  lowerAll(choice.elseBody);
  for (AxisId a : undecided)
    checks[a] = Check::None;
  result.push_back(std::move(choice));
}

/// Scatter's base: the output starts as a copy, made by all blocks before the first update.
Phase Lowering::copyPhase(TensorId from, TensorId to) {
  constexpr int64_t kPerLane = 16;
  int64_t chunk = int64_t{schedule.units} * schedule.lanes * kPerLane;
  DimExpr total = numElements(pattern.tensors[to].shape);
  Phase phase;
  DimExpr trip = ceilDiv(total, DimExpr(chunk));
  VarId block = newVar("copy", LoopKind::Block, {0, INT64_MAX, std::nullopt});
  phase.blocks.push_back({block, trip});
  NodeId origin = body.binary(ScalarOp::Mul, body.axis(block), body.index(chunk));
  NodeId count = body.binary(ScalarOp::Min, body.index(chunk),
                             body.binary(ScalarOp::Sub, body.dim(total), origin));
  BufferId source = globalBuffer(from), target = globalBuffer(to);
  cooperative(
      count,
      [&](NodeId flat) {
        NodeId index = body.binary(ScalarOp::Add, origin, flat);
        Stmt store;
        store.buffer = target;
        store.indices = {index};
        store.value = body.read(source, kernel.buffers[source].type, {index});
        return std::vector<Stmt>{store};
      },
      phase.body);
  return phase;
}

Status Lowering::prepare() {
  kernel.name = schedule.name;
  kernel.symbols = symbols;
  kernel.units = schedule.units;
  kernel.lanes = schedule.lanes;
  body.symbolTable = symbols;
  materialiseEdges();
  FUSEC_CHECK(makeBuffers());
  accumulators.resize(equations.size());
  staged.resize(schedule.operands.size());
  for (size_t e = 0; e < equations.size(); ++e)
    FUSEC_CHECK(makeAccumulators(static_cast<int>(e)));
  return success();
}

Result<LoweredKernel> Lowering::run() {
  FUSEC_CHECK(prepare());
  if (!scan && equations.size() == 1 && equations[0]->kind == EquationKind::Scatter)
    kernel.phases.push_back(copyPhase(equations[0]->base, equations[0]->outputs[0]));
  lowerPhases();
  if (!problems.empty()) {
    Diagnostics errors;
    for (const std::string &text : problems)
      errors.push_back({Diag::BadIr, "schedule " + schedule.name, text});
    return errors;
  }
  return std::move(out);
}

} // namespace fusec::lowering

namespace fusec {

Result<LoweredKernel> lowerSchedule(const ExprProgram &pattern, const Schedule &schedule,
                                    const std::vector<Symbol> &symbols) {
  const ScheduledPattern scheduled(schedule, pattern);
  return lowering::Lowering(scheduled.program(), schedule, symbols).run();
}

Shape packedShape(const Schedule &schedule, const Operand &operand) {
  Shape shape;
  for (const LayoutDigit &digit : operand.digits)
    shape.push_back(digit.modulus != 0
                        ? DimExpr(digit.modulus)
                        : ceilDiv(schedule.axes[digit.axis].extent, DimExpr(digit.divide)));
  return shape;
}

} // namespace fusec
