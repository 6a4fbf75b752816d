#pragma once
#include "llvm/IR/PassManager.h"

namespace fusec {

/// Long chains of vector instructions that need nothing of each other and stand one after the other take turns, a few
/// at a time: what unrolled loops with e^x, erf or tanh in them become.
///
///   a1 a2 a3 ... a30 b1 b2 b3 ... b30   ->   a1 b1 a2 b2 a3 b3 ... a30 b30
///
/// A core looks for instructions to start among some 60 to 100 that wait for operands, which are two or three such
/// chains of 60 cycles each; side by side all of them are about equally far. Softmax over rows of 768 on an AMD EPYC
/// (Zen 3) takes 0.83 of the time. Short chains, as element-wise maps and register tiles have, are left in their order,
/// which the caches and prefetchers like. No operation changes, so that all bits stay.
///
/// Runs behind our other passes, which could undo it. It needs noalias parameters to tell that one chain's loads do not
/// see what another one stores, and does nothing where they might.
struct InterleaveChains : llvm::PassInfoMixin<InterleaveChains> {
  llvm::PreservedAnalyses run(llvm::Function &f, llvm::FunctionAnalysisManager &analyses);
};

} // namespace fusec
