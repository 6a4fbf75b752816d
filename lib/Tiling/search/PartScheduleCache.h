#pragma once
#include "Support/Hash.h"
#include "Tiling/search/PricedSchedule.h"

#include <map>
#include <memory>

namespace fusec {

/// Schedules of a part of packs (JoinPacks.cpp) as kernels of their own.
struct PartSchedules {
  ExprProgram part;           // the first one met: the schedules number its equations and tensors
  std::vector<TensorId> made; // its values
  tiling::PricedSchedules schedules;
  /// The schedules that packs have been made of, with what their threads reuse.
  std::map<size_t, tiling::PricedSchedule> keeping;
};
/// What an oracle keeps from pattern to pattern of one target: the same parts come back in many packs.
using PartScheduleCache = std::map<Hash128, std::shared_ptr<PartSchedules>>;

} // namespace fusec
