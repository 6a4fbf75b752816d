#include "Codegen/Interleave.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace fusec {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::MemoryLocation;

// Instructions of a chain that wait for each other.
constexpr int kLeastDepth = 12;
// Instructions for each load and store: products of long rows wait for memory.
constexpr int kLeastPerAccess = 6;
// Chains. 2 and 3 gain half as much, with the 16 registers of AVX2 too.
constexpr size_t kSideBySide = 4;

using Segment = std::vector<Instruction *>;

bool isPrefetch(const Instruction &i) {
  const auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
  return call && call->getIntrinsicID() == llvm::Intrinsic::prefetch;
}

/// The memory that a load or store touches; nullopt where it is none of those that may change places.
std::optional<MemoryLocation> accessed(const Instruction &i) {
  if (const auto *load = llvm::dyn_cast<llvm::LoadInst>(&i); load && load->isSimple())
    return MemoryLocation::get(load);
  if (const auto *store = llvm::dyn_cast<llvm::StoreInst>(&i); store && store->isSimple())
    return MemoryLocation::get(store);
  if (const auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&i)) {
    if (call->getIntrinsicID() == llvm::Intrinsic::masked_load)
      return MemoryLocation::getForArgument(call, 0, nullptr);
    if (call->getIntrinsicID() == llvm::Intrinsic::masked_store)
      return MemoryLocation::getForArgument(call, 1, nullptr);
  }
  return std::nullopt;
}

bool touchesMemory(const Instruction &i) {
  return (i.mayReadOrWriteMemory() || i.mayHaveSideEffects()) && !isPrefetch(i);
}

/// The instructions of a block that compute with vectors, and what needs their values, by their chain; the others, as
/// addresses, belong to none.
class Chains {
public:
  explicit Chains(BasicBlock &block) {
    for (Instruction &i : block) {
      if (llvm::isa<llvm::PHINode>(i) || i.isTerminator())
        continue;
      bool member = i.getType()->isVectorTy();
      int below = 0;
      for (const llvm::Use &use : i.operands()) {
        const auto *operand = llvm::dyn_cast<Instruction>(use.get());
        const bool within = operand && depth.count(operand);
        member |= within || use->getType()->isVectorTy();
        if (within)
          below = std::max(below, depth.lookup(operand));
      }
      if (!member)
        continue;
      depth[&i] = below + 1;
      sets.insert(&i);
      for (const llvm::Use &use : i.operands())
        if (const auto *operand = llvm::dyn_cast<Instruction>(use.get());
            operand && depth.count(operand))
          sets.unionSets(&i, operand);
    }
    for (const auto &[i, d] : depth) {
      Size &size = sizes[sets.getLeaderValue(i)];
      size.depth = std::max(size.depth, d);
      ++size.instructions;
      size.accesses += touchesMemory(*i);
    }
  }
  /// One instruction that stands for the chain; null: of none.
  const Instruction *of(const Instruction &i) const {
    return depth.count(&i) ? sets.getLeaderValue(&i) : nullptr;
  }
  bool isLong(const Instruction *chain) const {
    const Size size = sizes.lookup(chain);
    return size.depth >= kLeastDepth && size.instructions >= kLeastPerAccess * size.accesses;
  }

private:
  struct Size {
    int depth = 0, instructions = 0, accesses = 0;
  };
  llvm::EquivalenceClasses<const Instruction *> sets;
  llvm::DenseMap<const Instruction *, int> depth; // of each instruction, from the chain's beginning
  llvm::DenseMap<const Instruction *, Size> sizes; // of each chain
};

/// Long chains in their order, each with the short ones that begin behind its start. `between`: what belongs to none,
/// from the first one's start on. Empty where chains are not one behind the other.
std::vector<Segment> segmentsOf(BasicBlock &block, Segment &between) {
  const Chains chains(block);
  llvm::DenseMap<const Instruction *, size_t> segmentOf; // of a chain
  std::vector<Segment> segments;
  for (Instruction &i : block) {
    const Instruction *chain = chains.of(i);
    if (!chain) {
      if (!segments.empty() && !i.isTerminator())
        between.push_back(&i);
      continue;
    }
    auto [at, isNew] = segmentOf.try_emplace(chain, segments.size());
    if (isNew) {
      if (chains.isLong(chain))
        segments.emplace_back();
      else if (segments.empty())
        at->second = SIZE_MAX; // in front of all
      else
        at->second = segments.size() - 1;
    }
    if (at->second == SIZE_MAX ? !segments.empty() : at->second + 1 != segments.size())
      return {};
    if (at->second != SIZE_MAX)
      segments.back().push_back(&i);
  }
  return segments;
}

/// No access of one segment may see what another one stores. What is moved in front of all must not see it either.
bool areApart(llvm::ArrayRef<Segment> segments, const Segment &between, llvm::AAResults &aliases) {
  struct Access {
    size_t segment;
    MemoryLocation where;
    bool writes;
  };
  std::vector<Access> all;
  for (size_t s = 0; s <= segments.size(); ++s)
    for (const Instruction *i : s < segments.size() ? segments[s] : between) {
      if (!touchesMemory(*i))
        continue;
      std::optional<MemoryLocation> where = accessed(*i);
      if (!where || (s == segments.size() && i->mayWriteToMemory()))
        return false;
      all.push_back({s, *where, i->mayWriteToMemory()});
    }
  llvm::BatchAAResults batch(aliases);
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (all[i].segment != all[j].segment && (all[i].writes || all[j].writes) &&
          batch.alias(all[i].where, all[j].where) != llvm::AliasResult::NoAlias)
        return false;
  return true;
}

void takeTurns(llvm::ArrayRef<Segment> segments, Instruction *behind) {
  size_t longest = 0;
  for (const Segment &s : segments)
    longest = std::max(longest, s.size());
  for (size_t k = 0; k < longest; ++k)
    for (const Segment &s : segments)
      if (k < s.size())
        s[k]->moveBefore(behind);
}

bool interleave(BasicBlock &block, llvm::AAResults &aliases) {
  Segment between;
  const std::vector<Segment> segments = segmentsOf(block, between);
  if (segments.size() < 2 || !areApart(segments, between, aliases))
    return false;
  for (Instruction *i : between)
    i->moveBefore(segments.front().front());
  const llvm::ArrayRef<Segment> all(segments);
  for (size_t first = 0; first < all.size(); first += kSideBySide)
    takeTurns(all.slice(first, std::min(kSideBySide, all.size() - first)), block.getTerminator());
  return true;
}

} // namespace

llvm::PreservedAnalyses InterleaveChains::run(llvm::Function &f,
                                              llvm::FunctionAnalysisManager &analyses) {
  llvm::AAResults &aliases = analyses.getResult<llvm::AAManager>(f);
  bool changed = false;
  for (BasicBlock &block : f)
    changed |= interleave(block, aliases);
  return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

} // namespace fusec
