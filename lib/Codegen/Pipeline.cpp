#include "Codegen/Pipeline.h"

#include "Codegen/HoistDivisions.h"
#include "Codegen/Interleave.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/IndVarSimplify.h"
#include "llvm/Transforms/Scalar/InferAddressSpaces.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"

#include <mutex>

namespace fusec {

void initialiseLlvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
  });
}

std::unique_ptr<llvm::TargetMachine> makeTargetMachine(const Target &target) {
  initialiseLlvm();
  std::string error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(target.triple, error);
  assert(backend && "the targets of lib/Target are linked in");
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      target.triple, target.cpu, target.features, options, llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));
}

void optimise(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);

  llvm::FunctionPassManager f;
  f.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  f.addPass(llvm::EarlyCSEPass(true));
  f.addPass(llvm::SimplifyCFGPass());
  f.addPass(llvm::InstCombinePass());
  if (!llvm::Triple(module.getTargetTriple()).isX86())
    f.addPass(llvm::InferAddressSpacesPass());
  auto hoist = [] {
    llvm::LoopPassManager l;
    l.addPass(llvm::LICMPass(llvm::LICMOptions()));
    return llvm::createFunctionToLoopPassAdaptor(std::move(l), /*UseMemorySSA=*/true);
  };
  if (llvm::Triple(module.getTargetTriple()).isX86()) {
    f.addPass(llvm::LoopSimplifyPass());
    f.addPass(HoistDivisions());
  }
  f.addPass(hoist());
  f.addPass(llvm::GVNPass());
  f.addPass(llvm::InstCombinePass());
  f.addPass(llvm::SimplifyCFGPass());
  f.addPass(hoist());
  f.addPass(llvm::EarlyCSEPass(true));
  f.addPass(llvm::ADCEPass());
  if (llvm::Triple(module.getTargetTriple()).isX86())
    f.addPass(InterleaveChains());
  if (llvm::Triple(module.getTargetTriple()).isAMDGPU()) {
    // Only loops that the emitter has given a count; each turn's addresses begin with those of the first.
    f.addPass(llvm::LoopUnrollPass(llvm::LoopUnrollOptions(3, /*OnlyWhenForced=*/true)));
    f.addPass(llvm::InstCombinePass());
    f.addPass(llvm::EarlyCSEPass(true));
    f.addPass(llvm::SimplifyCFGPass());
  }
  llvm::ModulePassManager m;
  m.addPass(llvm::AlwaysInlinerPass());
  m.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(f)));
  m.addPass(llvm::GlobalDCEPass());
  m.run(module, modules);
}

std::string emitCode(llvm::Module &module, llvm::TargetMachine &machine, bool assembly) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes); // outlives the pass manager, which holds it
  llvm::legacy::PassManager passes;
  [[maybe_unused]] bool failed = machine.addPassesToEmitFile(
      passes, out, nullptr,
      assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile);
  assert(!failed && "every target of ours writes objects and assembly");
  passes.run(module);
  return std::string(bytes.begin(), bytes.end());
}

} // namespace fusec
