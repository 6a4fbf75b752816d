// The decisions file: what a search found, to be committed, reviewed and replayed. Names of equations and signatures of
// patterns tie it to the model; sizes, weights and code are not in it.
#include "Driver/Decisions.h"

#include "Driver/Sections.h"
#include "Support/Diag.h"
#include "Support/OptValues.h"
#include "Support/WholeText.h"
#include "Tiling/search/SizeVariants.h"
#include "Tiling/verify/Verify.h"

#include <algorithm>
#include <set>

namespace fusec {

namespace {

constexpr char kProducer[] = "fusec " FUSEC_VERSION;
constexpr std::string_view kMagic = "# fusec decisions 3\n";
constexpr std::string_view kAnyMagic = "# fusec decisions ";
constexpr double kLargestNumber = 1e18;
constexpr std::string_view kRemedy =
    "where the model changed, emit them anew; where a launch was edited, edit it in the dump of "
    "plan instead (--stop-after=plan --dump-dir D) and emit them from D/plan.txt";
constexpr size_t kMaxDiffering = 8; // patterns that one message each is given for

/// Every error of a replay, whichever stage found it.
class Replay {
public:
  Replay(std::string_view text, const std::string &fileName, CompileState &state)
      : text(text), fileName(fileName), state(state) {}

  Status run() {
    if (!isDecisionsFile(text))
      return refuse("is not a file that --emit-decisions writes");
    if (text.find("\r\n") != text.npos)
      return refuse("ends its lines with CR LF, as git's autocrlf makes them; expected LF alone");
    if (text.substr(0, kMagic.size()) != kMagic)
      return refuse(std::string("is of another format than ") + kProducer + " reads");
    FUSEC_CHECK(readHead());
    const std::vector<Section> sections = splitSections(text);
    std::string there, missing;
    std::set<std::string> seen;
    for (const Section &s : sections)
      if (!seen.insert(s.what + " " + s.target).second)
        return refuse("has the section '" + s.what + " " + s.target +
                      "' twice (the second one at line " + std::to_string(s.line - 1) + ")");
    for (const Section &s : sections)
      there += (there.empty() ? "" : ", ") + s.target;
    for (const TargetState &target : state.targets)
      if (find(sections, target.target.name) == sections.end())
        missing += (missing.empty() ? "" : ", ") + target.target.name;
    if (!missing.empty())
      return refuse("has no decisions for " + missing + " (it has " + there +
                    "); emit them for these targets too");
    for (TargetState &target : state.targets)
      FUSEC_CHECK(replay(*find(sections, target.target.name), target));
    return success();
  }

private:
  static std::vector<Section>::const_iterator find(const std::vector<Section> &sections,
                                                   const std::string &target) {
    return std::find_if(sections.begin(), sections.end(),
                        [&](const Section &s) { return s.what == "target" && s.target == target; });
  }

  Diagnostic refuse(std::string why) const {
    if (!madeBy.empty() && madeBy != kProducer)
      why += "; they were made by " + madeBy + ", this is " + kProducer;
    if (!madeFor.empty() && madeFor != state.program.name)
      why += "; they were made for model '" + madeFor + "', this is '" + state.program.name + "'";
    return {Diag::StaleDecisions, fileName, std::move(why)};
  }

  /// Errors of parsers and verifiers say where and what; here they mean that the file does not fit.
  Diagnostics refuse(const Diagnostics &errors, const std::string &target) const {
    Diagnostics out = decisionsDoNotFit(errors, fileName, target);
    for (Diagnostic &d : out)
      d.text = refuse(std::move(d.text)).text;
    return out;
  }

  Status readHead() {
    TextReader in(text, fileName);
    auto read = [&]() -> Status {
      FUSEC_CHECK(in.expect("decisions"));
      FUSEC_TRY(madeBy, in.string());
      FUSEC_CHECK(in.expect("model"));
      FUSEC_TRY(madeFor, in.string());
      return success();
    };
    if (Status status = read(); !status.ok())
      return refuse(status.errors().front().text);
    return success();
  }

  Status replay(const Section &section, TargetState &target) {
    const std::string padded = std::string(static_cast<size_t>(section.line - 1), '\n') +
                               std::string(section.text); // so that errors name the file's lines
    TextReader in(padded, fileName);
    if (Status status = readPlan(in, state.program, target); !status.ok())
      return refuse(status.errors(), target.target.name);
    target.planWritten = target.schedulesWritten = true;
    target.decisionsPath = fileName;
    target.schedules.assign(target.plan.patterns.size(), {});
    if (Status status = readKernels(in, target); !status.ok())
      return status.errors().front().id == Diag::StaleDecisions
                 ? status
                 : Status(refuse(status.errors(), target.target.name));
    return success();
  }

