#include "Codegen/TargetHooks.h"

#include "llvm/IR/IntrinsicsX86.h"

namespace fusec {
namespace {

class CpuHooks final : public TargetHooks {
public:
  explicit CpuHooks(const Target &target) : target(target) {}
  bool lanesAreThreads() const override { return false; }

  void markEntry(llvm::Function &entry, const GirKernel &) const override {
    entry.addFnAttr("target-cpu", target.cpu);
    if (!target.features.empty())
      entry.addFnAttr("target-features", target.features);
    // x86-64-v4 has 512-bit registers, which LLVM avoids unless it is told.
    const bool wide = target.vectorRegisters == 32;
    entry.addFnAttr("prefer-vector-width", wide ? "512" : "256");
    entry.addFnAttr("min-legal-vector-width", wide ? "512" : "256");
    entry.addFnAttr("no-builtins"); // no memset or memcpy may appear: the image has no imports
    entry.addFnAttr(llvm::Attribute::NoUnwind);
  }
  void defineMachine(llvm::Module &, const GirKernel &) const override {}
  int64_t lastCacheBytes() const override {
    return static_cast<int64_t>(target.memory.end()[-2].capacityBytes);
  }
  int64_t partsToAsk(int64_t rowBytes) const override {
    return std::clamp<int64_t>(rowBytes / target.core.pageBytes, 1, target.core.pagesAsked);
  }
  bool scales(const llvm::Type *type) const override {
    return target.vectorRegisters == 32 && isLine(type);
  }
  llvm::Value *scale(llvm::IRBuilderBase &b, llvm::Value *x, llvm::Value *k) const override {
    // All lanes (the mask), rounded as the thread rounds (4).
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                             {x, k, x, b.getInt16(0xffff), b.getInt32(4)});
  }
  // maxps gives its second operand where one is a NaN, as the choice does.
  llvm::Value *extreme(llvm::IRBuilderBase &b, bool largest, llvm::Value *a,
                       llvm::Value *c) const override {
    using namespace llvm::Intrinsic;
    if (isLine(a->getType()) && target.vectorRegisters == 32)
      return b.CreateIntrinsic(largest ? x86_avx512_max_ps_512 : x86_avx512_min_ps_512, {},
                               {a, c, b.getInt32(4)});
    if (isFloats(a->getType(), 8))
      return b.CreateIntrinsic(largest ? x86_avx_max_ps_256 : x86_avx_min_ps_256, {}, {a, c});
    return nullptr;
  }
  bool streams(const llvm::Type *type) const override {
    return target.vectorRegisters == 32 && isLine(type);
  }
  llvm::Value *elements(llvm::IRBuilderBase &b, llvm::Value *x,
                        llvm::Value *numbers) const override {
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {}, {x, numbers});
  }
  void completeStreamed(llvm::IRBuilderBase &b) const override {
    b.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  }

private:
  static bool isFloats(const llvm::Type *type, unsigned count) {
    const auto *vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
    return vector && vector->getNumElements() == count && vector->getElementType()->isFloatTy();
  }
  static bool isLine(const llvm::Type *type) { return isFloats(type, 16); }
  const Target &target;
};

} // namespace

std::unique_ptr<TargetHooks> makeCpuHooks(const Target &target) {
  return std::make_unique<CpuHooks>(target);
}

} // namespace fusec
