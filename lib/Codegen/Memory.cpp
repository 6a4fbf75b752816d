// Addresses, loads and stores. An access whose index is linear in the lane is scalar (step 0), a vector access
// (step 1), or a gather or scatter; where no mask is on, lanes at another distance are stored one by one. A mask or the
// predicate of a ReadIf keeps suppressed lanes from memory.
#include "Codegen/Emitter.h"

namespace fusec {

using llvm::Value;

/// Type in memory: bool is a byte, f16 and bf16 are 16-bit integers.
llvm::Type *elementInMemory(Builder &b, DType t) {
  if (t == DType::F32)
    return b.getFloatTy();
  if (t == DType::F64)
    return b.getDoubleTy();
  return b.getIntNTy(sizeInBytes(t) * 8);
}

Value *Emitter::fromMemory(DType t, Value *v) {
  if (t == DType::Bool)
    return b.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
  if (t == DType::F16 || t == DType::BF16)
    return widenBits(t, v);
  return v;
}

Value *Emitter::toMemory(DType t, Value *v) {
  if (t == DType::Bool)
    return b.CreateZExt(v, withShapeOf(b.getInt8Ty(), v->getType()));
  if (t == DType::F16 || t == DType::BF16)
    return narrowBits(t, v);
  return v;
}

/// Row-major element number; linear as long as the indices are and the strides are constant.
Emitter::Place Emitter::place(BufferId id, const std::vector<Val> &indices) {
  const GirBuffer &buffer = kernel.buffers[id];
  Val sum{b.getInt64(0)};
  DimExpr stride = 1;
  for (size_t d = indices.size(); d-- > 0;) {
    const Val &index = indices[d];
    Value *factor = dimValue(stride);
    auto *constant = llvm::dyn_cast<llvm::ConstantInt>(factor);
    Val term = index;
    if (index.varying || (index.step != 0 && !constant)) {
      Value *lanes = asVector(index);
      term = {b.CreateMul(lanes, b.CreateVectorSplat(width, factor)), 0, true};
    } else {
      term.v = b.CreateMul(index.v, factor);
      term.step = constant ? index.step * constant->getSExtValue() : 0;
    }
    if (sum.varying || term.varying)
      sum = {b.CreateAdd(asVector(sum), asVector(term)), 0, true};
    else
      sum = {b.CreateAdd(sum.v, term.v), sum.step + term.step};
    stride = stride * buffer.shape[d];
  }
  return {buffers[id], sum};
}

Value *Emitter::pointers(const Place &p, DType t) {
  llvm::Type *element = elementInMemory(b, t);
  if (p.index.varying)
    return b.CreateGEP(element, p.base, p.index.v);
  // One scalar address and constant distances, which gather instructions take as they are.
  return b.CreateGEP(element, b.CreateGEP(element, p.base, p.index.v),
                     asVector({b.getInt64(0), p.index.step}));
}

/// A scalar from `pointer`; where `condition` does not hold, the access goes elsewhere and the value is arbitrary.
Val Emitter::loadScalarGuarded(Value *pointer, DType t, Value *condition, Value *elsewhere) {
  if (condition && elsewhere)
    pointer = b.CreateSelect(condition, pointer, elsewhere);
  llvm::Type *type = elementInMemory(b, t);
  return {fromMemory(t, b.CreateAlignedLoad(type, pointer, llvm::Align(sizeInBytes(t))))};
}

Val Emitter::load(BufferId id, const std::vector<Val> &indices) {
  const GirBuffer &buffer = kernel.buffers[id];
  if (buffer.level == MemLevel::Register)
    return loadRegister(id, indices);
  const DType t = buffer.type;
  Place p = place(id, indices);
  if (p.index.uniform())
    return loadScalarGuarded(b.CreateGEP(elementInMemory(b, t), p.base, p.index.v), t, guard,
                             buffer.level == MemLevel::Shared && threads ? p.base : safePlace);
  return {fromMemory(t, loadLanes(id, p)), 0, true};
}

Value *Emitter::loadLanes(BufferId id, const Place &p) {
  const DType t = kernel.buffers[id].type;
  const llvm::Align align(sizeInBytes(t));
  llvm::Type *element = elementInMemory(b, t);
  auto *type = llvm::FixedVectorType::get(element, width);
  Value *on = mask;
  llvm::Constant *nothing = llvm::Constant::getNullValue(type);
  Value *loaded;
  const int64_t step = p.index.step;
  if (!p.index.varying && (step == 1 || step == -1)) {
    Value *first = step == 1 ? p.index.v : b.CreateSub(p.index.v, b.getInt64(width - 1));
    Value *pointer = b.CreateGEP(element, p.base, first);
    // A masked load without lanes does not fault, but where there is no page the processor takes hundreds of cycles to
    // find that out: rows of padding in front of a buffer took a quarter of MobileNet-V3's time.
    if (guard)
      pointer = b.CreateSelect(guard, pointer, safePlace);
    std::vector<int> reverse;
    for (int l = width - 1; l >= 0; --l)
      reverse.push_back(l);
    if (on)
      loaded = b.CreateMaskedLoad(type, pointer, align,
                                  step == 1 ? on : b.CreateShuffleVector(on, reverse), nothing);
    else
      loaded = b.CreateAlignedLoad(type, pointer, align);
    if (step == -1)
      loaded = b.CreateShuffleVector(loaded, reverse);
  } else {
    Value *all =
        on ? on : llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(b.getInt1Ty(), width));
    loaded = loadStrided(p, align, all, {nothing, guard, safePlace});
    if (!loaded) {
      if (guard)
        all = b.CreateAnd(all, b.CreateVectorSplat(width, guard));
      loaded = b.CreateMaskedGather(type, pointers(p, t), align, all, nothing);
    }
  }
  return loaded;
}

