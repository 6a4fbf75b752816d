#pragma once
#include "Fusion/AccurateCost.h"

namespace fusec {

/// The launches of a draft.
struct Launches {
  std::vector<Phases> list; // in the order in which they run
  double seconds = 0;       // sum over all launches
  double bytes = 0;         // sum over all kernels, each by itself
};

/// Makes launches of kernels: neighbours in the order in which they run become phases of one, with a device-wide
/// barrier between them, where that costs less than a launch. Nothing else changes by it, so that any order among
/// kernels stays right. A launch runs no kernel twice where there is little to gain: layers alike end up in launches
/// alike, which share their code (Souffle's BERT: two for each layer).
class PhaseJoiner {
public:
  /// `joins` false: every kernel stays a launch.
  PhaseJoiner(const SearchGraph &region, AccurateCost &accurate, bool joins)
      : region(region), accurate(accurate), joins(joins) {}

  Result<Launches> join(VertexSets kernels);
  /// Why two kernels are in two of the launches that were made; empty if this joiner joins none.
  Result<std::string> whyApart(const Launches &launches, const std::vector<int> &a,
                               const std::vector<int> &b);

private:
  /// Whether a launch gets one more phase, and its seconds then.
  struct Longer {
    std::string whyNot; // empty: it is worth it
    double seconds;
  };
  Result<Longer> longer(const Phases &phases, double before);

  const SearchGraph &region;
  AccurateCost &accurate;
  const bool joins;
};

} // namespace fusec
