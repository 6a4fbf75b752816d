#include "Fusion/CutPattern.h"
#include "Support/Diag.h"
#include "Support/TypeText.h"
#include "Support/UniqueNames.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace fusec {

namespace {

constexpr int kMaxDepth = 64; // of branches and loops: their readers recurse
constexpr std::string_view kWords[] = {"if", "loop", "size"}; // by Control::Kind

PlanStep::Kind stepKind(const Control &control) {
  constexpr PlanStep::Kind kKinds[] = {PlanStep::Kind::If, PlanStep::Kind::Loop,
                                       PlanStep::Kind::Size};
  return kKinds[static_cast<size_t>(control.kind)];
}

void printSteps(const Plan &plan, const std::vector<PlanStep> &steps, int indent,
                std::string &out) {
  for (const PlanStep &step : steps) {
    out.append(indent * 2, ' ');
    if (step.kind == PlanStep::Kind::Launch) {
      out += "launch {";
      const std::vector<int> &starts = plan.patterns[step.pattern].phaseStarts;
      for (size_t e = 0; e < step.equations.size(); ++e)
        out += (std::count(starts.begin(), starts.end(), static_cast<int>(e)) ? " | " : " ") +
               nameToText(step.equations[e]);
      out += " }";
      for (const std::string &node : step.onnxNodes)
        out += (&node == step.onnxNodes.data() ? " # " : ", ") + nameToText(node);
      out += "\n";
      continue;
    }
    if (step.kind == PlanStep::Kind::Size) {
      out += "size " + nameToText(step.name) + "\n";
      continue;
    }
    out += (step.kind == PlanStep::Kind::Where ? "where " + step.name
            : step.kind == PlanStep::Kind::If  ? "if " + nameToText(step.name)
                                               : "loop " + nameToText(step.name)) +
           " {\n";
    printSteps(plan, step.thenSteps, indent + 1, out);
    out.append(indent * 2, ' ');
    out += "} else {\n";
    printSteps(plan, step.elseSteps, indent + 1, out);
    out.append(indent * 2, ' ');
    out += "}\n";
  }
}

/// The text of an `apart` line, without its check.
std::string apartText(const CrossKernelValue &value, const ExprProgram &program) {
  return "apart %" + nameToText(program.tensors[value.tensor].name) + " from " +
         nameToText(value.producer) + " to " + nameToText(value.consumer) + " " +
         quoted(value.reason);
}

/// Tells that the search gave the line: no replay can find its reason again.
std::string checkOf(const std::string &apartText) {
  constexpr size_t kDigits = 8;
  return hash128(apartText).hex().substr(0, kDigits);
}

/// Equations and control items of all lists by name.
struct Index {
  std::map<std::string, const Equation *> equations;
  std::map<std::string, const Control *> controls;
  std::map<TensorId, int> uses;
  std::map<std::string, TensorId> tensors; // by name; only where the parser asks

  void add(const std::vector<Item> &items) {
    for (const Item &item : items) {
      if (const auto *equation = std::get_if<Equation>(&item.value)) {
        equations[equation->name] = equation;
        for (TensorId t : tensorsRead(*equation))
          ++uses[t];
        continue;
      }
      const Control &control = std::get<Control>(item.value);
      controls[control.name] = &control;
      for (TensorId t : controlReads(control))
        ++uses[t];
      add(control.thenItems);
      add(control.elseItems);
    }
  }
};

class Parser {
public:
  Parser(TextReader &in, const ExprProgram &program)
      : in(in), program(&program), index(indexOf(program)) {}

