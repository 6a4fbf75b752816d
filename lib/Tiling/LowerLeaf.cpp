// Buffers and leaf statements of a lowering.
#include "Tiling/LowerContext.h"

#include <algorithm>

namespace fusec::lowering {

namespace {

Stmt storeStmt(BufferId buffer, std::vector<NodeId> indices, NodeId value) {
  Stmt s;
  s.kind = StmtKind::Store;
  s.buffer = buffer;
  s.indices = std::move(indices);
  s.value = value;
  return s;
}

bool isTuple(Monoid m) { return m >= Monoid::ArgMax; }

} // namespace

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
      bool packed = std::any_of(schedule.operands.begin(), schedule.operands.end(), [&](const Operand &o) {
        return o.level == MemLevel::Global && o.equation == static_cast<int>(e) && o.read == static_cast<int>(r);
      });
      if (!packed && levelOf(equation.body[reads[r]].index) == MemLevel::Global)
        need(equation.body[reads[r]].index, false);
    }
    for (TensorId t : equation.outputs)
      if (levelOf(t) == MemLevel::Global)
        need(t, true);
    need(equation.base, false);
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
  }
  auto addParam = [&](const std::string &bufferName, DType type, Shape shape, bool isWritten, KernelParam param) {
    GirBuffer buffer;
    buffer.name = bufferName;
    buffer.type = type;
    buffer.shape = {numElements(shape)};
    buffer.written = isWritten;
    kernel.buffers.push_back(std::move(buffer));
    out.params.push_back(param);
    return static_cast<BufferId>(kernel.buffers.size() - 1);
  };
  for (size_t t = 0; t < pattern.tensors.size(); ++t) {
    const Tensor &tensor = pattern.tensors[t];
    if (raw[t])
      globals[static_cast<TensorId>(t)] =
          addParam(tensor.name, tensor.type, tensor.shape, written[t], {static_cast<TensorId>(t), -1});
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

  for (const EdgeLevel &edge : schedule.edges) {
    if (edge.level != MemLevel::Shared)
      continue;
    const Tensor &tensor = pattern.tensors[edge.tensor];
    GirBuffer buffer;
    buffer.name = tensor.name + ".shared";
    buffer.level = MemLevel::Shared;
    buffer.type = tensor.type;
    localDepth[edge.tensor] = SIZE_MAX;
    int64_t elements = 1;
    int producer = producerOf(edge.tensor);
    if (scan || producer < 0) {
      DimExpr total = numElements(tensor.shape);
      if (!total.isConst())
        return Diagnostic{Diag::BadIr, "schedule " + schedule.name,
                          "edge " + tensor.name + " cannot be shared: its size is symbolic"};
      elements = total.constValue();
    } else {
      auto consumer = findConsumer(edge.tensor);
      auto leaf = equations[producer]->kind == EquationKind::Reduction ? findLeaf(LeafKind::Store, producer)
                                                                        : findLeaf(LeafKind::Compute, producer);
      if (!consumer || !leaf)
        return Diagnostic{Diag::BadIr, "schedule " + schedule.name,
                          "edge " + tensor.name + " has no statement that writes or reads it"};
      size_t common = 0;
      while (common < leaf->size() && (*leaf)[common] == (*consumer)[common])
        ++common;
      localDepth[edge.tensor] = common;
      for (size_t a = 0; a < schedule.axes.size(); ++a) {
        const ScheduleAxis &axis = schedule.axes[a];
        if (axis.reduction || std::count(axis.equations.begin(), axis.equations.end(), producer) == 0)
          continue;
        elements *= tileIn(*leaf, common, static_cast<AxisId>(a));
      }
      if (elements == 0)
        return Diagnostic{Diag::BadIr, "schedule " + schedule.name,
                          "edge " + tensor.name + " cannot be shared: its tile is symbolic"};
    }
    buffer.shape = {DimExpr(elements)};
    locals[edge.tensor] = static_cast<BufferId>(kernel.buffers.size());
    kernel.buffers.push_back(std::move(buffer));
  }
  return success();
}

