#include "Tiling/space/SpaceNests.h"

#include <algorithm>

namespace fusec::tiling {

namespace {

class NestMaker {
public:
  explicit NestMaker(const LoopSpace &space) : space(space) {}

  std::vector<SpaceNest> run() {
    for (size_t e = 0; e < space.equations.size(); ++e)
      add(static_cast<int>(e));
    return std::move(nests);
  }

private:
  const Equation &equation(int e) const { return *space.equations[static_cast<size_t>(e)]; }

  void add(int e) {
    SpaceNest own;
    own.equations = {e};
    const std::vector<int> &loops = space.loopOf[static_cast<size_t>(e)];
    for (size_t p = 0; p < loops.size(); ++p)
      if (loops[p] >= 0 && !std::ranges::count(space.rows, loops[p]))
        (static_cast<int>(p) < equation(e).numSpatial ? own.spatial : own.reduced)
            .push_back(loops[p]);
    own.tiled = equation(e).kind == EquationKind::Reduction && !own.spatial.empty();
    size_t place = nests.size();
    if (!own.tiled)
      for (size_t n = firstPossible(e); n < nests.size() && place == nests.size(); ++n)
        if (joins(nests[n], e, own))
          place = n;
    if (place == nests.size())
      nests.push_back(std::move(own));
    else
      nests[place].equations.push_back(e);
    nestOf.push_back(place);
  }

  /// The last nest that makes something that e reads: e runs there at the earliest.
  size_t firstPossible(int e) const {
    size_t first = 0;
    for (const InsideRead &read : space.reads)
      if (read.reader == e)
        first = std::max(first, nestOf[static_cast<size_t>(read.maker)]);
    return first;
  }

  bool joins(const SpaceNest &nest, int e, const SpaceNest &own) const {
    const bool map = equation(e).kind == EquationKind::Map;
    if (nest.tiled ? !map || sorted(own.spatial) != sorted(nest.spatial)
                   : sorted(loopsOf(own)) != sorted(loopsOf(nest)))
      return false;
    return std::ranges::all_of(space.reads, [&](const InsideRead &read) {
      if (read.reader != e || !std::ranges::count(nest.equations, read.maker))
        return true;
      // A sum is not there before its loops end, but for what a tile holds of it.
      const bool made = equation(read.maker).kind == EquationKind::Map || nest.tiled;
      return made && equation(e).body[read.read].op == ScalarOp::Read &&
             std::ranges::all_of(read.own, [](bool own) { return own; });
    });
  }

  static std::vector<int> loopsOf(const SpaceNest &nest) {
    std::vector<int> loops = nest.spatial;
    loops.insert(loops.end(), nest.reduced.begin(), nest.reduced.end());
    return loops;
  }
  static std::vector<int> sorted(std::vector<int> loops) {
    std::ranges::sort(loops);
    return loops;
  }

  const LoopSpace &space;
  std::vector<SpaceNest> nests;
  std::vector<size_t> nestOf; // by equation
};

} // namespace

std::vector<SpaceNest> spaceNests(const LoopSpace &space) { return NestMaker(space).run(); }

} // namespace fusec::tiling
