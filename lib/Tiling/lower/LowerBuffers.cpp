// Buffers of a lowered kernel: parameters, shared edges, accumulators.
#include "Support/Diag.h"
#include "Tiling/lower/LowerContext.h"

#include <algorithm>

namespace fusec::lowering {

Status Lowering::makeBuffers() {
  std::vector<bool> raw(pattern.tensors.size(), false), written(pattern.tensors.size(), false);
  auto need = [&](TensorId t, bool writes) {
    if (t < 0)
      return;
    raw[t] = true;
    written[t] = written[t] || writes;
  };
  for (size_t e = 0; e < equations.size(); ++e) {
    const Equation &equation = *equations[e];
    std::vector<NodeId> reads = readsOf(equation);
    for (size_t r = 0; r < reads.size(); ++r) {
      bool packed =
          std::any_of(schedule.operands.begin(), schedule.operands.end(), [&](const Operand &o) {
            return o.level == MemLevel::Global && o.equation == static_cast<int>(e) &&
                   o.read == static_cast<int>(r);
          });
      if (!packed && levelOf(equation.body[reads[r]].index) == MemLevel::Global)
        need(equation.body[reads[r]].index, false);
    }
    // A staged element is evaluated from the tensors themselves, with all reads inside its indices and predicate.
    for (const Operand &operand : schedule.operands)
      if (operand.level == MemLevel::Shared && operand.equation == static_cast<int>(e))
        for (NodeId id : equation.body.reachable({reads[operand.read]}))
          if (std::find(reads.begin(), reads.end(), id) != reads.end() &&
              levelOf(equation.body[id].index) == MemLevel::Global)
            need(equation.body[id].index, false);
    for (TensorId t : equation.outputs)
      if (levelOf(t) == MemLevel::Global)
        need(t, true);
    need(equation.base, false);
    for (TensorId t : equation.opaqueInputs)
      need(t, false);
  }
  if (scan) {
    for (const ScanCarry &carry : scan->carries) {
      need(carry.init, false);
      need(carry.final, true);
      if (levelOf(carry.previous) == MemLevel::Global)
        need(carry.previous, true);
    }
    for (const ScanOutput &output : scan->scanOutputs) {
      need(output.stacked, true);
      raw[output.perStep] = false; // lives in its slice of the stacked tensor
    }
    if (inGridScan)
      for (const ScanCarry &carry : scan->carries)
        raw[carry.next] = false; // lives in the half of the state that is written
  }
  auto addParam = [&](const std::string &bufferName, DType type, Shape shape, bool isWritten,
                      KernelParam param) {
    GirBuffer buffer;
    buffer.name = bufferName;
    buffer.type = type;
    buffer.shape = {numElements(shape)};
    buffer.written = isWritten;
    buffer.scratch =
        isWritten && param.tensor >= 0 && pattern.tensors[param.tensor].kind == TensorKind::Temp;
    kernel.buffers.push_back(std::move(buffer));
    out.params.push_back(param);
    return static_cast<BufferId>(kernel.buffers.size() - 1);
  };
  for (size_t t = 0; t < pattern.tensors.size(); ++t) {
    const Tensor &tensor = pattern.tensors[t];
    if (!raw[t])
      continue;
    KernelParam param{static_cast<TensorId>(t), -1};
    Shape shape = tensor.shape;
    if (inGridScan && carryOf(param.tensor, false)) {
      param.copies = 2;
      shape.insert(shape.begin(), DimExpr(param.copies));
    }
    globals[param.tensor] = addParam(tensor.name, tensor.type, shape, written[t], param);
  }
  for (size_t o = 0; o < schedule.operands.size(); ++o) {
    const Operand &operand = schedule.operands[o];
    if (operand.level != MemLevel::Global)
      continue;
    const Equation &e = *equations[operand.equation];
    TensorId tensor = e.body[readsOf(e)[operand.read]].index;
    globals[-2 - static_cast<TensorId>(o)] =
        addParam(operand.name, pattern.tensors[tensor].type, packedShape(schedule, operand), false,
                 {tensor, static_cast<int>(o)});
  }
  if (scan)
    for (const ScanOutput &output : scan->scanOutputs)
      globals[output.perStep] = globals.at(output.stacked);
  if (inGridScan)
    for (const ScanCarry &carry : scan->carries)
      globals[carry.next] = globals.at(carry.previous);

  for (const EdgeLevel &edge : schedule.edges) {
    if (edge.level != MemLevel::Shared)
      continue;
    const Tensor &tensor = pattern.tensors[edge.tensor];
    GirBuffer buffer;
    buffer.name = tensor.name + ".shared";
    buffer.level = MemLevel::Shared;
    buffer.type = tensor.type;
    Local local;
    int64_t elements = 1;
    int producer = producerOf(edge.tensor);
    if ((scan && !inGridScan) || producer < 0) {
      DimExpr total = numElements(tensor.shape);
      if (!total.isConst())
        return Diagnostic{Diag::BadIr, "schedule " + schedule.name,
                          "edge " + tensor.name + " cannot be shared: its size is symbolic"};
      elements = total.constValue();
    } else {
      std::vector<TreePath> consumers = findConsumers(edge.tensor);
      auto leaf = equations[producer]->kind == EquationKind::Reduction
                      ? findLeaf(LeafKind::Store, producer)
                      : findLeaf(LeafKind::Compute, producer);
      if (consumers.empty() || !leaf)
        return Diagnostic{Diag::BadIr, "schedule " + schedule.name,
                          "edge " + tensor.name + " has no statement that writes or reads it"};
      // Units and lanes have a tile each: it lies outside their loops.
      size_t common = 0;
      while ((*leaf)[common]->isLoop && (*leaf)[common]->loop != LoopKind::Unit &&
             (*leaf)[common]->loop != LoopKind::Lane &&
             std::all_of(consumers.begin(), consumers.end(),
                         [&](const TreePath &c) { return c[common] == (*leaf)[common]; }))
        ++common;
      local.whole = false;
      local.depth = inGridScan ? common - 1 : common; // the step's loop is none of a phase's
      for (size_t a = 0; a < schedule.axes.size(); ++a) {
        const AxisUse *use = schedule.axes[a].in(producer);
        if (!use || use->reduction)
          continue;
        local.tiles.push_back(
            {static_cast<AxisId>(a), tileIn(*leaf, common, static_cast<AxisId>(a))});
        elements *= local.tiles.back().second;
      }
      if (elements == 0)
        return Diagnostic{Diag::BadIr, "schedule " + schedule.name,
                          "edge " + tensor.name + " cannot be shared: its tile is symbolic"};
    }
    buffer.shape = {DimExpr(elements)};
    local.buffer = static_cast<BufferId>(kernel.buffers.size());
    locals[edge.tensor] = std::move(local);
    kernel.buffers.push_back(std::move(buffer));
  }
  return success();
}

/// Accumulators live in registers: one element for each iteration of the Unroll loops over spatial axes around
/// the Compute statement, a copy a lane where a Lane loop is around it.
Status Lowering::makeAccumulators(int equation) {
  const Equation &e = *equations[equation];
  bool reduces = e.kind == EquationKind::Reduction;
  if (isTopK(equation)) {
    makeTopK(equation);
    return success();
  }
  if (!reduces && levelOf(e.outputs[0]) != MemLevel::Register && !isStoredTwice(equation))
    return success();
  auto chain = findLeaf(LeafKind::Compute, equation);
  if (!chain)
    return Diagnostic{Diag::BadIr, "schedule " + schedule.name,
                      "no compute statement for e" + std::to_string(equation)};
  Accumulator acc;
  Shape shape;
  bool lanes = false;
  const bool folds =
      reduces && !isTupleMonoid(e.monoid) && findLeaf(LeafKind::Combine, equation).has_value();
  std::map<AxisId, int> ordinals;
  std::vector<std::pair<std::pair<AxisId, int>, int64_t>> dims;
  for (size_t i = 0; i + 1 < chain->size(); ++i) {
    const TreeNode &node = *(*chain)[i];
    lanes = lanes || node.loop == LoopKind::Lane;
    if (node.axis == kStepAxis)
      continue;
    const AxisUse *use = schedule.axes[node.axis].in(equation);
    bool reductionAxis = use && use->reduction;
    if (node.loop == LoopKind::Lane)
      (reductionAxis ? acc.lanesReduce : acc.lanesKeep) |= use != nullptr;
    if (node.loop == LoopKind::Unit) {
      acc.unitsReduce = acc.unitsReduce || reductionAxis;
      lanes = true; // each unit has its own value
    }
    if (node.loop != LoopKind::Unroll || (reductionAxis && !folds))
      continue;
    int64_t tile = tileIn(*chain, i, node.axis);
    if (tile == 0)
      return Diagnostic{Diag::BadIr, "schedule " + schedule.name,
                        "unroll loop over " + schedule.axes[node.axis].name +
                            " needs a constant trip"};
    int64_t trip = (tile + node.step - 1) / node.step;
    if (!reductionAxis) {
      dims.push_back({{node.axis, ordinals[node.axis]++}, trip});
    } else if (acc.partsAxis < 0) {
      acc.partsAxis = node.axis;
      acc.parts = trip;
    }
  }
  std::sort(dims.begin(), dims.end());
  for (const auto &[key, trip] : dims) {
    acc.dims.push_back(key);
    shape.push_back(DimExpr(trip));
  }
  if (acc.parts > 1)
    shape.push_back(DimExpr(acc.parts));
  auto addRegister = [&](const std::string &suffix, DType type) {
    GirBuffer buffer;
    buffer.name = pattern.tensors[e.outputs[0]].name + suffix;
    buffer.level = MemLevel::Register;
    buffer.type = type;
    buffer.shape = shape;
    buffer.perLane = lanes;
    kernel.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(kernel.buffers.size() - 1);
  };
  if (isCascade(equation)) {
    makeCascade(equation,
                [&](const std::string &suffix) { return addRegister(suffix, e.accumulateType); });
    accumulators[equation] = acc;
    return success();
  }
  acc.value = addRegister(".acc", reduces ? e.accumulateType : pattern.tensors[e.outputs[0]].type);
  if (reduces && isArgMonoid(e.monoid))
    acc.index = addRegister(".index", DType::I64);
  accumulators[equation] = acc;
  return success();
}

} // namespace fusec::lowering
