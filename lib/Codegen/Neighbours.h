#pragma once
// What a GPU's thread reads and writes side by side in the turns of an Unroll loop: one access of up to 16 bytes.
#include "Gir/Gir.h"

#include <map>
#include <optional>
#include <utility>

namespace fusec {

struct Neighbours {
  /// A statement and a read of it, or kNoNode for what it stores -> how many turns one access serves.
  std::map<std::pair<const Stmt *, NodeId>, int64_t> accesses;
  int64_t together = 1; // turns: the most of these
  /// The Lane loop that is all of the turns' body, and an If that is all of that or of the body; null: none. The If
  /// holds in all of such turns or in none.
  const Stmt *lane = nullptr, *condition = nullptr;
};

/// Looks for such accesses among the turns of an Unroll loop, which begin at a place that is a multiple of their size
/// whatever the loops around count. nullopt where there are none.
std::optional<Neighbours> neighboursOf(const GirKernel &kernel, const Stmt &loop);

} // namespace fusec
