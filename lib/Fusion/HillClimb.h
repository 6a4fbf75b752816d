#pragma once
#include "Fusion/AccurateCost.h"
#include "Fusion/Beam.h"

namespace fusec {

/// Improves drafts under the accurate model by hill climbing: kernels are joined with those of neighbours, and cut,
/// and then single vertices move between them.
class HillClimb {
public:
  /// If the context allows packs, independent kernels are joined too.
  HillClimb(const FusionContext &context, const SearchGraph &region, const QuickCost &quick,
            AccurateCost &accurate, VertexSets &sets);

  /// Tries all joins and cuts in the order of the vertices, again and again until a round changes nothing, then chains.
  /// `perKernel`: seconds that each kernel saves by becoming a phase of another.
  Status improve(PlanDraft &draft, double perKernel);

  /// Moves vertices between kernels, which neither joins nor cuts do where the two kernels as one are slower, and
  /// improves what comes of it. True if the draft has changed.
  Result<bool> improveByMoves(PlanDraft &draft, double perKernel);

private:
  Status improvePairs(PlanDraft &draft, double perKernel);
  Result<bool> joinWithConsumers(PlanDraft &draft, int v, double perKernel);
  /// Makes one kernel of the contraction v, each contraction that it leads to and what lies between, if that is legal
  /// and faster: a chain pays as a whole, where none of its parts need do. Other vertices of the kernels that these
  /// are taken from stay behind.
  Result<bool> joinChains(PlanDraft &draft, int v, double perKernel);
  /// Moves v into the kernel of a neighbour if that is legal and faster.
  Result<bool> moveToNeighbour(PlanDraft &draft, int v);
  /// Whether equations may leave a kernel, or come to it: not if it is large, or has a wide choice.
  bool isMovable(const std::vector<int> &kernel) const;
  /// Makes one kernel of `chain`, and one each of what stays behind.
  Result<bool> takeTogether(PlanDraft &draft, const std::vector<int> &chain, double perKernel);
  /// Seconds of all kernels, less what each saves as a phase.
  Result<double> secondsOf(const VertexSets &kernels, double perKernel);
  /// Joins v's kernel with independent kernels, one by one: first those that read what it reads, then the next ones in
  /// the list.
  Result<bool> joinBeside(PlanDraft &draft, int v, double perKernel);
  /// Makes one kernel of those of two vertices if that is legal and faster. The accurate model is asked only if the
  /// quick model predicts at most `chance` times the seconds of both.
  Result<bool> join(PlanDraft &draft, int v, int u, double chance, double perKernel);
  /// Cuts the kernel of v in two if that is faster: what comes before v, and v with the rest.
  Result<bool> cutBefore(PlanDraft &draft, int v, double perKernel);
  /// A hash of a cut that leaves out the extents of axes: a long list may have kernels of a hundred widths for which
  /// the same cut never pays.
  Hash128 keyOfCut(const std::vector<int> &whole, int v, double perKernel);

  const FusionContext &context;
  const SearchGraph &region;
  const QuickCost &quick;
  AccurateCost &accurate;
  VertexSets &sets;
  std::map<TensorId, std::vector<int>> readersOf;
  std::vector<Hash128> shapeless; // hashes of the vertices' equations without extents
  /// By keyOfCut: cuts that the accurate model refused since one paid.
  std::map<Hash128, int> lostCuts;
};

} // namespace fusec