/// Accumulators live in registers: one element for each iteration of the Unroll loops over spatial axes around
/// the Compute statement, a copy a lane where a Lane loop is around it.
Status Lowering::makeAccumulators(int equation) {
  const Equation &e = *equations[equation];
  bool reduces = e.kind == EquationKind::Reduction;
  if (!reduces && levelOf(e.outputs[0]) != MemLevel::Register)
    return success();
  auto chain = findLeaf(LeafKind::Compute, equation);
  if (!chain)
    return Diagnostic{Diag::BadIr, "schedule " + schedule.name,
                      "no compute statement for e" + std::to_string(equation)};
  Accumulator acc;
  Shape shape;
  bool lanes = false;
  std::map<AxisId, int> ordinals;
  std::vector<std::pair<std::pair<AxisId, int>, int64_t>> dims;
  for (size_t i = 0; i + 1 < chain->size(); ++i) {
    const TreeNode &node = *(*chain)[i];
    lanes = lanes || node.loop == LoopKind::Lane;
    if (node.axis == kStepAxis)
      continue;
    bool reductionAxis = schedule.axes[node.axis].reduction;
    if (node.loop == LoopKind::Lane)
      acc.lanesReduce = acc.lanesReduce || reductionAxis;
    if (node.loop == LoopKind::Unit)
      acc.unitsReduce = acc.unitsReduce || reductionAxis;
    if (node.loop != LoopKind::Unroll || reductionAxis)
      continue;
    int64_t tile = tileIn(*chain, i, node.axis);
    if (tile == 0)
      return Diagnostic{Diag::BadIr, "schedule " + schedule.name,
                        "unroll loop over " + schedule.axes[node.axis].name + " needs a constant trip"};
    dims.push_back({{node.axis, ordinals[node.axis]++}, (tile + node.step - 1) / node.step});
  }
  std::sort(dims.begin(), dims.end());
  for (const auto &[key, trip] : dims) {
    acc.dims.push_back(key);
    shape.push_back(DimExpr(trip));
  }
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
  acc.value = addRegister(".acc", reduces ? e.accumulateType : pattern.tensors[e.outputs[0]].type);
  if (reduces && isTuple(e.monoid))
    acc.index = addRegister(".index", DType::I64);
  accumulators[equation] = acc;
  return success();
}

void Lowering::guarded(NodeId predicate, std::vector<Stmt> statements, std::vector<Stmt> &result) {
  if (predicate == kNoNode) {
    for (Stmt &s : statements)
      result.push_back(std::move(s));
    return;
  }
  Stmt branch;
  branch.kind = StmtKind::If;
  branch.predicate = predicate;
  branch.body = std::move(statements);
  result.push_back(std::move(branch));
}

void Lowering::cooperative(NodeId total, const std::function<std::vector<Stmt>(NodeId)> &emit,
                           std::vector<Stmt> &result) {
  int64_t width = int64_t{schedule.units} * schedule.lanes;
  auto loopOf = [&](LoopKind kind, NodeId trip, const std::string &loopName) {
    IndexRange range = body.rangeOf(trip);
    Stmt loop;
    loop.kind = StmtKind::Loop;
    loop.loop = kind;
    loop.trip = trip;
    loop.var = newVar(loopName, kind,
                      {0, range.max == INT64_MAX ? INT64_MAX : range.max - 1, std::nullopt});
    return loop;
  };
  NodeId rounds = body.binary(ScalarOp::FloorDiv, body.binary(ScalarOp::Add, total, body.index(width - 1)),
                              body.index(width));
  Stmt round = loopOf(LoopKind::Seq, rounds, "round");
  NodeId flat = body.binary(ScalarOp::Mul, body.axis(round.var), body.index(width));
  Stmt unit;
  if (schedule.units > 1) {
    unit = loopOf(LoopKind::Unit, body.index(schedule.units), "unit");
    flat = body.binary(ScalarOp::Add, flat,
                       body.binary(ScalarOp::Mul, body.axis(unit.var), body.index(schedule.lanes)));
  }
  Stmt lane = loopOf(LoopKind::Lane, body.index(schedule.lanes), "lane");
  flat = body.binary(ScalarOp::Add, flat, body.axis(lane.var));
  NodeId predicate = kNoNode;
  if (body[total].op != ScalarOp::Const || body[total].imm % width != 0)
    predicate = body.binary(ScalarOp::Lt, flat, total);
  guarded(predicate, emit(flat), lane.body);
  if (schedule.units > 1) {
    unit.body.push_back(std::move(lane));
    round.body.push_back(std::move(unit));
  } else {
    round.body.push_back(std::move(lane));
  }
  result.push_back(std::move(round));
}

