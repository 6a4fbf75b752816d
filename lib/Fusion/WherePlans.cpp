// Plans of their own for a single token and for a batch of one. What takes two launches there takes as many for all
// sizes as blocks have no room for rows of any number:
//
//   where length = 1 {
//     launch { q | k | v | scores | softmax | ... }     # each value of the layer is one row, held by a block
//   } else {
//     launch { q k v } launch { scores } ...
//   }
//
// Each such plan is searched on the program with the ones written in (Expr/SizeLimits.h), and kept where the kernels of
// the plan for all sizes, with the best schedules that they could have for a size of 1, take much longer.
#include "Cost/Cost.h"
#include "Expr/SizeLimits.h"
#include "Fusion/AccurateCost.h"
#include "Fusion/CutPattern.h"
#include "Fusion/ShareCopies.h"
#include "Support/OptValues.h"
#include "Support/TunedSizes.h"

#include <algorithm>

namespace fusec {

namespace {

/// A plan of its own doubles the code of a size: it has to save so much of the time.
constexpr double kLeastGain = 1.15;

class WherePlanner {
public:
  WherePlanner(Plan &plan, const ExprProgram &program, const Target &target,
               const ScheduleOracle &oracle, const PlanOptions &options)
      : plan(plan), program(program), target(target), oracle(oracle), options(options),
        present(&plan.steps) {
    for (size_t p = 0; p < plan.patterns.size(); ++p)
      numbers[plan.patterns[p].signature] = static_cast<int>(p);
  }

  /// Puts a plan for these sizes in front, where it gains enough. With `forFew` it is one for a few rows of a batch.
  Status tryOnes(const std::vector<SymbolId> &ones, bool forFew) {
    const std::optional<ExprProgram> sized = withOnes(program, ones);
    if (!sized)
      return success();
    ExprProgram asked = *sized;
    asked.symbols = tunedFor(asked.symbols, forFew ? fewRows(*sized) : optValues(sized->symbols));
    int launches = 0;
    FUSEC_TRY(const double now, secondsOfPresent(asked, launches));
    // No plan has less than one launch.
    const double least = std::min(target.launchSec, target.ownLaunchSec);
    if (launches < 2 || now < kLeastGain * (now - (launches - 1) * least))
      return success();
    FUSEC_TRY(Plan own, planAsIs(asked, target, oracle, options));
    plan.evaluations.quick += own.evaluations.quick;
    plan.evaluations.accurate += own.evaluations.accurate;
    if (now < kLeastGain * own.seconds)
      return success();
    recut(own, *sized);
    for (PlanStep &step : own.steps)
      step.pattern = add(std::move(own.patterns[static_cast<size_t>(step.pattern)]));
    PlanStep where;
    where.kind = PlanStep::Kind::Where;
    where.ones = ones;
    where.name = whereText(ones, program.symbols);
    where.thenSteps = std::move(own.steps);
    where.elseSteps = std::move(plan.steps);
    plan.steps.clear();
    plan.steps.push_back(std::move(where));
    present = &plan.steps[0].thenSteps;
    return success();
  }

  /// Numbers the patterns in the order of the text, as whoever reads it does.
  void renumber() {
    std::vector<Pattern> ordered;
    std::map<int, int> numbered;
    renumber(plan.steps, ordered, numbered);
    plan.patterns = std::move(ordered);
  }

private:
  /// Values of the symbols with more than one row in a batch, but few.
  static std::vector<int64_t> fewRows(const ExprProgram &sized) {
    std::vector<int64_t> values = optValues(sized.symbols);
    for (size_t s = 0; s < values.size(); ++s)
      if (const Symbol &symbol = sized.symbols[s]; kindOf(symbol) == SymbolKind::Batch)
        values[s] = std::clamp(std::min(symbol.divisor, INT64_MAX / 2) * 2, symbol.min, symbol.max);
    setComputed(sized.symbols, values);
    return values;
  }

  /// The equations of a program by name, and how many read each tensor.
  struct Equations {
    explicit Equations(const ExprProgram &of) {
      countUses(of.items, uses);
      for (TensorId t : of.outputs)
        ++uses[t];
      for (const Item &item : of.items) {
        const Equation &e = std::get<Equation>(item.value);
        named[e.name] = &e;
      }
    }
    std::map<std::string, const Equation *> named;
    std::map<TensorId, int> uses;
  };