  Result<Plan> parse() {
    FUSEC_CHECK(in.expect("plan"));
    FUSEC_CHECK(in.expect("{"));
    FUSEC_TRY(plan.steps, parseSteps(0));
    while (in.accept("apart"))
      FUSEC_CHECK(parseApart());
    plan.crossKernelValues = valuesBetween(
        plan, *program, [&](TensorId t, const Equation &producer, const Equation &consumer) {
          auto it = reasons.find({t, producer.name, consumer.name});
          return it == reasons.end() ? std::string(kNoReason) : it->second;
        });
    return std::move(plan);
  }

private:
  static Index indexOf(const ExprProgram &program) {
    Index index;
    index.add(program.items);
    for (TensorId t : program.outputs)
      ++index.uses[t];
    for (size_t t = 0; t < program.tensors.size(); ++t)
      index.tensors[program.tensors[t].name] = static_cast<TensorId>(t);
    return index;
  }

  Result<std::vector<PlanStep>> parseSteps(int depth) {
    if (depth > kMaxDepth)
      return in.error("steps are nested more than " + std::to_string(kMaxDepth) + " deep");
    std::vector<PlanStep> steps;
    while (!in.accept("}")) {
      if (in.accept("launch")) {
        FUSEC_TRY(PlanStep step, parseLaunch());
        steps.push_back(std::move(step));
        continue;
      }
      if (in.accept("where")) {
        FUSEC_TRY(PlanStep step, parseWhere(depth));
        steps.push_back(std::move(step));
        continue;
      }
      FUSEC_TRY(std::string word, in.identifier());
      const auto kind = std::find(std::begin(kWords), std::end(kWords), word);
      if (kind == std::end(kWords))
        return in.error("expected launch, where, if, loop, size or '}', not '" + word + "'");
      FUSEC_TRY(std::string name, in.nameText());
      auto it = index.controls.find(name);
      if (it == index.controls.end())
        return in.error("no control item is named '" + name + "'");
      if (std::string_view given = kWords[static_cast<size_t>(it->second->kind)]; given != word)
        return in.error("'" + name + "' is " + (given == "if" ? "an " : "a ") + std::string(given) +
                        ", no " + word);
      PlanStep step = controlStep(*it->second);
      if (step.kind == PlanStep::Kind::Size) {
        steps.push_back(std::move(step));
        continue;
      }
      FUSEC_CHECK(in.expect("{"));
      FUSEC_TRY(step.thenSteps, parseSteps(depth + 1));
      FUSEC_CHECK(in.expect("else"));
      FUSEC_CHECK(in.expect("{"));
      FUSEC_TRY(step.elseSteps, parseSteps(depth + 1));
      steps.push_back(std::move(step));
    }
    return steps;
  }

  Result<PlanStep> parseWhere(int depth) {
    PlanStep step;
    step.kind = PlanStep::Kind::Where;
    do {
      FUSEC_TRY(const std::string name, in.nameText());
      const std::optional<SymbolId> symbol = symbolNamed(name, program->symbols);
      if (!symbol)
        return in.error("no symbol is named '" + name + "'");
      SizeLimit limit{*symbol, 1, 1};
      FUSEC_CHECK(in.expect("="));
      FUSEC_TRY(limit.least, in.integer());
      limit.most = limit.least;
      if (in.accept("..")) {
        FUSEC_TRY(limit.most, in.integer());
      }
      step.sizes.push_back(limit);
    } while (in.accept(","));
    step.name = whereText(step.sizes, program->symbols);
    const std::optional<ExprProgram> sized = within(*program, step.sizes);
    if (!sized)
      return in.error("expected sizes that equations may have, found " + step.name);
    FUSEC_CHECK(in.expect("{"));
    FUSEC_TRY(step.thenSteps, parseStepsOf(*sized, depth + 1));
    FUSEC_CHECK(in.expect("else"));
    FUSEC_CHECK(in.expect("{"));
    FUSEC_TRY(step.elseSteps, parseStepsOf(beyond(*program, step.sizes), depth + 1));
    return step;
  }

  Result<std::vector<PlanStep>> parseStepsOf(const ExprProgram &sized, int depth) {
    const ExprProgram *all = std::exchange(program, &sized);
    Index ofAll = std::exchange(index, indexOf(sized));
    FUSEC_TRY(std::vector<PlanStep> steps, parseSteps(depth));
    program = all;
    index = std::move(ofAll);
    return steps;
  }

