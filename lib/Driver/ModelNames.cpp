#include "Driver/ModelNames.h"

#include "Tiling/schedule/BoundSchedule.h"

#include <cctype>

namespace fusec {

namespace {

/// What is known of the longest beginning of `name` that ends at a dot; `rest` gets what is behind it. Null: nothing.
template <typename T>
const T *known(const std::map<std::string, T> &of, const std::string &name, std::string &rest) {
  for (size_t end = name.size(); end != std::string::npos && end > 0;
       end = name.rfind('.', end - 1))
    if (auto it = of.find(name.substr(0, end)); it != of.end()) {
      rest = name.substr(end);
      return &it->second;
    }
  return nullptr;
}

std::string translated(const std::map<std::string, std::string> &names, const std::string &name) {
  std::string rest;
  const std::string *found = known(names, name, rest);
  return found ? *found + rest : name;
}

bool isWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

} // namespace

ModelNames::ModelNames(const ExprProgram &program) : program(program) { note(program.items); }

void ModelNames::note(const std::vector<Item> &items) {
  for (const Item &item : items) {
    if (const auto *equation = std::get_if<Equation>(&item.value)) {
      equations[equation->name] = equation;
      nodes[equation->name] = &equation->onnxNodes;
      continue;
    }
    const Control &control = std::get<Control>(item.value);
    nodes[control.name] = &control.onnxNodes;
    note(control.thenItems);
    note(control.elseItems);
  }
}

void ModelNames::find(const Equation &theirs, const Equation &own, const ExprProgram &pattern,
                      Found &found) const {
  found.equations[theirs.name] = own.name;
  found.onnxNodes[theirs.name] = own.onnxNodes;
  auto note = [&](TensorId of, TensorId model) {
    if (of >= 0 && model >= 0)
      found.tensors[pattern.tensors[of].name] = program.tensors[model].name;
  };
  for (size_t o = 0; o < own.outputs.size(); ++o)
    note(theirs.outputs[o], own.outputs[o]);
  for (size_t c = 0; c < own.carries.size(); ++c) {
    note(theirs.carries[c].previous, own.carries[c].previous);
    note(theirs.carries[c].next, own.carries[c].next);
  }
  for (size_t i = 0; i < own.scanBody.size(); ++i)
    find(theirs.scanBody[i], own.scanBody[i], pattern, found);
}

ScheduleNames ModelNames::of(const PlanStep &launch, const Pattern &pattern,
                             const Schedule &schedule) const {
  Found found;
  for (size_t a = 0; a < launch.arguments.size(); ++a)
    found.tensors[pattern.program.tensors[argumentOf(pattern, a)].name] =
        program.tensors[launch.arguments[a]].name;
  for (size_t e = 0; e < launch.equations.size(); ++e)
    find(std::get<Equation>(pattern.program.items[e].value), *equations.at(launch.equations[e]),
         pattern.program, found);
  ScheduleNames out;
  const tiling::ScheduledProgram scheduled(pattern.program, schedule.via);
  for (const Equation *e : scheduled.equations) {
    std::string rest;
    const std::vector<std::string> *nodes = known(found.onnxNodes, e->name, rest);
    out.equations.push_back(
        {translated(found.equations, e->name), nodes ? *nodes : std::vector<std::string>()});
  }
  for (const Tensor &tensor : scheduled.expr.tensors)
    out.tensors.push_back(translated(found.tensors, tensor.name));
  return out;
}

std::string ModelNames::withNames(std::string text, const std::vector<Rewrite> &via,
                                  const PlanStep &launch, const Pattern &pattern) const {
  Schedule before;
  size_t at = 0;
  for (const Rewrite &rewrite : via) {
    const std::string told = print(rewrite).substr(rewrite.alternative.size());
    if (rewrite.count > 0 && (at = text.find(told, at)) != std::string::npos) {
      const ScheduleNames names = of(launch, pattern, before);
      const auto first = names.equations.begin() + rewrite.first;
      const std::string named = told.substr(0, told.rfind(" of ")) + " of " + first->name + " to " +
                                first[rewrite.count - 1].name;
      text.replace(at, told.size(), named);
      at += named.size();
    }
    before.via.push_back(rewrite);
  }
  return text;
}

std::string ScheduleNames::comments(const Schedule &schedule, const ExprProgram &pattern) const {
  const tiling::ScheduledProgram scheduled(pattern, schedule.via);
  const std::vector<const Equation *> &list = scheduled.equations;
  std::string out;
  for (size_t e = 0; e < list.size(); ++e) {
    out += "# e" + std::to_string(e) + " = " + nameToText(equations[e].name);
    for (TensorId t : list[e]->outputs)
      out += ", " + nameToText(scheduled.expr.tensors[t].name) + " = " + nameToText(tensors[t]);
    out += "\n";
  }
  return out;
}

std::string ScheduleNames::inserted(const std::string &text) const {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && isWord(text[end]))
      ++end;
    const std::string word = text.substr(at, std::max<size_t>(end - at, 1));
    at += word.size();
    out += word;
    const bool isNumbered = word.size() > 1 && word.size() < 8 && word[0] == 'e' &&
                            word.find_first_not_of("0123456789", 1) == std::string::npos;
    const size_t e = isNumbered ? std::stoul(word.substr(1)) : equations.size();
    if (e >= equations.size())
      continue;
    out += " (" + equations[e].name;
    for (const std::string &node : equations[e].onnxNodes)
      out += (&node == equations[e].onnxNodes.data() ? ", ONNX nodes " : ", ") + node;
    out += ")";
  }
  return out;
}

std::vector<const PlanStep *> firstLaunches(const Plan &plan) {
  std::vector<const PlanStep *> first(plan.patterns.size(), nullptr);
  std::function<void(const std::vector<PlanStep> &)> visit =
      [&](const std::vector<PlanStep> &steps) {
        for (const PlanStep &step : steps) {
          if (step.kind == PlanStep::Kind::Launch && !first[static_cast<size_t>(step.pattern)])
            first[static_cast<size_t>(step.pattern)] = &step;
          visit(step.thenSteps);
          visit(step.elseSteps);
        }
      };
  visit(plan.steps);
  return first;
}

TensorId argumentOf(const Pattern &pattern, size_t position) {
  const std::vector<TensorId> &inputs = pattern.program.inputs;
  return position < inputs.size() ? inputs[position]
                                  : pattern.program.outputs[position - inputs.size()];
}

} // namespace fusec
