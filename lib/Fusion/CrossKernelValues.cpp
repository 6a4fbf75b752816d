// Finds the values that launches of a plan pass to each other, and the reasons why they are not one kernel.
#include "Fusion/CutPattern.h"

namespace fusec {

namespace {

/// An equation or control item, the launch that runs it and the list of items that it stands in.
struct Place {
  const Equation *equation = nullptr;
  const Control *control = nullptr;
  const PlanStep *launch = nullptr;
  const Control *within = nullptr; // null: the program's own list
  int branch = 0;
};

class Finder {
public:
  Finder(const Plan &plan, const ExprProgram &program, const WhyApart &why)
      : program(program), why(why) {
    noteLaunches(plan.steps);
    noteItems(program.items, nullptr, 0);
  }

  std::vector<CrossKernelValue> run() {
    visit(program.items, nullptr, 0);
    return std::move(found);
  }

private:
  void noteLaunches(const std::vector<PlanStep> &steps) {
    for (const PlanStep &step : steps) {
      for (const std::string &name : step.equations)
        launchOf[name] = &step;
      if (step.kind != PlanStep::Kind::Where) // told of the plan for all sizes
        noteLaunches(step.thenSteps);
      noteLaunches(step.elseSteps);
    }
  }

  void noteItems(const std::vector<Item> &items, const Control *within, int branch) {
    for (const Item &item : items) {
      if (const auto *equation = std::get_if<Equation>(&item.value)) {
        auto launch = launchOf.find(equation->name);
        for (TensorId t : tensorsWritten(*equation))
          producerOf[t] = {equation, nullptr, launch == launchOf.end() ? nullptr : launch->second,
                           within, branch};
        continue;
      }
      const Control &control = std::get<Control>(item.value);
      for (TensorId t : control.results)
        producerOf[t] = {nullptr, &control, nullptr, within, branch};
      for (TensorId t : control.carriedIn)
        producerOf[t] = {nullptr, &control, nullptr, within, branch};
      noteItems(control.thenItems, &control, 0);
      noteItems(control.elseItems, &control, 1);
    }
  }

  void visit(const std::vector<Item> &items, const Control *within, int branch) {
    for (const Item &item : items) {
      if (const auto *equation = std::get_if<Equation>(&item.value)) {
        auto launch = launchOf.find(equation->name);
        Place place = {equation, nullptr, launch == launchOf.end() ? nullptr : launch->second,
                       within, branch};
        for (TensorId t : tensorsRead(*equation))
          note(t, place);
        continue;
      }
      const Control &control = std::get<Control>(item.value);
      for (TensorId t : controlReads(control))
        if (auto it = producerOf.find(t); it != producerOf.end() && it->second.within == within)
          note(t, {nullptr, &control, nullptr, within, branch});
      visit(control.thenItems, &control, 0);
      visit(control.elseItems, &control, 1);
    }
  }

  void note(TensorId tensor, const Place &consumer) {
    auto it = producerOf.find(tensor);
    if (it == producerOf.end())
      return; // an input or a constant
    const Place &producer = it->second;
    if (producer.launch && producer.launch == consumer.launch)
      return;
    CrossKernelValue value{tensor, nameOf(producer), nameOf(consumer), ""};
    if (producer.equation && consumer.equation && producer.within == consumer.within &&
        producer.branch == consumer.branch)
      value.reason = why(tensor, *producer.equation, *consumer.equation);
    else if (producer.control)
      value.reason = value.producer + " is a branch or a loop that the host runs";
    else if (consumer.control)
      value.reason = value.consumer + (consumer.control->kind == Control::Kind::Size
                                           ? " is a size that the host reads"
                                           : " is a branch or a loop that the host runs");
    else
      value.reason = (consumer.within ? consumer.within : producer.within)->name +
                     ", a branch or a loop that the host runs, holds one of them only";
    found.push_back(std::move(value));
  }

  static std::string nameOf(const Place &place) {
    return place.equation ? place.equation->name : place.control->name;
  }

  const ExprProgram &program;
  const WhyApart &why;
  std::map<std::string, const PlanStep *> launchOf;
  std::map<TensorId, Place> producerOf;
  std::vector<CrossKernelValue> found;
};

} // namespace

std::vector<CrossKernelValue> valuesBetween(const Plan &plan, const ExprProgram &program,
                                            const WhyApart &why) {
  return Finder(plan, program, why).run();
}

} // namespace fusec
