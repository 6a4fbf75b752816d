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
/// What is kept from pattern to pattern of one target: the same parts come back in many packs.
struct PartScheduleCache {
  std::map<Hash128, std::shared_ptr<PartSchedules>> parts;
  int64_t lookups =
      0; // questions that it was asked: what was found without any does not depend on it
};

} // namespace fusec