void Lowering::lowerLeaf(const TreeNode &node, std::vector<Stmt> &result) {
  switch (node.leaf) {
  case LeafKind::Init:
    return lowerInit(node.target, result);
  case LeafKind::Compute:
    return lowerCompute(node.target, result);
  case LeafKind::Combine:
    return lowerCombine(node.target, result);
  case LeafKind::Store:
    return lowerStore(node.target, result);
  case LeafKind::Stage:
    return lowerStage(static_cast<size_t>(node.target), result);
  case LeafKind::Carry:
    return lowerCarry(node.target, result);
  }
}

void Lowering::lowerInit(int equation, std::vector<Stmt> &result) {
  const Equation &e = *equations[equation];
  const Accumulator &acc = accumulators[equation];
  std::vector<NodeId> indices = unrollIndices(equation);
  result.push_back(storeStmt(acc.value, indices, identityOf(body, e.monoid, e.accumulateType)));
  if (acc.index >= 0)
    result.push_back(storeStmt(acc.index, indices, body.index(0)));
}

void Lowering::lowerCompute(int equation, std::vector<Stmt> &result) {
  const Equation &e = *equations[equation];
  std::vector<Stmt> statements;
  if (e.kind == EquationKind::Reduction) {
    const Accumulator &acc = accumulators[equation];
    clampSpatial = true;
    Stmt s;
    s.kind = StmtKind::Accumulate;
    s.buffer = acc.value;
    s.indices = unrollIndices(equation);
    s.monoid = e.monoid;
    NodeId value = importValue(equation, e.results[0]);
    s.value = body.cast(e.accumulateType, value);
    if (acc.index >= 0) {
      s.indexBuffer = acc.index;
      s.indexValue = importValue(equation, e.results[1]);
    }
    clampSpatial = false;
    statements.push_back(std::move(s));
    return guarded(inBounds(equation, false, true, false), std::move(statements), result);
  }
  if (e.kind == EquationKind::Scatter) {
    const Shape &shape = pattern.tensors[e.outputs[0]].shape;
    NodeId predicate = e.scatterPredicate == kNoNode ? kNoNode : importValue(equation, e.scatterPredicate);
    std::vector<NodeId> indices;
    for (NodeId index : e.scatterIndex)
      indices.push_back(importValue(equation, index));
    for (size_t d = 0; d < indices.size(); ++d) {
      predicate = body.logicalAnd(predicate, body.binary(ScalarOp::Le, body.index(0), indices[d]));
      predicate = body.logicalAnd(predicate, body.binary(ScalarOp::Lt, indices[d], body.dim(shape[d])));
    }
    Stmt s = storeStmt(globalBuffer(e.outputs[0]), {tensorIndex(shape, indices)},
                       importValue(equation, e.results[0]));
    constexpr Monoid kMonoids[] = {Monoid::Sum, Monoid::Sum, Monoid::Prod, Monoid::Min, Monoid::Max};
    if (e.combiner != Combiner::Assign) {
      s.kind = StmtKind::Accumulate;
      s.monoid = kMonoids[static_cast<int>(e.combiner)];
    }
    statements.push_back(std::move(s));
    if (predicate != kNoNode && body[predicate].op == ScalarOp::Const && body[predicate].imm != 0)
      predicate = kNoNode;
    std::vector<Stmt> inner;
    guarded(predicate, std::move(statements), inner);
    return guarded(inBounds(equation, true, true, false), std::move(inner), result);
  }
  for (size_t o = 0; o < e.outputs.size(); ++o)
    storeResult(equation, o, importValue(equation, e.results[o]), statements);
  guarded(inBounds(equation, true, true, false), std::move(statements), result);
}

