// Stores past the caches, which take whole lines. The caller's memory may begin anywhere, and so do rows of an odd
// length: where a loop writes one stretch of addresses in order, its vectors are cut anew at the lines.
#include "Codegen/Emitter.h"
#include "Gir/Walk.h"

#include <llvm/Analysis/ValueTracking.h>

#include <numeric>
#include <set>
#include <utility>

namespace fusec {

using llvm::BasicBlock;
using llvm::Value;

namespace {

/// Buffers that a Seq loop writes in the order of their addresses, a vector at a time: by a store in a Lane loop,
/// possibly in one Unroll loop.
class InOrder {
public:
  InOrder(const GirKernel &kernel, const Stmt &loop) : kernel(kernel), loop(loop) {
    visit(loop.body, {});
  }
  std::set<BufferId> found;

private:
  struct Around {
    VarId lane = -1, unroll = -1;
    int64_t unrollTrip = 1;
  };

  void visit(const std::vector<Stmt> &stmts, const Around &outer) {
    for (const Stmt &s : stmts) {
      Around around = outer;
      if (s.kind == StmtKind::Store && around.lane >= 0 && s.indices.size() == 1 &&
          advances(s.indices.front(), around))
        found.insert(s.buffer);
      if (s.kind == StmtKind::Loop) {
        if (s.loop == LoopKind::Lane) {
          around.lane = s.var;
        } else if (s.loop == LoopKind::Unroll && around.unroll < 0) {
          around.unroll = s.var;
          around.unrollTrip = kernel.body[s.trip].imm;
        } else {
          continue;
        }
      }
      visit(s.body, around);
      visit(s.elseBody, around);
    }
  }

  bool advances(NodeId index, const Around &around) const {
    const auto form = affineForm(kernel.body, index, static_cast<int>(kernel.vars.size()));
    if (!form)
      return false;
    const auto steps = [&](VarId var, int64_t by) {
      return form->coefficients[static_cast<size_t>(var)].isConst(by);
    };
    return steps(around.lane, 1) && (around.unroll < 0 || steps(around.unroll, kernel.lanes)) &&
           steps(loop.var, kernel.lanes * around.unrollTrip);
  }

  const GirKernel &kernel;
  const Stmt &loop;
};

} // namespace

/// An ordinary store reads the line before it writes it, a detour of half the bandwidth. What the last cache still
/// holds of a kernel's tensors is better left to it: of one and a half times its size half, of twice its size nothing.
/// In between, lines that are asked for while the core computes come in time.
void Emitter::noteStreamed() {
  streamed.assign(kernel.buffers.size(), false);
  if (!hooks.streams(llvm::FixedVectorType::get(b.getFloatTy(), static_cast<unsigned>(width))))
    return;
  const int64_t cache = hooks.lastCacheBytes();
  std::vector<int64_t> bytes;
  for (int i = 0; i < kernel.numParams(); ++i) {
    const GirBuffer &buffer = kernel.buffers[i];
    const DimExpr elements = numElements(buffer.shape);
    bytes.push_back(elements.isConst() ? elements.constValue() * sizeInBytes(buffer.type) : 0);
  }
  const int64_t all = std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
  if (all < cache + cache / 2)
    return;
  for (int i = 0; i < kernel.numParams(); ++i)
    streamed[i] =
        kernel.buffers[i].written && kernel.buffers[i].type == DType::F32 && bytes[i] >= cache / 2;
  for (const Scalar &s : kernel.body.nodes)
    if (s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf)
      streamed[s.index] = false;
  // A store past the caches waits long for its turn, and so does each load behind it whose address has the same twelve
  // lowest bits: a weight of a LayerNorm, which each row reads again, at a place in its page that no row can choose.
  // Rows of 4 KiB took two to three times as long (Ice Lake) where it lay up to 256 bytes in front of the row's.
  const bool reduces = std::any_of(kernel.phases.begin(), kernel.phases.end(), [&](const Phase &p) {
    bool any = false;
    forEachStmt(p.body, [&](const Stmt &s) { any |= s.kind == StmtKind::Accumulate; });
    return any;
  });
  auto readsOfEachRow = [&](const Stmt &s) {
    constexpr int64_t kRows = 8; // and more
    const std::vector<NodeId> nodes = kernel.body.reachable(exprRoots(s));
    return std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
      const Scalar &read = kernel.body[id];
      return (read.op == ScalarOp::Read || read.op == ScalarOp::ReadIf) &&
             read.index < kernel.numParams() && bytes[read.index] * kRows <= bytes[s.buffer];
    });
  };
  auto visit = [&](auto &self, const std::vector<Stmt> &stmts) -> void {
    for (const Stmt &s : stmts) {
      if (s.kind == StmtKind::Store && streamed[s.buffer] && reduces && readsOfEachRow(s))
        streamed[s.buffer] = false;
      if (s.kind == StmtKind::Accumulate) {
        streamed[s.buffer] = false;
        if (s.indexBuffer >= 0)
          streamed[s.indexBuffer] = false;
      }
      self(self, s.body);
      self(self, s.elseBody);
    }
  };
  for (const Phase &phase : kernel.phases)
    visit(visit, phase.body);
  if (all < 2 * cache) {
    for (const auto &[loop, access] : prefetches)
      if (access.isWritten)
        streamed[access.buffer] = false;
  } else {
    std::erase_if(prefetches, [&](const auto &entry) {
      return entry.second.isWritten && streamed[entry.second.buffer];
    });
  }
}

