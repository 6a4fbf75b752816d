#include "Driver/TargetSearch.h"

#include "Driver/Decisions.h"
#include "Driver/PatternOracle.h"
#include "Driver/SizedPrediction.h"
#include "Support/Diag.h"
#include "Support/OptValues.h"
#include "Support/TunedSizes.h"
#include "Tiling/search/PlanVariants.h"

#include <algorithm>
#include <set>

namespace fusec {

namespace {

/// A check refuses what nobody but the search has written.
Diagnostics ownFault(Diagnostics errors) {
  for (Diagnostic &d : errors) {
    d.id = Diag::InternalError;
    d.text += "; fusec chose this itself, which is a bug: please report it with the model";
  }
  return errors;
}

} // namespace

Diagnostics scheduleFault(Diagnostics errors, const TargetState &target) {
  if (!target.decisionsPath.empty())
    return decisionsDoNotFit(std::move(errors), target.decisionsPath, target.target.name);
  return target.schedulesWritten ? errors : ownFault(std::move(errors));
}

/// Sizes that count what a run takes in: rows that it adds to caches, or all lengths of a model without caches. Where
/// the user favours a size, the plan is for that.
static std::vector<SymbolId> lengthsOf(const ExprProgram &program,
                                       const std::vector<CachePair> &caches) {
  const auto rowsOf = [&](const std::string &name, int axis) {
    std::vector<SymbolId> rows;
    for (const Tensor &tensor : program.tensors)
      if (tensor.name == name)
        tensor.shape[static_cast<size_t>(axis)].collectSymbols(rows);
    return rows;
  };
  std::set<SymbolId> added;
  bool grows = false;
  for (const CachePair &cache : caches) {
    if (!cache.grows())
      continue;
    grows = true;
    const std::vector<SymbolId> old = rowsOf(cache.input, cache.axis);
    for (SymbolId s : rowsOf(cache.output, cache.axis))
      if (!std::ranges::binary_search(old, s))
        added.insert(s);
  }
  std::vector<SymbolId> lengths;
  for (size_t s = 0; s < program.symbols.size(); ++s)
    if (isOpen(program.symbols[s], SymbolKind::Length) && !isFavoured(program.symbols[s]) &&
        (!grows || added.count(static_cast<SymbolId>(s)) != 0))
      lengths.push_back(static_cast<SymbolId>(s));
  return lengths;
}

Status planTarget(const ExprProgram &program, const std::vector<CachePair> &caches,
                  const PlanOptions &options, TargetState &target) {
  target.oracle = std::make_shared<PatternOracle>(target.target, options);
  PatternOracle &asked = *target.oracle;
  const ScheduleOracle oracle = [&](const Pattern &pattern) { return asked.time(pattern); };
  if (Status status = makeOwnProgram(program, {}, target); !status.ok())
    return ownFault(status.errors());
  Result<Plan> plan = buildPlan(programOf(program, target), target.target, oracle, options);
  if (!plan)
    return ownFault(plan.errors());
  target.plan = std::move(*plan);
  target.plan.evaluations.thoroughEquations = asked.thoroughEquations();
  target.plan.evaluations.cursory = asked.cursoryAnswers();
  if (Status status = makeOwnProgram(program, target.plan.copies, target); !status.ok())
    return ownFault(status.errors());
  const ExprProgram &own = programOf(program, target);
  PatternOracle ofSizes(target.target,
                        options); // with a budget for the few kernels that these plans have
  const WhereOracle bySize = {[&](const Pattern &pattern) { return ofSizes.time(pattern); },
                              [&](const Pattern &pattern, const std::vector<int64_t> &symbols) {
                                return asked.secondsAt(pattern, symbols);
                              }};
  if (Status status =
          addWherePlans(target.plan, own, lengthsOf(own, caches), target.target, bySize, options);
      !status.ok())
    return ownFault(status.errors());
  asked.learnFrom(ofSizes);
  if (Status status = verify(target.plan, own); !status.ok())
    return ownFault(status.errors());
  return success();
}

/// Counts the launches of each pattern, those in branches and loops once.
static void countLaunches(const std::vector<PlanStep> &steps, std::vector<int> &launches) {
  for (const PlanStep &step : steps) {
    if (step.kind == PlanStep::Kind::Launch)
      ++launches[static_cast<size_t>(step.pattern)];
    countLaunches(step.thenSteps, launches);
    countLaunches(step.elseSteps, launches);
  }
}

Status scheduleTarget(const PlanOptions &options, TargetState &target) {
  Diagnostics errors;
  if (!target.oracle) // a plan that was read
    target.oracle = std::make_shared<PatternOracle>(target.target, options);
  std::vector<int> launches(target.plan.patterns.size(), 0);
  countLaunches(target.plan.steps, launches);
  std::vector<PlannedPattern> planned;
  for (size_t p = 0; p < launches.size(); ++p) {
    const Pattern &pattern = target.plan.patterns[p];
    Result<SizedSchedules> schedules = target.oracle->schedules(pattern);
    if (!schedules)
      errors.insert(errors.end(), schedules.errors().begin(), schedules.errors().end());
    else if (schedules->found.empty())
      errors.push_back({Diag::BadIr, "plan for " + target.target.name,
                        "no schedule runs the equations of " + pattern.program.name +
                            " as one kernel: one of them is a scan, a scatter or opaque, or has no "
                            "elements, or no tree of loops holds a contraction and the others"});
    else
      planned.push_back({&pattern.program, std::move(*schedules), launches[p]});
  }
  if (!errors.empty())
    return target.planWritten ? errors : ownFault(errors);
  target.schedules = planVariants(std::move(planned));
  for (size_t p = 0; p < launches.size(); ++p)
    for (ScheduleVariant &variant : target.schedules[p])
      variant.schedule.name = target.plan.patterns[p].program.name + "." + variant.schedule.name;
  return success();
}

Status checkSchedules(const ExprProgram &model, const TargetState &target) {
  const ExprProgram &program = programOf(model, target);
  Diagnostics errors;
  for (size_t p = 0; p < target.schedules.size(); ++p)
    for (const ScheduleVariant &variant : target.schedules[p])
      if (Status status = verifySchedule(p, variant.schedule, target, program); !status.ok())
        errors.insert(errors.end(), status.errors().begin(), status.errors().end());
  if (!errors.empty())
    return scheduleFault(std::move(errors), target);
  return success();
}

Status lowerToGir(const ExprProgram &model, TargetState &target, const PassObserver &observer) {
  const ExprProgram &program = programOf(model, target);
  auto lower = [&]() -> Status {
    FUSEC_TRY(target.gir, buildGirProgram(program, target, observer));
    return checkSharedMemory(target);
  };
  Status status = lower();
  if (!status.ok())
    return scheduleFault(std::move(status.errors()), target);
  return status;
}

double predictedSeconds(const ExprProgram &model, const TargetState &target) {
  return predictAt(target, optValues(programOf(model, target).symbols)).seconds;
}

} // namespace fusec
