#pragma once
#include "Fusion/Beam.h"
#include "Fusion/Judge.h"

namespace fusec {

/// Improves drafts under the accurate model by hill climbing: kernels are joined with those of neighbours, and cut.
class Climber {
public:
  /// Where the context allows packs, kernels are joined with what they do not need, too.
  Climber(const FusionContext &context, const Region &region, const Score &score, Judge &judge,
          VertexSets &sets);

  /// In the order of the vertices, until a round changes nothing. `perKernel`: what each kernel takes less than by
  /// itself, since it becomes a phase.
  Status improve(PlanDraft &draft, double perKernel);

private:
  Result<bool> joinWithConsumers(PlanDraft &draft, int v, double perKernel);
  /// Kernels side by side, pair by pair: those that read what this one reads come first, then the next ones in the
  /// list.
  Result<bool> joinBeside(PlanDraft &draft, int v, double perKernel);
  /// Makes one kernel of those of two vertices if that is legal and faster; asked of the accurate model where the quick
  /// one says that it takes no more than `chance` times both.
  Result<bool> join(PlanDraft &draft, int v, int u, double chance, double perKernel);
  /// The kernel of v becomes two: what comes before v, and v with the rest.
  Result<bool> cutBefore(PlanDraft &draft, int v, double perKernel);
  /// What a cut is about but for the extents of axes: a long list has kernels of a hundred widths that all lose by it.
  Hash128 keyOfCut(const std::vector<int> &whole, int v, double perKernel);

  const FusionContext &context;
  const Region &region;
  const Score &score;
  Judge &judge;
  VertexSets &sets;
  std::map<TensorId, std::vector<int>> readersOf;
  std::vector<Hash128> shapeless;  // of the vertices' equations, without extents
  std::map<Hash128, int> lostCuts; // asked of the accurate model in vain since one paid
};

} // namespace fusec
