// The stage's page: kernels -> modules -> images. Each kernel has a module and a context of its own, so kernels are
// compiled at once; what is made of them is put together in their order.
#include "Codegen/Codegen.h"

#include "Codegen/AMDGPU/CodeObject.h"
#include "Codegen/Emitter.h"
#include "Codegen/Images.h"
#include "Codegen/Pipeline.h"
#include "Codegen/Sim/SimModule.h"
#include "Cost/Cost.h"
#include "Gir/Passes.h"
#include "Support/AtOnce.h"
#include "Support/Diag.h"

#include "llvm/IR/Verifier.h"

#include <map>
#include <set>

namespace fusec {

std::vector<KernelCode> kernelCodes(const std::vector<GirKernel> &kernels, const Target &target) {
  std::vector<KernelCode> codes;
  std::set<std::string> taken;
  for (const GirKernel &k : kernels) {
    // No name of ours may meet one of the C library's.
    std::string symbol = k.name.rfind("k_", 0) == 0 ? "" : "k_";
    for (char c : k.name)
      symbol += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    if (!taken.insert(symbol).second) {
      symbol += "_" + std::to_string(codes.size());
      while (!taken.insert(symbol).second)
        symbol += "_";
    }
    KernelCode code{symbol,
                    static_cast<int>(k.phases.size()),
                    std::max<int64_t>(k.sharedBytes, 0),
                    k.units,
                    k.lanes,
                    k.phases.size() > 1 && cost::joinsPhases(target),
                    sharedAlignment(k),
                    {}};
    if (target.dynamicSharedBytes > 0 && code.sharedBytes > target.staticSharedBytes)
      for (const Phase &phase : k.phases)
        code.dynamicShared.push_back(sharedBytesOf(k, {&phase, 1}));
    codes.push_back(std::move(code));
  }
  return codes;
}

namespace {

/// A kernel's module, as the emitter made it and completed with the target's bodies of fusec.gpu.*.
Result<std::unique_ptr<llvm::Module>> emitModule(llvm::LLVMContext &context,
                                                 const GirKernel &kernel, const KernelCode &code,
                                                 const Target &target, bool checked,
                                                 const llvm::TargetMachine &machine) {
  std::unique_ptr<TargetHooks> hooks = target.sim                       ? makeSimHooks()
                                       : target.kind == TargetKind::Cpu ? makeCpuHooks(target)
                                       : target.kind == TargetKind::Nvidia
                                           ? makeNvptxHooks(target, checked)
                                           : makeAmdgpuHooks(target);
  if (target.kind == TargetKind::Cpu && code.sharedAlign > kSharedAlignment)
    return Diagnostic{Diag::UnsupportedOp, "kernel '" + kernel.name + "'",
                      "shared memory is aligned to " + std::to_string(code.sharedAlign) +
                          " bytes on GPUs alone"};
  auto module = std::make_unique<llvm::Module>(code.symbol, context);
  module->setTargetTriple(machine.getTargetTriple().str());
  module->setDataLayout(machine.createDataLayout());
  Emitter emitter(kernel, code, target.kernels, *hooks, *module);
  FUSEC_CHECK(emitter.run());
  hooks->defineMachine(*module, kernel);
  std::string problem;
  llvm::raw_string_ostream out(problem);
  if (llvm::verifyModule(*module, &out))
    return Diagnostic{Diag::InternalError, "kernel '" + kernel.name + "'",
                      "the emitter made wrong LLVM IR: " + problem};
  return module;
}

/// Compiles each kernel to an object or to assembly text.
Result<std::vector<std::string>> compileEach(const std::vector<GirKernel> &kernels,
                                             const Target &target, const CodegenOptions &options,
                                             bool assembly) {
  const std::vector<KernelCode> codes = kernelCodes(kernels, target);
  std::vector<std::string> outputs(kernels.size());
  std::vector<Diagnostics> errors(kernels.size());
  initialiseLlvm();
  forEachAtOnce(kernels.size(), options.threads, [&](size_t i) {
    llvm::LLVMContext context;
    auto machine = makeTargetMachine(target.sim ? simHost() : target);
    auto module = emitModule(context, kernels[i], codes[i], target, options.checked, *machine);
    if (!module) {
      errors[i] = std::move(module.errors());
      return;
    }
    optimise(**module, *machine);
    outputs[i] = emitCode(**module, *machine, assembly);
  });
  if (kernels.empty()) { // a program of copies and branches alone still has an image
    llvm::LLVMContext context;
    auto machine = makeTargetMachine(target.sim ? simHost() : target);
    llvm::Module module("none", context);
    module.setTargetTriple(machine->getTargetTriple().str());
    module.setDataLayout(machine->createDataLayout());
    outputs.push_back(emitCode(module, *machine, assembly));
  }
  Diagnostics all;
  for (Diagnostics &e : errors)
    all.insert(all.end(), e.begin(), e.end());
  if (!all.empty())
    return all;
  return outputs;
}

/// The assembler knows static shared memory alone.
void addDynamicShared(const std::vector<KernelCode> &codes, std::vector<CodeImage> &images) {
  std::map<std::string, int64_t> bytes; // by entry
  for (const KernelCode &code : codes) {
    for (size_t p = 0; p < code.dynamicShared.size(); ++p)
      bytes[code.symbol + "_p" + std::to_string(p)] = code.dynamicShared[p];
    if (!code.dynamicShared.empty())
      bytes[code.symbol + "_grid"] = code.sharedBytes;
  }
  for (CodeImage &image : images)
    for (EntryResources &entry : image.resources)
      if (const auto found = bytes.find(entry.entry); found != bytes.end())
        entry.sharedBytes += found->second;
}

} // namespace

Result<std::string> emitLlvmText(const std::vector<GirKernel> &kernels, const Target &target,
                                 bool checked) {
  const std::vector<KernelCode> codes = kernelCodes(kernels, target);
  std::string text;
  llvm::raw_string_ostream out(text);
  initialiseLlvm();
  for (size_t i = 0; i < kernels.size(); ++i) {
    llvm::LLVMContext context;
    auto machine = makeTargetMachine(target.sim ? simHost() : target);
    FUSEC_TRY(auto module, emitModule(context, kernels[i], codes[i], target, checked, *machine));
    module->print(out, nullptr);
  }
  return text;
}

Result<std::vector<std::string>> assemblyTexts(const std::vector<GirKernel> &kernels,
                                               const Target &target,
                                               const CodegenOptions &options) {
  if (kernels.empty())
    return std::vector<std::string>();
  return compileEach(kernels, target, options, true);
}

Result<std::vector<CodeImage>> compileKernels(const std::vector<GirKernel> &kernels,
                                              const Target &target, const CodegenOptions &options) {
  if (target.kind == TargetKind::Nvidia && !target.sim) {
    FUSEC_TRY(auto texts, compileEach(kernels, target, options, true));
    FUSEC_TRY(std::vector<CodeImage> images, ptxImages(texts, target, options));
    addDynamicShared(kernelCodes(kernels, target), images);
    return images;
  }
  FUSEC_TRY(auto objects, compileEach(kernels, target, options, false));
  const bool amd = target.kind == TargetKind::Amd && !target.sim;
  FUSEC_TRY(auto bytes, linkImage(objects, amd, options.tempDir));
  CodeImage image;
  if (amd) {
    FUSEC_CHECK(mergeMetadata(bytes));
    image.resources = codeObjectResources(bytes);
  }
  image.format = target.sim ? CodeImage::Format::SimElf
                 : amd      ? CodeImage::Format::Hsaco
                            : CodeImage::Format::Elf;
  image.arch = target.sim ? "x86-64-v3" : target.cpu;
  image.bytes = std::move(bytes);
  return std::vector<CodeImage>{std::move(image)};
}

} // namespace fusec