  Status readKernels(TextReader &in, TargetState &target) {
    Diagnostics differing;
    std::vector<std::vector<int>> lines(target.schedules.size()); // of the schedules
    size_t p = 0;
    while (!in.atEnd()) {
      const int line = in.peek().line;
      FUSEC_TRY(Hash128 signature, readKernelLine(in));
      if (p >= target.plan.patterns.size())
        return in.error("the plan has " + std::to_string(p) +
                        " different kernels, here is another; " + std::string(kRemedy));
      const Pattern &pattern = target.plan.patterns[p];
      if (signature != pattern.signature) {
        if (differing.size() < kMaxDiffering)
          differing.push_back(differs(line, p, signature, target));
        skipSchedules(in);
      }
      ++p;
      while (in.peekIs("pattern")) {
        const int begin = in.peek().line;
        FUSEC_TRY(size_t of, parseSchedule(in, target));
        if (of + 1 != p)
          return in.error("under kernel " + pattern.program.name + ", which is pattern " +
                          std::to_string(p - 1) + ", stands a schedule of pattern " +
                          std::to_string(of));
        lines[of].push_back(begin);
        std::string &name = target.schedules[of].back().schedule.name; // the kernel's, and a label
        name = pattern.program.name + "." + name.substr(name.find('.') + 1);
      }
    }
    if (!differing.empty())
      return differing;
    if (p < target.plan.patterns.size())
      return in.error("kernel " + target.plan.patterns[p].program.name + " has no schedule; " +
                      std::string(kRemedy));
    FUSEC_CHECK(checkSchedules(in, target));
    Diagnostics broken;
    for (size_t i = 0; i < target.schedules.size(); ++i)
      for (size_t v = 0; v < target.schedules[i].size(); ++v)
        if (Status status = verifySchedule(i, target.schedules[i][v].schedule, target,
                                           programOf(state.program, target));
            !status.ok())
          for (Diagnostic d : status.errors()) {
            d.where = fileName + ":" + std::to_string(lines[i][v]) + ": " + d.where;
            broken.push_back(std::move(d));
          }
    if (!broken.empty())
      return broken;
    return success();
  }

  static Result<Hash128> readKernelLine(TextReader &in) {
    FUSEC_CHECK(in.expect("kernel"));
    FUSEC_TRY(std::string name, in.identifier());
    for (const char *word : {"launches", "reads", "writes", "seconds"}) {
      FUSEC_CHECK(in.expect(word));
      FUSEC_TRY([[maybe_unused]] double told, in.floating()); // and made anew
    }
    FUSEC_CHECK(in.expect("signature"));
    FUSEC_TRY(std::string digits, in.string());
    Hash128 signature;
    if (!Hash128::fromHex(digits, signature))
      return in.error("a signature has 32 digits");
    return signature;
  }

  /// They speak of axes and operands of another pattern. Inside of one, `kernel` is a micro-kernel's name.
  static void skipSchedules(TextReader &in) {
    for (int depth = 0; !in.atEnd() && (depth > 0 || !in.peekIs("kernel")); in.next())
      depth += in.peekIs("{") ? 1 : in.peekIs("}") ? -1 : 0;
  }

  Diagnostic differs(int line, size_t p, const Hash128 &signature,
                     const TargetState &target) const {
    std::string equations, nodes;
    std::function<bool(const std::vector<PlanStep> &)> first =
        [&](const std::vector<PlanStep> &steps) {
          for (const PlanStep &step : steps) {
            if (step.kind == PlanStep::Kind::Launch && step.pattern == static_cast<int>(p)) {
              for (const std::string &e : step.equations)
                equations += (equations.empty() ? "" : ", ") + e;
              for (const std::string &n : step.onnxNodes)
                nodes += (nodes.empty() ? "" : ", ") + n;
              return true;
            }
            if (first(step.thenSteps) || first(step.elseSteps))
              return true;
          }
          return false;
        };
    first(target.plan.steps);
    Diagnostic d =
        refuse("the decisions for " + target.target.name + " do not fit: the kernel of " +
               equations + (nodes.empty() ? "" : " (ONNX nodes " + nodes + ")") +
               " is not the one that the schedules here are for (signature " +
               target.plan.patterns[p].signature.hex() + ", there " + signature.hex() + "); " +
               std::string(kRemedy));
    d.where += ":" + std::to_string(line);
    return d;
  }

