#pragma once

#include "Cost/Cost.h"
#include "Tiling/schedule/BoundSchedule.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fusec {

/// Predicted seconds of one launch, its compulsory traffic in bytes, and the bytes beside that which count against the
/// bandwidth of each level of the target's memory (cost::Counts), at the symbols' opt values.
struct Prediction {
  double seconds = 0, readBytes = 0, writtenBytes = 0;
  std::array<double, cost::kLevels> levelBytes{};
};
Prediction predict(const tiling::BoundSchedule &bound, const Target &target);
/// The prediction for a schedule whose phases have these counts and take so many seconds.
Prediction predictionOf(const std::vector<cost::Counts> &phases, double seconds,
                        const tiling::BoundSchedule &bound, const Target &target);

/// What each step of a scan reads of constants, such as an LSTM's weights, again and again: bytes of one step, and of
/// them those that a level of memory serves.
struct StepReads {
  int64_t steps = 0;
  double constantBytes = 0;
  std::vector<std::pair<std::string, double>> levels; // name and bytes, nearest first
  /// Constants beside them that stay on chip from step to step (schedule/PersistentReads.h).
  double heldBytes = 0;
};
/// Nothing where the kernel takes no steps, or one, or they read no constants.
std::optional<StepReads> readsOfStep(const tiling::BoundSchedule &bound, const Target &target);

} // namespace fusec