  Result<PlanStep> parseLaunch() {
    Group group;
    FUSEC_CHECK(in.expect("{"));
    while (!in.accept("}")) {
      if (in.accept("|")) {
        group.phaseStarts.push_back(static_cast<int>(group.equations.size()));
        if (in.peekIs("|") || in.peekIs("}") || group.phaseStarts.back() == 0)
          return in.error("every phase has an equation");
      }
      FUSEC_TRY(std::string name, in.nameText());
      auto it = index.equations.find(name);
      if (it == index.equations.end())
        return in.error("no equation is named '" + name + "'");
      group.equations.push_back(it->second);
    }
    if (group.equations.empty())
      return in.error("a launch has an equation");
    return launchStep(*program, group, index.uses, plan, signatures);
  }

  Status parseApart() {
    CrossKernelValue value;
    FUSEC_CHECK(in.expect("%"));
    FUSEC_TRY(std::string tensor, in.nameText());
    auto it = index.tensors.find(tensor);
    if (it == index.tensors.end())
      return in.error("no tensor is named '" + tensor + "'");
    value.tensor = it->second;
    FUSEC_CHECK(in.expect("from"));
    FUSEC_TRY(value.producer, in.nameText());
    FUSEC_CHECK(in.expect("to"));
    FUSEC_TRY(value.consumer, in.nameText());
    for (const std::string &end : {value.producer, value.consumer})
      if (!index.equations.count(end) && !index.controls.count(end))
        return in.error("no equation or control item is named '" + end + "'");
    FUSEC_TRY(value.reason, in.string());
    std::string check;
    if (in.accept("check")) {
      FUSEC_TRY(check, in.string());
    }
    if (check == checkOf(apartText(value, *program)))
      reasons[{value.tensor, value.producer, value.consumer}] = value.reason;
    return success();
  }

  TextReader &in;
  const ExprProgram *program; // that the steps at hand cut
  Index index;                // of it
  Plan plan;
  std::map<std::tuple<TensorId, std::string, std::string>, std::string>
      reasons; // of CrossKernelValue's ends
  std::map<Hash128, int> signatures;
};

/// Compares a plan's steps with the program's items, list by list: a branch's launches are its own.
class StepVerifier {
public:
  explicit StepVerifier(const ExprProgram &program) : program(program) {
    for (size_t t = 0; t < program.tensors.size(); ++t)
      if (program.tensors[t].kind == TensorKind::Input ||
          program.tensors[t].kind == TensorKind::Constant)
        known.insert(static_cast<TensorId>(t));
  }

