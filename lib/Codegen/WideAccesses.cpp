// Emits accesses that serve several turns of an Unroll loop at once (Neighbours.h), where lanes are threads. Elements
// of less than four bytes go in words: LLVM's back ends take vectors of 16-bit or 8-bit elements apart.
#include "Codegen/Emitter.h"

namespace fusec {

using llvm::Value;

llvm::Type *Emitter::wideType(DType t, int64_t elements) {
  const int64_t bytes = elements * static_cast<int64_t>(sizeInBytes(t));
  llvm::Type *element = elementInMemory(b, t);
  if (sizeInBytes(t) >= 4)
    return llvm::FixedVectorType::get(element, static_cast<unsigned>(elements));
  if (bytes > 4)
    return llvm::FixedVectorType::get(b.getInt32Ty(), static_cast<unsigned>(bytes / 4));
  return b.getIntNTy(static_cast<unsigned>(bytes * 8));
}

/// Null where each turn makes its own accesses.
const Neighbours *Emitter::neighboursIn(const Stmt &loop) {
  if (!threads || guard || keepUnless)
    return nullptr;
  const auto [at, isNew] = neighbours.try_emplace(&loop);
  if (isNew)
    at->second = neighboursOf(kernel, loop);
  return at->second ? &*at->second : nullptr;
}

void Emitter::emitTogether(const Stmt &loop, const Neighbours &found) {
  together.push_back({found, unrolled.size(), 0, {}, {}, {}});
  const auto turn = [&](int64_t first, const std::vector<Stmt> &body) {
    for (int64_t i = 0; i < found.together; ++i) {
      together.back().turn = i;
      vars[loop.var] = {b.getInt64(first + i)};
      emit(body);
    }
    together.back().loaded.clear();
  };
  const bool wasInLane = inLane;
  for (int64_t first = 0, trip = kernel.body[loop.trip].imm; first < trip;
       first += found.together) {
    if (!found.condition) {
      turn(first, loop.body);
      continue;
    }
    // The group's turns stand in one branch: what the first one reads is there for the others.
    vars[loop.var] = {b.getInt64(first)};
    if (found.lane) {
      inLane = true;
      vars[found.lane->var] = {threadLane};
    }
    forget();
    current = found.condition;
    emitWhere(evalPredicate(found.condition->predicate).lanes.v,
              [&] { turn(first, found.condition->body); });
    inLane = wasInLane;
  }
  together.pop_back();
}

/// The element that a read gives to this turn; nullopt for a read that is each turn's own.
std::optional<Val> Emitter::neighbourRead(NodeId id) {
  for (size_t i = together.size(); i-- > 0;) {
    const auto access = together[i].found.accesses.find({current, id});
    if (access == together[i].found.accesses.end())
      continue;
    const int64_t turns = access->second, within = together[i].turn % turns;
    const Scalar &read = kernel.body[id];
    std::vector<int64_t> inside;
    for (size_t loop = together[i].depth; loop < unrolled.size(); ++loop)
      inside.push_back(llvm::cast<llvm::ConstantInt>(vars[unrolled[loop]].v)->getSExtValue());
    const ColumnKey key{current, id, std::move(inside)};
    const bool guarded = read.op == ScalarOp::ReadIf;
    if (within == 0) {
      Value *wanted = guarded ? evalPredicate(read.args[0]).lanes.v : nullptr;
      together[i].loaded[key] = {loadTogether(read, turns, wanted), wanted};
    }
    const auto [elements, wanted] = together[i].loaded.at(key);
    Value *element =
        fromMemory(read.type, b.CreateExtractElement(elements, static_cast<uint64_t>(within)));
    if (guarded)
      element = b.CreateSelect(wanted, element, eval(read.args[1]).v);
    return Val{element};
  }
  return std::nullopt;
}

/// Loads the elements of so many turns, if they are wanted (i1; null: they are).
Value *Emitter::loadTogether(const Scalar &read, int64_t turns, Value *wanted) {
  const DType t = kernel.buffers[read.index].type;
  llvm::Type *type = wideType(t, turns);
  const llvm::Align align(static_cast<uint64_t>(turns) * sizeInBytes(t));
  if (auto *known = llvm::dyn_cast_if_present<llvm::ConstantInt>(wanted); known && known->isZero())
    return llvm::Constant::getNullValue(
        llvm::FixedVectorType::get(elementInMemory(b, t), static_cast<unsigned>(turns)));
  const bool branches = wanted && !llvm::isa<llvm::ConstantInt>(wanted) && !readsAnyway(read);
  auto *before = b.GetInsertBlock();
  auto *after = branches ? llvm::BasicBlock::Create(context, "after", function) : nullptr;
  const std::vector<Cached> saved = cache;
  if (branches) {
    auto *then = llvm::BasicBlock::Create(context, "read", function);
    b.CreateCondBr(wanted, then, after);
    b.SetInsertPoint(then);
  }
  const size_t first = read.op == ScalarOp::ReadIf ? 2 : 0;
  const Place at = place(read.index, evalAll(read.args, first));
  Value *pointer = b.CreateGEP(elementInMemory(b, t), at.base, at.index.v);
  if (wanted && !branches)
    pointer =
        b.CreateSelect(wanted, pointer,
                       kernel.buffers[read.index].level == MemLevel::Shared ? at.base : safePlace);
  Value *loaded = b.CreateAlignedLoad(type, pointer, align);
  if (branches) {
    cache = saved; // what is computed under the condition does not dominate what follows
    auto *end = b.GetInsertBlock();
    b.CreateBr(after);
    b.SetInsertPoint(after);
    auto *merged = b.CreatePHI(type, 2);
    merged->addIncoming(llvm::Constant::getNullValue(type), before);
    merged->addIncoming(loaded, end);
    loaded = merged;
  }
  return b.CreateBitCast(
      loaded, llvm::FixedVectorType::get(elementInMemory(b, t), static_cast<unsigned>(turns)));
}

/// True if the statement's element waits for those of the turns behind it, or has been stored with those before it.
bool Emitter::storeTogether(const Stmt &s) {
  if (!inLane || (!inUnit && kernel.units > 1))
    return false;
  for (size_t i = together.size(); i-- > 0;) {
    Together &own = together[i];
    const auto access = own.found.accesses.find({&s, kNoNode});
    if (access == own.found.accesses.end())
      continue;
    const int64_t turns = access->second, within = own.turn % turns;
    const DType t = kernel.buffers[s.buffer].type;
    const Place at = place(s.buffer, evalAll(s.indices));
    Value *value = toMemory(t, eval(s.value).v);
    std::vector<Value *> &waiting = own.waiting[&s];
    if (within == 0)
      own.places[&s] = b.CreateGEP(elementInMemory(b, t), at.base, at.index.v);
    waiting.push_back(value);
    if (within + 1 < turns)
      return true;
    llvm::Type *element = elementInMemory(b, t);
    Value *all =
        llvm::PoisonValue::get(llvm::FixedVectorType::get(element, static_cast<unsigned>(turns)));
    for (size_t e = 0; e < waiting.size(); ++e)
      all = b.CreateInsertElement(all, waiting[e], e);
    waiting.clear();
    b.CreateAlignedStore(b.CreateBitCast(all, wideType(t, turns)), own.places.at(&s),
                         llvm::Align(static_cast<uint64_t>(turns) * sizeInBytes(t)));
    return true;
  }
  return false;
}

} // namespace fusec
