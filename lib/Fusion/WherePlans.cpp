// Plans of their own for a single token, for a batch of one too, and for a few tokens. What takes two launches there
// takes as many for all sizes as blocks have no room for rows of any number:
//
//   where length = 1 {
//     launch { q | k | v | scores | softmax | ... }     # each value of the layer is one row, held by a block
//   } else {
//     where length = 2..16 {
//       launch { q k v } launch { scores softmax ... }  # a block has room for such rows
//     } else {
//       launch { q k v } launch { scores } ...          # kernels for 17 and more
//     }
//   }
//
// Behind a long past (another length that is open) such a plan saves bytes of that past too, as in a decoder's step.
//
// Each such plan is searched on the program for these sizes (Expr/SizeLimits.h), and kept where the kernels of the plan
// for all sizes, with the best schedules that they could have there, take much longer.
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
/// Tokens of a short question, or of a step that checks several at once.
constexpr int64_t kFewTokens = 16;

class WherePlanner {
public:
  WherePlanner(Plan &plan, const ExprProgram &program, const Target &target,
               const WhereOracle &oracle, const PlanOptions &options)
      : plan(plan), program(program), target(target), oracle(oracle), options(options) {}

  /// Plans for single tokens, then for a batch of one too, then for a few tokens.
  Status run(const std::vector<SymbolId> &lengths) {
    std::vector<SymbolId> all = lengths;
    for (size_t s = 0; s < program.symbols.size(); ++s)
      if (isOpen(program.symbols[s], SymbolKind::Batch) && !isFavoured(program.symbols[s]))
        all.push_back(static_cast<SymbolId>(s));
    FUSEC_TRY(std::optional<Where> single, planWithin(program, limits(lengths, 1), plan));
    FUSEC_TRY(std::optional<Where> alone,
              all == lengths ? std::optional<Where>()
                             : planWithin(program, limits(all, 1), single ? single->plan : plan));
    const ExprProgram longer = single ? beyond(program, single->sizes) : program;
    FUSEC_TRY(std::optional<Where> few, planWithin(longer, limits(lengths, kFewTokens), plan));
    std::vector<Where> wheres;
    for (std::optional<Where> *where : {&alone, &single, &few})
      if (*where)
        wheres.push_back(std::move(**where));
    if (!wheres.empty())
      plan.steps = nested(std::move(wheres));
    return success();
  }

private:
  /// A plan for some sizes.
  struct Where {
    std::vector<SizeLimit> sizes;
    Plan plan;
  };

  /// Limits to so many tokens, or to as many frames of a length that is told in samples.
  std::vector<SizeLimit> limits(const std::vector<SymbolId> &symbols, int64_t most) const {
    std::vector<SizeLimit> sizes;
    for (SymbolId s : symbols)
      sizes.push_back({s, 1, most * stepOf(program.symbols[static_cast<size_t>(s)])});
    return sizes;
  }

  /// The plan within these sizes of a program, where it gains enough; `present` runs there else.
  Result<std::optional<Where>> planWithin(const ExprProgram &of, std::vector<SizeLimit> sizes,
                                          const Plan &present) {
    for (SizeLimit &limit : sizes)
      limit.least = std::max(limit.least, of.symbols[static_cast<size_t>(limit.symbol)].min);
    const std::optional<ExprProgram> sized = within(of, sizes);
    const bool leavesNone = std::ranges::all_of(sizes, [&](const SizeLimit &limit) {
      return of.symbols[static_cast<size_t>(limit.symbol)].max <= limit.most;
    });
    if (leavesNone || !sized)
      return std::optional<Where>();
    ExprProgram typical = *sized;
    setTypical(typical.symbols, sizes);
    // Single tokens of any batch: searches for a batch of one too would use the budget of thorough prices up.
    const bool isBehindPast =
        areSingle(sizes, of.symbols) && hasOtherLength(*sized, sizes) &&
        std::ranges::none_of(sizes, [&](const SizeLimit &limit) {
          return isOpen(of.symbols[static_cast<size_t>(limit.symbol)], SymbolKind::Batch);
        });
    FUSEC_TRY(const double now, secondsOf(present, typical));
    FUSEC_TRY(std::optional<Plan> own, fasterAt(typical, present, now, isBehindPast));
    if (!own && isBehindPast) {
      FUSEC_TRY(own, fasterBehindLongPast(*sized, typical, present));
    }
    if (!own)
      return std::optional<Where>();
    recut(*own, *sized);
    return std::optional<Where>({std::move(sizes), std::move(*own)});
  }