  /// `where` is the list's place in words: "the plan", "the body of NAME".
  Status verify(const std::vector<PlanStep> &steps, const std::vector<Item> &items,
                const std::string &where) {
    if (steps.size() == 1 && steps[0].kind == PlanStep::Kind::Where && &items == &program.items)
      return verifyWhere(steps[0], where);
    std::map<std::string, const Equation *> equations;
    std::map<std::string, const Control *> controls;
    for (const Item &item : items)
      if (const auto *equation = std::get_if<Equation>(&item.value))
        equations[equation->name] = equation;
      else
        controls[std::get<Control>(item.value).name] = &std::get<Control>(item.value);
    for (const PlanStep &step : steps) {
      if (step.kind == PlanStep::Kind::Launch) {
        FUSEC_CHECK(verifyLaunch(step, equations, where));
        continue;
      }
      if (step.kind == PlanStep::Kind::Where)
        return error("where " + step.name, "it is the only step of a plan, given more");
      auto it = controls.find(step.name);
      if (it == controls.end())
        return error(step.name, "it is no control item of " + where + ", or stands there twice");
      const Control &control = *it->second;
      controls.erase(it);
      if (step.kind != stepKind(control))
        return error(step.name, "it is of another kind");
      if (control.kind == Control::Kind::Size)
        sized.insert(control.symbol);
      for (TensorId t : {control.condition, control.tripCount})
        if (t >= 0 && !known.count(t))
          return error(step.name, "it " + tooEarly(t));
      for (TensorId t : control.carriedInit)
        if (!known.count(t))
          return error(step.name, "it " + tooEarly(t));
      known.insert(control.carriedIn.begin(), control.carriedIn.end());
      known.insert(control.iteration);
      const bool isIf = control.kind == Control::Kind::If;
      FUSEC_CHECK(verify(step.thenSteps, control.thenItems,
                         (isIf ? "the then part of " : "the body of ") + step.name));
      FUSEC_CHECK(verify(step.elseSteps, control.elseItems, "the else part of " + step.name));
      known.insert(control.results.begin(), control.results.end());
    }
    if (!equations.empty())
      return Diagnostic{Diag::BadIr, "plan",
                        "equation " + equations.begin()->first + " is in no launch of " + where};
    if (!controls.empty())
      return Diagnostic{Diag::BadIr, "plan",
                        "control item " + controls.begin()->first + " is missing in " + where};
    return success();
  }

private:
  Status verifyWhere(const PlanStep &step, const std::string &where) {
    const std::optional<ExprProgram> sized = within(program, step.sizes);
    if (!sized || !mayHavePlansBySize(program))
      return error("where " + step.name,
                   "it is for sizes that equations may have, in a program without branches, loops "
                   "and sizes of the data");
    FUSEC_CHECK(
        StepVerifier(*sized).verify(step.thenSteps, sized->items, where + " where " + step.name));
    const ExprProgram others = beyond(program, step.sizes);
    return StepVerifier(others).verify(step.elseSteps, others.items, where);
  }

  static Diagnostic error(const std::string &who, const std::string &text) {
    return {Diag::BadIr, "plan: " + who, text};
  }

  /// By all its equations, or where these are many by the first and the last.
  static std::string launchInWords(const PlanStep &step) {
    constexpr size_t kMostNames = 4;
    const size_t count = step.equations.size();
    if (count <= kMostNames)
      return "launch of " + step.name;
    return "launch of " + step.equations.front() + " to " + step.equations.back() + ", " +
           std::to_string(count) + " equations";
  }

  std::string tooEarly(TensorId tensor) const {
    return "reads %" + program.tensors[tensor].name + " before it is made";
  }

  Status verifyLaunch(const PlanStep &step, std::map<std::string, const Equation *> &left,
                      const std::string &where) {
    for (const std::string &name : step.equations) {
      auto it = left.find(name);
      if (it == left.end())
        return error(launchInWords(step),
                     "equation " + name +
                         (launched.count(name) ? " is launched twice" : " is none of " + where));
      launched.insert(name);
      for (TensorId t : tensorsRead(*it->second))
        if (!known.count(t))
          return error(launchInWords(step), "equation " + name + " " + tooEarly(t));
      std::vector<SymbolId> sizes;
      collectSymbols(*it->second, sizes);
      for (SymbolId s : sizes)
        if (program.symbols[s].isDataDependent() && !sized.count(s))
          return error(launchInWords(step), "equation " + name + " uses the size '" +
                                                program.symbols[s].name + "' before it is known");
      for (TensorId t : tensorsWritten(*it->second))
        known.insert(t);
      left.erase(it);
    }
    return success();
  }

  const ExprProgram &program;
  std::set<TensorId> known;
  std::set<SymbolId> sized; // symbols that depend on data and have a value
  std::set<std::string> launched;
};

} // namespace

bool mayHavePlansBySize(const ExprProgram &program) {
  return std::ranges::all_of(program.items, [&](const Item &item) {
    const auto *control = std::get_if<Control>(&item.value);
    return !control || testsData(*control, program.symbols);
  });
}

