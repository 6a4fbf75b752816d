#include "Tiling/candidates/ContractionRoles.h"

#include <algorithm>

namespace fusec::tiling {

ContractionRoles::ContractionRoles(const View &view) {
  const std::vector<int> &lane = view.spatial.back();
  auto used = [&](const std::vector<int> &group, bool onLanes) {
    return std::ranges::any_of(view.reads, [&](const ReadInfo &r) {
      return r.dependsOn(lane) == onLanes && r.dependsOn(group);
    });
  };
  for (const std::vector<int> &group : view.spatial) {
    const bool vector = group == lane || used(group, true);
    const bool broadcast = group != lane && used(group, false);
    (vector && !broadcast ? columns : broadcast && !vector ? rows : outside).push_back(group);
  }
}

std::vector<int> flat(const AxisGroups &groups) {
  std::vector<int> positions;
  for (const std::vector<int> &group : groups)
    positions.insert(positions.end(), group.begin(), group.end());
  return positions;
}

int64_t pointsOf(const View &view, const AxisGroups &groups) {
  int64_t product = 1;
  for (const std::vector<int> &group : groups)
    product *= view.opt(group);
  return product;
}

} // namespace fusec::tiling