/// Puts one value of an equation where its edge level says.
void Lowering::storeResult(int equation, size_t output, NodeId value, std::vector<Stmt> &result) {
  TensorId tensor = equations[equation]->outputs[output];
  const Tensor &info = pattern.tensors[tensor];
  value = body.cast(info.type, value);
  MemLevel level = levelOf(tensor);
  if (level == MemLevel::Register) {
    result.push_back(storeStmt(accumulators[equation].value, unrollIndices(equation), value));
    return;
  }
  if (level == MemLevel::Shared) {
    NodeId index = localDepth.at(tensor) == SIZE_MAX ? outputIndex(equation, output)
                                                     : edgeIndex(equation, tensor);
    result.push_back(storeStmt(locals.at(tensor), {index}, value));
    return;
  }
  NodeId index = outputIndex(equation, output);
  if (scan)
    for (const ScanOutput &stackedOutput : scan->scanOutputs)
      if (stackedOutput.perStep == tensor)
        index = body.binary(ScalarOp::Add, index,
                            body.binary(ScalarOp::Mul, stackedStep(), body.dim(numElements(info.shape))));
  result.push_back(storeStmt(globalBuffer(tensor), {index}, value));
}

void Lowering::lowerStore(int equation, std::vector<Stmt> &result) {
  const Equation &e = *equations[equation];
  const Accumulator &acc = accumulators[equation];
  std::vector<Stmt> statements;
  std::vector<NodeId> indices = unrollIndices(equation);
  BufferId sources[] = {acc.value, acc.index};
  for (size_t o = 0; o < e.outputs.size() && o < 2; ++o) {
    if (sources[o] < 0 || levelOf(e.outputs[o]) == MemLevel::Register)
      continue;
    NodeId value = body.read(sources[o], kernel.buffers[sources[o]].type, indices);
    storeResult(equation, o, value, statements);
  }
  guarded(inBounds(equation, true, false, false), std::move(statements), result);
}

