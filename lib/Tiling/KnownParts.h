#pragma once
#include "Cost/Cost.h"
#include "Support/Hash.h"
#include "Tiling/Schedule.h"

#include <map>
#include <memory>

namespace fusec {

/// Schedules of a part of packs (PackCandidates.cpp), and what each counts alone.
struct PartSchedules {
  std::vector<TensorId> made; // the part's values, as the schedules' edges number them
  std::vector<Schedule> schedules;
  std::vector<cost::Counts> counts;
};
/// What an oracle keeps from pattern to pattern of one target: the same parts come back in many packs.
using KnownParts = std::map<Hash128, std::shared_ptr<const PartSchedules>>;

} // namespace fusec