/// The vectors that a loop stores to a buffer lie behind one another, each across two lines: what is left of one waits
/// for the next.
std::map<BufferId, Emitter::StreamingStore> Emitter::beginStreaming(const Stmt &loop) {
  std::map<BufferId, StreamingStore> made;
  const auto lanes = static_cast<unsigned>(width);
  auto *floats = llvm::FixedVectorType::get(b.getFloatTy(), lanes),
       *numbers = llvm::FixedVectorType::get(b.getInt32Ty(), lanes),
       *bits = llvm::FixedVectorType::get(b.getInt1Ty(), lanes);
  for (BufferId id : InOrder(kernel, loop).found) {
    if (!streamed[id])
      continue;
    const StreamingStore &state =
        made[id] = {entryAlloca(floats, "left"), entryAlloca(b.getPtrTy(), "end"),
                    entryAlloca(b.getInt64Ty(), "into"), entryAlloca(numbers, "turn"),
                    entryAlloca(bits, "front")};
    b.CreateStore(llvm::Constant::getNullValue(b.getPtrTy()), state.end);
    b.CreateStore(b.getInt64(0), state.into);
  }
  return std::exchange(lines, std::move(made));
}

void Emitter::endStreaming(std::map<BufferId, StreamingStore> outer) {
  for (const auto &[id, state] : lines)
    storeLeft(state);
  lines = std::move(outer);
}

/// The elements of a line that `on` chooses, of the line in which `pointer` lies so many elements behind its start.
void Emitter::storePart(Value *line, Value *pointer, Value *into, Value *on) {
  b.CreateMaskedStore(line, b.CreateGEP(b.getFloatTy(), pointer, b.CreateNeg(into)),
                      llvm::Align(kLineBytes), on);
}

void Emitter::storeLeft(const StreamingStore &state) {
  auto *left = BasicBlock::Create(context, "left", function),
       *after = BasicBlock::Create(context, "after", function);
  Value *into = loaded(state.into);
  b.CreateCondBr(b.CreateICmpNE(into, b.getInt64(0)), left, after);
  b.SetInsertPoint(left);
  storePart(loaded(state.left), loaded(state.end), into, loaded(state.front));
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

Value *Emitter::loaded(llvm::AllocaInst *place) {
  return b.CreateLoad(place->getAllocatedType(), place);
}

/// Vectors one behind the other. Only the first one may begin elsewhere than where the last stored one ends.
void Emitter::storeInOrder(const StreamingStore &state, std::span<const StreamedVector> vectors) {
  auto *first = BasicBlock::Create(context, "first", function),
       *next = BasicBlock::Create(context, "next", function),
       *after = BasicBlock::Create(context, "stored", function);
  b.CreateCondBr(b.CreateICmpEQ(loaded(state.end), vectors.front().pointer), next, first);
  b.SetInsertPoint(first);
  beginLine(state, vectors.front());
  b.CreateBr(after);
  b.SetInsertPoint(next);
  storeNext(state, vectors.front());
  b.CreateBr(after);
  b.SetInsertPoint(after);
  for (const StreamedVector &vector : vectors.subspan(1))
    storeNext(state, vector);
  b.CreateStore(b.CreateGEP(b.getFloatTy(), vectors.back().pointer, b.getInt64(width)), state.end);
}

void Emitter::storeNext(const StreamingStore &state, const StreamedVector &vector) {
  Value *turned = hooks.elements(b, vector.stored, loaded(state.turn));
  Value *line = b.CreateSelect(loaded(state.front), loaded(state.left), turned);
  Value *place = b.CreateGEP(b.getFloatTy(), vector.pointer, b.CreateNeg(loaded(state.into)));
  markStreamed(b.CreateAlignedStore(line, place, llvm::Align(kLineBytes)));
  b.CreateStore(turned, state.left);
}

/// The first vector of a stretch: all but the line in which it ends.
void Emitter::beginLine(const StreamingStore &state, const StreamedVector &vector) {
  storeLeft(state);
  Value *pointer = vector.pointer;
  Value *address = b.CreatePtrToInt(pointer, b.getInt64Ty());
  Value *into = b.CreateLShr(b.CreateAnd(address, kLineBytes - 1), 2);
  std::vector<llvm::Constant *> numbers;
  for (int l = 0; l < width; ++l)
    numbers.push_back(b.getInt32(static_cast<uint32_t>(l)));
  Value *lanes = llvm::ConstantVector::get(numbers),
        *border = b.CreateVectorSplat(width, b.CreateTrunc(into, b.getInt32Ty()));
  Value *turn = b.CreateSub(lanes, border), *front = b.CreateICmpULT(lanes, border);
  Value *turned = hooks.elements(b, vector.stored, turn);
  storePart(turned, pointer, into, b.CreateNot(front));
  b.CreateStore(into, state.into);
  b.CreateStore(turn, state.turn);
  b.CreateStore(front, state.front);
  b.CreateStore(turned, state.left);
}

void Emitter::markStreamed(llvm::Instruction *store) {
  store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                     llvm::MDNode::get(context, llvm::ConstantAsMetadata::get(b.getInt32(1))));
  hasStreamed = true;
}