void Lowering::lowerCombine(int equation, std::vector<Stmt> &result) {
  const Equation &e = *equations[equation];
  const Accumulator &acc = accumulators[equation];
  std::vector<NodeId> indices = unrollIndices(equation);
  if (acc.lanesReduce) {
    Stmt reduce;
    reduce.kind = StmtKind::LaneReduce;
    reduce.buffer = acc.value;
    reduce.indices = indices;
    reduce.monoid = e.monoid;
    reduce.indexBuffer = acc.index;
    result.push_back(std::move(reduce));
  }
  if (!acc.unitsReduce || schedule.units == 1)
    return;
  if (!acc.dims.empty())
    return problem("a reduction over units cannot keep several accumulators a lane");
  // Partial results of the units meet in shared memory; then every lane folds them in unit order.
  auto exchange = [&](BufferId buffer, const std::string &suffix) {
    GirBuffer shared;
    shared.name = kernel.buffers[buffer].name + suffix;
    shared.level = MemLevel::Shared;
    shared.type = kernel.buffers[buffer].type;
    shared.shape = {DimExpr(schedule.units)};
    kernel.buffers.push_back(std::move(shared));
    return static_cast<BufferId>(kernel.buffers.size() - 1);
  };
  BufferId values = exchange(acc.value, ".units");
  BufferId indexes = acc.index >= 0 ? exchange(acc.index, ".units") : -1;
  Stmt unit;
  unit.kind = StmtKind::Loop;
  unit.loop = LoopKind::Unit;
  unit.trip = body.index(schedule.units);
  unit.var = newVar("unit", LoopKind::Unit, {0, schedule.units - 1, std::nullopt});
  unit.body.push_back(storeStmt(values, {body.axis(unit.var)},
                                body.read(acc.value, kernel.buffers[acc.value].type, indices)));
  if (indexes >= 0)
    unit.body.push_back(storeStmt(indexes, {body.axis(unit.var)}, body.read(acc.index, DType::I64, indices)));
  result.push_back(std::move(unit));
  lowerInit(equation, result);
  Stmt fold;
  fold.kind = StmtKind::Loop;
  fold.loop = LoopKind::Seq;
  fold.trip = body.index(schedule.units);
  fold.var = newVar("fold", LoopKind::Seq, {0, schedule.units - 1, std::nullopt});
  Stmt merge;
  merge.kind = StmtKind::Accumulate;
  merge.buffer = acc.value;
  merge.indices = indices;
  merge.monoid = e.monoid;
  merge.value = body.read(values, kernel.buffers[values].type, {body.axis(fold.var)});
  if (indexes >= 0) {
    merge.indexBuffer = acc.index;
    merge.indexValue = body.read(indexes, DType::I64, {body.axis(fold.var)});
  }
  fold.body.push_back(std::move(merge));
  result.push_back(std::move(fold));
}

