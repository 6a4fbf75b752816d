#include "Tiling/lower/StepValues.h"

namespace fusec::lowering {

NodeId StepValues::step() {
  NodeId step = gridStep >= 0 ? body.axis(gridStep) : kNoNode;
  for (const PathLoop &loop : loops.path)
    if (loop.node->axis == kStepAxis)
      step = body.axis(loop.var);
  assert(step != kNoNode && "per-step values are touched inside the step loop only");
  if (bound.scan()->reversed)
    step = writer.sub(body.dim(bound.scan()->steps - DimExpr(1)), step);
  return step;
}

/// Where a state begins in its two halves: the one that the step reads, or the one that it writes.
NodeId StepValues::halfOf(TensorId state, bool written) {
  NodeId step = body.axis(gridStep);
  if (written)
    step = writer.add(step, body.index(1));
  const NodeId half = writer.mod(step, body.index(2));
  return writer.mul(half, body.dim(numElements(bound.program.tensor(state).shape)));
}

NodeId StepValues::readAddress(TensorId tensor, BufferId buffer, NodeId flat) {
  const bool inHalves = bound.gridScan() && !buffers.shared(tensor);
  const bool written = inHalves && tiling::isNextState(*bound.scan(), tensor);
  if (written || (inHalves && tiling::isPreviousState(*bound.scan(), tensor)))
    flat = writer.add(flat, halfOf(tensor, written));
  if (bound.scan() && !written)
    for (const ScanOutput &output : bound.scan()->scanOutputs)
      if (output.perStep == tensor && buffer == buffers.global(output.stacked))
        flat = writer.add(
            flat, writer.mul(step(), body.dim(numElements(bound.program.tensor(tensor).shape))));
  return flat;
}

void StepValues::store(TensorId tensor, NodeId element, NodeId value, Stmts &result) {
  bool stacked = false;
  for (size_t o = 0; bound.scan() && o < bound.scan()->scanOutputs.size(); ++o)
    if (const ScanOutput &to = bound.scan()->scanOutputs[o]; to.perStep == tensor) {
      storeStacked(to, element, value, result);
      stacked = true;
    }
  if (bound.gridScan() && tiling::isNextState(*bound.scan(), tensor))
    result.push_back(
        storeStmt(buffers.global(tensor), {writer.add(element, halfOf(tensor, true))}, value));
  else if (!stacked)
    result.push_back(storeStmt(buffers.global(tensor), {element}, value));
}

/// Stores an element in the current step's slice of the stacked tensor, if the step has one.
void StepValues::storeStacked(const ScanOutput &to, NodeId element, NodeId value, Stmts &result) {
  NodeId slice = step(), exists = kNoNode;
  if (to.first >= 0) {
    slice = writer.sub(slice, body.index(to.first));
    const DimExpr &slices = bound.program.tensor(to.stacked).shape[0];
    exists =
        body.logicalAnd(writer.atMost(body.index(0), slice), writer.less(slice, body.dim(slices)));
  }
  const DimExpr size = numElements(bound.program.tensor(to.perStep).shape);
  const NodeId index = writer.add(element, writer.mul(slice, body.dim(size)));
  writer.guarded(exists, {storeStmt(buffers.global(to.stacked), {index}, value)}, result);
}

void StepValues::carry(int when, Stmts &result) {
  for (const auto &states : tiling::carriedStates(*bound.scan(), when)) {
    const TensorId from = states.first, to = states.second;
    const DimExpr size = numElements(bound.program.tensor(to).shape);
    NodeId origin = body.index(0);
    if (bound.gridScan() && when == 2)
      origin = body.dim(mod(bound.scan()->steps, DimExpr(2)) * size);
    if (when == 1)
      for (const ScanOutput &output : bound.scan()->scanOutputs)
        if (output.perStep == from && !buffers.shared(from))
          origin = writer.mul(step(), body.dim(numElements(bound.program.tensor(from).shape)));
    writer.cooperative(
        body.dim(size),
        [&](NodeId flat) {
          const NodeId value = body.read(buffers.memoryOf(from), bound.program.tensor(to).type,
                                         {writer.add(origin, flat)});
          return Stmts{storeStmt(buffers.memoryOf(to), {flat}, value)};
        },
        result);
  }
}

} // namespace fusec::lowering