  static bool areSingle(const std::vector<SizeLimit> &sizes, const std::vector<Symbol> &symbols) {
    return std::ranges::all_of(sizes, [&](const SizeLimit &limit) {
      return limit.most <= stepOf(symbols[static_cast<size_t>(limit.symbol)]);
    });
  }

  /// Whether a length is open that has no limit among `sizes`, as that of a past.
  static bool hasOtherLength(const ExprProgram &sized, const std::vector<SizeLimit> &sizes) {
    for (size_t s = 0; s < sized.symbols.size(); ++s)
      if (isOpen(sized.symbols[s], SymbolKind::Length) &&
          std::ranges::count(sizes, static_cast<SymbolId>(s), &SizeLimit::symbol) == 0)
        return true;
    return false;
  }

  /// The plan for the sizes that `asked` is tuned for, where it gains enough there, of the `now` seconds of `present`.
  Result<std::optional<Plan>> fasterAt(const ExprProgram &asked, const Plan &present, double now,
                                       bool isBehindPast) {
    // No plan has less than one launch, and where few tokens are all that there is it saves little else.
    const auto launches = static_cast<double>(
        std::ranges::count(present.steps, PlanStep::Kind::Launch, &PlanStep::kind));
    const double least = std::min(target.launchSec, target.ownLaunchSec);
    if (launches < 2 || (!isBehindPast && now < kLeastGain * (now - (launches - 1) * least)))
      return std::optional<Plan>();
    FUSEC_TRY(Plan own, planAsIs(asked, target, oracle.best, options));
    plan.evaluations.quick += own.evaluations.quick;
    plan.evaluations.accurate += own.evaluations.accurate;
    return now < kLeastGain * own.seconds ? std::optional<Plan>() : std::move(own);
  }

  /// A token that is decoded behind a long past, for many at once, reads as many bytes of that past as of weights: the
  /// plan for the largest sizes that kernels are tuned for, where it gains enough there and loses nothing at typical
  /// and at the smallest ones. There the kernels of the plan for all sizes are far from those that know of one token:
  /// they are taken as they run.
  Result<std::optional<Plan>>
  fasterBehindLongPast(const ExprProgram &sized, const ExprProgram &typical, const Plan &present) {
    const std::vector<std::vector<int64_t>> tuned = tunedSizes(sized.symbols);
    if (tuned.empty())
      return std::optional<Plan>();
    ExprProgram most = sized;
    most.symbols = tunedFor(most.symbols, tuned.back());
    FUSEC_TRY(const double run, secondsRun(present, optValues(most.symbols)));
    FUSEC_TRY(std::optional<Plan> own, fasterAt(most, present, run, true));
    if (!own)
      return own;
    ExprProgram least = sized;
    least.symbols = tunedFor(least.symbols, tuned.front());
    for (const ExprProgram *at : std::initializer_list<const ExprProgram *>{&typical, &least}) {
      FUSEC_TRY(const double now, secondsOf(present, *at));
      FUSEC_TRY(const double then, secondsOf(*own, *at));
      if (then > now)
        return std::optional<Plan>();
    }
    return own;
  }

  /// Says which sizes to plan for: the middle of those that lengths have. Single tokens have a plan of their own where
  /// they are alone, so that this one is for two rows in a batch, which tell what each of them takes.
  static void setTypical(std::vector<Symbol> &symbols, const std::vector<SizeLimit> &sizes) {
    const bool isSingle = areSingle(sizes, symbols);
    const auto set = [](Symbol &symbol, int64_t wanted) {
      const DimExpr multiple = ceilDiv(DimExpr(wanted), DimExpr(symbol.divisor));
      symbol.opt = std::clamp(multiple.constValue() * symbol.divisor, symbol.min, symbol.max);
    };
    for (Symbol &symbol : symbols)
      if (isSingle && isOpen(symbol, SymbolKind::Batch) && !isFavoured(symbol))
        set(symbol, 2);
    for (const SizeLimit &limit : sizes)
      set(symbols[static_cast<size_t>(limit.symbol)], limit.least + (limit.most - limit.least) / 2);
  }

  /// The equations of a program by name, and how many read each tensor.
  struct Equations {
    explicit Equations(const ExprProgram &of) {
      countUses(of.items, uses);
      for (TensorId t : of.outputs)
        ++uses[t];
      for (const Item &item : of.items)
        if (const auto *e = std::get_if<Equation>(&item.value))
          named[e->name] = e;
    }
    std::map<std::string, const Equation *> named;
    std::map<TensorId, int> uses;
  };

