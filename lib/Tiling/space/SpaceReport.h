#pragma once
// What the space of a pattern's loops holds, for explain.
#include "Expr/Expr.h"
#include "Target/Target.h"

#include <optional>
#include <string>
#include <vector>

namespace fusec::tiling {

/// A tree of loops with sizes of its tiles.
struct SpaceChoice {
  std::string expression; // "m(n(k,h))", with the loops that run once
  std::string tiles;      // "m 64, n 32": of the loops that run more often
  double movedBytes = 0;  // between memory and blocks
};

struct SpaceReport {
  std::string pruning;           // how many expressions and sizes each rule left
  std::vector<SpaceChoice> best; // by bytes moved, with room for a block's tiles; best first
};

/// The report of contractions in one tree, at the sizes that it is tuned for. nullopt where no tree holds them,
/// or one of so many loops that nobody lists them.
std::optional<SpaceReport> spaceReport(const ExprProgram &pattern, const Target &target);

} // namespace fusec::tiling