/// A load waits for the stores past the caches in front of it whose addresses have the same twelve lowest bits (those
/// of the row before, of a weight): a tile loads all that it reads before it stores anything.
bool Emitter::beginTile(const Stmt &loop) {
  bool storesAlone = true;
  std::map<BufferId, int> stores;
  forEachStmt(loop.body, [&](const Stmt &s) {
    storesAlone &= s.kind == StmtKind::Store ||
                   (s.kind == StmtKind::Loop && s.loop != LoopKind::Seq); // one basic block
    stores[s.buffer] += s.kind == StmtKind::Store;
  });
  if (!storesAlone || std::exchange(inTile, true))
    return false;
  for (const auto &[buffer, count] : stores)
    if (count == 1)
      storedOnce.insert(buffer);
  return true;
}

void Emitter::endTile() {
  inTile = false;
  storeTile();
  storedOnce.clear();
}

void Emitter::storeTile() {
  std::vector<StreamedVector> apart;
  std::map<BufferId, std::vector<StreamedVector>> inOrder;
  for (const StreamedVector &vector : std::exchange(tile, {}))
    if (const auto known = lines.find(vector.buffer); known == lines.end())
      apart.push_back(vector);
    else if (storedOnce.count(vector.buffer) != 0) // by one statement (InOrder)
      inOrder[vector.buffer].push_back(vector);
    else
      storeInOrder(known->second, {&vector, 1});
  for (const auto &[buffer, vectors] : inOrder)
    storeInOrder(lines.at(buffer), vectors);
  if (!apart.empty())
    storeLines(apart);
}

/// True if that many elements are known to fill whole cache lines.
bool Emitter::wholeLines(Value *elements) const {
  return llvm::computeKnownBits(elements, module.getDataLayout()).countMinTrailingZeros() >=
         llvm::Log2_64(kLineBytes / 4);
}

/// Elements side by side, from a place on.
void Emitter::storeVector(BufferId id, Value *stored, const Place &first) {
  const DType t = kernel.buffers[id].type;
  const llvm::Align align(sizeInBytes(t));
  Value *pointer = b.CreateGEP(elementInMemory(b, t), first.base, first.index.v);
  if (streamed[id] && hooks.streams(stored->getType()))
    storeStreamed({id, stored, pointer, wholeLines(first.index.v) ? first.base : pointer, align});
  else
    b.CreateAlignedStore(stored, pointer, align);
}

/// A vector of the buffer past the caches, if it begins where a line does or its loop goes along one stretch.
void Emitter::storeStreamed(const StreamedVector &vector) {
  constexpr size_t kTile = 16; // of 32 registers
  tile.push_back(vector);
  if (!inTile || tile.size() == kTile)
    storeTile();
}

/// Vectors past the caches if each begins where a line does.
void Emitter::storeLines(const std::vector<StreamedVector> &vectors) {
  std::set<Value *> begins;
  Value *offsets = b.getInt64(0);
  for (const StreamedVector &v : vectors)
    if (begins.insert(v.begin).second)
      offsets = b.CreateOr(offsets, b.CreatePtrToInt(v.begin, b.getInt64Ty()));
  auto *whole = BasicBlock::Create(context, "line", function),
       *split = BasicBlock::Create(context, "split", function),
       *after = BasicBlock::Create(context, "stored", function);
  Value *offset = b.CreateAnd(offsets, kLineBytes - 1);
  b.CreateCondBr(b.CreateICmpEQ(offset, b.getInt64(0)), whole, split);
  b.SetInsertPoint(whole);
  for (const StreamedVector &v : vectors)
    markStreamed(b.CreateAlignedStore(v.stored, v.pointer, llvm::Align(kLineBytes)));
  b.CreateBr(after);
  b.SetInsertPoint(split);
  for (const StreamedVector &v : vectors)
    b.CreateAlignedStore(v.stored, v.pointer, v.align);
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

} // namespace fusec