void Emitter::notePrefetches() {
  if (const int64_t cache = hooks.lastCacheBytes(); cache > 0)
    prefetches = findPrefetches(kernel, cache / 2);
}

/// The iterations in another order, in turn one of each part of them: caches read ahead along each page that a core is
/// in, and lines that they brought do not keep the core's few misses waiting.
Val Emitter::inParts(const Stmt &loop, const Prefetch &access) {
  const Val &count = vars[loop.var];
  const Scalar &trip = kernel.body[loop.trip];
  if (trip.op != ScalarOp::Const)
    return count;
  const int64_t iterationBytes =
      access.unrollTrip * width * sizeInBytes(kernel.buffers[access.buffer].type);
  const int64_t parts = hooks.partsToAsk(trip.imm * iterationBytes);
  Value *first = b.CreateMul(b.CreateURem(count.v, b.getInt64(parts)),
                             b.getInt64((trip.imm + parts - 1) / parts));
  return {b.CreateAdd(first, b.CreateUDiv(count.v, b.getInt64(parts)))};
}

/// In each iteration: the lines that the other loop's iteration of this number touches.
void Emitter::emitPrefetches(const Stmt &loop) {
  const auto [first, last] = prefetches.equal_range(&loop);
  for (auto it = first; it != last; ++it) {
    const Prefetch &access = it->second;
    const std::vector<Val> outside = vars;
    vars[access.loop] = access.next >= 0 ? inParts(loop, access) : vars[loop.var];
    vars[access.lane] = {b.getInt64(0), 1};
    if (access.next >= 0)
      vars[access.next] = {b.CreateAdd(vars[access.next].v, b.getInt64(1))};
    const DType type = kernel.buffers[access.buffer].type;
    const int64_t vectorBytes = int64_t{width} * sizeInBytes(type);
    for (int64_t i = 0; i < access.unrollTrip; ++i) {
      if (i * vectorBytes % kLineBytes != 0)
        continue;
      if (access.unroll >= 0)
        vars[access.unroll] = {b.getInt64(i)};
      forget();
      const Val index = eval(access.index);
      if (index.varying || index.step != 1)
        break;
      Value *line = b.CreateGEP(elementInMemory(b, type), buffers[access.buffer], index.v);
      // To be written, or read again by the next iteration: into the first cache, the second one.
      b.CreateIntrinsic(llvm::Intrinsic::prefetch, {line->getType()},
                        {line, b.getInt32(access.isWritten), b.getInt32(access.isWritten ? 3 : 2),
                         b.getInt32(1)});
    }
    vars = outside;
  }
  forget();
}

void Emitter::store(BufferId id, const std::vector<Val> &indices, const Val &value) {
  const GirBuffer &buffer = kernel.buffers[id];
  if (buffer.level == MemLevel::Register)
    return storeRegister(id, indices, value);
  const DType t = buffer.type;
  Place p = place(id, indices);
  if (p.index.uniform() && value.uniform()) {
    b.CreateAlignedStore(toMemory(t, value.v),
                         b.CreateGEP(elementInMemory(b, t), p.base, p.index.v),
                         llvm::Align(sizeInBytes(t)));
    return;
  }
  storeLanes(id, p, toMemory(t, asVector(value)));
}

