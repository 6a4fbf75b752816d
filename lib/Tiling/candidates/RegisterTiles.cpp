#include "Tiling/candidates/RegisterTiles.h"

#include <algorithm>

namespace fusec::tiling {

namespace {

/// What a term costs for a vector of results.
struct TermCost {
  int64_t registers;   // of a vector of accumulators
  int64_t operations;  // a float's product and sum are one
  int64_t columnBytes; // of an element that is read along the lanes
  /// Rows read vectors of their own, not one element for all vectors, and that of one row is a neighbour's for the next
  /// tap: a depthwise convolution.
  bool slidingRows;
};

TermCost termCost(const View &view, const Roles &roles) {
  const Equation &e = view.equation();
  TermCost cost{std::max<int64_t>(1, sizeInBytes(e.accumulateType) / 4),
                isFloat(e.accumulateType) ? 1 : 2, 0, false};
  for (const ReadInfo &read : view.reads)
    if (read.dependsOn(view.spatial.back())) {
      cost.columnBytes = std::max(cost.columnBytes, read.elementBytes);
      cost.slidingRows |= roles.row >= 0 && slides(view, read, view.spatial[roles.row]);
    }
  return cost;
}

/// Rows whose distance is a multiple of a way's size share one set of the first cache.
int64_t maxRows(const View &view, const Roles &roles) {
  constexpr int64_t kMost = 14;
  const int64_t ways = view.target->memory.front().ways;
  const int64_t wayBytes = view.target->memory.front().capacityBytes / ways;
  if (roles.row < 0)
    return kMost;
  for (const ReadInfo &read : view.reads) {
    std::optional<int64_t> stride = read.stride(view.spatial[roles.row]);
    if (!read.dependsOn(view.spatial[roles.lane]) && stride && *stride != 0 &&
        *stride * read.elementBytes % wayBytes == 0)
      return ways;
  }
  return kMost;
}

} // namespace

bool slides(const View &view, const ReadInfo &read, const std::vector<int> &rows) {
  const Equation &e = view.equation();
  const std::vector<NodeId> indices = indexOperands(e.body[read.node]);
  return std::ranges::any_of(indices, [&](NodeId index) {
    const auto form = affineForm(e.body, index, static_cast<int>(e.axes.size()));
    auto moves = [&](const std::vector<int> &group) {
      return std::ranges::any_of(group, [&](int position) {
        return !form->coefficients[static_cast<size_t>(position)].isConst(0);
      });
    };
    return form && moves(rows) && std::ranges::any_of(view.reduction, moves);
  });
}

Roles rolesOf(const View &view) {
  Roles roles;
  roles.lane = static_cast<int>(view.spatial.size()) - 1;
  const std::vector<int> &lane = view.spatial[roles.lane];
  for (int g = roles.lane - 1; g >= 0; --g) {
    bool reused = std::ranges::any_of(view.reads, [&](const ReadInfo &r) {
      return r.dependsOn(lane) && !r.dependsOn(view.spatial[g]);
    });
    if (roles.row < 0 && reused)
      roles.row = g;
  }
  for (int g = 0; g < roles.lane; ++g)
    if (g != roles.row)
      roles.blocks.push_back(g);
  return roles;
}

std::vector<RankedTile> registerTiles(const View &view, const Roles &roles) {
  const Target &target = *view.target;
  const TermCost term = termCost(view, roles);
  const int64_t rowsTotal = roles.row >= 0 ? view.opt(view.spatial[roles.row]) : 1;
  const int64_t columnsTotal = view.opt(view.spatial[roles.lane]);
  const int64_t most = maxRows(view, roles);
  std::vector<RankedTile> ranked;
  int64_t vectorsTotal = (columnsTotal + target.lanes - 1) / target.lanes;
  for (int64_t rows = 1; rows <= most; ++rows)
    for (int64_t vectors = 1; vectors <= 8; ++vectors) {
      // One more and a sum goes to memory and back in each step: 7 x 4 vectors took three times as long.
      // Taps that are written out keep what the next one reads again: 14 x 2 sums of a depthwise 3x3 took 1.6 times as
      // long as 14 x 1.
      const int64_t beside = vectors + (term.slidingRows ? rows * vectors : 1);
      const int64_t registers = (rows * vectors + beside) * term.registers;
      if (registers > target.vectorRegisters || (vectors > 1 && vectors > vectorsTotal) ||
          (rows > 1 && rows > rowsTotal))
        continue;
      const CpuCore &core = target.core;
      double fma = double(rows * vectors) * term.operations / core.fmaPorts;
      double loads = double((term.slidingRows ? rows * vectors : rows) + vectors) / core.tileLoads;
      // Panels are larger than the first cache.
      double panel = double(vectors * target.lanes * term.columnBytes) / core.panelBytesPerCycle;
      // Loop control and misses grow with the number of steps and loads.
      double cycles = std::max({fma, loads, panel, double(core.fmaCycles)}) + 0.5 + 0.1 * loads;
      double tiles =
          double((rowsTotal + rows - 1) / rows) * double((vectorsTotal + vectors - 1) / vectors);
      ranked.push_back({{rows, vectors}, tiles * cycles});
    }
  std::ranges::stable_sort(ranked, {}, &RankedTile::cycles);
  return ranked;
}

} // namespace fusec::tiling
