#pragma once
#include "llvm/IR/PassManager.h"

namespace fusec {

/// Takes divisions whose divisor cannot be 0 out of the loops that they do not depend on, also where an iteration may
/// do without them. LLVM's hoisting leaves these, since it asks for constant divisors: the place of a block, which
/// sizes of a run divide, was computed anew for each vector that the block copies.
struct HoistDivisions : llvm::PassInfoMixin<HoistDivisions> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace fusec
