// Padding, where all lanes leave an image at once or some lie behind a row's end. A vector of the constant lies in
// memory and is read in the image's place: a choice between vectors by one bit is a branch on x86, and so is a load
// that only one outcome wants. A maximum over nine taps had one for each.
#include "Codegen/Emitter.h"

namespace fusec {

using llvm::Value;

/// Nothing where elements lie at distances that only a gather reads, or the else-value is computed.
std::optional<Val> Emitter::evalPadded(const Scalar &s, const Predicate &p, const Val &otherwise,
                                       const std::vector<Val> &indices) {
  const DType t = kernel.buffers[s.index].type;
  auto *known = llvm::dyn_cast<llvm::Constant>(p.lanes.v);
  if (threads || mask || guard || (known && known->isAllOnesValue()) || !otherwise.uniform() ||
      !llvm::isa<llvm::Constant>(otherwise.v))
    return std::nullopt;
  const Place at = place(s.index, indices);
  auto *constant = llvm::dyn_cast<llvm::Constant>(toMemory(t, otherwise.v));
  if (at.index.uniform() || !constant)
    return std::nullopt;
  llvm::Constant *vector = llvm::ConstantVector::getSplat(
      llvm::ElementCount::getFixed(static_cast<unsigned>(width)), constant);
  const auto result = [&](Value *loaded) { return Val{fromMemory(t, loaded), 0, true}; };
  const llvm::Align align(sizeInBytes(t));
  llvm::GlobalVariable *&padding = paddings[vector];
  if (!padding)
    padding = new llvm::GlobalVariable(module, vector->getType(), true,
                                       llvm::GlobalValue::PrivateLinkage, vector, "padding");
  if (at.index.varying || at.index.step != 1) {
    Value *on =
        p.apart ? p.apart
                : llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(b.getInt1Ty(), width));
    Value *loaded = loadStrided(at, align, on, {vector, p.any, padding});
    return loaded ? std::optional(result(loaded)) : std::nullopt;
  }
  Value *pointer =
      b.CreateSelect(p.any, b.CreateGEP(elementInMemory(b, t), at.base, at.index.v), padding);
  if (p.apart)
    return result(b.CreateMaskedLoad(vector->getType(), pointer, align, p.apart, vector));
  return result(b.CreateAlignedLoad(vector->getType(), pointer, align));
}

} // namespace fusec