/// Copies an operand's tile into its Shared buffer, one element a lane at a time. Elements beyond the tensor (cut
/// tiles, padding) become the read's else-value or 0.
void Lowering::lowerStage(size_t index, std::vector<Stmt> &result) {
  const Operand &operand = schedule.operands[index];
  const Equation &e = *equations[operand.equation];
  NodeId read = readsOf(e)[operand.read];
  const Tensor &tensor = pattern.tensors[e.body[read].index];
  Staged &stage = staged[index];
  stage.depth = path.size();
  stage.bases.assign(operand.digits.size(), kNoNode);
  std::vector<int64_t> extents;
  int numAxes = static_cast<int>(e.axes.size());
  for (size_t d = 0; d < operand.digits.size(); ++d) {
    const LayoutDigit &digit = operand.digits[d];
    if (digit.index < 0) {
      extents.push_back(tileAt(digit.axis, path.size()));
      continue;
    }
    NodeId position = indexOperands(e.body[read])[digit.index];
    std::optional<AffineForm> form = affineForm(e.body, position, numAxes);
    int64_t span = 1;
    for (int p = 0; form && p < numAxes; ++p) {
      AxisId a = scheduleAxis(operand.equation, p);
      if (form->coefficients[p].isConst(0) || a < 0)
        continue;
      int64_t tile = tileAt(a, path.size());
      bool usable = form->coefficients[p].isConst() && tile > 0 && schedule.axes[a].positions.size() == 1;
      span = usable ? span + std::abs(form->coefficients[p].constValue()) * (tile - 1) : 0;
      if (!usable)
        break;
    }
    extents.push_back(form ? span : 0);
    stage.bases[d] = importValue(operand.equation, position);
  }
  if (std::count(extents.begin(), extents.end(), 0) != 0)
    return problem("the tile of operand " + operand.name + " has no constant size");
  if (operand.digits[0].index < 0)
    checkStageCovers(operand, axisDependence(e.body, read));
  if (stage.buffer < 0) {
    GirBuffer buffer;
    buffer.name = operand.name;
    buffer.level = MemLevel::Shared;
    buffer.type = tensor.type;
    int64_t elements = 1;
    for (size_t d = 0; d < extents.size(); ++d)
      elements *= extents[d] + (d + 1 == extents.size() ? operand.padElements : 0);
    buffer.shape = {DimExpr(elements)};
    kernel.buffers.push_back(std::move(buffer));
    stage.buffer = static_cast<BufferId>(kernel.buffers.size() - 1);
    stage.extents = extents;
  }

  // Lanes run along the digit that is contiguous in memory; the others follow from the inside out.
  size_t lanesDigit = operand.digits.size() - 1;
  std::optional<FlatAccess> access = flatAccess(e, read, pattern);
  size_t rank = tensor.shape.size();
  for (size_t d = 0; d < operand.digits.size(); ++d) {
    const LayoutDigit &digit = operand.digits[d];
    bool unit = digit.index >= 0 ? digit.index + 1 == static_cast<int>(rank)
                                 : access && access->stride[schedule.axes[digit.axis].positions.back()].isConst(1);
    if (unit && extents[d] > 1)
      lanesDigit = d;
  }
  std::vector<size_t> order; // fastest first
  order.push_back(lanesDigit);
  for (size_t d = operand.digits.size(); d-- > 0;)
    if (d != lanesDigit)
      order.push_back(d);
  int64_t total = 1;
  for (int64_t x : extents)
    total *= x;

  auto emit = [&](const std::vector<NodeId> &digits) {
    NodeId valid = kNoNode;
    NodeId value;
    if (operand.digits[0].index >= 0) {
      auto bounds = paddingBounds(e, read, pattern);
      std::vector<NodeId> indices(operand.digits.size());
      bool padded = e.body[read].op == ScalarOp::ReadIf;
      for (size_t d = 0; d < digits.size(); ++d) {
        NodeId position = body.binary(ScalarOp::Add, stage.bases[d], digits[d]);
        int dimension = operand.digits[d].index;
        indices[dimension] = position;
        DimExpr lower(0), upper = tensor.shape[dimension] - DimExpr(1);
        if (padded) {
          lower = (*bounds)[dimension].lower;
          upper = (*bounds)[dimension].upper;
        }
        valid = body.logicalAnd(valid, body.binary(ScalarOp::Le, body.dim(lower), position));
        valid = body.logicalAnd(valid, body.binary(ScalarOp::Le, position, body.dim(upper)));
      }
      NodeId otherwise = padded ? importValue(operand.equation, e.body[read].args[1])
                                : body.constant(tensor.type, 0);
      value = body.readIf(globalBuffer(e.body[read].index), tensor.type, valid, otherwise,
                          {tensorIndex(tensor.shape, indices)});
    } else {
      for (size_t d = 0; d < digits.size(); ++d) {
        AxisId a = operand.digits[d].axis;
        NodeId position = body.binary(ScalarOp::Add, axisOffset(a, 0), digits[d]);
        axisOverride[a] = position;
        if (!extent(a).divisibleBy(extents[d], symbols))
          valid = body.logicalAnd(valid, body.binary(ScalarOp::Lt, position, body.dim(extent(a))));
      }
      value = importValue(operand.equation, read);
      axisOverride.clear();
      if (valid != kNoNode) { // the read itself must not leave the tensor
        Scalar node = body[value];
        NodeId zero = body.constant(tensor.type, 0);
        if (node.op == ScalarOp::Read)
          value = body.readIf(node.index, node.type, valid, zero, node.args);
        else if (node.op == ScalarOp::ReadIf)
          value = body.readIf(node.index, node.type, body.logicalAnd(valid, node.args[0]), node.args[1],
                              {node.args.begin() + 2, node.args.end()});
      }
    }
    Shape shape;
    for (int64_t x : extents)
      shape.push_back(DimExpr(x));
    shape.back() = shape.back() + DimExpr(operand.padElements);
    return std::vector<Stmt>{storeStmt(stage.buffer, {tensorIndex(shape, digits)}, value)};
  };

  if (schedule.units == 1)
    return stageOnCpu(order, extents, emit, result);
  auto emitFlat = [&](NodeId flat) {
    std::vector<NodeId> digits(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      NodeId size = body.index(extents[order[i]]);
      bool last = i + 1 == order.size();
      digits[order[i]] = last ? flat : body.binary(ScalarOp::FloorMod, flat, size);
      if (!last)
        flat = body.binary(ScalarOp::FloorDiv, flat, size);
    }
    return emit(digits);
  };
  cooperative(body.index(total), emitFlat, result);
}

