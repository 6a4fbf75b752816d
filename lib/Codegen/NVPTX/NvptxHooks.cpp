#include "Codegen/TargetHooks.h"

#include "fusec/bundle_format.h"

#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace fusec {
namespace {

namespace in = llvm::Intrinsic;
using llvm::Value;

/// LLVM 19 cannot select acquire loads and release stores on NVPTX and drops the order of atomic operations, hence
/// assembly for all that other blocks take part in.
Value *assembly(llvm::IRBuilder<> &b, const char *text, const char *constraints,
                llvm::ArrayRef<Value *> args, llvm::Type *result) {
  std::vector<llvm::Type *> types;
  for (Value *a : args)
    types.push_back(a->getType());
  auto *type = llvm::FunctionType::get(result, types, false);
  return b.CreateCall(type, llvm::InlineAsm::get(type, text, constraints, true), args);
}

Value *acquire(llvm::IRBuilder<> &b, Value *word) {
  return assembly(b, "ld.acquire.gpu.global.u32 $0, [$1];", "=r,l,~{memory}", {word},
                  b.getInt32Ty());
}

llvm::BasicBlock *blockOf(llvm::Function &f, const char *name) {
  return llvm::BasicBlock::Create(f.getContext(), name, &f);
}

/// Asks for the word until reached(word) holds; between two looks the thread sleeps, longer and longer, so that those
/// which wait leave the memory to those which work. Where `checked`, a thread that has waited for a minute or so ends
/// the kernel with an error: it waits in vain, and no watchdog would end it.
template <typename F>
void waitUntil(llvm::IRBuilder<> &b, llvm::Function &f, Value *word, bool checked, F reached) {
  constexpr uint32_t kFirstSleep = 16, kLongestSleep = 256; // ns
  constexpr uint32_t kMostLooks = 1u << 27;
  auto *wait = blockOf(f, "wait"), *again = blockOf(f, "again"), *done = blockOf(f, "reached");
  llvm::BasicBlock *before = b.GetInsertBlock();
  b.CreateBr(wait);
  b.SetInsertPoint(wait);
  llvm::PHINode *sleep = b.CreatePHI(b.getInt32Ty(), 2), *looks = b.CreatePHI(b.getInt32Ty(), 2);
  sleep->addIncoming(b.getInt32(kFirstSleep), before);
  looks->addIncoming(b.getInt32(0), before);
  b.CreateCondBr(reached(acquire(b, word)), done, again);
  b.SetInsertPoint(again);
  assembly(b, "nanosleep.u32 $0;", "r", {sleep}, b.getVoidTy());
  Value *more = b.CreateAdd(looks, b.getInt32(1));
  if (checked) {
    auto *vain = blockOf(f, "vain"), *on = blockOf(f, "on");
    b.CreateCondBr(b.CreateICmpEQ(more, b.getInt32(kMostLooks)), vain, on);
    b.SetInsertPoint(vain);
    assembly(b, "trap;", "", {}, b.getVoidTy());
    b.CreateBr(on);
    b.SetInsertPoint(on);
  }
  Value *doubled = b.CreateShl(sleep, b.getInt32(1));
  Value *longest = b.getInt32(kLongestSleep);
  sleep->addIncoming(b.CreateSelect(b.CreateICmpULT(doubled, longest), doubled, longest),
                     b.GetInsertBlock());
  looks->addIncoming(more, b.GetInsertBlock());
  b.CreateBr(wait);
  b.SetInsertPoint(done);
}

Value *threadNumber(llvm::IRBuilder<> &b) {
  return b.CreateIntrinsic(in::nvvm_read_ptx_sreg_tid_x, {}, {});
}

/// Block 0 adds 2^31 - (blocks - 1), every other block 1, so that the word's top bit flips when all have come: it needs
/// no reset between barriers and launches.
Value *gridBarrier(llvm::IRBuilder<> &b, llvm::Function &f, bool checked) {
  auto *arrive = blockOf(f, "arrive"), *done = blockOf(f, "done");
  b.CreateIntrinsic(in::nvvm_barrier0, {}, {});
  b.CreateCondBr(b.CreateICmpEQ(threadNumber(b), b.getInt32(0)), arrive, done);
  b.SetInsertPoint(arrive);
  Value *block = b.CreateIntrinsic(in::nvvm_read_ptx_sreg_ctaid_x, {}, {});
  Value *flip = b.CreateSub(b.getInt32(0x80000000u), b.CreateSub(f.getArg(1), b.getInt32(1)));
  Value *added = b.CreateSelect(b.CreateICmpEQ(block, b.getInt32(0)), flip, b.getInt32(1));
  Value *before = assembly(b, "atom.add.release.gpu.global.u32 $0, [$1], $2;", "=r,l,r,~{memory}",
                           {f.getArg(0), added}, b.getInt32Ty());
  waitUntil(b, f, f.getArg(0), checked,
            [&](Value *now) { return b.CreateICmpSLT(b.CreateXor(now, before), b.getInt32(0)); });
  b.CreateBr(done);
  b.SetInsertPoint(done);
  b.CreateIntrinsic(in::nvvm_barrier0, {}, {});
  return nullptr;
}

/// Words of a grid (bundle_format.h): 0 is the barrier's, 1 counts the blocks that have ended, counters follow.
Value *gridWord(llvm::IRBuilder<> &b, Value *words, Value *number) {
  return b.CreateGEP(b.getInt8Ty(), words, b.CreateMul(number, b.getInt64(FUSEC_GRID_WORD_BYTES)));
}
Value *counterWord(llvm::IRBuilder<> &b, Value *words, Value *counter) {
  return gridWord(b, words, b.CreateAdd(counter, b.getInt64(2)));
}

/// Calls body(i) for i = first + thread, first + thread + threads, ... while i <= last.
template <typename F>
void spread(llvm::IRBuilder<> &b, llvm::Function &f, int threads, Value *first, Value *last,
            F body) {
  auto *loop = blockOf(f, "loop"), *inside = blockOf(f, "inside"), *end = blockOf(f, "end");
  llvm::BasicBlock *before = b.GetInsertBlock();
  Value *begin = b.CreateAdd(first, b.CreateZExt(threadNumber(b), b.getInt64Ty()));
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  llvm::PHINode *i = b.CreatePHI(b.getInt64Ty(), 2);
  i->addIncoming(begin, before);
  b.CreateCondBr(b.CreateICmpSLE(i, last), inside, end);
  b.SetInsertPoint(inside);
  body(i);
  i->addIncoming(b.CreateAdd(i, b.getInt64(threads)), b.GetInsertBlock());
  b.CreateBr(loop);
  b.SetInsertPoint(end);
}

/// signal(words, counter)
Value *signalCounter(llvm::IRBuilder<> &b, llvm::Function &f) {
  auto *first = blockOf(f, "first"), *done = blockOf(f, "done");
  b.CreateCondBr(b.CreateICmpEQ(threadNumber(b), b.getInt32(0)), first, done);
  b.SetInsertPoint(first);
  assembly(b, "red.release.gpu.global.add.u32 [$0], $1;", "l,r,~{memory}",
           {counterWord(b, f.getArg(0), f.getArg(1)), b.getInt32(1)}, b.getVoidTy());
  b.CreateBr(done);
  b.SetInsertPoint(done);
  return nullptr;
}

/// wait(words, first, last, count): each counter by a thread of its own, so that their latencies do not add up.
Value *waitForCounters(llvm::IRBuilder<> &b, llvm::Function &f, int threads, bool checked) {
  Value *count = b.CreateTrunc(f.getArg(3), b.getInt32Ty());
  spread(b, f, threads, f.getArg(1), f.getArg(2), [&](Value *i) {
    waitUntil(b, f, counterWord(b, f.getArg(0), i), checked,
              [&](Value *now) { return b.CreateICmpUGE(now, count); });
  });
  return nullptr;
}

/// leave(words, blocks, counters): nobody waits any more when the last block comes here.
Value *leaveGrid(llvm::IRBuilder<> &b, llvm::Function &f, int threads) {
  auto *count = blockOf(f, "count"), *counted = blockOf(f, "counted"), *reset = blockOf(f, "reset"),
       *done = blockOf(f, "done");
  b.CreateIntrinsic(in::nvvm_barrier0, {}, {});
  Value *ended = gridWord(b, f.getArg(0), b.getInt64(1));
  llvm::BasicBlock *entry = b.GetInsertBlock();
  b.CreateCondBr(b.CreateICmpEQ(threadNumber(b), b.getInt32(0)), count, counted);
  b.SetInsertPoint(count);
  Value *before = assembly(b, "atom.add.acq_rel.gpu.global.u32 $0, [$1], $2;", "=r,l,r,~{memory}",
                           {ended, b.getInt32(1)}, b.getInt32Ty());
  Value *isLast =
      b.CreateZExt(b.CreateICmpEQ(before, b.CreateSub(f.getArg(1), b.getInt32(1))), b.getInt32Ty());
  b.CreateBr(counted);
  b.SetInsertPoint(counted);
  llvm::PHINode *mine = b.CreatePHI(b.getInt32Ty(), 2);
  mine->addIncoming(b.getInt32(0), entry);
  mine->addIncoming(isLast, count);
  Value *last = b.CreateIntrinsic(in::nvvm_barrier0_or, {}, {mine});
  b.CreateCondBr(b.CreateICmpNE(last, b.getInt32(0)), reset, done);
  b.SetInsertPoint(reset);
  // From the word of ended blocks on.
  spread(b, f, threads, b.getInt64(1), b.CreateAdd(f.getArg(2), b.getInt64(1)),
         [&](Value *i) { b.CreateStore(b.getInt32(0), gridWord(b, f.getArg(0), i)); });
  b.CreateBr(done);
  b.SetInsertPoint(done);
  return nullptr;
}

class NvptxHooks final : public TargetHooks {
public:
  NvptxHooks(int cores, bool checked) : cores(cores), checked(checked) {}

