#include "Codegen/TargetHooks.h"

#include "llvm/IR/IntrinsicsAMDGPU.h"

namespace fusec {
namespace {

namespace in = llvm::Intrinsic;
using llvm::Value;

class AmdgpuHooks final : public TargetHooks {
public:
  explicit AmdgpuHooks(int waveLanes) : waveLanes(waveLanes) {}
  bool lanesAreThreads() const override { return true; }

  /// 256 bytes of f32 a thread would be better for memory alone, but not with the registers that they take.
  int64_t readsInFlight() const override { return 32; }

  void markEntry(llvm::Function &entry, const GirKernel &kernel) const override {
    entry.setCallingConv(llvm::CallingConv::AMDGPU_KERNEL);
    entry.addFnAttr(llvm::Attribute::NoUnwind);
    const std::string count = std::to_string(kernel.units * kernel.lanes);
    entry.addFnAttr("amdgpu-flat-work-group-size", count + "," + count);
    entry.addFnAttr("uniform-work-group-size", "true");
    // What is not used needs no register and no hidden argument.
    for (const char *unused :
         {"dispatch-ptr", "queue-ptr", "dispatch-id", "implicitarg-ptr", "workgroup-id-y",
          "workgroup-id-z", "workitem-id-y", "workitem-id-z", "lds-kernel-id", "completion-action",
          "default-queue", "heap-ptr", "hostcall-ptr", "multigrid-sync-arg"})
      entry.addFnAttr(std::string("amdgpu-no-") + unused);
  }

  void defineMachine(llvm::Module &module, const GirKernel &kernel) const override {
    module.addModuleFlag(llvm::Module::Error, "amdhsa_code_object_version", 500);
    llvm::LLVMContext &context = module.getContext();
    auto laneNumber = [&](llvm::IRBuilder<> &b) -> Value * {
      Value *n = b.CreateIntrinsic(in::amdgcn_mbcnt_lo, {}, {b.getInt32(-1), b.getInt32(0)});
      return waveLanes == 64 ? b.CreateIntrinsic(in::amdgcn_mbcnt_hi, {}, {b.getInt32(-1), n}) : n;
    };
    auto fetch = [&](llvm::IRBuilder<> &b, Value *lane, Value *v) {
      return b.CreateIntrinsic(in::amdgcn_ds_bpermute, {}, {b.CreateShl(lane, b.getInt32(2)), v});
    };
    define(module, "fusec.gpu.thread",
           [&](auto &b, auto &) { return b.CreateIntrinsic(in::amdgcn_workitem_id_x, {}, {}); });
    define(module, "fusec.gpu.block",
           [&](auto &b, auto &) { return b.CreateIntrinsic(in::amdgcn_workgroup_id_x, {}, {}); });
    auto ordered = [&](llvm::IRBuilder<> &b, const char *scope, in::ID barrier) -> Value * {
      auto id = context.getOrInsertSyncScopeID(scope);
      b.CreateFence(llvm::AtomicOrdering::Release, id);
      b.CreateIntrinsic(barrier, {}, {});
      b.CreateFence(llvm::AtomicOrdering::Acquire, id);
      return nullptr;
    };
    define(module, "fusec.gpu.sync.block",
           [&](auto &b, auto &) { return ordered(b, "workgroup", in::amdgcn_s_barrier); });
    define(module, "fusec.gpu.sync.unit",
           [&](auto &b, auto &) { return ordered(b, "wavefront", in::amdgcn_wave_barrier); });
    define(module, "fusec.gpu.shuffle.xor", [&](auto &b, llvm::Function &f) {
      return fetch(b, b.CreateXor(laneNumber(b), f.getArg(1)), f.getArg(0));
    });
    define(module, "fusec.gpu.lane0", [&](auto &b, llvm::Function &f) -> Value * {
      if (kernel.lanes == waveLanes)
        return b.CreateIntrinsic(in::amdgcn_readfirstlane, {b.getInt32Ty()}, {f.getArg(0)});
      return fetch(b, b.CreateAnd(laneNumber(b), b.getInt32(~(kernel.lanes - 1))), f.getArg(0));
    });
  }

private:
  int waveLanes;
};

} // namespace

std::unique_ptr<TargetHooks> makeAmdgpuHooks(const Target &target) {
  return std::make_unique<AmdgpuHooks>(target.lanes);
}

} // namespace fusec
