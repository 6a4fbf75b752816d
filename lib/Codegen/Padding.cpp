// Padding that all lanes share: a vector of the constant lies in memory and is read in the image's place. A choice
// between vectors by one bit is a branch on x86, and so is a load that only one outcome wants: a maximum over nine taps
// had one for each.
#include "Codegen/Emitter.h"

namespace fusec {

using llvm::Value;

/// Nothing where lanes differ in whether they read, elements do not lie side by side, or the else-value is computed.
std::optional<Val> Emitter::evalPadded(const Scalar &s, const Predicate &p, const Val &otherwise,
                                       const std::vector<Val> &indices) {
  const DType t = kernel.buffers[s.index].type;
  if (threads || mask || guard || !p.lanes.uniform() || llvm::isa<llvm::Constant>(p.lanes.v) ||
      !otherwise.uniform() || !llvm::isa<llvm::Constant>(otherwise.v))
    return std::nullopt;
  const Place at = place(s.index, indices);
  auto *constant = llvm::dyn_cast<llvm::Constant>(toMemory(t, otherwise.v));
  if (at.index.varying || at.index.step != 1 || !constant)
    return std::nullopt;
  llvm::Constant *vector = llvm::ConstantVector::getSplat(
      llvm::ElementCount::getFixed(static_cast<unsigned>(width)), constant);
  llvm::GlobalVariable *&padding = paddings[vector];
  if (!padding)
    padding = new llvm::GlobalVariable(module, vector->getType(), true,
                                       llvm::GlobalValue::PrivateLinkage, vector, "padding");
  Value *pointer =
      b.CreateSelect(p.lanes.v, b.CreateGEP(elementInMemory(b, t), at.base, at.index.v), padding);
  Value *loaded = b.CreateAlignedLoad(vector->getType(), pointer, llvm::Align(sizeInBytes(t)));
  return Val{fromMemory(t, loaded), 0, true};
}

} // namespace fusec
