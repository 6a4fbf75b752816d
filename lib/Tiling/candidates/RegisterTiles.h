#pragma once
#include "Tiling/candidates/ScheduleBuilder.h"

#include <vector>

namespace fusec::tiling {

/// What the spatial groups of a contraction are to a register tile on a CPU (space/OneContraction.cpp).
struct Roles {
  int lane = -1;           // group index
  int row = -1;            // group index or -1
  std::vector<int> blocks; // other spatial groups
};

Roles rolesOf(const View &view);
/// Whether rows and a reduced axis move one index of the read: a window slides along the rows.
bool slides(const View &view, const ReadInfo &read, const std::vector<int> &rows);

struct RegisterTile {
  int64_t rows, vectors;
  bool operator==(const RegisterTile &) const = default;
};

struct RankedTile {
  RegisterTile tile;
  double cycles; // of one term of all sums: fma and load ports, and waste at the edges
};

/// Tiles that fit the register file with accumulators, vector operands and one broadcast, or, where a window slides
/// along rows, with the vectors that its taps share: best first by the time of one term of the sums of the whole M x N
/// domain.
std::vector<RankedTile> registerTiles(const View &view, const Roles &roles);

} // namespace fusec::tiling