  /// Cuts the same kernels out of a program whose symbols may have any size.
  static void recut(Plan &own, const ExprProgram &sized) {
    const Equations equations(sized);
    Plan cut;
    std::map<Hash128, int> signatures;
    for (const PlanStep &step : own.steps) {
      Group group;
      for (const std::string &name : step.equations)
        group.equations.push_back(equations.named.at(name));
      group.phaseStarts = own.patterns[static_cast<size_t>(step.pattern)].phaseStarts;
      cut.steps.push_back(launchStep(sized, group, equations.uses, cut, signatures));
    }
    own.steps = std::move(cut.steps);
    own.patterns = std::move(cut.patterns);
  }

  /// Seconds of the kernels that run at these sizes so far, each with the best schedule that it has for them.
  Result<double> secondsOfPresent(const ExprProgram &sized, int &launches) {
    const Equations equations(sized);
    double sum = 0;
    launches = static_cast<int>(present->size());
    for (const PlanStep &step : *present) {
      const std::vector<int> &starts = plan.patterns[static_cast<size_t>(step.pattern)].phaseStarts;
      Group phase;
      for (size_t e = 0; e < step.equations.size(); ++e) {
        phase.equations.push_back(equations.named.at(step.equations[e]));
        const bool isLast = e + 1 == step.equations.size();
        if (!isLast && std::ranges::count(starts, static_cast<int>(e) + 1) == 0)
          continue;
        Plan cut;
        std::map<Hash128, int> signatures;
        launchStep(sized, phase, equations.uses, cut, signatures);
        FUSEC_TRY(const KernelTime time, oracle(cut.patterns[0]));
        sum += time.seconds < 0 ? kNever : time.seconds;
        if (!isLast)
          sum -= cost::savedByPhase(target);
        phase.equations.clear();
      }
    }
    return sum;
  }

  void renumber(std::vector<PlanStep> &steps, std::vector<Pattern> &ordered,
                std::map<int, int> &numbered) {
    for (PlanStep &step : steps) {
      if (step.kind == PlanStep::Kind::Launch) {
        const auto [at, isNew] = numbered.emplace(step.pattern, static_cast<int>(ordered.size()));
        if (isNew)
          ordered.push_back(std::move(plan.patterns[static_cast<size_t>(step.pattern)]));
        step.pattern = at->second;
      }
      renumber(step.thenSteps, ordered, numbered);
      renumber(step.elseSteps, ordered, numbered);
    }
  }

  int add(Pattern pattern) {
    const auto [at, isNew] =
        numbers.emplace(pattern.signature, static_cast<int>(plan.patterns.size()));
    if (isNew)
      plan.patterns.push_back(std::move(pattern));
    return at->second;
  }

  Plan &plan;
  const ExprProgram &program;
  const Target &target;
  const ScheduleOracle &oracle;
  const PlanOptions &options;
  const std::vector<PlanStep> *present; // what runs so far at the sizes that are tried next
  std::map<Hash128, int> numbers;       // of patterns
};

} // namespace

Status addWherePlans(Plan &plan, const ExprProgram &program, const std::vector<SymbolId> &lengths,
                     const Target &target, const ScheduleOracle &oracle,
                     const PlanOptions &options) {
  if (options.mode != SearchMode::Full || std::ranges::any_of(program.items, [](const Item &item) {
        return std::holds_alternative<Control>(item.value);
      }))
    return success();
  std::vector<SymbolId> all = lengths;
  for (size_t s = 0; s < program.symbols.size(); ++s)
    if (!program.symbols[s].definition && kindOf(program.symbols[s]) == SymbolKind::Batch)
      all.push_back(static_cast<SymbolId>(s));
  WherePlanner planner(plan, program, target, oracle, options);
  if (!lengths.empty())
    FUSEC_CHECK(planner.tryOnes(lengths, true));
  if (all != lengths)
    FUSEC_CHECK(planner.tryOnes(all, false));
  planner.renumber();
  return success();
}

} // namespace fusec
