#pragma once
#include "Expr/SizeLimits.h"
#include "Tiling/search/BestSchedules.h"
#include "Tiling/search/SizeChoice.h"

namespace fusec {

/// Answers how a pattern would run where its symbols' opt values are those of the program that it is given: as
/// bestSchedules does.
using BestSchedulesAt = std::function<Result<std::vector<ScheduleVariant>>(const ExprProgram &)>;

/// What a pattern may run as: different schedules, each the fastest at one of the sizes that it is tuned for
/// (tunedSizes), and what they take at these sizes and between.
struct SizedSchedules {
  /// Each as bestSchedules answered. The first is right for all sizes; none where no schedule runs the pattern.
  std::vector<std::vector<ScheduleVariant>> found;
  // Empty where the pattern has no such sizes:
  std::vector<std::vector<int64_t>> sizes; // values of the symbols, the largest last
  std::vector<DimExpr> features;           // of the table: what tests speak of
  tiling::SizeTable table;                 // sizes that are alike to the pattern are one
  std::vector<size_t> rows;                // where in the table each size stands
};
Result<SizedSchedules> schedulesBySize(const ExprProgram &pattern, const Target &target,
                                       const BestSchedulesAt &best);

/// Seconds at these values of the symbols with the fastest of the schedules that are right there.
double secondsOfFastest(const SizedSchedules &schedules, const ExprProgram &pattern,
                        const std::vector<int64_t> &symbols, const Target &target);

/// The schedules of a tree over the table, with guards that choose between them. One schedule comes in the variants
/// that it has itself.
std::vector<ScheduleVariant> variantsOf(const ExprProgram &pattern, SizedSchedules schedules,
                                        const tiling::SizeTree &tree);

/// A limit of the variant's alternatives that its guards do not keep; nullopt: it is right wherever it runs.
std::optional<SizeLimit> limitNotTested(const ScheduleVariant &variant, const ExprProgram &pattern);

/// The variant that runs at these values of the symbols.
const ScheduleVariant &variantAt(const std::vector<ScheduleVariant> &variants,
                                 const std::vector<int64_t> &symbols);

/// What a schedule's alternatives make of the pattern, with other values as what it is tuned for. They are taken at the
/// pattern's own sizes, as when kernels are made: at others they may find other equations long.
ExprProgram scheduledFor(const ExprProgram &pattern, const Schedule &schedule,
                         const std::vector<int64_t> &symbols);
/// The pattern with other values as what it is tuned for.
ExprProgram tunedFor(const ExprProgram &pattern, const std::vector<int64_t> &symbols);

} // namespace fusec
