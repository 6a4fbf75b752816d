#include "Tiling/search/VariantList.h"

#include "Expr/SizeLimits.h"

#include <algorithm>
#include <set>

namespace fusec::tiling {

namespace {

/// The guards of a leaf, and those without which its schedule would be wrong. What a symbol of one size alone is asked
/// for says all of it.
std::vector<Guard> guardsOf(const ExprProgram &pattern, const Schedule &schedule,
                            const std::vector<Guard> &path) {
  std::vector<Guard> guards;
  std::set<SymbolId> ones;
  const std::vector<SizeLimit> limits = sizeLimits(pattern, schedule.via);
  for (const SizeLimit &limit : limits)
    if (limit.least == limit.most) {
      ones.insert(limit.symbol);
      for (Guard &guard : guardsOf(limit, pattern.symbols))
        guards.push_back(std::move(guard));
    }
  for (const Guard &guard : path) {
    std::vector<SymbolId> used;
    guard.value.collectSymbols(used);
    if (!std::includes(ones.begin(), ones.end(), used.begin(), used.end()))
      guards.push_back(guard);
  }
  for (const SizeLimit &limit : limits)
    for (Guard &guard : guardsOf(limit, pattern.symbols))
      if (!isImplied(guard, guards))
        guards.push_back(std::move(guard));
  return guards;
}

class VariantList {
public:
  explicit VariantList(const SizeLeaves &leaves) : leaves(leaves) {}

  std::vector<ScheduleVariant> of(const SizeTree &tree) {
    add(tree, {});
    if (!list.back().guards.empty())
      add(leaves.far, {});
    return std::move(list);
  }

private:
  /// What one side of a cut has tested need not be tested for the other.
  void add(const SizeTree &tree, std::vector<Guard> path) {
    if (tree.isLeaf())
      return addLeaf(static_cast<size_t>(tree.schedule), path);
    const DimExpr beyond = leaves.features[tree.feature] - DimExpr(tree.threshold);
    const bool lowFirst = tree.children[0].leaves() < tree.children[1].leaves();
    std::vector<Guard> first = path;
    first.push_back({lowFirst ? DimExpr(-1) - beyond : beyond});
    add(tree.children[lowFirst ? 0 : 1], std::move(first));
    add(tree.children[lowFirst ? 1 : 0], std::move(path));
  }

  void addLeaf(size_t schedule, const std::vector<Guard> &path) {
    add(schedule, path);
    const std::vector<Guard> &tested = list.back().guards;
    const auto isTested = [&](const Guard &guard) { return isImplied(guard, path); };
    // What a leaf for a size of 1 refuses goes on to the leaves behind it, not to what is best for large sizes.
    const bool isOne = std::ranges::any_of(sizeLimits(leaves.pattern, list.back().schedule.via),
                                           [](const SizeLimit &l) { return l.least == l.most; });
    if (!path.empty() && !isOne && !std::ranges::all_of(tested, isTested))
      add(leaves.far, path);
  }

  void add(size_t schedule, const std::vector<Guard> &path) {
    list.push_back(leaves.found[schedule].back());
    list.back().guards = guardsOf(leaves.pattern, list.back().schedule, path);
  }

  const SizeLeaves &leaves;
  std::vector<ScheduleVariant> list;
};

} // namespace

std::vector<ScheduleVariant> variantsOf(const SizeTree &tree, const SizeLeaves &leaves) {
  return VariantList(leaves).of(tree);
}

} // namespace fusec::tiling
