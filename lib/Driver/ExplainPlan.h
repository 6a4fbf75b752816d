#pragma once
#include "Driver/Explain.h"

namespace fusec {

class PatternOracle;

/// The kernels of one of the target's plans for `program`, with all figures at these values of its symbols.
Result<ExplainedPlan> explainPlan(const ExprProgram &program, const SizedPlan &plan,
                                  const std::vector<int64_t> &symbols, const TargetState &state,
                                  PatternOracle &oracle);

/// Every equation a kernel of its own, at the symbols' opt values.
Result<Sums> sumsApart(const ExprProgram &program, const Target &target, PatternOracle &oracle);

} // namespace fusec
