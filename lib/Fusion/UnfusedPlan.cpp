// A kernel for each equation, in program order: what a plan is compared with.
#include "Fusion/CutPattern.h"

namespace fusec {

namespace {

class Unfused {
public:
  explicit Unfused(const ExprProgram &program) : program(program) {
    for (TensorId t : program.outputs)
      ++uses[t];
    countUses(program.items, uses);
    plan.steps = steps(program.items);
  }
  Plan plan;

private:
  std::vector<PlanStep> steps(const std::vector<Item> &items) {
    std::vector<PlanStep> list;
    for (const Item &item : items) {
      if (const auto *equation = std::get_if<Equation>(&item.value)) {
        list.push_back(launchStep(program, {{equation}, {}}, uses, plan, signatures));
        continue;
      }
      const Control &control = std::get<Control>(item.value);
      list.push_back(controlStep(control));
      list.back().thenSteps = steps(control.thenItems);
      list.back().elseSteps = steps(control.elseItems);
    }
    return list;
  }

  const ExprProgram &program;
  std::map<TensorId, int> uses;
  std::map<Hash128, int> signatures;
};

} // namespace

Plan unfusedPlan(const ExprProgram &program) { return std::move(Unfused(program).plan); }

} // namespace fusec
