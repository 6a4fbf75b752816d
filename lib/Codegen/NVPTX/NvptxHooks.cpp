#include "Codegen/TargetHooks.h"

#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace fusec {
namespace {

namespace in = llvm::Intrinsic;
using llvm::Value;

/// Gives a declared function a body that is always inlined; `make` returns its result or null.
template <typename F> void define(llvm::Module &module, const char *name, F &&make) {
  llvm::Function *f = module.getFunction(name);
  if (!f)
    return;
  f->setLinkage(llvm::GlobalValue::InternalLinkage);
  f->addFnAttr(llvm::Attribute::AlwaysInline);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(module.getContext(), "entry", f));
  Value *r = make(b, *f);
  if (r)
    b.CreateRet(r);
  else
    b.CreateRetVoid();
}

/// Block 0 adds 2^31 - (blocks - 1), every other block 1, so that the word's top bit flips when all have come: it needs
/// no reset between barriers and launches. LLVM 19 cannot select acquire loads and release stores on NVPTX and drops
/// the order of atomic operations, hence the assembly.
Value *gridBarrier(llvm::IRBuilder<> &b, llvm::Function &f) {
  llvm::LLVMContext &context = f.getContext();
  llvm::Type *i32 = b.getInt32Ty();
  auto *arrive = llvm::BasicBlock::Create(context, "arrive", &f),
       *wait = llvm::BasicBlock::Create(context, "wait", &f),
       *done = llvm::BasicBlock::Create(context, "done", &f);
  auto assembly = [&](const char *text, const char *constraints, llvm::ArrayRef<Value *> args) {
    std::vector<llvm::Type *> types;
    for (Value *a : args)
      types.push_back(a->getType());
    auto *type = llvm::FunctionType::get(i32, types, false);
    return b.CreateCall(type, llvm::InlineAsm::get(type, text, constraints, true), args);
  };
  b.CreateIntrinsic(in::nvvm_barrier0, {}, {});
  Value *thread = b.CreateIntrinsic(in::nvvm_read_ptx_sreg_tid_x, {}, {});
  b.CreateCondBr(b.CreateICmpEQ(thread, b.getInt32(0)), arrive, done);
  b.SetInsertPoint(arrive);
  Value *block = b.CreateIntrinsic(in::nvvm_read_ptx_sreg_ctaid_x, {}, {});
  Value *flip = b.CreateSub(b.getInt32(0x80000000u), b.CreateSub(f.getArg(1), b.getInt32(1)));
  Value *added = b.CreateSelect(b.CreateICmpEQ(block, b.getInt32(0)), flip, b.getInt32(1));
  Value *before = assembly("atom.add.release.gpu.global.u32 $0, [$1], $2;", "=r,l,r,~{memory}",
                           {f.getArg(0), added});
  b.CreateBr(wait);
  b.SetInsertPoint(wait);
  Value *now = assembly("ld.acquire.gpu.global.u32 $0, [$1];", "=r,l,~{memory}", {f.getArg(0)});
  b.CreateCondBr(b.CreateICmpSLT(b.CreateXor(now, before), b.getInt32(0)), done, wait);
  b.SetInsertPoint(done);
  b.CreateIntrinsic(in::nvvm_barrier0, {}, {});
  return nullptr;
}

class NvptxHooks final : public TargetHooks {
public:
  bool lanesAreThreads() const override { return true; }

  void markEntry(llvm::Function &entry, const GirKernel &kernel) const override {
    entry.setCallingConv(llvm::CallingConv::PTX_Kernel);
    entry.addFnAttr(llvm::Attribute::NoUnwind);
    llvm::LLVMContext &context = entry.getContext();
    auto *count =
        llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), kernel.units * kernel.lanes);
    entry.getParent()
        ->getOrInsertNamedMetadata("nvvm.annotations")
        ->addOperand(llvm::MDNode::get(context, {llvm::ValueAsMetadata::get(&entry),
                                                 llvm::MDString::get(context, "maxntidx"),
                                                 llvm::ConstantAsMetadata::get(count)}));
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
    define(module, "fusec.gpu.sync.grid", gridBarrier);
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
};

} // namespace

std::unique_ptr<TargetHooks> makeNvptxHooks(const Target &) {
  return std::make_unique<NvptxHooks>();
}

} // namespace fusec
