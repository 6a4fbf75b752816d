#pragma once
#include "Codegen/Llvm.h"
#include "Support/Result.h"
#include "Target/Target.h"

#include <memory>

namespace fusec {

/// Makes LLVM's targets known; safe to call from several threads.
void initialiseLlvm();
std::unique_ptr<llvm::TargetMachine> makeTargetMachine(const Target &target);
/// Our own list of passes: what explicit vectors and unrolled tiles need, and nothing that would vectorise, unroll or
/// reassociate on its own; the unroller obeys the emitter.
void optimise(llvm::Module &module, llvm::TargetMachine &machine);
/// Object code or assembly text.
std::string emitCode(llvm::Module &module, llvm::TargetMachine &machine, bool assembly);

} // namespace fusec
