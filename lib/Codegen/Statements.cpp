// Loops, control and writes. Where lanes are vector elements, an If whose predicate differs between lanes is a mask;
// where they are threads it is a branch.
#include "Codegen/Emitter.h"
#include "Codegen/Unrolling.h"

#include "Gir/Walk.h"

namespace fusec {

using llvm::BasicBlock;
using llvm::Value;

void Emitter::emit(const std::vector<Stmt> &stmts) {
  for (const Stmt &s : stmts)
    emit(s);
}

void Emitter::emit(const Stmt &s) {
  forget(); // values read from memory hold for one statement
  current = &s;
  switch (s.kind) {
  case StmtKind::Loop: return emitLoop(s);
  case StmtKind::If: return emitIf(s);
  case StmtKind::While: return emitWhile(s);
  case StmtKind::Store: return emitStore(s);
  case StmtKind::Accumulate: return emitAccumulate(s);
  case StmtKind::LaneReduce: return emitLaneReduce(s);
  case StmtKind::Exchange: return emitExchange(s);
  case StmtKind::Sync: return emitSync(s.scope);
  case StmtKind::Signal:
  case StmtKind::Wait: return emitCounting(s);
  }
}

void Emitter::emitLoop(const Stmt &s) {
  if (!s.kernel.empty())
    return emitProduct(s);
  switch (s.loop) {
  case LoopKind::Block: assert(false && "Block loops stand in a phase's head"); return;
  case LoopKind::Unit:
    inUnit = true;
    vars[s.var] = {threads ? threadUnit : b.getInt64(0)};
    emit(s.body);
    inUnit = false;
    return;
  case LoopKind::Lane:
    inLane = true;
    if (turns && turns->lane)
      vars[s.var] = {b.getInt64(*turns->lane)};
    else
      vars[s.var] = threads ? Val{threadLane} : Val{b.getInt64(0), width > 1 ? 1 : 0};
    emit(s.body);
    inLane = false;
    return;
  case LoopKind::Unroll: {
    const bool isTile = beginTile(s);
    unrolled.push_back(s.var);
    emitUnrolled(s);
    unrolled.pop_back();
    if (isTile)
      endTile();
    return;
  }
  case LoopKind::Seq: return emitSeq(s, evalScalar(s.trip));
  }
}

/// for (i = 0; i < trip; ++i), with the test at the end and one before it. A few iterations of little work (the taps of
/// a filter) are written out; twice as much where padding is then at constant lanes (a row of a window in two tiles,
/// whose masks would cost more than its values).
void Emitter::emitSeq(const Stmt &s, Value *trip) {
  auto *constant = llvm::dyn_cast<llvm::ConstantInt>(trip);
  if (constant && constant->getSExtValue() <= 0)
    return;
  const Scalar &node = kernel.body[s.trip];
  const int64_t most = isShort(node) && isTested(kernel, s.body, s.var) ? 600 : 300;
  const auto isConstant = [&](VarId var) {
    return vars[var].uniform() && llvm::isa_and_present<llvm::ConstantInt>(vars[var].v);
  };
  if (isShort(node) && emittedStatements(kernel, s.body, most) * node.imm < most &&
      (threads || !sharesTests(kernel, s, isConstant))) {
    for (int64_t i = 0; i < node.imm; ++i) {
      vars[s.var] = {b.getInt64(i)};
      emit(s.body);
    }
    return;
  }
  auto *loop = BasicBlock::Create(context, kernel.vars[s.var].name, function);
  auto *after = BasicBlock::Create(context, "after", function);
  Value *zero = b.getInt64(0);
  // The counter is in memory until SROA promotes it: the folding builder would take a phi that has only its first
  // operand yet for a constant.
  Value *counter = entryAlloca(b.getInt64Ty(), kernel.vars[s.var].name);
  b.CreateStore(zero, counter);
  std::map<BufferId, StreamingStore> outer = beginStreaming(s);
  if (constant)
    b.CreateBr(loop);
  else
    b.CreateCondBr(b.CreateICmpSGT(trip, zero), loop, after);
  b.SetInsertPoint(loop);
  Value *count = b.CreateLoad(b.getInt64Ty(), counter);
  vars[s.var] = {count};
  emitPrefetches(s);
  emit(s.body);
  Value *next = b.CreateNSWAdd(count, b.getInt64(1));
  b.CreateStore(next, counter);
  llvm::BranchInst *back = b.CreateCondBr(b.CreateICmpSLT(next, trip), loop, after);
  takeTurnsAtOnce(s, *back);
  b.SetInsertPoint(after);
  endStreaming(std::move(outer));
}

void Emitter::emitWhere(Value *condition, llvm::function_ref<void()> body) {
  if (auto *constant = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    if (constant->isOne())
      body();
    return;
  }
  auto *then = BasicBlock::Create(context, "then", function);
  auto *after = BasicBlock::Create(context, "after", function);
  b.CreateCondBr(condition, then, after);
  b.SetInsertPoint(then);
  body();
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

void Emitter::emitIf(const Stmt &s) {
  Predicate p = evalPredicate(s.predicate);
  // Turns and rows go on together: their vectors are part of what one transposition takes and gives.
  if (turns && turns->stores && (!turns->lane || p.lanes.varying)) {
    emitSuppressed(p, [&] { emit(s.body); });
    return emitSuppressed(negated(p), [&] { emit(s.elseBody); });
  }
  if (emitChosen(s, p))
    return;
  if (p.lanes.uniform()) {
    emitWhere(p.lanes.v, [&] { emit(s.body); });
    if (!s.elseBody.empty())
      emitWhere(b.CreateNot(p.lanes.v), [&] { emit(s.elseBody); });
    return;
  }
  // Bodies without loops exist twice: plain for a full vector, masked for the rest.
  auto small = [](const std::vector<Stmt> &stmts) {
    int count = 0;
    forEachStmt(stmts, [&](const Stmt &t) { count += t.kind == StmtKind::Loop ? 100 : 1; });
    return count <= 8;
  };
  emitMasked(s.body, p, s.elseBody.empty() && small(s.body));
  if (!s.elseBody.empty())
    emitMasked(s.elseBody, negated(p), false);
}

void Emitter::emitMasked(const std::vector<Stmt> &stmts, const Predicate &p, bool versioned) {
  auto masked = [&] {
    Value *outer = mask;
    mask = outer ? b.CreateAnd(outer, p.lanes.v) : p.lanes.v;
    Predicate on = outer ? reduced({mask, 0, true}) : p;
    emitWhere(on.any, [&] { emit(stmts); });
    mask = outer;
  };
  if (!versioned || mask)
    return masked();
  auto *full = BasicBlock::Create(context, "full", function);
  auto *part = BasicBlock::Create(context, "part", function);
  auto *after = BasicBlock::Create(context, "after", function);
  b.CreateCondBr(p.all, full, part);
  b.SetInsertPoint(full);
  emit(stmts);
  b.CreateBr(after);
  b.SetInsertPoint(part);
  masked();
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

void Emitter::emitWhile(const Stmt &s) {
  auto *head = BasicBlock::Create(context, "while", function);
  auto *body = BasicBlock::Create(context, "do", function);
  auto *after = BasicBlock::Create(context, "after", function);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  forget();
  b.CreateCondBr(evalScalar(s.predicate), body, after);
  b.SetInsertPoint(body);
  emit(s.body);
  b.CreateBr(head);
  b.SetInsertPoint(after);
}

void Emitter::emitByWriter(const GirBuffer &buffer, llvm::function_ref<void()> body) {
  if (!threads || buffer.level == MemLevel::Register)
    return body();
  Value *writes = b.getTrue();
  if (!inLane)
    writes = b.CreateICmpEQ(threadLane, b.getInt64(0));
  if (!inUnit && kernel.units > 1)
    writes = b.CreateAnd(writes, b.CreateICmpEQ(threadUnit, b.getInt64(0)));
  emitWhere(writes, body);
}

void Emitter::emitStore(const Stmt &s) {
  if ((turns && storeColumn(s)) || storeTogether(s))
    return;
  std::vector<Val> indices = evalAll(s.indices);
  Val value = eval(s.value);
  emitByWriter(kernel.buffers[s.buffer], [&] { store(s.buffer, indices, value); });
}

void Emitter::emitAccumulate(const Stmt &s) {
  const DType type = kernel.buffers[s.buffer].type;
  const Scalar &root = kernel.body[s.value];
  std::vector<Val> indices = evalAll(s.indices);
  if (s.indexBuffer >= 0) {
    const DType indexType = kernel.buffers[s.indexBuffer].type;
    Val value = eval(s.value), index = eval(s.indexValue);
    emitByWriter(kernel.buffers[s.buffer], [&] {
      Val oldValue = load(s.buffer, indices), oldIndex = load(s.indexBuffer, indices);
      bool vector = oldValue.varying || oldIndex.varying || !value.uniform() || !index.uniform();
      auto [newValue, newIndex] = combineArg(s.monoid, type, indexType,
                                             {asLike(oldValue, vector), asLike(oldIndex, vector)},
                                             {asLike(value, vector), asLike(index, vector)});
      store(s.buffer, indices, {newValue, 0, vector});
      store(s.indexBuffer, indices, {newIndex, 0, vector});
    });
    return;
  }
  // Sum of a float product is one fma: the factors are evaluated, the product is not.
  if (s.monoid == Monoid::Sum && isFloat(type) && root.op == ScalarOp::Mul) {
    Val x = eval(root.args[0]), y = eval(root.args[1]);
    emitByWriter(kernel.buffers[s.buffer], [&] {
      Val old = load(s.buffer, indices);
      bool vector = old.varying || !x.uniform() || !y.uniform();
      store(s.buffer, indices,
            {fma(type, asLike(x, vector), asLike(y, vector), asLike(old, vector)), 0, vector});
    });
    return;
  }
  Val value = eval(s.value);
  emitByWriter(kernel.buffers[s.buffer], [&] {
    Val old = load(s.buffer, indices);
    bool vector = old.varying || !value.uniform();
    // The value in front: a maximum compares that one with itself, for NaN, and the next term waits for the other.
    Value *taken = asLike(value, vector), *present = asLike(old, vector);
    store(s.buffer, indices, {combine(s.monoid, type, taken, present), 0, vector});
  });
}

/// Butterfly in the order that Gir.h gives.
void Emitter::emitLaneReduce(const Stmt &s) {
  const DType type = kernel.buffers[s.buffer].type;
  std::vector<Val> indices = evalAll(s.indices);
  bool wasInLane =
      std::exchange(inLane, true); // each lane's own element, also where no Lane loop is around
  Val value = load(s.buffer, indices);
  if (s.indexBuffer >= 0) {
    const DType indexType = kernel.buffers[s.indexBuffer].type;
    std::pair<Value *, Value *> pair = {value.v, load(s.indexBuffer, indices).v};
    for (int d = kernel.lanes / 2; d >= 1; d /= 2)
      pair = combineArg(s.monoid, type, indexType, pair,
                        {shuffleXor(pair.first, d), shuffleXor(pair.second, d)});
    store(s.buffer, indices, {pair.first, 0, width > 1});
    store(s.indexBuffer, indices, {pair.second, 0, width > 1});
  } else {
    for (int d = kernel.lanes / 2; d >= 1; d /= 2)
      value.v = combine(s.monoid, type, value.v, shuffleXor(value.v, d));
    store(s.buffer, indices, value);
  }
  inLane = wasInLane;
}

void Emitter::emitExchange(const Stmt &s) {
  std::vector<Val> indices = evalAll(s.indices);
  bool wasInLane = std::exchange(inLane, true); // as in emitLaneReduce
  Val value = load(s.buffer, indices);
  value.v = shuffleXor(value.v, s.distance);
  store(s.buffer, indices, value);
  inLane = wasInLane;
}

/// In an entry for one phase all blocks of the phases before have ended.
void Emitter::emitCounting(const Stmt &s) {
  if (!gridWords)
    return;
  DimExpr before(0);
  for (CounterId c = 0; c < s.counter; ++c)
    before = before + kernel.counters[static_cast<size_t>(c)].count;
  llvm::Type *i64 = b.getInt64Ty();
  std::vector<Value *> args = {gridWords};
  for (NodeId index : s.indices)
    args.push_back(b.CreateAdd(evalScalar(index), dimValue(before)));
  if (s.kind == StmtKind::Signal) {
    b.CreateCall(machine("fusec.gpu.sync.signal", b.getVoidTy(), {gridWords->getType(), i64}),
                 args);
    return;
  }
  args.push_back(evalScalar(s.value));
  b.CreateCall(machine("fusec.gpu.sync.wait", b.getVoidTy(), {gridWords->getType(), i64, i64, i64}),
               args);
}

void Emitter::emitSync(SyncScope scope) {
  if (threads)
    b.CreateCall(machine(scope == SyncScope::Block ? "fusec.gpu.sync.block" : "fusec.gpu.sync.unit",
                         b.getVoidTy(), {}));
}

} // namespace fusec