  /// Cuts the same kernels out of a program for other sizes.
  static void recut(Plan &own, const ExprProgram &sized) {
    const Equations equations(sized);
    Plan cut;
    std::map<Hash128, int> signatures;
    for (const PlanStep &step : own.steps) {
      if (step.kind == PlanStep::Kind::Size) { // a test of the data
        cut.steps.push_back(step);
        continue;
      }
      Group group;
      for (const std::string &name : step.equations)
        group.equations.push_back(equations.named.at(name));
      group.phaseStarts = own.patterns[static_cast<size_t>(step.pattern)].phaseStarts;
      cut.steps.push_back(launchStep(sized, group, equations.uses, cut, signatures));
    }
    own.steps = std::move(cut.steps);
    own.patterns = std::move(cut.patterns);
  }

  /// Seconds of a plan's kernels at these sizes, each with the best schedule that it has for them.
  Result<double> secondsOf(const Plan &present, const ExprProgram &sized) {
    const Equations equations(sized);
    double sum = 0;
    for (const PlanStep &step : present.steps) {
      if (step.kind == PlanStep::Kind::Size)
        continue;
      const std::vector<int> &starts =
          present.patterns[static_cast<size_t>(step.pattern)].phaseStarts;
      Group phase;
      for (size_t e = 0; e < step.equations.size(); ++e) {
        phase.equations.push_back(equations.named.at(step.equations[e]));
        const bool isLast = e + 1 == step.equations.size();
        if (!isLast && std::ranges::count(starts, static_cast<int>(e) + 1) == 0)
          continue;
        Plan cut;
        std::map<Hash128, int> signatures;
        launchStep(sized, phase, equations.uses, cut, signatures);
        FUSEC_TRY(const KernelTime time, oracle.best(cut.patterns[0]));
        sum += time.seconds < 0 ? kNever : time.seconds;
        if (!isLast)
          sum -= cost::savedByPhase(target);
        phase.equations.clear();
      }
    }
    return sum;
  }

  /// Seconds of a plan's kernels at these values of the symbols, as they are for all sizes.
  Result<double> secondsRun(const Plan &present, const std::vector<int64_t> &symbols) {
    std::map<int, double> known; // by pattern
    double sum = 0;
    for (const PlanStep &step : present.steps) {
      if (step.kind == PlanStep::Kind::Size)
        continue;
      const auto [at, isNew] = known.emplace(step.pattern, 0);
      if (isNew) {
        const Pattern &pattern = present.patterns[static_cast<size_t>(step.pattern)];
        FUSEC_TRY(at->second, oracle.sized(pattern, symbols));
      }
      sum += at->second;
    }
    return sum;
  }

  /// A chain of steps, each behind the else of the one in front, with the plan for all other sizes at its end. Patterns
  /// are numbered in the order of the text, as whoever reads it does.
  std::vector<PlanStep> nested(std::vector<Where> wheres) {
    Plan others;
    others.patterns = std::move(plan.patterns);
    others.steps = std::move(plan.steps);
    plan.patterns.clear();
    ExprProgram left = program;
    std::vector<PlanStep> chain;
    for (Where &where : wheres) {
      PlanStep step;
      step.kind = PlanStep::Kind::Where;
      step.name = whereText(where.sizes, program.symbols);
      step.thenSteps = taken(where.plan);
      left = beyond(left, where.sizes);
      step.sizes = std::move(where.sizes);
      chain.push_back(std::move(step));
    }
    recut(others, left);
    std::vector<PlanStep> steps = taken(others);
    for (; !chain.empty(); chain.pop_back()) {
      chain.back().elseSteps = std::move(steps);
      steps = {};
      steps.push_back(std::move(chain.back()));
    }
    return steps;
  }

  /// A plan's steps, with its patterns among those of the whole plan.
  std::vector<PlanStep> taken(Plan &own) {
    for (PlanStep &step : own.steps) {
      if (step.kind == PlanStep::Kind::Size)
        continue;
      Pattern &pattern = own.patterns[static_cast<size_t>(step.pattern)];
      const auto [at, isNew] =
          numbers.emplace(pattern.signature, static_cast<int>(plan.patterns.size()));
      if (isNew)
        plan.patterns.push_back(pattern);
      step.pattern = at->second;
    }
    return std::move(own.steps);
  }

  Plan &plan;
  const ExprProgram &program;
  const Target &target;
  const WhereOracle &oracle;
  const PlanOptions &options;
  std::map<Hash128, int> numbers; // of patterns
};

} // namespace

Status addWherePlans(Plan &plan, const ExprProgram &program, const std::vector<SymbolId> &lengths,
                     const Target &target, const WhereOracle &oracle, const PlanOptions &options) {
  if (!infoOf(options.mode).full || !mayHavePlansBySize(program))
    return success();
  return WherePlanner(plan, program, target, oracle, options).run(lengths);
}

} // namespace fusec
