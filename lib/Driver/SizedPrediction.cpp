#include "Driver/SizedPrediction.h"

#include "Support/Diag.h"
#include "Support/NamedText.h"
#include "Support/OptValues.h"
#include "Support/TunedSizes.h"
#include "Support/WholeText.h"
#include "Tiling/counts/Prediction.h"
#include "Tiling/schedule/PointEvaluator.h"
#include "Tiling/search/SizeVariants.h"

#include <algorithm>
#include <map>

namespace fusec {

namespace {

/// Counts the launches of each pattern in a run at some sizes, those in loops and branches once: none of what they rule
/// out, as far as they alone decide what an If or a Loop asks for.
class LaunchesAt {
public:
  LaunchesAt(const Plan &plan, const std::vector<int64_t> &symbols)
      : plan(plan), symbols(symbols), launches(plan.patterns.size(), 0) {}

  std::vector<int> run() {
    count(*planAt(plan, symbols).steps);
    return std::move(launches);
  }

private:
  void count(const std::vector<PlanStep> &steps) {
    for (const PlanStep &step : steps) {
      if (step.kind == PlanStep::Kind::Launch) {
        ++launches[static_cast<size_t>(step.pattern)];
        noteTruths(step);
        continue;
      }
      const auto truth = truths.find(step.control.condition);
      const bool isKnown = truth != truths.end();
      if (!isKnown || truth->second)
        count(step.thenSteps);
      if (!isKnown || !truth->second)
        count(step.elseSteps);
    }
  }

  void noteTruths(const PlanStep &launch) {
    const Pattern &pattern = plan.patterns[static_cast<size_t>(launch.pattern)];
    for (const Item &item : pattern.program.items) {
      const auto &e = std::get<Equation>(item.value);
      if (e.kind != EquationKind::Map || !e.axes.empty())
        continue;
      for (size_t o = 0; o < e.outputs.size(); ++o) {
        const TensorId t = e.outputs[o];
        const std::vector<NodeId> roots = {e.results[o]};
        if (t >= pattern.numArguments || e.body[roots[0]].type != DType::Bool ||
            tiling::readsData(e.body, roots))
          continue;
        tiling::PointEvaluator values(e.body, roots, 1, symbols);
        if (values.at({}, 0))
          truths[launch.arguments[static_cast<size_t>(t)]] = values[roots[0]] != 0;
      }
    }
  }

  const Plan &plan;
  const std::vector<int64_t> &symbols;
  std::vector<int> launches;
  std::map<TensorId, bool> truths; // of the program's tensors
};

} // namespace

SizedPrediction predictAt(const TargetState &target, const std::vector<int64_t> &symbols) {
  SizedPrediction out;
  out.symbols = symbols;
  out.where = planAt(target.plan, symbols).where;
  const std::vector<int> launches = LaunchesAt(target.plan, symbols).run();
  for (size_t p = 0; p < launches.size(); ++p) {
    if (launches[p] == 0)
      continue;
    const ExprProgram &pattern = target.plan.patterns[p].program;
    const std::vector<ScheduleVariant> &variants = target.schedules[p];
    const ScheduleVariant &chosen = variantAt(variants, symbols);
    const ExprProgram sized = scheduledFor(pattern, chosen.schedule, symbols);
    const tiling::ScheduledProgram program(sized);
    const double seconds = predict({chosen.schedule, program}, target.target).seconds;
    out.kernels.push_back(
        {pattern.name, launches[p], static_cast<size_t>(&chosen - variants.data()), seconds});
    out.seconds += launches[p] * seconds;
  }
  return out;
}

Result<std::vector<int64_t>> parseSizes(const std::string &text, const std::vector<Symbol> &symbols,
                                        const std::string &option) {
  std::vector<std::string> names;
  for (const Symbol &s : symbols)
    if (!s.definition) // those come first
      names.push_back(s.name);
  std::vector<Symbol> given = symbols;
  auto bad = [&](const std::string &why) {
    return Diagnostic{Diag::BadOption, option + " " + text, why};
  };
  for (std::string rest = text; !rest.empty();) {
    // A name may hold commas itself.
    const auto parts = splitNamed(rest, names);
    if (!parts)
      return bad("expected NAME=SIZE,NAME=SIZE...");
    const auto &[name, behind] = *parts;
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end())
      return bad("the model has no symbolic dimension '" + name + "'");
    const size_t comma = std::min(behind.find(','), behind.size());
    const Symbol &symbol = symbols[static_cast<size_t>(at - names.begin())];
    const auto size = wholeNumber<int64_t>(behind.substr(0, comma));
    if (!size || *size < symbol.min || *size > symbol.max || *size % symbol.divisor != 0)
      return bad("'" + name + "' is a size of " + std::to_string(symbol.min) + " to " +
                 std::to_string(symbol.max) +
                 (symbol.divisor > 1 ? ", a multiple of " + std::to_string(symbol.divisor) : ""));
    given[static_cast<size_t>(at - names.begin())].opt = *size;
    rest = behind.substr(std::min(comma + 1, behind.size()));
  }
  std::vector<int64_t> values = optValues(given);
  setComputed(symbols, values);
  return values;
}

} // namespace fusec
