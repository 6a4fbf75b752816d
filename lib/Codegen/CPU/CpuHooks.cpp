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
  // An ordinary store reads the line before it writes it. What is as large as this comes back from memory anyway, and
  // where it does the detour costs half of the bandwidth; below, a cache shared by the cores may hold it for the next
  // kernel. Vectors of less than a line would leave it half written.
  int64_t streamedBytes() const override { return target.vectorRegisters == 32 ? 16 << 20 : 0; }
  void completeStreamed(llvm::IRBuilderBase &b) const override {
    b.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  }

private:
  const Target &target;
};

} // namespace

std::unique_ptr<TargetHooks> makeCpuHooks(const Target &target) {
  return std::make_unique<CpuHooks>(target);
}

} // namespace fusec