void Emitter::storeLanes(BufferId id, const Place &p, Value *stored) {
  const DType t = kernel.buffers[id].type;
  const llvm::Align align(sizeInBytes(t));
  llvm::Type *element = elementInMemory(b, t);
  if (!p.index.varying && p.index.step == 1) {
    if (mask)
      b.CreateMaskedStore(stored, b.CreateGEP(element, p.base, p.index.v), align, mask);
    else
      storeVector(id, stored, {p.base, {p.index.v}});
    return;
  }
  // Lanes are written in order: where several go to one element, the last one that is on stays.
  if (!mask && !p.index.varying) {
    // An instruction for each: 16 lanes take 4.3 ns on an AMD EPYC (Zen 4), those 2 KB apart 7.5. A scatter takes 6.5
    // and 7.7.
    Value *first = b.CreateGEP(element, p.base, p.index.v);
    for (int lane = 0; lane < width; ++lane)
      b.CreateAlignedStore(b.CreateExtractElement(stored, lane),
                           b.CreateGEP(element, first, b.getInt64(lane * p.index.step)), align);
    return;
  }
  b.CreateMaskedScatter(stored, pointers(p, t), align, mask);
}

/// Emits nested ReadIfs whose predicates are uniform over the lanes (the pieces of a concatenation) as one vector load
/// from the chosen piece. A load of each piece and blends of them took a GPT-2 with caches 4 % longer. Returns nullopt
/// if a predicate differs between lanes or a piece's elements are not contiguous.
std::optional<Val> Emitter::evalChosenRead(const Scalar &s) {
  struct Piece {
    Value *chosen;
    Place place;
  };
  std::vector<Piece> pieces;
  NodeId rest = kNoNode;
  for (const Scalar *piece = &s; piece->op == ScalarOp::ReadIf; piece = &kernel.body[rest]) {
    const GirBuffer &buffer = kernel.buffers[piece->index];
    if (buffer.level == MemLevel::Register || buffer.type != kernel.buffers[s.index].type ||
        std::any_of(piece->args.begin() + 2, piece->args.end(),
                    [&](NodeId index) { return hasRead(index); }))
      break;
    const Predicate p = evalPredicate(piece->args[0]);
    const Place at = place(piece->index, evalAll(piece->args, 2));
    if (p.lanes.varying || at.index.varying || at.index.step != 1)
      break;
    pieces.push_back({p.any, at});
    rest = piece->args[1];
  }
  if (pieces.size() < 2)
    return std::nullopt;
  const Val otherwise = eval(rest);
  const DType t = kernel.buffers[s.index].type;
  llvm::Type *element = elementInMemory(b, t);
  // By distances from the last piece's element, which do not change along loops within a piece.
  Value *common = pieces.back().place.index.v, *begin = nullptr, *any = b.getFalse();
  for (size_t i = pieces.size(); i-- > 0;) {
    const auto &[chosen, at] = pieces[i];
    Value *from = b.CreateGEP(element, at.base, b.CreateSub(at.index.v, common));
    begin = begin ? b.CreateSelect(chosen, from, begin) : from;
    any = b.CreateOr(any, chosen);
  }
  Value *on = guard ? b.CreateAnd(guard, any) : any;
  Value *pointer = b.CreateSelect(on, b.CreateGEP(element, begin, common), safePlace);
  auto *type = llvm::FixedVectorType::get(element, width);
  const llvm::Align align(sizeInBytes(t));
  Value *loaded = nullptr;
  if (mask)
    loaded = b.CreateMaskedLoad(type, pointer, align, mask, llvm::Constant::getNullValue(type));
  else
    loaded = b.CreateAlignedLoad(type, pointer, align);
  return Val{b.CreateSelect(any, fromMemory(t, loaded), asVector(otherwise)), 0, true};
}

/// The else-value where the predicate fails; there, neither the indices nor the element are touched.
Val Emitter::evalReadIf(const Scalar &s) {
  if (!threads)
    if (std::optional<Val> chosen = evalChosenRead(s))
      return *chosen;
  Predicate p = evalPredicate(s.args[0]);
  Val otherwise = eval(s.args[1]);
  bool indicesRead = false;
  for (size_t i = 2; i < s.args.size(); ++i)
    indicesRead = indicesRead || hasRead(s.args[i]);
  // What does not read memory may be computed in any case.
  std::vector<Val> indices;
  if (!indicesRead)
    indices = evalAll(s.args, 2);
  const bool fromRegister = kernel.buffers[s.index].level == MemLevel::Register;
  if (!indicesRead && !fromRegister)
    if (std::optional<Val> padded = evalPadded(s, p, otherwise, indices))
      return *padded;

  if (threads && !readsAnyway(s)) {
    auto *then = llvm::BasicBlock::Create(context, "read", function);
    auto *after = llvm::BasicBlock::Create(context, "after", function);
    auto *from = b.GetInsertBlock();
    b.CreateCondBr(p.lanes.v, then, after);
    b.SetInsertPoint(then);
    std::vector<Cached> saved = cache; // what is computed here does not dominate what follows
    if (indicesRead)
      indices = evalAll(s.args, 2);
    Val value = load(s.index, indices);
    cache = std::move(saved);
    auto *end = b.GetInsertBlock();
    b.CreateBr(after);
    b.SetInsertPoint(after);
    auto *merged = b.CreatePHI(value.v->getType(), 2);
    merged->addIncoming(otherwise.v, from);
    merged->addIncoming(value.v, end);
    return {merged};
  }

  Value *outerMask = mask, *outerGuard = guard;
  Value *wanted = threads ? p.lanes.v : p.any;
  guard = outerGuard ? b.CreateAnd(outerGuard, wanted) : wanted;
  if (p.lanes.varying) {
    mask = outerMask ? b.CreateAnd(outerMask, p.lanes.v) : p.lanes.v;
    if (outerMask)
      guard = b.CreateAnd(guard, reduced({mask, 0, true}).any);
  }
  Val value;
  if (indicesRead) {
    std::vector<Cached> saved = cache; // values read under the predicate hold under it only
    indices = evalAll(s.args, 2);
    value = load(s.index, indices);
    cache = std::move(saved);
  } else {
    value = fromRegister ? loadRegister(s.index, indices) : load(s.index, indices);
  }
  mask = outerMask;
  guard = outerGuard;
  bool vector = p.lanes.varying || !value.uniform() || !otherwise.uniform();
  return {b.CreateSelect(asLike(p.lanes, vector), asLike(value, vector), asLike(otherwise, vector)),
          0, vector};
}

