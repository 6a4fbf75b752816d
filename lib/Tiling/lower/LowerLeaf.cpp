// Leaf statements of a lowering; staging is in LowerStage.cpp.
#include "Tiling/lower/LowerContext.h"

#include <algorithm>

namespace fusec::lowering {

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
  NodeId rounds =
      body.binary(ScalarOp::FloorDiv, body.binary(ScalarOp::Add, total, body.index(width - 1)),
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
  if (schedule.units == 1) {
    round.body.push_back(std::move(lane));
    result.push_back(std::move(round));
    return;
  }
  // Rounds go inside: between them no unit waits for another.
  round.body = std::move(lane.body);
  lane.body.clear();
  lane.body.push_back(std::move(round));
  unit.body.push_back(std::move(lane));
  result.push_back(std::move(unit));
}

void Lowering::lowerLeaf(const TreeNode &node, std::vector<Stmt> &result) {
  if (holding == Holding::Fill) {
    if (node.leaf == LeafKind::Compute)
      fillPersistent(node.target, result);
    return;
  }
  switch (node.leaf) {
  case LeafKind::Init: return lowerInit(node.target, result);
  case LeafKind::Compute:
    computeRank = node.rank;
    if (holding == Holding::Use && !scan) {
      holding = Holding::Fill;
      fillPersistent(node.target, result);
      holding = Holding::Use;
    }
    isCascade(node.target) ? computeCascade(node.target, node.rank, result)
                           : lowerCompute(node.target, result);
    computeRank = -1;
    return;
  case LeafKind::Combine: return lowerCombine(node.target, result);
  case LeafKind::Store: return lowerStore(node.target, result);
  case LeafKind::Stage: return lowerStage(static_cast<size_t>(node.target), result);
  case LeafKind::Carry: return lowerCarry(node.target, result);
  case LeafKind::Sort: return sortTopK(node.target, result);
  case LeafKind::Barrier:
  case LeafKind::Counters: break; // end a phase (phasesOf)
  case LeafKind::Correct: return correctCascade(node.target, node.rank, result);
  }
}

void Lowering::lowerInit(int equation, std::vector<Stmt> &result) {
  isTopK(equation) ? initTopK(equation, result) : resetAccumulator(equation, result);
}

void Lowering::resetAccumulator(int equation, std::vector<Stmt> &result) {
  if (isTopK(equation))
    return resetTopK(equation, result);
  if (isCascade(equation))
    return resetCascade(equation, result);
  const Equation &e = *equations[equation];
  const Accumulator &acc = accumulators[equation];
  for (int64_t part = 0; part < acc.parts; ++part) {
    std::vector<NodeId> indices = partIndices(equation, body.index(part));
    result.push_back(storeStmt(acc.value, indices, identityOf(body, e.monoid, e.accumulateType)));
    if (acc.index >= 0)
      result.push_back(storeStmt(acc.index, indices, body.index(0)));
  }
}

void Lowering::lowerCompute(int equation, std::vector<Stmt> &result) {
  const Equation &e = *equations[equation];
  std::vector<Stmt> statements;
  if (isTopK(equation))
    return computeTopK(equation, result);
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
    NodeId predicate =
        e.scatterPredicate == kNoNode ? kNoNode : importValue(equation, e.scatterPredicate);
    std::vector<NodeId> indices;
    for (NodeId index : e.scatterIndex)
      indices.push_back(importValue(equation, index));
    for (size_t d = 0; d < indices.size(); ++d) {
      predicate = body.logicalAnd(predicate, body.binary(ScalarOp::Le, body.index(0), indices[d]));
      predicate =
          body.logicalAnd(predicate, body.binary(ScalarOp::Lt, indices[d], body.dim(shape[d])));
    }
    Stmt s = storeStmt(globalBuffer(e.outputs[0]), {tensorIndex(shape, indices)},
                       importValue(equation, e.results[0]));
    constexpr Monoid kMonoids[] = {Monoid::Sum, Monoid::Sum, Monoid::Prod, Monoid::Min,
                                   Monoid::Max};
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

/// Puts one value of an equation where its edge level says, and where later steps and the stack find it.
void Lowering::storeResult(int equation, size_t output, NodeId value, std::vector<Stmt> &result) {
  TensorId tensor = equations[equation]->outputs[output];
  const Tensor &info = pattern.tensors[tensor];
  value = body.cast(info.type, value);
  MemLevel level = levelOf(tensor);
  if (level == MemLevel::Register || isStoredTwice(equation)) {
    if (equations[equation]->kind == EquationKind::Map)
      result.push_back(storeStmt(accumulators[equation].value, unrollIndices(equation), value));
    value = readRegister(equation, accumulatorOf(equation, output));
    value = body.cast(info.type, value);
  }
  if (level == MemLevel::Shared) {
    const Local &local = locals.at(tensor);
    std::vector<NodeId> own;
    for (size_t d = 0; !local.whole && d < info.shape.size(); ++d)
      own.push_back(equationAxis(equation, static_cast<int>(d)));
    NodeId index = local.whole ? outputIndex(equation, output) : edgeIndex(equation, tensor, own);
    result.push_back(storeStmt(local.buffer, {index}, value));
  }
  if (level != MemLevel::Global && !outlivesStep(tensor))
    return;
  const NodeId index = outputIndex(equation, output);
  bool stacked = false;
  for (size_t o = 0; scan && o < scan->scanOutputs.size(); ++o)
    if (const ScanOutput &to = scan->scanOutputs[o]; to.perStep == tensor) {
      storeStacked(to, index, value, result);
      stacked = true;
    }
  if (inGridScan && carryOf(tensor, true))
    result.push_back(storeStmt(globalBuffer(tensor),
                               {body.binary(ScalarOp::Add, index, halfOf(tensor, true))}, value));
  else if (!stacked)
    result.push_back(storeStmt(globalBuffer(tensor), {index}, value));
}

void Lowering::lowerStore(int equation, std::vector<Stmt> &result) {
  if (isTopK(equation))
    return storeTopK(equation, result);
  const Equation &e = *equations[equation];
  std::vector<Stmt> statements;
  for (size_t o = 0; o < e.outputs.size(); ++o)
    if (const BufferId source = accumulatorOf(equation, o);
        source >= 0 && (levelOf(e.outputs[o]) != MemLevel::Register || outlivesStep(e.outputs[o])))
      storeResult(equation, o, readRegister(equation, source), statements);
  guarded(inBounds(equation, true, false, false), std::move(statements), result);
}

/// The shape of partial results: one for each unit, and for each lane if lanes have values of their own.
Shape Lowering::partialsShape(bool ofLanes) const {
  Shape shape = {DimExpr(schedule.units)};
  if (ofLanes)
    shape.push_back(DimExpr(schedule.lanes));
  return shape;
}

/// `emit` gets the place of that unit's partial results.
std::vector<Stmt>
Lowering::atPartials(bool ofLanes, NodeId unit,
                     const std::function<std::vector<Stmt>(const std::vector<NodeId> &)> &emit) {
  if (!ofLanes)
    return emit({unit});
  Stmt lanes = lanesStmt({});
  lanes.body = emit({unit, body.axis(lanes.var)});
  return {std::move(lanes)};
}

void Lowering::lowerCombine(int equation, std::vector<Stmt> &result) {
  if (isCascade(equation))
    return combineCascade(equation, result);
  const Accumulator &acc = accumulators[equation];
  std::vector<NodeId> indices = unrollIndices(equation);
  const Monoid monoid = monoidOf(equation);
  std::vector<Stmt> folds;
  for (int64_t part = 1; part < acc.parts; ++part) {
    Stmt fold;
    fold.kind = StmtKind::Accumulate;
    fold.buffer = acc.value;
    fold.indices = indices;
    fold.monoid = monoid;
    fold.value = body.read(acc.value, kernel.buffers[acc.value].type,
                           partIndices(equation, body.index(part)));
    folds.push_back(std::move(fold));
  }
  if (!folds.empty()) // each lane its own
    result.push_back(lanesStmt(std::move(folds)));
  if (acc.lanesReduce) {
    Stmt reduce;
    reduce.kind = StmtKind::LaneReduce;
    reduce.buffer = acc.value;
    reduce.indices = indices;
    reduce.monoid = monoid;
    reduce.indexBuffer = acc.index;
    result.push_back(std::move(reduce));
  }
  if (!acc.unitsReduce || schedule.units == 1)
    return;
  if (!acc.dims.empty())
    return problem("a reduction over units cannot keep several accumulators a lane");
  // Partial results of the units meet in shared memory; then every lane folds them in unit order, its own where the
  // lanes keep several.
  auto exchange = [&](BufferId buffer, const std::string &suffix) {
    GirBuffer shared;
    shared.name = kernel.buffers[buffer].name + suffix;
    shared.level = MemLevel::Shared;
    shared.type = kernel.buffers[buffer].type;
    shared.shape = partialsShape(acc.lanesKeep);
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
  unit.body = atPartials(acc.lanesKeep, body.axis(unit.var), [&](const std::vector<NodeId> &place) {
    std::vector<Stmt> stores = {
        storeStmt(values, place, body.read(acc.value, kernel.buffers[acc.value].type, indices))};
    if (indexes >= 0)
      stores.push_back(
          storeStmt(indexes, place, body.read(acc.index, kernel.buffers[acc.index].type, indices)));
    return stores;
  });
  result.push_back(std::move(unit));
  resetAccumulator(equation, result);
  Stmt fold;
  fold.kind = StmtKind::Loop;
  fold.loop = LoopKind::Seq;
  fold.trip = body.index(schedule.units);
  fold.var = newVar("fold", LoopKind::Seq, {0, schedule.units - 1, std::nullopt});
  fold.body = atPartials(acc.lanesKeep, body.axis(fold.var), [&](const std::vector<NodeId> &place) {
    Stmt merge;
    merge.kind = StmtKind::Accumulate;
    merge.buffer = acc.value;
    merge.indices = indices;
    merge.monoid = monoid;
    merge.value = body.read(values, kernel.buffers[values].type, place);
    if (indexes >= 0) {
      merge.indexBuffer = acc.index;
      merge.indexValue = body.read(indexes, kernel.buffers[indexes].type, place);
    }
    return std::vector<Stmt>{std::move(merge)};
  });
  result.push_back(std::move(fold));
}

/// Moves a scan's values on: 0 before the first step (previous = init), 1 after a step (previous = next), 2 after
/// the last (final = previous).
void Lowering::lowerCarry(int when, std::vector<Stmt> &result) {
  auto place = [&](TensorId tensor) {
    auto it = locals.find(tensor);
    return it != locals.end() ? it->second.buffer : globalBuffer(tensor);
  };
  for (const ScanCarry &carry : scan->carries) {
    TensorId from = when == 0 ? carry.init : when == 1 ? carry.next : carry.previous;
    TensorId to = when == 2 ? carry.final : carry.previous;
    if (to < 0 || from == to)
      continue;
    DType type = pattern.tensors[to].type;
    NodeId origin = body.index(0);
    if (inGridScan && when == 2)
      origin = body.dim(mod(scan->steps, DimExpr(2)) * numElements(pattern.tensors[to].shape));
    if (when == 1)
      for (const ScanOutput &output : scan->scanOutputs)
        if (output.perStep == from && locals.count(from) == 0)
          origin = body.binary(ScalarOp::Mul, stackedStep(),
                               body.dim(numElements(pattern.tensors[from].shape)));
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
