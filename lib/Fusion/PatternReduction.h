#pragma once
#include "Fusion/Plan.h"

#include <functional>
#include <span>
#include <vector>

namespace fusec {

struct Candidate {
  std::vector<int> vertices; // ascending
  double gain;               // predicted seconds saved over the kernels that it replaces
};

/// The sets of vertices of which a consumer brings one, or nothing, into a pattern of its producer.
using Offers = std::vector<std::vector<int>>;

/// FusionStitching's PatternReduction (section 5.2): combines what consumers offer, a few of them at once, and keeps
/// the best patterns. Two consumers with three offers each have (3 + 1)^2 - 1 = 15 combinations. More consumers than
/// are combined at once are halved, again and again; what is best of each group is a temporary candidate. With three
/// consumers in groups of two and one there are six of them, of which, and of whose unions, three stay (Fig. 4; the
/// paper leaves the unions out, so that a pattern never holds consumers of different groups).
class PatternReduction {
public:
  PatternReduction(const FusionLimits &limits,
                   std::function<bool(const std::vector<int> &)> isPattern,
                   std::function<double(const std::vector<int> &)> gain)
      : limits(limits), isPattern(std::move(isPattern)), gain(std::move(gain)) {}

  /// The size of the first group, if consumers are too many to be combined at once.
  std::function<size_t(std::span<const Offers>)> firstGroup =
      [](std::span<const Offers> consumers) { return (consumers.size() + 1) / 2; };
  /// Called with the patterns of every group.
  std::function<void(const std::vector<Candidate> &)> note;

  /// The best patterns of `own` and of what some of the consumers offer, not `own` alone.
  std::vector<Candidate> combine(const std::vector<int> &own, std::span<const Offers> consumers);

private:
  void addUnion(const std::vector<int> &own, const std::vector<const std::vector<int> *> &parts,
                std::vector<Candidate> &out) const;

  const FusionLimits &limits;
  const std::function<bool(const std::vector<int> &)> isPattern;
  const std::function<double(const std::vector<int> &)> gain;
};

} // namespace fusec