/// Every axis that the operand depends on is either fixed where it is staged or one of its digits.
void Lowering::checkStageCovers(const Operand &operand, uint64_t axes) {
  for (size_t p = 0; p < equations[operand.equation]->axes.size(); ++p) {
    AxisId a = scheduleAxis(operand.equation, static_cast<int>(p));
    if (!(axes >> p & 1) || a < 0 || tileAt(a, path.size()) == 1)
      continue;
    bool isDigit = std::any_of(operand.digits.begin(), operand.digits.end(),
                               [&](const LayoutDigit &digit) { return digit.axis == a; });
    if (!isDigit)
      problem("operand " + operand.name + " varies with axis " + schedule.axes[a].name +
              " inside its tile, but has no digit for it");
  }
}

/// One unit: a loop a digit instead of a flat index, so that no address needs a division, with vectors along the
/// digit that is contiguous in memory.
void Lowering::stageOnCpu(const std::vector<size_t> &order, const std::vector<int64_t> &extents,
                          const std::function<std::vector<Stmt>(const std::vector<NodeId> &)> &emit,
                          std::vector<Stmt> &result) {
  std::vector<Stmt> loops;
  std::vector<NodeId> digits(order.size());
  for (size_t i = 1; i < order.size(); ++i) {
    Stmt loop;
    loop.kind = StmtKind::Loop;
    loop.trip = body.index(extents[order[i]]);
    loop.var = newVar("s", LoopKind::Seq, {0, extents[order[i]] - 1, std::nullopt});
    digits[order[i]] = body.axis(loop.var);
    loops.insert(loops.begin(), std::move(loop));
  }
  std::vector<Stmt> innermost;
  auto emitLane = [&](NodeId position) {
    digits[order[0]] = position;
    return emit(digits);
  };
  cooperative(body.index(extents[order[0]]), emitLane, innermost);
  for (size_t i = loops.size(); i-- > 0;) {
    loops[i].body = std::move(innermost);
    innermost.clear();
    innermost.push_back(std::move(loops[i]));
  }
  for (Stmt &s : innermost)
    result.push_back(std::move(s));
}

/// Moves a scan's values on: 0 before the first step (previous = init), 1 after a step (previous = next), 2 after
/// the last (final = previous).
void Lowering::lowerCarry(int when, std::vector<Stmt> &result) {
  auto place = [&](TensorId tensor) {
    auto it = locals.find(tensor);
    return it != locals.end() ? it->second : globalBuffer(tensor);
  };
  for (const ScanCarry &carry : scan->carries) {
    TensorId from = when == 0 ? carry.init : when == 1 ? carry.next : carry.previous;
    TensorId to = when == 2 ? carry.final : carry.previous;
    if (to < 0 || from == to)
      continue;
    DType type = pattern.tensors[to].type;
    NodeId origin = body.index(0);
    if (when == 1)
      for (const ScanOutput &output : scan->scanOutputs)
        if (output.perStep == from && locals.count(from) == 0)
          origin = body.binary(ScalarOp::Mul, stackedStep(), body.dim(numElements(pattern.tensors[from].shape)));
    cooperative(
        body.dim(numElements(pattern.tensors[to].shape)),
        [&](NodeId flat) {
          NodeId value = body.read(place(from), type, {body.binary(ScalarOp::Add, origin, flat)});
          return std::vector<Stmt>{storeStmt(place(to), {flat}, value)};
        },
        result);
  }
}

} // namespace fusec::lowering
