// Dump files. The first line names the stage and the targets; sections start with "=== name target". A dump holds all
// that the rest of the pipeline needs: graph and expr one section, plan and schedule the equations and one section a
// target on top, gir one section a target.
#include "Driver/State.h"

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

std::string printSchedules(const TargetState &state) {
  std::string out;
  for (size_t p = 0; p < state.schedules.size(); ++p)
    for (const ScheduleVariant &variant : state.schedules[p]) {
      for (const search::Evaluation &e : variant.considered)
        out += "# " + std::string(e.chosen ? "chosen: " : "considered: ") + e.name + ", " +
               floatToText(e.score) + " s\n";
      out += "pattern " + std::to_string(p) + " {";
      for (auto [symbol, divisor] : variant.divisors)
        out += " " + std::to_string(symbol) + ":" + std::to_string(divisor);
      out += " } " + print(variant.schedule, state.plan.patterns[p].program);
    }
  return out;
}

Status parseSchedules(TextReader &in, TargetState &state) {
  state.schedules.resize(state.plan.patterns.size());
  while (!in.atEnd()) {
    FUSEC_CHECK(in.expect("pattern"));
    FUSEC_TRY(int64_t p, in.integer());
    if (p < 0 || p >= static_cast<int64_t>(state.schedules.size()))
      return in.error("pattern " + std::to_string(p) + " does not exist");
    ScheduleVariant variant;
    FUSEC_CHECK(in.expect("{"));
    while (!in.accept("}")) {
      FUSEC_TRY(int64_t symbol, in.integer());
      FUSEC_CHECK(in.expect(":"));
      FUSEC_TRY(int64_t divisor, in.integer());
      if (symbol < 0 ||
          symbol >= static_cast<int64_t>(state.plan.patterns[p].program.symbols.size()) ||
          divisor < 1)
        return in.error("no such guard");
      variant.divisors.push_back({static_cast<SymbolId>(symbol), divisor});
    }
    FUSEC_TRY(variant.schedule, parseSchedule(in, state.plan.patterns[p].program));
    state.schedules[p].push_back(std::move(variant));
  }
  for (size_t p = 0; p < state.schedules.size(); ++p)
    if (state.schedules[p].empty() || !state.schedules[p].back().divisors.empty())
      return in.error("pattern " + std::to_string(p) + " has no schedule without guards");
  return success();
}

struct Section {
  std::string what, target;
  std::string_view text;
};

std::vector<Section> splitSections(std::string_view text) {
  std::vector<Section> sections;
  size_t position = text.find("\n=== ");
  while (position != std::string_view::npos) {
    size_t begin = position + 5;
    size_t lineEnd = std::min(text.find('\n', begin), text.size());
    size_t next = text.find("\n=== ", lineEnd);
    std::string_view head = text.substr(begin, lineEnd - begin);
    size_t space = head.find(' ');
    Section s;
    s.what = std::string(head.substr(0, space));
    if (space != std::string_view::npos)
      s.target = std::string(head.substr(space + 1));
    size_t end = next == std::string_view::npos ? text.size() : next + 1;
    s.text =
        lineEnd < text.size() ? text.substr(lineEnd + 1, end - lineEnd - 1) : std::string_view();
    sections.push_back(std::move(s));
    position = next;
  }
  return sections;
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

std::string dumpStage(Stage stage, const CompileState &state, ConstantStore &store) {
  std::string out(kMagic);
  out += std::string(name(stage)) + " ";
  for (size_t t = 0; t < state.targets.size(); ++t)
    out += (t ? "," : "") + state.targets[t].target.name;
  out += "\n";
  if (stage == Stage::Graph)
    return out + section("graph", "", print(state.graph, &store));
  if (stage != Stage::Gir)
    out += section("expr", "", print(state.program, &store));
  for (const TargetState &target : state.targets) {
    if (stage == Stage::Plan || stage == Stage::Schedule)
      out += section("plan", target.target.name, print(target.plan, state.program));
    if (stage == Stage::Schedule)
      out += section("schedules", target.target.name, printSchedules(target));
    if (stage == Stage::Gir)
      out += section("gir", target.target.name, print(target.gir, &store));
  }
  return out;
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
      state.targets.push_back({std::move(target), {}, {}, {}, {}});
    }
  for (const Target &target : targets)
    state.targets.push_back({target, {}, {}, {}, {}});
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
    } else if (s.what == "plan" && !s.target.empty()) {
      FUSEC_TRY(target->plan, parsePlan(in, state.program));
    } else if (s.what == "schedules" && !s.target.empty()) {
      FUSEC_CHECK(parseSchedules(in, *target));
    } else if (s.what == "gir" && !s.target.empty()) {
      FUSEC_TRY(target->gir, parseGirProgram(in, store));
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
  for (const TargetState &target : state.targets) {
    if (stage == Stage::Plan || stage == Stage::Schedule)
      FUSEC_CHECK(verify(target.plan, state.program));
    if (stage == Stage::Gir)
      FUSEC_CHECK(verify(target.gir));
  }
  return success();
}

} // namespace fusec
