// Phases of a kernel, and scans whose steps all blocks take together (schedule/GridScan.h).
#include "Tiling/lower/LowerContext.h"
#include "Tiling/schedule/GridScan.h"

namespace fusec::lowering {

void Lowering::lowerPhases() {
  declareCounters();
  std::vector<bool> waits = {false};
  for (const TreeNode &node : tree)
    if (node.isBorder())
      waits.push_back(!node.isBarrier());
  if (!scan)
    hold();
  size_t number = 0;
  for (std::span<const TreeNode> phase : phasesOf(tree)) {
    if (const TreeNode *loop = tiling::gridScanOf(phase)) {
      lowerGridScan(*loop);
    } else {
      holding = touchesPersistent(phase) ? Holding::Use : Holding::No;
      kernel.phases.push_back(lowerTree(phase, number));
      holding = Holding::No;
      kernel.phases.back().waiting = waits[number];
    }
    ++number;
  }
}

void Lowering::hold() {
  held = tiling::persistentReads(schedule, pattern);
  if (!held.empty())
    kernel.resident = newVar("resident", LoopKind::Seq, {0, 1, std::nullopt});
}

/// A scan's step loop over phases of the whole grid.
void Lowering::lowerGridScan(const TreeNode &loop) {
  const std::vector<std::span<const TreeNode>> inside = phasesOf(loop.children);
  const auto phasesBefore = static_cast<int>(kernel.phases.size());
  hold();
  if (!held.empty()) {
    holding = Holding::Fill;
    for (const tiling::PersistentRead &first : held)
      if (&first == &held[0] || first.phase != (&first - 1)->phase) {
        Phase fill = lowerTree(inside[static_cast<size_t>(first.phase - phasesBefore)]);
        fill.waiting = !kernel.phases.empty(); // reads what the kernel does not write
        kernel.phases.push_back(std::move(fill));
      }
  }
  Rounds rounds;
  rounds.count = scan->steps;
  rounds.var = roundVar = newVar("step", LoopKind::Seq, rangeOfExtent(scan->steps, symbols));
  rounds.first = kernel.phases.size();
  for (std::span<const TreeNode> phase : inside) {
    holding = held.empty() ? Holding::No : Holding::Use;
    kernel.phases.push_back(lowerTree(phase));
    holding = Holding::No;
  }
  rounds.last = kernel.phases.size();
  kernel.rounds = std::move(rounds);
}

const ScanCarry *Lowering::carryOf(TensorId tensor, bool next) const {
  for (const ScanCarry &carry : scan->carries)
    if ((next ? carry.next : carry.previous) == tensor)
      return &carry;
  return nullptr;
}

/// Device memory holds it too: it is stacked, or what rounds hand to the next step.
bool Lowering::outlivesStep(TensorId tensor) const {
  return scan && tiling::outlivesStep(*scan, tensor, inGridScan);
}

/// A map's value that several places hold: it waits in a register, not to be computed for each of them.
bool Lowering::isStoredTwice(int equation) const {
  const TensorId value = equations[equation]->outputs[0];
  if (equations[equation]->kind != EquationKind::Map || !outlivesStep(value))
    return false;
  const bool stacked =
      std::any_of(scan->scanOutputs.begin(), scan->scanOutputs.end(),
                  [&](const ScanOutput &output) { return output.perStep == value; });
  return levelOf(value) == MemLevel::Shared || (stacked && inGridScan && carryOf(value, true));
}

NodeId Lowering::halfOf(TensorId state, bool written) {
  NodeId step = body.axis(roundVar);
  if (written)
    step = body.binary(ScalarOp::Add, step, body.index(1));
  NodeId half = body.binary(ScalarOp::FloorMod, step, body.index(2));
  return body.binary(ScalarOp::Mul, half, body.dim(numElements(pattern.tensors[state].shape)));
}

/// One element of a step's value goes to the step's place, if it has one.
void Lowering::storeStacked(const ScanOutput &to, NodeId element, NodeId value,
                            std::vector<Stmt> &result) {
  NodeId step = stackedStep(), exists = kNoNode;
  if (to.first >= 0) {
    step = body.binary(ScalarOp::Sub, step, body.index(to.first));
    exists = body.logicalAnd(
        body.binary(ScalarOp::Le, body.index(0), step),
        body.binary(ScalarOp::Lt, step, body.dim(pattern.tensors[to.stacked].shape[0])));
  }
  const DimExpr size = numElements(pattern.tensors[to.perStep].shape);
  NodeId index =
      body.binary(ScalarOp::Add, element, body.binary(ScalarOp::Mul, step, body.dim(size)));
  guarded(exists, {storeStmt(globalBuffer(to.stacked), {index}, value)}, result);
}

} // namespace fusec::lowering
