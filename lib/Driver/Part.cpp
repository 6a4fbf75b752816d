#include "Driver/Part.h"

#include "Driver/Decisions.h"

#include <algorithm>
#include <set>

namespace fusec {

namespace {

using Names = std::vector<std::string>;

bool contains(const Names &list, const std::string &name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

/// Leaves nodes with one of these names, and those around them.
void filter(Region &region, const Names &names) {
  std::erase_if(region.nodes, [&](Node &node) {
    if (contains(names, node.name))
      return false;
    bool isEmpty = true;
    for (Region &inner : node.regions) {
      filter(inner, names);
      isEmpty &= inner.nodes.empty();
    }
    return isEmpty;
  });
}

void noteUses(const Region &region, std::set<ValueId> &used) {
  for (const Node &node : region.nodes) {
    used.insert(node.inputs.begin(), node.inputs.end());
    for (const Region &inner : node.regions) {
      used.insert(inner.outputs.begin(), inner.outputs.end());
      noteUses(inner, used);
    }
  }
}

/// Leaves equations that `wanted` has, and the control flow around them.
void filter(std::vector<Item> &items, const std::function<bool(const Item &)> &wanted) {
  std::erase_if(items, [&](Item &item) {
    if (wanted(item))
      return false;
    auto *control = std::get_if<Control>(&item.value);
    if (!control)
      return true;
    filter(control->thenItems, wanted);
    filter(control->elseItems, wanted);
    return control->thenItems.empty() && control->elseItems.empty();
  });
}

void filter(std::vector<PlanStep> &steps, const std::function<bool(const PlanStep &)> &wanted) {
  std::erase_if(steps, [&](PlanStep &step) {
    if (step.kind == PlanStep::Kind::Launch)
      return !wanted(step);
    filter(step.thenSteps, wanted);
    filter(step.elseSteps, wanted);
    return step.thenSteps.empty() && step.elseSteps.empty();
  });
}

void forEachLaunch(const std::vector<PlanStep> &steps,
                   const std::function<void(const PlanStep &)> &visit) {
  for (const PlanStep &step : steps) {
    if (step.kind == PlanStep::Kind::Launch)
      visit(step);
    forEachLaunch(step.thenSteps, visit);
    forEachLaunch(step.elseSteps, visit);
  }
}

/// The lines of an expr text but for tensors that its equations do not name, and the program's own interface.
std::string withoutOtherTensors(const std::string &text) {
  std::vector<std::string_view> lines;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    lines.push_back(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  auto is = [](std::string_view line, std::string_view word) { return line.starts_with(word); };
  std::string equations, out;
  for (std::string_view line : lines)
    if (!is(line, "tensor ") && !is(line, "inputs ") && !is(line, "outputs "))
      equations += line;
  auto named = [&](std::string_view tensor) {
    for (size_t at = equations.find(tensor); at != std::string::npos;
         at = equations.find(tensor, at + 1)) {
      const size_t end = at + tensor.size();
      const char next = end < equations.size() ? equations[end] : '\n';
      if (!std::isalnum(static_cast<unsigned char>(next)) && next != '_' && next != '.')
        return true;
    }
    return false;
  };
  for (std::string_view line : lines) {
    if (is(line, "inputs ") || is(line, "outputs "))
      continue;
    const size_t begin = std::string_view("tensor ").size();
    if (!is(line, "tensor ") || named(line.substr(begin, line.rfind(": ", line.find('[')) - begin)))
      out += line;
  }
  return out;
}

std::string section(std::string_view what, const std::string &target, const std::string &text) {
  return "=== " + std::string(what) + (target.empty() ? "" : " " + target) + "\n" + text;
}

} // namespace

std::string nodesText(const GirKernel &kernel) {
  std::string text;
  for (const std::string &node : kernel.onnxNodes)
    text += (text.empty() ? "nodes '" : ", '") + node + "'";
  return text;
}

bool Part::has(const std::vector<std::string> &nodes) const { return contains(nodes, name); }

bool Part::has(const GirKernel &kernel) const {
  // Variants under guards have a number behind their pattern's name.
  return has(kernel.onnxNodes) || kernel.name == name || kernel.name.starts_with(name + "_v");
}

bool Part::hasLaunch(const PlanStep &step, const Plan &plan) const {
  return has(step.onnxNodes) ||
         plan.patterns[static_cast<size_t>(step.pattern)].program.name == name;
}

void Part::noteKernel(const CompileState &state, std::vector<std::string> &nodes,
                      std::vector<std::string> &equations) const {
  for (const TargetState &target : state.targets)
    forEachLaunch(target.plan.steps, [&](const PlanStep &step) {
      if (target.plan.patterns[static_cast<size_t>(step.pattern)].program.name != name)
        return;
      nodes.insert(nodes.end(), step.onnxNodes.begin(), step.onnxNodes.end());
      equations.insert(equations.end(), step.equations.begin(), step.equations.end());
    });
}

std::optional<std::string> Part::ofGraph(const CompileState &state) const {
  Names nodes{name}, equations;
  noteKernel(state, nodes, equations);
  Graph part = state.graph;
  filter(part.body, nodes);
  if (part.body.nodes.empty())
    return std::nullopt;
  std::set<ValueId> used;
  noteUses(part.body, used);
  for (size_t v = 0; v < part.values.size(); ++v)
    if (!used.count(static_cast<ValueId>(v)))
      part.values[v].constant = nullptr;
  ConstantStore store; // takes what is too large to print
  return section("graph", "", print(part, &store));
}

std::optional<std::string> Part::ofEquations(const CompileState &state) const {
  Names nodes, equations;
  noteKernel(state, nodes, equations);
  std::optional<std::string> text;
  auto add = [&](ExprProgram part, const std::string &target) {
    filter(part.items, [&](const Item &item) {
      if (const auto *equation = std::get_if<Equation>(&item.value))
        return has(equation->onnxNodes) || contains(equations, equation->name);
      return has(std::get<Control>(item.value).onnxNodes);
    });
    if (part.items.empty())
      return;
    ConstantStore store;
    text = text.value_or("") + section("expr", target, withoutOtherTensors(print(part, &store)));
  };
  add(state.program, "");
  for (const TargetState &target : state.targets) // what its plan names
    if (target.ownProgram)
      add(*target.ownProgram, target.target.name);
  return text;
}

std::optional<std::string> Part::ofTarget(Stage stage, const CompileState &state,
                                          const TargetState &target) const {
  const std::string &targetName = target.target.name;
  if (stage == Stage::Gir) {
    std::string text;
    for (const GirKernel &kernel : kernelsOf(target))
      text += print(kernel);
    if (text.empty())
      return std::nullopt;
    return section("gir", targetName, text);
  }
  std::set<int> patterns;
  std::set<std::string> equations;
  forEachLaunch(target.plan.steps, [&](const PlanStep &step) {
    if (!hasLaunch(step, target.plan))
      return;
    patterns.insert(step.pattern);
    equations.insert(step.equations.begin(), step.equations.end());
  });
  if (patterns.empty())
    return std::nullopt;
  if (stage == Stage::Schedule)
    return section("schedules", targetName, printSchedules(target, state.program, [&](size_t p) {
                     return patterns.count(static_cast<int>(p)) != 0;
                   }));
  Plan part = target.plan;
  filter(part.steps, [&](const PlanStep &step) { return hasLaunch(step, part); });
  std::erase_if(part.crossKernelValues, [&](const CrossKernelValue &a) {
    return !equations.count(a.producer) && !equations.count(a.consumer);
  });
  std::string kernels;
  for (int p : patterns)
    kernels += "# kernel " + part.patterns[static_cast<size_t>(p)].program.name + "\n";
  return section("plan", targetName, kernels + print(part, programOf(state.program, target)));
}

std::optional<std::string> Part::dump(Stage stage, const CompileState &state) const {
  std::optional<std::string> text;
  if (stage == Stage::Graph) {
    text = ofGraph(state);
  } else if (stage == Stage::Expr) {
    text = ofEquations(state);
  } else {
    for (const TargetState &target : state.targets)
      if (std::optional<std::string> own = ofTarget(stage, state, target))
        text = text.value_or("") + *own;
  }
  if (text)
    text = "# part of a fusec dump of " + std::string(fusec::name(stage)) + ": '" + name + "'\n" +
           *text;
  return text;
}

std::vector<GirKernel> Part::kernelsOf(const TargetState &target) const {
  std::vector<GirKernel> kernels;
  for (const GirKernel &kernel : target.gir.kernels)
    if (has(kernel))
      kernels.push_back(kernel);
  return kernels;
}

} // namespace fusec
