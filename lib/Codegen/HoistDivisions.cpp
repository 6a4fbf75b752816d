#include "Codegen/HoistDivisions.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/SimplifyQuery.h"
#include "llvm/Analysis/ValueTracking.h"

namespace fusec {

static bool isDivision(const llvm::Instruction &i) {
  switch (i.getOpcode()) {
  case llvm::Instruction::UDiv:
  case llvm::Instruction::URem:
  case llvm::Instruction::SDiv:
  case llvm::Instruction::SRem: return i.getType()->isIntegerTy();
  default: return false;
  }
}

/// Whether it may be done where no run asks for it: no divisor is 0, nor, of signed numbers, -1, which may overflow.
static bool isHarmless(const llvm::Instruction &division, const llvm::DataLayout &layout) {
  const llvm::Value *divisor = division.getOperand(1);
  const bool isSigned = division.getOpcode() == llvm::Instruction::SDiv ||
                        division.getOpcode() == llvm::Instruction::SRem;
  return llvm::isKnownNonZero(divisor, llvm::SimplifyQuery(layout)) &&
         (!isSigned || llvm::computeKnownBits(divisor, layout).isNonNegative());
}

static bool hoist(llvm::Instruction &division, llvm::Loop &loop) {
  llvm::BasicBlock *before = loop.getLoopPreheader();
  if (!before)
    return false;
  bool isChanged = false;
  for (llvm::Value *operand : division.operands())
    if (!loop.makeLoopInvariant(operand, isChanged, before->getTerminator()))
      return false;
  division.moveBefore(before->getTerminator());
  return true;
}

llvm::PreservedAnalyses HoistDivisions::run(llvm::Function &function,
                                            llvm::FunctionAnalysisManager &analyses) {
  auto &loops = analyses.getResult<llvm::LoopAnalysis>(function);
  std::vector<llvm::Instruction *> divisions; // dividends, which may be such, come first
  for (llvm::BasicBlock *block : llvm::ReversePostOrderTraversal<llvm::Function *>(&function))
    for (llvm::Instruction &i : *block)
      if (isDivision(i) && isHarmless(i, function.getParent()->getDataLayout()))
        divisions.push_back(&i);
  for (llvm::Instruction *division : divisions)
    for (llvm::Loop *loop = loops.getLoopFor(division->getParent());
         loop && hoist(*division, *loop); loop = loop->getParentLoop()) {
    }
  llvm::PreservedAnalyses kept;
  kept.preserveSet<llvm::CFGAnalyses>();
  return kept;
}

} // namespace fusec
