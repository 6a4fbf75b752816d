// Whether a value that several equations read at places that lie apart is brought into order once, by a kernel of its
// own or of what makes it, or by each of them: the accurate model weighs each reader as it is, copies of its own
// included, and reading the copy. What pays so is only proposed: the program is planned with it and without.
#include "Fusion/ShareCopies.h"

#include "Fusion/CutPattern.h"

#include <algorithm>
#include <map>
#include <set>

namespace fusec {

namespace {

class Weigher {
public:
  /// `most`: what `evaluations` may become.
  Weigher(const ScheduleOracle &oracle, int64_t &evaluations, int64_t most)
      : oracle(oracle), evaluations(evaluations), most(most) {}

  /// Seconds of the equation as a kernel of its own; negative if no kernel runs it or no evaluation is left.
  Result<double> seconds(const ExprProgram &program, const Equation &equation) {
    std::vector<TensorId> arguments;
    const Pattern pattern =
        cutPattern(program, {{&equation}, {}}, [](TensorId) { return true; }, arguments);
    auto [it, isNew] = known.try_emplace(pattern.signature, -1);
    if (isNew && evaluations < most) {
      ++evaluations;
      FUSEC_TRY(const KernelTime time, oracle(pattern));
      it->second = time.seconds;
    }
    return it->second;
  }

private:
  const ScheduleOracle &oracle;
  int64_t &evaluations;
  const int64_t most;
  std::map<Hash128, double> known;
};

void noteEquations(const std::vector<Item> &items, std::map<std::string, const Equation *> &found) {
  for (const Item &item : items)
    if (const auto *equation = std::get_if<Equation>(&item.value)) {
      found[equation->name] = equation;
    } else {
      noteEquations(std::get<Control>(item.value).thenItems, found);
      noteEquations(std::get<Control>(item.value).elseItems, found);
    }
}

/// Copies that save their readers, each alone, more than they take, with those readers. `evaluations`: adds the kernels
/// that the accurate model was asked for, up to `most`.
Result<std::vector<SharedCopy>> copiesThatPay(const ExprProgram &program,
                                              const ScheduleOracle &oracle, int64_t &evaluations,
                                              int64_t most) {
  std::vector<SharedCopy> paying;
  const PossibleCopies possible = possibleCopies(program);
  if (possible.copies.empty())
    return paying;
  Weigher weigher(oracle, evaluations, most);
  std::map<std::string, const Equation *> were;
  noteEquations(program.items, were);
  std::set<std::string> taken; // readers of a copy: the first that pays has them
  for (const PossibleCopies::Copy &possibleCopy : possible.copies) {
    FUSEC_TRY(const double own, weigher.seconds(possible.program, possibleCopy.map));
    double saved = 0;
    SharedCopy copy{possibleCopy.copy.name, {}};
    for (const Equation &reader : possibleCopy.readers) {
      if (taken.count(reader.name) != 0)
        continue;
      FUSEC_TRY(const double before, weigher.seconds(program, *were.at(reader.name)));
      FUSEC_TRY(const double after, weigher.seconds(possible.program, reader));
      if (after < 0 || before < 0 || after >= before)
        continue;
      saved += before - after;
      copy.readers.push_back(reader.name);
    }
    if (own < 0 || saved <= own)
      continue;
    taken.insert(copy.readers.begin(), copy.readers.end());
    paying.push_back(std::move(copy));
  }
  return paying;
}

size_t countEquations(const std::vector<Item> &items) {
  size_t count = 0;
  for (const Item &item : items) {
    const auto *control = std::get_if<Control>(&item.value);
    count += control ? countEquations(control->thenItems) + countEquations(control->elseItems) : 1;
  }
  return count;
}

int ofEach(int64_t spent, size_t equations) {
  const auto count = static_cast<int64_t>(equations);
  return static_cast<int>((spent + count - 1) / count);
}

} // namespace

Result<Plan> buildPlan(const ExprProgram &program, const Target &target,
                       const ScheduleOracle &oracle, const PlanOptions &options) {
  FUSEC_TRY(Plan plan, planAsIs(program, target, oracle, options));
  const size_t equations = countEquations(program.items);
  if (!infoOf(options.mode).full || equations == 0 || equations > options.limits.allDrafts)
    return plan;
  FUSEC_TRY(std::vector<SharedCopy> copies,
            copiesThatPay(program, oracle, plan.evaluations.accurate,
                          int64_t{options.limits.evaluations} * static_cast<int64_t>(equations)));
  PlanOptions left = options; // of what the models may be asked for
  left.limits.evaluations -= ofEach(plan.evaluations.accurate, equations);
  left.limits.quickEvaluations -= ofEach(plan.evaluations.quick, equations);
  if (copies.empty() || left.limits.evaluations < 1 || left.limits.quickEvaluations < 1)
    return plan;
  FUSEC_TRY(const ExprProgram copied, withSharedCopies(program, copies));
  FUSEC_TRY(Plan shared, planAsIs(copied, target, oracle, left));
  shared.copies = std::move(copies);
  Plan &best = shared.seconds < plan.seconds ? shared : plan;
  best.evaluations.quick = plan.evaluations.quick + shared.evaluations.quick;
  best.evaluations.accurate = plan.evaluations.accurate + shared.evaluations.accurate;
  return std::move(best);
}

} // namespace fusec
