// Accesses whose lanes lie apart while the turns of an Unroll loop around them lie side by side: what a kernel writes
// in another order than it computes it, the image [c, y, x] of a convolution whose lanes go along c, or reads in
// another order, what a sum takes from a Transpose,
//
//   unroll x in 8 {                        unroll c in 8 {
//     lane c in 16 {                         lane x in 16 {
//       %y[c*3136 + x] = ...                   %y[c*3136 + x] = add(%a[x*96 + c], %b[c*3136 + x])
//
// are rows along the turns, one for each lane. Rows that are read are loaded in front of the turns, and each turn takes
// a column of them. What turns store waits for all of them and is stored in rows: 16 stores and 48 shuffles in place of
// 128 stores.
//
// Along a row turns and lanes change places: the Lane loop's variable is a number, the turn's goes along a vector, and
// both an access and the conditions around it come out as those of any vector whose elements lie side by side. So edges
// keep what is off from memory as they do elsewhere.
//
// A row is read before the first turn: nothing in the loop may write to its buffer. Nor may the loop read where stores
// wait.
#include "Codegen/Transpose.h"
#include "Codegen/Unrolling.h"

#include "Gir/Distance.h"
#include "Gir/Walk.h"

#include <bit>
#include <numeric>

namespace fusec {

using llvm::Value;

bool Emitter::isColumn(BufferId buffer, const std::vector<NodeId> &indices, VarId turn,
                       VarId lane) const {
  if (lane < 0 || kernel.buffers[buffer].level == MemLevel::Register)
    return false;
  const auto turns = distanceOf(kernel, buffer, indices, turn);
  if (!turns || !turns->isConst(1))
    return false;
  const auto lanes = distanceOf(kernel, buffer, indices, lane);
  return lanes && !lanes->isConst(0) && !lanes->isConst(1) && !readsAny(kernel.body, indices);
}

/// Whether what a turn does is one statement after another.
bool Emitter::findColumns(const std::vector<Stmt> &stmts, VarId turn, VarId lane,
                          const std::vector<VarId> &inner, Turns &found) const {
  for (const Stmt &s : stmts) {
    if (s.kind == StmtKind::Loop && s.loop != LoopKind::Seq) {
      const bool isLane = s.loop == LoopKind::Lane;
      std::vector<VarId> inside = inner;
      if (!isLane)
        inside.push_back(s.var);
      if (!findColumns(s.body, turn, isLane ? s.var : lane, inside, found))
        return false;
    } else if (s.kind == StmtKind::If && !readsAny(kernel.body, {s.predicate})) {
      if (!findColumns(s.body, turn, lane, inner, found) ||
          !findColumns(s.elseBody, turn, lane, inner, found))
        return false;
    } else if (s.kind == StmtKind::Store || s.kind == StmtKind::Accumulate) {
      ColumnAccess access{inner, {}, false};
      access.stored = s.kind == StmtKind::Store && isColumn(s.buffer, s.indices, turn, lane);
      for (NodeId id : certainReads(kernel.body, exprRoots(s))) {
        const Scalar &read = kernel.body[id];
        if (read.op != ScalarOp::Read || !isColumn(read.index, read.args, turn, lane))
          continue;
        // A few lines of memory and shuffles serve lanes that lie closer (StridedLoads.cpp), or in turned order.
        const auto distance = distanceOf(kernel, read.index, read.args, lane);
        if (!distance->isConst() || std::abs(distance->constValue()) > width / 2)
          access.reads.push_back(id);
      }
      found.accesses[&s] = std::move(access);
    } else {
      return false;
    }
  }
  return true;
}

/// The accesses of a loop that are rows along its turns; nothing where there are none.
std::optional<Emitter::Turns> Emitter::columnsOf(const Stmt &loop) const {
  Turns found;
  if (threads || width == 1 || mask || turns || kernel.body[loop.trip].imm < 2 ||
      !findColumns(loop.body, loop.var, -1, {}, found))
    return std::nullopt;
  std::set<BufferId> written, read;
  bool anyRead = false;
  found.stores = true;
  for (const auto &[s, access] : found.accesses) {
    written.insert({s->buffer, s->indexBuffer});
    found.stores = found.stores && access.stored;
    for (NodeId id : kernel.body.reachable(exprRoots(*s)))
      if (const ScalarOp op = kernel.body[id].op; op == ScalarOp::Read || op == ScalarOp::ReadIf)
        read.insert(kernel.body[id].index);
  }
  for (BufferId id : written)
    found.stores = found.stores && read.count(id) == 0;
  for (auto &[s, access] : found.accesses) {
    access.stored = found.stores;
    std::erase_if(access.reads,
                  [&](NodeId id) { return written.count(kernel.body[id].index) != 0; });
    anyRead = anyRead || !access.reads.empty();
  }
  if (found.accesses.empty() || (!found.stores && !anyRead))
    return std::nullopt;
  return found;
}

Emitter::ColumnKey Emitter::columnKey(NodeId read) const {
  std::vector<int64_t> iteration;
  for (VarId var : turns->accesses.at(current).inner)
    iteration.push_back(llvm::cast<llvm::ConstantInt>(vars[var].v)->getSExtValue());
  return {current, read, std::move(iteration)};
}

/// What a read gives to the turn that is being emitted, as in memory; nullptr where it is none of rows.
Value *Emitter::columnOf(NodeId read) const {
  if (turns->lane || kernel.body[read].op != ScalarOp::Read || turns->accesses.count(current) == 0)
    return nullptr;
  const auto columns = turns->vectors.find(columnKey(read));
  return columns == turns->vectors.end() ? nullptr : columns->second[turns->turn];
}

/// Emits `body` for each lane, with the loop's turns as the lanes of vectors.
void Emitter::alongTurns(const Stmt &loop, int64_t first, int count,
                         llvm::function_ref<void()> body) {
  const int lanes = std::exchange(width, count);
  vars[loop.var] = {b.getInt64(first), 1};
  for (int64_t lane = 0; lane < lanes; ++lane) {
    turns->lane = lane;
    body();
  }
  turns->lane.reset();
  width = lanes;
}

/// The statements where a predicate holds, without a branch: what does not hold keeps reads from memory.
void Emitter::emitSuppressed(const Predicate &p, llvm::function_ref<void()> body) {
  Value *outerMask = mask, *outerGuard = guard;
  if (p.lanes.varying)
    mask = outerMask ? b.CreateAnd(outerMask, p.lanes.v) : p.lanes.v;
  guard = outerGuard ? b.CreateAnd(outerGuard, p.any) : p.any;
  body();
  mask = outerMask;
  guard = outerGuard;
}

/// A lane's rows of all reads.
void Emitter::loadColumns(const std::vector<Stmt> &stmts) {
  for (const Stmt &s : stmts) {
    forget();
    current = &s;
    if (s.kind == StmtKind::Loop) {
      const bool isUnroll = s.loop == LoopKind::Unroll, isLane = s.loop == LoopKind::Lane;
      for (int64_t i = 0, trip = isUnroll ? kernel.body[s.trip].imm : 1; i < trip; ++i) {
        vars[s.var] = {b.getInt64(isLane ? *turns->lane : i)};
        loadColumns(s.body);
      }
      continue;
    }
    if (s.kind == StmtKind::If) {
      const Predicate p = evalPredicate(s.predicate);
      emitSuppressed(p, [&] { loadColumns(s.body); });
      emitSuppressed(negated(p), [&] { loadColumns(s.elseBody); });
      continue;
    }
    for (NodeId id : turns->accesses.at(&s).reads) {
      const Scalar &read = kernel.body[id];
      turns->vectors[columnKey(id)].push_back(
          loadLanes(read.index, place(read.index, evalAll(read.args))));
    }
  }
}

/// The columns of what is there of reads, or of stores, in place of their rows.
void Emitter::turnRows(bool ofReads) {
  const auto widened = [&](Value *row, unsigned elements) {
    std::vector<int> order(elements, llvm::PoisonMaskElem);
    const unsigned have = llvm::cast<llvm::FixedVectorType>(row->getType())->getNumElements();
    if (have == elements)
      return row;
    std::iota(order.begin(), order.begin() + std::min(have, elements), 0);
    return b.CreateShuffleVector(row, order);
  };
  for (auto &[key, rows] : turns->vectors) {
    if ((std::get<NodeId>(key) != kNoNode) != ofReads)
      continue;
    const auto height = static_cast<unsigned>(rows.size()),
               across = llvm::cast<llvm::FixedVectorType>(rows[0]->getType())->getNumElements();
    for (Value *&row : rows)
      row = widened(row, std::bit_ceil(across));
    rows.resize(std::bit_ceil(height), llvm::PoisonValue::get(rows[0]->getType()));
    rows = transposed(b, rows);
    rows.resize(across);
    for (Value *&column : rows)
      column = widened(column, height);
  }
}

/// Whether it was one of those that wait for each other.
bool Emitter::storeColumn(const Stmt &s) {
  if (!turns->stores)
    return false;
  std::vector<Value *> &vectors = turns->vectors[columnKey(kNoNode)];
  if (turns->lane)
    storeLanes(s.buffer, place(s.buffer, evalAll(s.indices)), vectors[*turns->lane]);
  else
    vectors.push_back(toMemory(kernel.buffers[s.buffer].type, asVector(eval(s.value))));
  return true;
}

void Emitter::emitUnrolled(const Stmt &loop) {
  if (const Neighbours *found = neighboursIn(loop))
    return emitTogether(loop, *found);
  const std::optional<Turns> columns = columnsOf(loop);
  for (int64_t trip = kernel.body[loop.trip].imm, first = 0; first < trip;) {
    const int64_t count = columns ? std::min<int64_t>(width, trip - first) : 1;
    if (count > 1) {
      turns = columns;
      alongTurns(loop, first, static_cast<int>(count), [&] { loadColumns(loop.body); });
      turnRows(true);
    }
    for (int64_t i = 0; i < count; ++i) {
      if (count > 1)
        turns->turn = static_cast<size_t>(i);
      vars[loop.var] = {b.getInt64(first + i)};
      emit(loop.body);
    }
    if (count > 1) {
      if (turns->stores) {
        turnRows(false);
        alongTurns(loop, first, static_cast<int>(count), [&] { emit(loop.body); });
      }
      turns.reset();
    }
    first += count;
  }
}

} // namespace fusec
