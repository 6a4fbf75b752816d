// Dump files. The first line names the stage and the targets; sections start with "=== name target". A dump holds all
// that the rest of the pipeline needs: graph and expr one section, plan and schedule the equations and one section a
// target on top, gir one section a target, and the decisions that the bundle tells (none in kernels written by hand).
// Rules of sizes and caches are the last sections, where there are any and they do not stand in the graph.
#include "Driver/Decisions.h"
#include "Driver/Sections.h"
#include "Support/Diag.h"

#include <algorithm>
#include <set>

namespace fusec {

namespace {

constexpr std::string_view kMagic = "# fusec dump ";

std::string section(std::string_view what, std::string_view target, const std::string &text) {
  std::string out = "=== " + std::string(what);
  if (!target.empty())
    out += " " + std::string(target);
  return out + "\n" + text + (text.empty() || text.back() == '\n' ? "" : "\n");
}

Status parseSchedules(TextReader &in, TargetState &state) {
  state.schedules.resize(state.plan.patterns.size());
  while (!in.atEnd())
    FUSEC_CHECK(parseSchedule(in, state));
  return checkSchedules(in, state);
}

/// The list in the first line.
std::vector<std::string> targetsOf(std::string_view text) {
  std::string_view line = text.substr(0, text.find('\n'));
  const size_t space = std::min(line.find(' ', std::min(kMagic.size(), line.size())), line.size());
  std::string_view list = line.substr(std::min(line.size(), space + 1));
  std::vector<std::string> names;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    names.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(list.size(), comma + 1));
  }
  return names;
}

} // namespace

static const std::vector<Symbol> &symbolsOf(Stage stage, const CompileState &state) {
  return stage == Stage::Gir ? state.targets.front().gir.symbols : state.program.symbols;
}

std::string printSchedules(const TargetState &state, const ExprProgram &program,
                           const std::function<bool(size_t pattern)> &wanted) {
  const std::vector<const PlanStep *> first = firstLaunches(state.plan);
  const ModelNames names(programOf(program, state));
  std::string out;
  for (size_t p = 0; p < state.schedules.size(); ++p) {
    if (!wanted(p))
      continue;
    for (const ScheduleVariant &variant : state.schedules[p]) {
      for (const search::Evaluation &e : variant.considered)
        out += "# " + std::string(e.chosen ? "chosen: " : "considered: ") + e.name + ", " +
               floatToText(e.score) + " s\n";
      out += printSchedule(p, variant, state.plan, first[p], names);
    }
  }
  return out;
}

std::string dumpStage(Stage stage, const CompileState &state, ConstantStore *store,
                      bool resumable) {
  std::string out(kMagic);
  out += std::string(name(stage)) + " ";
  for (size_t t = 0; t < state.targets.size(); ++t)
    out += (t ? "," : "") + state.targets[t].target.name;
  out += "\n";
  if (stage == Stage::Graph)
    return out + section("graph", "", print(state.graph, store));
  if (stage != Stage::Gir)
    out += section("expr", "", print(state.program, store));
  for (const TargetState &target : state.targets) {
    if (stage == Stage::Plan || stage == Stage::Schedule)
      out +=
          section("plan", target.target.name, print(target.plan, programOf(state.program, target)));
    if (stage == Stage::Schedule)
      out += section("schedules", target.target.name,
                     printSchedules(target, state.program, [](size_t) { return true; }));
    if (stage == Stage::Gir) {
      if (resumable)
        out += section("decisions", target.target.name, target.decisions);
      out += section("gir", target.target.name, print(target.gir, store));
    }
  }
  if (!state.sizeRules.empty())
    out += section("sizes", "", sizeRulesText(state.sizeRules, symbolsOf(stage, state)));
  if (!state.caches.empty())
    out += section("caches", "", cachesText(state.caches, symbolsOf(stage, state)));
  return out;
}

Status makeOwnProgram(const ExprProgram &program, const std::vector<SharedCopy> &copies,
                      TargetState &target) {
  target.ownProgram =
      target.target.kind == TargetKind::Cpu ? std::nullopt : withoutDataTests(program);
  if (!copies.empty()) {
    FUSEC_TRY(target.ownProgram, withSharedCopies(programOf(program, target), copies));
  }
  return target.ownProgram ? verify(*target.ownProgram) : success();
}

Status readPlan(TextReader &in, const ExprProgram &program, TargetState &target) {
  FUSEC_TRY(std::vector<SharedCopy> copies, parseCopies(in));
  FUSEC_CHECK(makeOwnProgram(program, copies, target));
  FUSEC_TRY(target.plan, parsePlan(in, programOf(program, target)));
  target.plan.copies = std::move(copies);
  return verify(target.plan, programOf(program, target));
}

bool isDump(std::string_view text, Stage &stage) {
  if (text.substr(0, kMagic.size()) != kMagic)
    return false;
  std::string_view rest = text.substr(kMagic.size());
  std::optional<Stage> parsed = parseStage(rest.substr(0, rest.find_first_of(" \n")));
  if (!parsed || *parsed > Stage::Gir)
    return false;
  stage = *parsed;
  return true;
}

