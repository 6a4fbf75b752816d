#include "Codegen/TargetHooks.h"

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
