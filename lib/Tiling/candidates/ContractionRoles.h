#pragma once
// What the axes of a contraction are to the generators of GPU schedules.
#include "Tiling/candidates/ScheduleBuilder.h"

namespace fusec::tiling {

using AxisGroups = std::vector<std::vector<int>>;

/// Spatial groups of the reads that lanes run over are columns, those of the other reads rows; what both need is
/// outside. Lanes run over the last group.
struct ContractionRoles {
  explicit ContractionRoles(const View &view);

  AxisGroups rows, columns, outside;
};

/// All positions of the groups, in their order.
std::vector<int> flat(const AxisGroups &groups);

/// Points of all the groups at the symbols' opt values.
int64_t pointsOf(const View &view, const AxisGroups &groups);

} // namespace fusec::tiling