Status refuseLateForms(std::string_view text, const std::string &fileName) {
  constexpr struct {
    std::string_view begin, what;
  } kForms[] = {
      {"; ModuleID", "LLVM IR"},
      {"source_filename", "LLVM IR"},
      {"\x7f"
       "ELF",
       "machine code"},
      {"//\n// Generated by LLVM NVPTX", "PTX"},
      {"FUSECBDL", "a bundle, which fusert runs"},
      {"# fusec decisions ", "a file of decisions, which --decisions takes beside a model"},
  };
  for (const auto &form : kForms)
    if (text.substr(0, form.begin.size()) == form.begin)
      return Diagnostic{
          Diag::BadOption, fileName,
          "is " + std::string(form.what) +
              "; expected an ONNX model or a dump of graph, expr, plan, schedule or gir"};
  return success();
}

Status loadDump(std::string_view text, const std::string &fileName,
                const std::vector<Target> &targets, const ConstantStore &store,
                CompileState &state) {
  const std::vector<std::string> ownTargets = targetsOf(text);
  if (targets.empty())
    for (const std::string &name : ownTargets) {
      FUSEC_TRY(Target target, lookupTarget(name));
      state.targets.push_back({std::move(target), {}, {}, {}, {}, {}});
    }
  for (const Target &target : targets)
    state.targets.push_back({target, {}, {}, {}, {}, {}});
  Stage stage = Stage::Graph;
  if (state.targets.empty() || !isDump(text, stage))
    return Diagnostic{Diag::BadIrText, fileName,
                      "the first line of a dump names its stage and its targets"};
  std::set<std::string> found;
  for (const Section &s : splitSections(text)) {
    auto target = std::find_if(state.targets.begin(), state.targets.end(),
                               [&](const TargetState &t) { return t.target.name == s.target; });
    if (!s.target.empty() && target == state.targets.end()) {
      if (std::count(ownTargets.begin(), ownTargets.end(), s.target) == 0)
        return Diagnostic{Diag::BadIrText, fileName,
                          "section '" + s.what + " " + s.target +
                              "' belongs to none of the targets in the first line"};
      continue; // a target that was not asked for
    }
    if (!found.insert(s.what + " " + s.target).second)
      return Diagnostic{Diag::BadIrText, fileName,
                        "section '" + s.what + " " + s.target + "' stands twice"};
    TextReader in(s.text, fileName);
    if (s.what == "graph") {
      FUSEC_TRY(state.graph, parseGraph(s.text, fileName, store));
    } else if (s.what == "expr") {
      FUSEC_TRY(state.program, parseExpr(s.text, fileName, store));
      FUSEC_CHECK(verify(state.program)); // plans cut it, schedules rewrite what they cut
    } else if (s.what == "plan" && !s.target.empty()) {
      FUSEC_CHECK(readPlan(in, state.program, *target));
      target->planWritten = true;
    } else if (s.what == "schedules" && !s.target.empty()) {
      FUSEC_CHECK(parseSchedules(in, *target));
      target->schedulesWritten = true;
    } else if (s.what == "decisions" && !s.target.empty()) {
      target->decisions = s.text;
    } else if (s.what == "gir" && !s.target.empty()) {
      FUSEC_TRY(target->gir, parseGirProgram(in, store));
    } else if (s.what == "sizes") {
      FUSEC_TRY(state.sizeRules, parseSizeRules(in, symbolsOf(stage, state)));
    } else if (s.what == "caches") {
      FUSEC_TRY(state.caches, parseCaches(in, symbolsOf(stage, state)));
    } else {
      return in.error("unknown section '" + s.what + "'");
    }
  }
  std::vector<std::string> needed;
  if (stage == Stage::Graph)
    needed.push_back("graph ");
  else if (stage != Stage::Gir)
    needed.push_back("expr ");
  for (const TargetState &target : state.targets) {
    if (stage == Stage::Plan || stage == Stage::Schedule)
      needed.push_back("plan " + target.target.name);
    if (stage == Stage::Schedule)
      needed.push_back("schedules " + target.target.name);
    if (stage == Stage::Gir)
      needed.push_back("gir " + target.target.name);
  }
  for (const std::string &name : needed)
    if (!found.count(name))
      return Diagnostic{Diag::BadIrText, fileName,
                        "section '" + name +
                            "' is missing; compile the model for this target instead"};
  return success();
}

Status verifyState(Stage stage, const CompileState &state) {
  if (stage == Stage::Graph)
    return verify(state.graph);
  if (stage != Stage::Gir)
    FUSEC_CHECK(verify(state.program));
  if (std::string fault = faultOf(state.sizeRules, symbolsOf(stage, state)); !fault.empty())
    return Diagnostic{Diag::BadIr, "rules of sizes", fault};
  for (const TargetState &target : state.targets) {
    if (stage == Stage::Plan || stage == Stage::Schedule)
      FUSEC_CHECK(verify(target.plan, programOf(state.program, target)));
    if (stage == Stage::Gir) {
      FUSEC_CHECK(verify(target.gir));
      FUSEC_CHECK(checkSharedMemory(target));
    }
  }
  return success();
}

} // namespace fusec