  std::string_view text;
  const std::string &fileName;
  CompileState &state;
  std::string madeBy, madeFor;
};

} // namespace

std::vector<int> countLaunches(const Plan &plan, const std::vector<int64_t> &symbols) {
  std::vector<int> launches(plan.patterns.size(), 0);
  std::function<void(const std::vector<PlanStep> &)> count =
      [&](const std::vector<PlanStep> &steps) {
        for (const PlanStep &step : steps) {
          if (step.kind == PlanStep::Kind::Launch)
            ++launches[static_cast<size_t>(step.pattern)];
          count(step.thenSteps);
          count(step.elseSteps);
        }
      };
  count(*planAt(plan, symbols).steps);
  return launches;
}

std::string printSchedule(size_t pattern, const ScheduleVariant &variant, const Plan &plan,
                          const PlanStep *launch, const ModelNames &names) {
  std::string out;
  if (launch)
    out = names.of(*launch, plan.patterns[pattern], variant.schedule)
              .comments(variant.schedule, plan.patterns[pattern].program);
  out += "pattern " + std::to_string(pattern) + " {";
  for (const Guard &guard : variant.guards)
    out += " " + guardText(guard, plan.patterns[pattern].program.symbols);
  return out + " } " + print(variant.schedule, plan.patterns[pattern].program);
}

Result<size_t> parseSchedule(TextReader &in, TargetState &state) {
  FUSEC_CHECK(in.expect("pattern"));
  FUSEC_TRY(int64_t p, in.integer());
  if (p < 0 || p >= static_cast<int64_t>(state.schedules.size()))
    return in.error("pattern " + std::to_string(p) + " does not exist");
  const ExprProgram &pattern = state.plan.patterns[static_cast<size_t>(p)].program;
  ScheduleVariant variant;
  FUSEC_CHECK(in.expect("{"));
  while (!in.accept("}")) {
    FUSEC_TRY(Guard guard, parseGuard(in, pattern.symbols));
    if (guard.modulus > 0 && guard.value.op() == DimExpr::Op::Symbol)
      if (const Symbol &s = pattern.symbols[static_cast<size_t>(guard.value.symbolId())];
          !multiplesOf(s, guard.modulus))
        return in.error("no size that '" + s.name + "' may have is a multiple of " +
                        std::to_string(guard.modulus));
    variant.guards.push_back(std::move(guard));
  }
  FUSEC_TRY(variant.schedule, parseSchedule(in, pattern));
  state.schedules[static_cast<size_t>(p)].push_back(std::move(variant));
  return static_cast<size_t>(p);
}

Status verifySchedule(size_t pattern, const Schedule &schedule, const TargetState &state,
                      const ExprProgram &program) {
  const Pattern &own = state.plan.patterns[pattern];
  Status status = verify(schedule, own.program, state.target);
  const PlanStep *launch = firstLaunches(state.plan)[pattern];
  if (status.ok() || !launch)
    return status;
  Diagnostics named;
  const ScheduleNames names = ModelNames(program).of(*launch, own, schedule);
  for (const Diagnostic &d : status.errors())
    named.push_back({d.id, d.where, names.inserted(d.text)});
  return named;
}

Status checkSchedules(TextReader &in, const TargetState &state) {
  for (size_t p = 0; p < state.schedules.size(); ++p) {
    const std::vector<ScheduleVariant> &variants = state.schedules[p];
    const ExprProgram &pattern = state.plan.patterns[p].program;
    for (const ScheduleVariant &variant : variants)
      if (const auto limit = limitNotTested(variant, pattern))
        return in.error("pattern " + std::to_string(p) + " has a schedule that takes " +
                        pattern.symbols[static_cast<size_t>(limit->symbol)].name + " to be " +
                        std::to_string(limit->most) +
                        (limit->least == limit->most ? "" : " at most") +
                        ", and its guards do not say so");
    const auto first = std::ranges::find_if(variants, [](auto &v) { return v.guards.empty(); });
    if (first == variants.end())
      return in.error("pattern " + std::to_string(p) + " has no schedule without guards");
    if (first + 1 != variants.end())
      return in.error("pattern " + std::to_string(p) +
                      " has schedules behind the one without guards, which would never run");
  }
  return success();
}

std::string decisionsText(const ExprProgram &model, const TargetState &state) {
  const ExprProgram &program = programOf(model, state);
  std::string out = print(state.plan, program);
  const std::vector<int> launches = countLaunches(state.plan, optValues(program.symbols));
  const std::vector<const PlanStep *> first = firstLaunches(state.plan);
  const ModelNames names(program);
  for (size_t p = 0; p < state.plan.patterns.size(); ++p) {
    const Pattern &pattern = state.plan.patterns[p];
    const ScheduleVariant &atOpt =
        variantAt(state.schedules[p], optValues(pattern.program.symbols));
    const Prediction prediction = predict({atOpt.schedule, pattern.program}, state.target);
    out += "kernel " + pattern.program.name + " launches " + std::to_string(launches[p]) +
           " reads " + wholeText(prediction.readBytes) + " writes " +
           wholeText(prediction.writtenBytes) + " seconds " + floatToText(prediction.seconds) +
           " signature " + quoted(pattern.signature.hex()) + "\n";
    for (const ScheduleVariant &variant : state.schedules[p])
      out += printSchedule(p, variant, state.plan, first[p], names);
  }
  return out;
}

std::string decisionsFile(const CompileState &state) {
  std::string out(kMagic);
  out += "# Which equations form a kernel, why others stay apart, and how each kernel iterates, "
         "for every target.\n"
         "# To commit and review; fusec MODEL -o BUNDLE --decisions=FILE makes the same bundle "
         "again.\n";
  const std::string &model =
      state.program.items.empty() ? state.targets[0].gir.name : state.program.name;
  out += "decisions " + quoted(kProducer) + " model " + quoted(model) + "\n";
  for (const TargetState &target : state.targets)
    out += "=== target " + target.target.name + "\n" + target.decisions;
  return out;
}

bool isDecisionsFile(std::string_view text) {
  return text.substr(0, kAnyMagic.size()) == kAnyMagic;
}

Diagnostics decisionsDoNotFit(Diagnostics errors, const std::string &fileName,
                              const std::string &target) {
  for (Diagnostic &d : errors) {
    if (d.id != Diag::LimitExceeded)
      d.id = Diag::StaleDecisions;
    d.text = "the decisions for " + target + " do not fit: " + d.text;
    if (d.where.rfind(fileName, 0) != 0)
      d.where = fileName + ": " + d.where;
  }
  return errors;
}

std::string otherMaker(std::string_view text) {
  TextReader in(text, "");
  if (!in.expect("decisions").ok())
    return "";
  const Result<std::string> maker = in.string();
  return maker && *maker != kProducer ? *maker : "";
}

Status replayDecisions(std::string_view text, const std::string &fileName, CompileState &state) {
  return Replay(text, fileName, state).run();
}

Result<DecidedPlan> readDecisions(std::string_view text, const std::string &fileName) {
  DecidedPlan decided;
  std::string *part = &decided.plan;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(end);
    if (row.rfind("# ", 0) == 0) // the model's names, which schedules do not depend on
      continue;
    if (row.rfind("kernel ", 0) != 0) {
      // The pattern's number is its place in the plan, no part of its schedule.
      const bool isSchedule = row.rfind("pattern ", 0) == 0;
      part->append(isSchedule ? row.substr(std::min(row.find('{'), row.size())) : row);
      continue;
    }
    TextReader in(row, fileName);
    DecidedKernel kernel;
    auto number = [&](std::string_view word, double &value) -> Status {
      FUSEC_CHECK(in.expect(word));
      FUSEC_TRY(value, in.floating());
      if (!(value >= 0 && value <= kLargestNumber))
        return in.error("the number behind '" + std::string(word) + "' is out of range");
      return success();
    };
    FUSEC_CHECK(in.expect("kernel"));
    FUSEC_TRY(kernel.name, in.identifier());
    FUSEC_CHECK(in.expect("launches"));
    FUSEC_TRY(kernel.launches, in.integer());
    if (kernel.launches < 0 || kernel.launches > INT32_MAX)
      return in.error("the number of launches is out of range");
    FUSEC_CHECK(number("reads", kernel.prediction.readBytes));
    FUSEC_CHECK(number("writes", kernel.prediction.writtenBytes));
    FUSEC_CHECK(number("seconds", kernel.prediction.seconds));
    decided.kernels.push_back(std::move(kernel));
    part = &decided.kernels.back().schedules;
  }
  return decided;
}

} // namespace fusec
