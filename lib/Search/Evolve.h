#pragma once
#include "Search/Budget.h"

#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace fusec::search {

/// One decision of several: which of its options is taken.
struct Choice {
  int options = 1;
  bool isOrdered = true; // neighbouring options do nearly the same: a mutation takes one of them
};
using Genome = std::vector<int>; // by choice: its option

struct Scored {
  Genome genome;
  double score = 0; // positive, lower is better
};

struct EvolveSettings {
  size_t population = 256;
  double fresh = 0.1; // of a population, drawn anew
  double gain = 0.01; // less in `patience` populations in turn, and the search ends
  int patience = 2;
  size_t keep = 8;
  uint64_t seed = 1;
};

/// Evolutionary search (MCFuser, Algorithm 1). The first population are `seeds` and random genomes; each next one draws
/// from the one before, the better the likelier (one over the score), and gives every drawn genome another option in
/// one place. `score` says nullopt where a genome is not allowed; each genome is scored once, and takes one evaluation
/// of the budget. Returns the best ones of all, best first, equal ones in the order of their options. The same
/// arguments give the same result.
std::vector<Scored> evolve(std::span<const Choice> choices, std::span<const Genome> seeds,
                           const std::function<std::optional<double>(const Genome &)> &score,
                           const EvolveSettings &settings, Budget &budget);

} // namespace fusec::search
