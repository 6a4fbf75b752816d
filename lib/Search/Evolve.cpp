#include "Search/Evolve.h"

#include <algorithm>
#include <limits>
#include <map>

namespace fusec::search {

namespace {

/// SplitMix64: the distributions of the standard library differ from one implementation to another.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  int below(int limit) { return static_cast<int>(next() % static_cast<uint64_t>(limit)); }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

private:
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t state;
};

class Evolution {
public:
  Evolution(std::span<const Choice> choices,
            const std::function<std::optional<double>(const Genome &)> &score,
            const EvolveSettings &settings, Budget &budget)
      : choices(choices), score(score), settings(settings), budget(budget), random(settings.seed) {}

  std::vector<Scored> run(std::span<const Genome> seeds) {
    std::vector<Scored> population;
    for (const Genome &seed : seeds)
      add(seed, population);
    while (population.size() < settings.population && hasMore())
      add(drawn(), population);
    double best = bestOf(population);
    for (int waited = 0; waited < settings.patience && !population.empty() && hasMore();) {
      population = next(population);
      const double found = bestOf(population);
      waited = found < best * (1 - settings.gain) ? 0 : waited + 1;
      best = std::min(best, found);
    }
    return kept();
  }

private:
  /// False too where draws keep finding what is known: nearly all of a small space is.
  bool hasMore() const { return !budget.isSpent() && repeated < 4 * settings.population; }

  static double bestOf(const std::vector<Scored> &population) {
    double best = std::numeric_limits<double>::infinity();
    for (const Scored &one : population)
      best = std::min(best, one.score);
    return best;
  }

  void add(const Genome &genome, std::vector<Scored> &population) {
    auto known = scores.find(genome);
    if (known == scores.end()) {
      if (!budget.take())
        return;
      known = scores.emplace(genome, score(genome)).first;
      repeated = 0;
    } else {
      ++repeated;
    }
    if (known->second)
      population.push_back({genome, *known->second});
  }

  Genome drawn() {
    Genome genome;
    for (const Choice &choice : choices)
      genome.push_back(random.below(choice.options));
    return genome;
  }

  void mutate(Genome &genome) {
    const size_t place = static_cast<size_t>(random.below(static_cast<int>(choices.size())));
    const Choice &choice = choices[place];
    int &own = genome[place];
    if (choice.options == 1)
      return;
    if (!choice.isOrdered)
      own = (own + 1 + random.below(choice.options - 1)) % choice.options;
    else if (own == 0 || (own < choice.options - 1 && random.below(2) == 0))
      ++own;
    else
      --own;
  }

  std::vector<Scored> next(const std::vector<Scored> &population) {
    std::vector<double> sums; // of the weights up to here
    for (const Scored &one : population)
      sums.push_back((sums.empty() ? 0 : sums.back()) + 1 / one.score);
    std::vector<Scored> made;
    while (made.size() < settings.population && hasMore()) {
      if (random.unit() < settings.fresh) {
        add(drawn(), made);
        continue;
      }
      const auto at = std::ranges::upper_bound(sums, random.unit() * sums.back());
      Genome genome =
          population[static_cast<size_t>(std::min(at, sums.end() - 1) - sums.begin())].genome;
      mutate(genome);
      add(genome, made);
    }
    return made;
  }

  std::vector<Scored> kept() const {
    std::vector<Scored> all;
    for (const auto &[genome, value] : scores)
      if (value)
        all.push_back({genome, *value});
    std::ranges::stable_sort(all, {}, &Scored::score);
    all.resize(std::min(all.size(), settings.keep));
    return all;
  }

  const std::span<const Choice> choices;
  const std::function<std::optional<double>(const Genome &)> &score;
  const EvolveSettings &settings;
  Budget &budget;
  Random random;
  std::map<Genome, std::optional<double>> scores;
  size_t repeated = 0; // draws in turn that were known
};

} // namespace

std::vector<Scored> evolve(std::span<const Choice> choices, std::span<const Genome> seeds,
                           const std::function<std::optional<double>(const Genome &)> &score,
                           const EvolveSettings &settings, Budget &budget) {
  return Evolution(choices, score, settings, budget).run(seeds);
}

} // namespace fusec::search