  bool lanesAreThreads() const override { return true; }

  void markEntry(llvm::Function &entry, const GirKernel &kernel) const override {
    entry.setCallingConv(llvm::CallingConv::PTX_Kernel);
    entry.addFnAttr(llvm::Attribute::NoUnwind);
    annotate(entry, "maxntidx", kernel.units * kernel.lanes);
  }

  void leaveRoomFor(llvm::Function &entry, int64_t blocks) const override {
    annotate(entry, "minctasm", (blocks + cores - 1) / cores);
  }

  void defineMachine(llvm::Module &module, const GirKernel &kernel) const override {
    const int lanes = kernel.lanes;
    // Units smaller than a warp exchange among their own lanes only.
    auto members = [&](llvm::IRBuilder<> &b) -> Value * {
      if (lanes >= 32)
        return b.getInt32(-1);
      Value *lane = b.CreateIntrinsic(in::nvvm_read_ptx_sreg_laneid, {}, {});
      Value *first = b.CreateAnd(lane, b.getInt32(~(lanes - 1)));
      return b.CreateShl(b.getInt32((1u << lanes) - 1), first);
    };
    Value *segment = llvm::ConstantInt::get(llvm::Type::getInt32Ty(module.getContext()),
                                            lanes >= 32 ? 31 : ((32 - lanes) << 8 | 31));
    define(module, "fusec.gpu.thread", [&](auto &b, auto &) {
      return b.CreateIntrinsic(in::nvvm_read_ptx_sreg_tid_x, {}, {});
    });
    define(module, "fusec.gpu.block", [&](auto &b, auto &) {
      return b.CreateIntrinsic(in::nvvm_read_ptx_sreg_ctaid_x, {}, {});
    });
    define(module, "fusec.gpu.sync.block", [&](auto &b, auto &) -> Value * {
      b.CreateIntrinsic(in::nvvm_barrier0, {}, {});
      return nullptr;
    });
    define(module, "fusec.gpu.sync.grid",
           [&](auto &b, llvm::Function &f) { return gridBarrier(b, f, checked); });
    const int threads = kernel.units * lanes;
    define(module, "fusec.gpu.sync.begin", [&](auto &, auto &) -> Value * { return nullptr; });
    define(module, "fusec.gpu.sync.signal", signalCounter);
    define(module, "fusec.gpu.sync.wait",
           [&](auto &b, llvm::Function &f) { return waitForCounters(b, f, threads, checked); });
    define(module, "fusec.gpu.sync.leave",
           [&](auto &b, llvm::Function &f) { return leaveGrid(b, f, threads); });
    define(module, "fusec.gpu.sync.unit", [&](auto &b, auto &) -> Value * {
      b.CreateIntrinsic(in::nvvm_bar_warp_sync, {}, {members(b)});
      return nullptr;
    });
    define(module, "fusec.gpu.shuffle.xor", [&](auto &b, llvm::Function &f) {
      return b.CreateIntrinsic(in::nvvm_shfl_sync_bfly_i32, {},
                               {members(b), f.getArg(0), f.getArg(1), segment});
    });
    define(module, "fusec.gpu.lane0", [&](auto &b, llvm::Function &f) {
      return b.CreateIntrinsic(in::nvvm_shfl_sync_idx_i32, {},
                               {members(b), f.getArg(0), b.getInt32(0), segment});
    });
  }

private:
  /// PTX's performance-tuning directives (PTX ISA, 11.4) by their names in NVVM.
  static void annotate(llvm::Function &entry, const char *name, int64_t value) {
    llvm::LLVMContext &context = entry.getContext();
    auto *number = llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), value);
    entry.getParent()
        ->getOrInsertNamedMetadata("nvvm.annotations")
        ->addOperand(llvm::MDNode::get(context, {llvm::ValueAsMetadata::get(&entry),
                                                 llvm::MDString::get(context, name),
                                                 llvm::ConstantAsMetadata::get(number)}));
  }

  const int cores;
  const bool checked;
};

} // namespace

std::unique_ptr<TargetHooks> makeNvptxHooks(const Target &target, bool checked) {
  return std::make_unique<NvptxHooks>(target.cores, checked);
}

} // namespace fusec
