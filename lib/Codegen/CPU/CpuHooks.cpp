#include "Codegen/TargetHooks.h"

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

private:
  const Target &target;
};

} // namespace

std::unique_ptr<TargetHooks> makeCpuHooks(const Target &target) {
  return std::make_unique<CpuHooks>(target);
}

} // namespace fusec