std::vector<SizedPlan> plansBySize(const Plan &plan) {
  std::vector<SizedPlan> list;
  const std::vector<PlanStep> *steps = &plan.steps;
  while (steps->size() == 1 && steps->front().kind == PlanStep::Kind::Where) {
    const PlanStep &where = steps->front();
    list.push_back({where.sizes, where.name, &where.thenSteps});
    steps = &where.elseSteps;
  }
  list.push_back({{}, "", steps});
  return list;
}

SizedPlan planAt(const Plan &plan, const std::vector<int64_t> &symbols) {
  const std::vector<SizedPlan> list = plansBySize(plan);
  return *std::ranges::find_if(list,
                               [&](const SizedPlan &p) { return allAllow(p.sizes, symbols); });
}

std::vector<TensorId> controlReads(const Control &c) {
  std::vector<TensorId> reads = {c.condition, c.tripCount, c.nextCondition};
  for (const auto *list : {&c.thenYields, &c.elseYields, &c.carriedInit, &c.carriedOut})
    reads.insert(reads.end(), list->begin(), list->end());
  std::erase(reads, -1);
  return reads;
}

PlanStep controlStep(const Control &control) {
  PlanStep step;
  step.kind = stepKind(control);
  step.name = control.name;
  step.onnxNodes = control.onnxNodes;
  step.control = control;
  step.control.thenItems.clear();
  step.control.elseItems.clear();
  return step;
}

PlanStep launchStep(const ExprProgram &program, const Group &group,
                    const std::map<TensorId, int> &uses, Plan &plan,
                    std::map<Hash128, int> &signatures) {
  PlanStep step;
  UniqueNames nodes;
  std::map<TensorId, int> inside; // equations of the group that read a tensor
  for (const Equation *e : group.equations) {
    step.name += (step.name.empty() ? "" : "+") + e->name;
    step.equations.push_back(e->name);
    nodes.add(e->onnxNodes);
    for (TensorId t : tensorsRead(*e))
      ++inside[t];
  }
  step.onnxNodes = nodes.names();
  const auto isUsedOutside = [&](TensorId t) {
    auto all = uses.find(t);
    return all != uses.end() && all->second > inside[t];
  };
  Pattern pattern = cutPattern(program, group, isUsedOutside, step.arguments);
  auto [it, isNew] = signatures.emplace(pattern.signature, static_cast<int>(plan.patterns.size()));
  if (isNew)
    plan.patterns.push_back(std::move(pattern));
  step.pattern = it->second;
  return step;
}

std::string print(const Plan &plan, const ExprProgram &program) {
  std::string out;
  for (const SharedCopy &copy : plan.copies) {
    out += "copy " + nameToText(copy.name) + " for {";
    for (const std::string &reader : copy.readers)
      out += " " + nameToText(reader);
    out += " }\n";
  }
  out += "plan {\n";
  printSteps(plan, plan.steps, 1, out);
  out += "}\n";
  for (const CrossKernelValue &value : plan.crossKernelValues) {
    const std::string text = apartText(value, program);
    out += text + " check " + quoted(checkOf(text)) + "\n";
  }
  return out;
}

Result<std::vector<SharedCopy>> parseCopies(TextReader &in) {
  std::vector<SharedCopy> copies;
  while (in.accept("copy")) {
    SharedCopy &copy = copies.emplace_back();
    FUSEC_TRY(copy.name, in.nameText());
    FUSEC_CHECK(in.expect("for"));
    FUSEC_CHECK(in.expect("{"));
    while (!in.accept("}")) {
      FUSEC_TRY(copy.readers.emplace_back(), in.nameText());
    }
  }
  return copies;
}

Result<Plan> parsePlan(TextReader &in, const ExprProgram &program) {
  return Parser(in, program).parse();
}

Status verify(const Plan &plan, const ExprProgram &program) {
  return StepVerifier(program).verify(plan.steps, program.items, "the plan");
}

} // namespace fusec
