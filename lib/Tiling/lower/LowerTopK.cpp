// The statements of the opaque equation topk, values[s] = the element of rank s of x[0, n).
//
// Elements are compared by (key, index): `sortKey` turns a value into a signed integer such that the element that
// comes first has the larger key, a NaN included, and of equal keys the lower index comes first. Two ways to find the
// order:
//
// Selection (init, compute, combine, store under a loop over s): the maximum by (key, index) of what comes strictly
// after the one found before. O(n k) work, nothing but registers.
//   seq s { init; seq j:32 { lane j:1 { compute } } combine; store }
//
// Sort (sort, store): (key, index) pairs in the block's shared memory, padded to a power of two P with pairs that come
// last, ordered by a bitonic network; O(P log^2 P) work. The network has the form in which every comparator puts the
// earlier element lower: runs of P/2^r are merged by comparing mirrored places first, then by halving distances.
//   size 4: (0,3) (1,2), then (0,1) (2,3)
// The rounds are written one after another, so that all distances are constants: addresses then need no division, and
// lanes that walk neighbours load vectors.
#include "Expr/SortKey.h"
#include "Tiling/lower/LowerContext.h"
#include "Tiling/schedule/TopK.h"

namespace fusec::lowering {

bool Lowering::isTopK(int equation) const {
  return equations[equation]->kind == EquationKind::Opaque;
}

Monoid Lowering::monoidOf(int equation) const {
  return isTopK(equation) ? Monoid::ArgMax : equations[equation]->monoid;
}

/// Flat address of element `j` of the current row of the operand.
NodeId Lowering::topKAddress(int equation, NodeId j) {
  const Equation &e = *equations[equation];
  FlatAccess row;
  row.stride = stridesOf(pattern.tensors[e.opaqueInputs[0]].shape);
  row.stride.back() = DimExpr(0);
  row.stride.push_back(DimExpr(0));
  row.constant = DimExpr(0);
  return body.binary(ScalarOp::Add, addressOf(equation, row), j);
}

/// Registers: of a selection the best element so far and the one found last, of a sort the two compared.
void Lowering::makeTopK(int equation) {
  const Equation &e = *equations[equation];
  const Tensor &x = pattern.tensors[e.opaqueInputs[0]];
  TopK &t = topKs[equation];
  Accumulator &acc = accumulators[equation];
  t.keyType = sortKeyType(x.type);
  // Index arithmetic in 32 bits has twice the lanes a vector.
  bool isShort = x.shape.back().range(symbols).max <= INT32_MAX;
  t.indexType = isShort ? DType::I32 : DType::I64;
  t.largest = e.opaqueAttributes.at("largest") != 0;
  t.sorts = findLeaf(LeafKind::Sort, equation).has_value();
  if (auto compute = findLeaf(LeafKind::Compute, equation))
    for (const TreeNode *node : *compute)
      if (const AxisUse *use = node->isLoop ? schedule.axes[node->axis].in(equation) : nullptr;
          use && use->reduction) {
        acc.lanesReduce = acc.lanesReduce || node->loop == LoopKind::Lane;
        acc.unitsReduce = acc.unitsReduce || node->loop == LoopKind::Unit;
      }
  auto add = [&](const std::string &suffix, DType type) {
    GirBuffer buffer;
    buffer.name = pattern.tensors[e.outputs[1]].name + suffix;
    buffer.level = MemLevel::Register;
    buffer.type = type;
    kernel.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(kernel.buffers.size() - 1);
  };
  acc.value = add(".key", t.keyType);
  acc.index = add(".index", t.indexType);
  t.otherKey = add(t.sorts ? ".key.high" : ".key.found", t.keyType);
  t.otherIndex = add(t.sorts ? ".index.high" : ".index.found", t.indexType);
}

/// Nothing found yet: a pair that comes after every element.
void Lowering::resetTopK(int equation, std::vector<Stmt> &result) {
  const TopK &t = topKs.at(equation);
  const Accumulator &acc = accumulators[equation];
  result.push_back(storeStmt(acc.value, {}, body.constantInt(t.keyType, smallestKey(t.keyType))));
  result.push_back(
      storeStmt(acc.index, {}, body.constantInt(t.indexType, largestKey(t.indexType))));
}

/// Before the first element everything is still to be found; later what comes after the last one found.
void Lowering::initTopK(int equation, std::vector<Stmt> &result) {
  const TopK &t = topKs.at(equation);
  const Accumulator &acc = accumulators[equation];
  NodeId place = equationAxis(equation, equations[equation]->numSpatial - 1);
  Stmt first;
  first.kind = StmtKind::If;
  first.predicate = body.binary(ScalarOp::Eq, place, body.index(0));
  first.body = {storeStmt(t.otherKey, {}, body.constantInt(t.keyType, largestKey(t.keyType))),
                storeStmt(t.otherIndex, {}, body.constantInt(t.indexType, -1))};
  first.elseBody = {storeStmt(t.otherKey, {}, body.read(acc.value, t.keyType, {})),
                    storeStmt(t.otherIndex, {}, body.read(acc.index, t.indexType, {}))};
  result.push_back(std::move(first));
  resetTopK(equation, result);
}

void Lowering::computeTopK(int equation, std::vector<Stmt> &result) {
  const Equation &e = *equations[equation];
  const TopK &t = topKs.at(equation);
  const Accumulator &acc = accumulators[equation];
  clampSpatial = true;
  NodeId j = equationAxis(equation, e.numSpatial);
  BufferId x = globalBuffer(e.opaqueInputs[0]);
  NodeId value = body.read(x, kernel.buffers[x].type, {topKAddress(equation, j)});
  clampSpatial = false;
  NodeId key = sortKey(body, value, t.largest);
  NodeId index = body.cast(t.indexType, j);
  NodeId foundKey = body.read(t.otherKey, t.keyType, {});
  NodeId foundIndex = body.read(t.otherIndex, t.indexType, {});
  NodeId tie = body.binary(ScalarOp::And, body.binary(ScalarOp::Eq, key, foundKey),
                           body.binary(ScalarOp::Lt, foundIndex, index));
  NodeId later = body.binary(ScalarOp::Or, body.binary(ScalarOp::Lt, key, foundKey), tie);
  Stmt s;
  s.kind = StmtKind::Accumulate;
  s.buffer = acc.value;
  s.monoid = Monoid::ArgMax;
  s.value = body.select(later, key, body.constantInt(t.keyType, smallestKey(t.keyType)));
  s.indexBuffer = acc.index;
  s.indexValue = body.select(later, index, body.constantInt(t.indexType, largestKey(t.indexType)));
  guarded(inBounds(equation, false, true, false), {std::move(s)}, result);
}

/// The element at `index` goes to the current place of both outputs.
std::vector<Stmt> Lowering::putTopK(int equation, NodeId index) {
  const Equation &e = *equations[equation];
  std::vector<Stmt> statements;
  index = body.cast(DType::I64, index);
  clampSpatial = true;
  NodeId address = topKAddress(equation, index);
  clampSpatial = false;
  BufferId x = globalBuffer(e.opaqueInputs[0]);
  NodeId values[] = {body.read(x, kernel.buffers[x].type, {address}), index};
  for (size_t o : {0, 1})
    if (levelOf(e.outputs[o]) != MemLevel::Register) // an output that nobody reads has no memory
      storeResult(equation, o, values[o], statements);
  return statements;
}

void Lowering::storeTopK(int equation, std::vector<Stmt> &result) {
  const Equation &e = *equations[equation];
  const TopK &t = topKs.at(equation);
  if (!t.sorts) {
    NodeId index = body.read(accumulators[equation].index, t.indexType, {});
    return guarded(inBounds(equation, true, false, false), putTopK(equation, index), result);
  }
  if (t.indices < 0)
    return problem("e" + std::to_string(equation) + " is stored before it is sorted");
  AxisId place = scheduleAxis(equation, e.numSpatial - 1);
  cooperative(
      body.dim(extent(place)),
      [&](NodeId flat) {
        axisOverride[place] = flat;
        std::vector<Stmt> put = putTopK(equation, body.read(t.indices, t.indexType, {flat}));
        axisOverride.clear();
        return put;
      },
      result);
}

void Lowering::sortTopK(int equation, std::vector<Stmt> &result) {
  const Equation &e = *equations[equation];
  TopK &t = topKs.at(equation);
  DimExpr length = e.axes[e.numSpatial].extent;
  std::optional<int64_t> padded = tiling::paddedLength(length, symbols);
  if (!padded)
    return problem("e" + std::to_string(equation) + " has no bound on the elements to sort");
  auto add = [&](const std::string &suffix, DType type) {
    GirBuffer buffer;
    buffer.name = pattern.tensors[e.outputs[1]].name + suffix;
    buffer.level = MemLevel::Shared;
    buffer.type = type;
    buffer.shape = {DimExpr(*padded)};
    kernel.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(kernel.buffers.size() - 1);
  };
  t.keys = add(".keys", t.keyType);
  t.indices = add(".indices", t.indexType);
  BufferId x = globalBuffer(e.opaqueInputs[0]);
  cooperative(
      body.index(*padded),
      [&](NodeId flat) {
        NodeId inside = body.binary(ScalarOp::Lt, flat, body.dim(length));
        NodeId value =
            body.readIf(x, kernel.buffers[x].type, inside, body.constant(kernel.buffers[x].type, 0),
                        {topKAddress(equation, flat)});
        NodeId key = body.select(inside, sortKey(body, value, t.largest),
                                 body.constantInt(t.keyType, smallestKey(t.keyType)));
        return std::vector<Stmt>{storeStmt(t.keys, {flat}, key),
                                 storeStmt(t.indices, {flat}, body.cast(t.indexType, flat))};
      },
      result);
  for (int64_t size = 2; size <= *padded; size *= 2)
    for (int64_t distance = size / 2; distance > 0; distance /= 2)
      sortRound(equation, *padded / 2, distance, distance == size / 2, result);
}

/// One round of the network: `pairs` comparators of places `distance` apart, or of places that mirror each other in
/// runs of twice the distance.
void Lowering::sortRound(int equation, int64_t pairs, int64_t distance, bool mirrored,
                         std::vector<Stmt> &result) {
  const TopK &t = topKs.at(equation);
  const Accumulator &acc = accumulators[equation];
  cooperative(
      body.index(pairs),
      [&](NodeId pair) {
        NodeId run = body.binary(ScalarOp::FloorDiv, pair, body.index(distance));
        NodeId within = body.binary(ScalarOp::FloorMod, pair, body.index(distance));
        NodeId start = body.binary(ScalarOp::Mul, run, body.index(2 * distance));
        NodeId low = body.binary(ScalarOp::Add, start, within);
        NodeId high =
            mirrored ? body.binary(ScalarOp::Sub,
                                   body.binary(ScalarOp::Add, start, body.index(2 * distance - 1)),
                                   within)
                     : body.binary(ScalarOp::Add, low, body.index(distance));
        auto keyAt = [&](NodeId i) { return body.read(t.keys, t.keyType, {i}); };
        auto indexAt = [&](NodeId i) { return body.read(t.indices, t.indexType, {i}); };
        NodeId lowKey = body.read(acc.value, t.keyType, {});
        NodeId lowIndex = body.read(acc.index, t.indexType, {});
        NodeId highKey = body.read(t.otherKey, t.keyType, {});
        NodeId highIndex = body.read(t.otherIndex, t.indexType, {});
        NodeId tie = body.binary(ScalarOp::And, body.binary(ScalarOp::Eq, lowKey, highKey),
                                 body.binary(ScalarOp::Lt, highIndex, lowIndex));
        NodeId swap = body.binary(ScalarOp::Or, body.binary(ScalarOp::Lt, lowKey, highKey), tie);
        return std::vector<Stmt>{
            storeStmt(acc.value, {}, keyAt(low)),
            storeStmt(acc.index, {}, indexAt(low)),
            storeStmt(t.otherKey, {}, keyAt(high)),
            storeStmt(t.otherIndex, {}, indexAt(high)),
            storeStmt(t.keys, {low}, body.select(swap, highKey, lowKey)),
            storeStmt(t.indices, {low}, body.select(swap, highIndex, lowIndex)),
            storeStmt(t.keys, {high}, body.select(swap, lowKey, highKey)),
            storeStmt(t.indices, {high}, body.select(swap, lowIndex, highIndex))};
      },
      result);
}

} // namespace fusec::lowering
