#pragma once
#include "Expr/SizeLimits.h"
#include "Tiling/search/BestSchedules.h"

namespace fusec {

/// Answers how a pattern would run where its symbols' opt values are those of the program that it is given: as
/// bestSchedules does.
using BestSchedulesAt = std::function<Result<std::vector<ScheduleVariant>>(const ExprProgram &)>;

/// The fewest schedules of a pattern, each the fastest at one of the sizes that it is tuned for (tunedSizes), that are
/// nowhere among these and the sizes between much slower than the fastest, with guards that choose between them. One
/// schedule, in the variants that it has itself, where the pattern has no such sizes or one is fast at all of them.
Result<std::vector<ScheduleVariant>> sizeVariants(const ExprProgram &pattern, const Target &target,
                                                  const BestSchedulesAt &best);

/// A limit of the variant's alternatives that its guards do not keep; nullopt: it is right wherever it runs.
std::optional<SizeLimit> limitNotTested(const ScheduleVariant &variant, const ExprProgram &pattern);

/// The variant that runs at these values of the symbols.
const ScheduleVariant &variantAt(const std::vector<ScheduleVariant> &variants,
                                 const std::vector<int64_t> &symbols);

/// The pattern with other values as what it is tuned for.
ExprProgram tunedFor(const ExprProgram &pattern, const std::vector<int64_t> &symbols);

} // namespace fusec