/// Address of a register buffer's element: of all its lanes, where each lane has one.
Value *Emitter::registerSlot(BufferId id, const std::vector<Val> &indices) {
  Place p = place(id, indices);
  if (!p.index.uniform())
    return nullptr;
  auto *slots = llvm::cast<llvm::AllocaInst>(buffers[id]);
  return b.CreateGEP(slots->getAllocatedType(), slots, {b.getInt64(0), p.index.v});
}

Val Emitter::loadRegister(BufferId id, const std::vector<Val> &indices) {
  const GirBuffer &buffer = kernel.buffers[id];
  auto *slots = llvm::cast<llvm::AllocaInst>(buffers[id]);
  llvm::Type *type = llvm::cast<llvm::ArrayType>(slots->getAllocatedType())->getElementType();
  auto narrowed = [&](Value *v) {
    return buffer.type == DType::Bool ? b.CreateTrunc(v, withShapeOf(b.getInt1Ty(), v->getType()))
                                      : v;
  };
  Value *slot = registerSlot(id, indices);
  if (!slot) { // each lane has its own index: its own column of the array of vectors, or of the common array
    Value *index = asVector(place(id, indices).index);
    llvm::Type *element = storageType(buffer.type);
    if (buffer.perLane) {
      index = b.CreateMul(index, integerLike(index->getType(), width));
      index = b.CreateAdd(index, asVector({b.getInt64(0), 1}));
    }
    auto *vectorType = llvm::FixedVectorType::get(element, width);
    Value *on =
        mask ? mask
             : llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(b.getInt1Ty(), width));
    Value *v = b.CreateMaskedGather(vectorType, b.CreateGEP(element, slots, index),
                                    llvm::Align(sizeInBytes(buffer.type)), on,
                                    llvm::Constant::getNullValue(vectorType));
    return {narrowed(v), 0, true};
  }
  // A ReadIf's index may be outside where its predicate fails.
  bool known = llvm::isa<llvm::ConstantInt>(place(id, indices).index.v);
  if (guard && !known && safePlace)
    slot = b.CreateSelect(guard, slot, safePlace);
  Value *v = narrowed(b.CreateLoad(type, slot));
  if (!buffer.perLane)
    return {v};
  if (inLane)
    return {v, 0, width > 1};
  if (!threads) // outside Lane loops: lane 0's element
    return {width > 1 ? b.CreateExtractElement(v, uint64_t(0)) : v};
  llvm::Type *i32 = b.getInt32Ty();
  return {kernel.lanes > 1 ? overLanes(v, machine("fusec.gpu.lane0", i32, {i32}), nullptr) : v};
}

void Emitter::storeRegister(BufferId id, const std::vector<Val> &indices, const Val &value) {
  const GirBuffer &buffer = kernel.buffers[id];
  Value *slot = registerSlot(id, indices);
  if (!slot) {
    problem("a register that is written at an index of each lane's own");
    return;
  }
  Value *v = buffer.perLane ? asVector(value) : value.v;
  assert((buffer.perLane || value.uniform()) &&
         "a uniform register holds what is the same in all lanes");
  if (buffer.type == DType::Bool)
    v = b.CreateZExt(v, withShapeOf(b.getInt8Ty(), v->getType()));
  if (mask && buffer.perLane && width > 1)
    v = b.CreateSelect(mask, v, b.CreateLoad(v->getType(), slot));
  if (keepUnless)
    v = b.CreateSelect(keepUnless, v, b.CreateLoad(v->getType(), slot));
  b.CreateStore(v, slot);
}

} // namespace fusec
