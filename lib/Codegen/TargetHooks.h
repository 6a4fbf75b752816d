#pragma once
#include "Codegen/Llvm.h"
#include "Gir/Gir.h"
#include "Target/Target.h"

#include <memory>

namespace fusec {

/// What differs between targets in the emitter's module. Threads and their communication appear in it as calls
/// to functions of these names, which `defineMachine` gives bodies:
///   i32  fusec.gpu.thread()                    thread number in the block
///   i32  fusec.gpu.block()                     block number in the grid
///   void fusec.gpu.sync.block(), fusec.gpu.sync.unit()
///   void fusec.gpu.sync.grid(ptr words, i32 blocks)       all blocks; `words`: bundle_format.h
///   void fusec.gpu.sync.begin(i32 phase, i64 block)       the thread begins a block, in a kernel with counters
///   void fusec.gpu.sync.signal(ptr words, i64 counter)    the counter rises by 1, once a block
///   void fusec.gpu.sync.wait(ptr words, i64 first, i64 last, i64 count)   until each of these is `count` at least
///   void fusec.gpu.sync.leave(ptr words, i32 blocks, i64 counters)        the last block makes them 0
///   i32  fusec.gpu.shuffle.xor(i32 value, i32 laneMask)   the value of lane (own xor laneMask) of the unit
///   i32  fusec.gpu.lane0(i32 value)                       the value of the unit's first lane
class TargetHooks {
public:
  virtual ~TargetHooks() = default;
  /// False: a Lane loop becomes LLVM vectors and a block is one call.
  virtual bool lanesAreThreads() const = 0;
  /// Calling convention and attributes of an entry point (of the inner function of a phase on a CPU).
  virtual void markEntry(llvm::Function &entry, const GirKernel &kernel) const = 0;
  /// The entry's registers are to leave room for so many blocks of it on the device; not said where symbols give them.
  virtual void leaveRoomFor(llvm::Function &, int64_t) const {}
  /// Reads of memory that a thread has on their way before it waits for the first: loops are unrolled to that many, and
  /// reads under a condition go to a place of their own where it fails, not around a branch. 0: whoever translates
  /// the code further sees to it.
  virtual int64_t readsInFlight() const { return 0; }
  virtual void defineMachine(llvm::Module &module, const GirKernel &kernel) const = 0;
  /// Bytes of the last cache, if kernels control which of its lines are replaced; 0 otherwise.
  virtual int64_t lastCacheBytes() const { return 0; }
  /// Parts of a row of so many bytes of which a core asks for lines in turn.
  virtual int64_t partsToAsk(int64_t) const { return 1; }
  /// x 2^k for a whole k, rounded once, for a type of which `scales` holds.
  virtual bool scales(const llvm::Type *) const { return false; }
  virtual llvm::Value *scale(llvm::IRBuilderBase &, llvm::Value *, llvm::Value *) const {
    return nullptr;
  }
  /// a > c ? a : c (a < c ? a : c where not `largest`) as one instruction, where LLVM would take the choice apart to
  /// join it with the test for a NaN beside it and need more; otherwise null.
  virtual llvm::Value *extreme(llvm::IRBuilderBase &, bool, llvm::Value *, llvm::Value *) const {
    return nullptr;
  }
  /// A vector of this type is a line of the caches, which stores past them take whole.
  virtual bool streams(const llvm::Type *) const { return false; }
  /// A vector of such a type whose element i is the given one's element `numbers[i]` mod width.
  virtual llvm::Value *elements(llvm::IRBuilderBase &, llvm::Value *, llvm::Value *) const {
    return nullptr;
  }
  /// At the end of a block: such stores may overtake what tells others that it has ended.
  virtual void completeStreamed(llvm::IRBuilderBase &) const {}
};

std::unique_ptr<TargetHooks> makeCpuHooks(const Target &target);
std::unique_ptr<TargetHooks> makeNvptxHooks(const Target &target, bool checked);
std::unique_ptr<TargetHooks> makeAmdgpuHooks(const Target &target);

/// Gives a declared function a body that is always inlined; `make` returns its result or null.
template <typename F> void define(llvm::Module &module, const char *name, F &&make) {
  llvm::Function *f = module.getFunction(name);
  if (!f)
    return;
  f->setLinkage(llvm::GlobalValue::InternalLinkage);
  f->addFnAttr(llvm::Attribute::AlwaysInline);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(module.getContext(), "entry", f));
  llvm::Value *r = make(b, *f);
  if (r)
    b.CreateRet(r);
  else
    b.CreateRetVoid();
}

} // namespace fusec
