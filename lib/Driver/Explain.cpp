#include "Driver/Explain.h"

#include "Driver/PatternOracle.h"
#include "Driver/TargetSearch.h"
#include "Fusion/CutPattern.h"
#include "Fusion/QuickSeconds.h"
#include "Support/DimProgram.h"
#include "Support/OptValues.h"
#include "Support/TunedSizes.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/lower/Lower.h"
#include "Tiling/schedule/BoundSchedule.h"
#include "Tiling/schedule/FlatAccess.h"
#include "Tiling/schedule/PersistentReads.h"
#include "Tiling/schedule/ReadReuse.h"
#include "Tiling/schedule/Schedule.h"
#include "Tiling/search/SizeVariants.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace fusec {

namespace {

/// A graph's name, unless the file's name says it already or PyTorch's exporters call every graph so.
std::string tellingName(const std::string &graph, const std::filesystem::path &file) {
  constexpr std::string_view kOfEveryGraph[] = {"main_graph", "torch_jit", "torch-jit-export"};
  return graph == file.stem() ||
                 std::count(std::begin(kOfEveryGraph), std::end(kOfEveryGraph), graph) != 0
             ? ""
             : graph;
}

class Explainer {
public:
  Explainer(const CompileState &compiled, const std::filesystem::path &path,
            const TargetState &state, const std::vector<std::string> &sizes)
      : path(path), program(programOf(compiled.program, state)), uncomposed(compiled.uncomposed),
        sizeRules(compiled.sizeRules), caches(compiled.caches), state(state), sizes(sizes),
        launches(countLaunches(state.plan, optValues(program.symbols))), modelNames(program),
        oracle(state.oracle ? state.oracle
                            : std::make_shared<PatternOracle>(state.target, PlanOptions())) {
    countUses(program.items, uses);
    for (TensorId t : program.outputs)
      ++uses[t];
  }

  Result<ExplainedTarget> run() {
    out.model = path.filename();
    out.graph = tellingName(program.name, path);
    out.target = state.target.name;
    out.onCpu = state.target.kind == TargetKind::Cpu;
    out.cores = state.target.cores;
    out.flopsPerSec = state.target.flopsPerSec * (out.onCpu ? out.cores : 1);
    const std::vector<std::vector<int64_t>> tuned = tunedSizes(program.symbols);
    const std::vector<int64_t> typical = optValues(program.symbols);
    for (size_t s = 0; s < program.symbols.size(); ++s) {
      const Symbol &symbol = program.symbols[s];
      if (isOfCache(static_cast<SymbolId>(s)))
        continue;
      if (symbol.definition) {
        out.computed.push_back(
            {symbol.name, symbol.definition->str(program.symbols), symbol.definition->node, ""});
        continue;
      }
      if (symbol.bound)
        out.computed.push_back({symbol.name, "", "", symbol.bound->str(program.symbols)});
      out.sizes.emplace_back(symbol.name, typical[s]);
      if (std::any_of(tuned.begin(), tuned.end(),
                      [&](const auto &values) { return values[s] != typical[s]; }))
        out.withoutSize.emplace_back(symbol.name, symbol.max == Symbol().max
                                                      ? "MIN..MAX"
                                                      : std::to_string(symbol.min) + ".." +
                                                            std::to_string(symbol.max));
    }
    for (const std::vector<int64_t> &values : tuned)
      out.tuned.push_back(predictAt(state, values));
    for (const std::string &text : sizes) {
      FUSEC_TRY(const std::vector<int64_t> values, parseSizes(text, program.symbols, "--at"));
      out.asked.push_back(predictAt(state, values));
    }
    addSizeRules();
    addCaches(typical);
    FUSEC_TRY(alone, measureAlone(program, &movedAlone));
    out.unfused = total(alone);
    if (uncomposed) {
      FUSEC_TRY(auto parts, measureAlone(*uncomposed, nullptr));
      out.uncomposed = total(parts);
    }
    for (size_t p = 0; p < state.plan.patterns.size(); ++p) {
      const Pattern &pattern = state.plan.patterns[p];
      const ScheduleVariant &variant = chosen(p);
      predictions.push_back(predict({variant.schedule, pattern.program}, state.target));
      moved.push_back(
          movedBytes({variant.schedule, pattern.program}, state.target, tiling::Effort::Thorough));
      barriers.push_back(barriersOf(variant.schedule, pattern.program));
      Result<LoweredKernel> lowered =
          lowerAndRewrite(pattern.program, variant.schedule,
                          guardedSymbols(variant, pattern.program.symbols), state.target);
      if (!lowered)
        return scheduleFault(std::move(lowered.errors()), state);
      rules.emplace_back(lowered->rules.begin(), lowered->rules.end());
      stepReads.push_back(readsOfStep({variant.schedule, pattern.program}, state.target));
    }
    addKernels(stepsAt(state.plan, typical), "");
    addApart();
    return std::move(out);
  }

private:
  bool isOfCache(SymbolId s) const {
    return std::any_of(caches.begin(), caches.end(), [&](const CachePair &c) {
      return s == c.inputRoom || s == c.outputRoom || s == c.kept;
    });
  }

  /// What is old is copied once: read and written.
  void addCaches(const std::vector<int64_t> &sizes) {
    for (const CachePair &c : caches) {
      const auto input = std::find_if(program.tensors.begin(), program.tensors.end(),
                                      [&](const Tensor &t) { return t.name == c.input; });
      const auto elements = numElements(input->shape).evaluate(sizes);
      out.caches.push_back({c.input, c.output, c.axis, c.grows(),
                            2 * double(elements.value_or(0)) * double(sizeInBytes(input->type))});
    }
  }

  void addSizeRules() {
    for (const InferredSize &s : sizeRules.inferred)
      out.inferred.emplace_back(s.name, s.value.str(program.symbols));
    const std::vector<Symbol> names = sizeRules.allNames(program.symbols);
    for (const SizeRule &r : sizeRules.rules)
      out.sizeRules.push_back({ruleText(r.kind, r.left.str(names), r.right.str(names)), r.node,
                               r.op, r.text, r.tested});
  }

  /// The variant that runs at the symbols' opt values.
  const ScheduleVariant &chosen(size_t pattern) const {
    return variantAt(state.schedules[pattern], optValues(program.symbols));
  }

  void addApart() {
    for (const CrossKernelValue &value : state.plan.crossKernelValues)
      out.apart.push_back({program.tensors[value.tensor].name, value.producer, value.consumer,
                           value.reason, modelNames.onnxNodes(value.producer),
                           modelNames.onnxNodes(value.consumer), kernelOf(value.producer),
                           kernelOf(value.consumer)});
    std::map<std::pair<int, int>, std::set<std::string>> tensors;
    for (const ExplainedTarget::Between &b : out.apart)
      tensors[{b.from, b.to}].insert(b.tensor);
    for (ExplainedTarget::Between &b : out.apart)
      b.tensors = static_cast<int>(tensors[{b.from, b.to}].size());
  }

  static void add(Sums &sums, const Prediction &prediction) {
    ++sums.launches;
    sums.readBytes += prediction.readBytes;
    sums.writtenBytes += prediction.writtenBytes;
    sums.seconds += prediction.seconds;
  }
  static void add(Sums &sums, const Sums &more) {
    sums.launches += more.launches;
    sums.readBytes += more.readBytes;
    sums.writtenBytes += more.writtenBytes;
    sums.seconds += more.seconds;
  }

  static void add(MemoryRequests &sums, const MemoryRequests &more) {
    sums.readBytes += more.readBytes;
    sums.writtenBytes += more.writtenBytes;
    sums.readSectors += more.readSectors;
    sums.writtenSectors += more.writtenSectors;
    sums.sharedBytes += more.sharedBytes;
    sums.fromData |= more.fromData;
  }

  /// Each equation alone, by name, by the same oracle as the search's; what its instructions ask for goes to `asked`.
  Result<std::map<std::string, Sums>>
  measureAlone(const ExprProgram &equations, std::map<std::string, MemoryRequests> *asked) const {
    const Plan plan = unfusedPlan(equations);
    std::vector<Prediction> ofPattern;
    std::vector<MemoryRequests> movedOf;
    for (const Pattern &pattern : plan.patterns) {
      FUSEC_TRY(std::vector<ScheduleVariant> variants, oracle->unrestrictedSchedules(pattern));
      const Schedule &schedule = variants.back().schedule;
      ofPattern.push_back(predict({schedule, pattern.program}, state.target));
      movedOf.push_back(
          asked ? movedBytes({schedule, pattern.program}, state.target, tiling::Effort::Thorough)
                : MemoryRequests());
    }
    std::map<std::string, Sums> sums;
    std::function<void(const std::vector<PlanStep> &)> visit =
        [&](const std::vector<PlanStep> &steps) {
          for (const PlanStep &step : steps) {
            if (step.kind == PlanStep::Kind::Launch) {
              add(sums[step.equations[0]], ofPattern[static_cast<size_t>(step.pattern)]);
              if (asked)
                (*asked)[step.equations[0]] = movedOf[static_cast<size_t>(step.pattern)];
            }
            visit(step.thenSteps);
            visit(step.elseSteps);
          }
        };
    visit(plan.steps);
    return sums;
  }

  static Sums total(const std::map<std::string, Sums> &parts) {
    Sums all;
    for (const auto &[name, sums] : parts)
      add(all, sums);
    return all;
  }

  void addKernels(const std::vector<PlanStep> &steps, const std::string &within) {
    for (const PlanStep &step : steps) {
      if (step.kind == PlanStep::Kind::Launch) {
        addKernel(step, within);
        continue;
      }
      const bool isLoop = step.kind == PlanStep::Kind::Loop;
      const std::string inside =
          (within.empty() ? "" : within + ", ") + (isLoop ? "loop " : "branch of ") + step.name;
      addKernels(step.thenSteps, inside);
      addKernels(step.elseSteps, inside);
    }
  }

  void addKernel(const PlanStep &step, const std::string &within) {
    const auto p = static_cast<size_t>(step.pattern);
    const Pattern &pattern = state.plan.patterns[p];
    ExplainedKernel kernel;
    kernel.name = pattern.program.name;
    kernel.launches = launches[p];
    kernel.step = step.name;
    kernel.within = within;
    kernel.nodes = step.onnxNodes;
    kernel.equations = step.equations;
    kernel.phaseStarts = pattern.phaseStarts;
    for (size_t a = 0; a < step.arguments.size(); ++a) {
      const bool written =
          pattern.program.tensors[argumentOf(pattern, a)].kind == TensorKind::Output;
      (written ? kernel.outputs : kernel.inputs).push_back(program.tensors[step.arguments[a]].name);
    }
    addEdges(step, pattern, chosen(p).schedule, kernel);
    addHeld(step, pattern, chosen(p).schedule, kernel);
    addRecomputed(step, pattern, chosen(p).schedule, kernel);
    kernel.prediction = predictions[p];
    kernel.moved = moved[p];
    kernel.barriers = barriers[p];
    kernel.stepReads = stepReads[p];
    kernel.rules = rules[p];
    std::vector<const Equation *> own;
    for (const std::string &name : step.equations)
      own.push_back(&modelNames.equation(name));
    kernel.quickSeconds = quickSeconds(program, uses, own, state.target);
    for (const std::string &name : step.equations) {
      add(kernel.unfused, alone[name]);
      add(kernel.unfusedMoved, movedAlone[name]);
    }
    for (const ScheduleVariant &variant : state.schedules[p]) {
      kernel.schedules.push_back(modelNames.withNames(print(variant.schedule, pattern.program),
                                                      variant.schedule.via, step, pattern));
      kernel.guards.push_back(guardWords(variant.guards, program.symbols));
    }
    const ScheduleVariant &last = chosen(p);
    kernel.considered = last.considered;
    for (size_t c = 0; c < kernel.considered.size(); ++c)
      kernel.considered[c].name = modelNames.withNames(std::move(kernel.considered[c].name),
                                                       last.consideredVia[c], step, pattern);
    kernel.consideredOfPhases = last.consideredOfPhases;
    add(out.totals, kernel.prediction);
    for (const std::string &name : step.equations)
      kernelOfEquation[name] = static_cast<int>(out.kernels.size());
    out.kernels.push_back(std::move(kernel));
  }

  /// Edges of the pattern as it is scheduled. A state that a step hands to the next one is an edge too.
  void addEdges(const PlanStep &step, const Pattern &pattern, const Schedule &schedule,
                ExplainedKernel &kernel) const {
    const ScheduleNames names = modelNames.of(step, pattern, schedule);
    const tiling::BoundSchedule bound(schedule, pattern.program);
    const std::vector<const Equation *> &parts = bound.program.equations;
    std::vector<std::vector<TensorId>> reads;
    for (const Equation *e : parts)
      reads.push_back(tensorsRead(*e));
    const Borders borders(bound);
    const Equation *scan = bound.scan();
    const bool rounds = bound.gridScan() != nullptr;
    auto add = [&](TensorId t, size_t from, size_t to, const std::string &border) {
      kernel.edges.push_back({names.tensors[static_cast<size_t>(t)], names.equations[from].name,
                              names.equations[to].name,
                              border.empty() ? levelOf(bound, int(from), int(to), t) : border});
    };
    for (size_t from = 0; from < parts.size(); ++from)
      for (TensorId t : parts[from]->outputs) {
        for (size_t to = 0; to < parts.size(); ++to)
          if (to != from && std::count(reads[to].begin(), reads[to].end(), t) != 0)
            add(t, from, to, borders.between(from, to));
        for (size_t c = 0; scan && c < scan->carries.size(); ++c)
          for (size_t to = 0; scan->carries[c].next == t && to < parts.size(); ++to)
            if (const TensorId state = scan->carries[c].previous;
                std::count(reads[to].begin(), reads[to].end(), state) != 0)
              add(state, from, to, rounds ? "barrier" : "");
      }
  }

  void addHeld(const PlanStep &step, const Pattern &pattern, const Schedule &schedule,
               ExplainedKernel &kernel) const {
    const ScheduleNames names = modelNames.of(step, pattern, schedule);
    const tiling::BoundSchedule bound(schedule, pattern.program);
    for (const ReusedRead &kept : schedule.kept) {
      if (!tiling::isPersistent(schedule, kept) || *kept.from == kept.read)
        continue;
      const auto again = static_cast<size_t>(kept.read.equation),
                 first = static_cast<size_t>(kept.from->equation);
      kernel.held.push_back({names.tensors[static_cast<size_t>(bound.program.tensorOf(kept.read))],
                             names.equations[first].name, names.equations[again].name});
    }
  }

  /// What stands between the phases in which equations are computed; phases of a round count like those of the root.
  class Borders {
  public:
    explicit Borders(const tiling::BoundSchedule &bound) : phaseOf(phaseOfEquations(bound)) {
      for (const tiling::Statement &place : bound.statements())
        if (place.leaf->isBorder())
          isBarrier.push_back(place.leaf->kind == LeafKind::Barrier);
    }
    /// "barrier" or "counters", "" within a phase.
    std::string between(size_t from, size_t to) const {
      std::string found;
      for (int b = phaseOf[from]; b < phaseOf[to]; ++b)
        found = isBarrier[static_cast<size_t>(b)] || found == "barrier" ? "barrier" : "counters";
      return found;
    }

  private:
    const std::vector<int> phaseOf;
    std::vector<bool> isBarrier; // one a border
  };

  /// Values that an alternative left out: equations that are there before it and not behind it.
  void addRecomputed(const PlanStep &step, const Pattern &pattern, const Schedule &schedule,
                     ExplainedKernel &kernel) const {
    for (size_t v = 0; v < schedule.via.size(); ++v) {
      if (schedule.via[v].alternative != "recompute")
        continue;
      Schedule before, behind;
      before.via.assign(schedule.via.begin(),
                        schedule.via.begin() + static_cast<std::ptrdiff_t>(v));
      behind.via = before.via;
      behind.via.push_back(schedule.via[v]);
      const tiling::ScheduledProgram were(pattern.program, before.via),
          are(pattern.program, behind.via);
      const ScheduleNames names = modelNames.of(step, pattern, before);
      const std::vector<const Equation *> &list = were.equations, &left = are.equations;
      for (size_t from = 0; from < list.size(); ++from) {
        if (std::any_of(left.begin(), left.end(),
                        [&](const Equation *e) { return e->name == list[from]->name; }))
          continue;
        for (TensorId t : list[from]->outputs)
          for (size_t to = 0; to < list.size(); ++to) {
            const std::vector<TensorId> reads = tensorsRead(*list[to]);
            if (std::count(reads.begin(), reads.end(), t) != 0)
              kernel.edges.push_back({names.tensors[static_cast<size_t>(t)],
                                      names.equations[from].name, names.equations[to].name,
                                      "recompute"});
          }
      }
    }
  }

  /// A sum whose parts several of a GPU's threads have is put together on its way to the readers' registers.
  std::string levelOf(const tiling::BoundSchedule &bound, int maker, int reader,
                      TensorId tensor) const {
    if (const auto kept = tiling::reusedLevel(bound, reader, tensor))
      return std::string(name(*kept));
    const MemLevel level = bound.level(tensor);
    if (level == MemLevel::Register && state.target.kind != TargetKind::Cpu) {
      if (bound.schedule.units > 1 && tiling::sharesReduction(bound, maker, LoopKind::Unit))
        return "shared";
      if (tiling::sharesReduction(bound, maker, LoopKind::Lane))
        return "shuffle";
    }
    return level == MemLevel::Global ? "device" : std::string(name(level));
  }

  BarrierCounts barriersOf(const Schedule &schedule, const ExprProgram &pattern) const {
    BarrierCounts barriers;
    double runs = 0;
    for (const cost::Counts &phase : countWork({schedule, pattern}, state.target)) {
      barriers.ofBlock += phase.rounds * phase.barriers;
      barriers.counters += phase.waits;
      runs += phase.rounds;
    }
    barriers.ofDevice = runs - 1 - double(barriers.counters);
    return barriers;
  }

  int kernelOf(const std::string &equation) const {
    auto it = kernelOfEquation.find(equation);
    return it == kernelOfEquation.end() ? -1 : it->second;
  }

  const std::filesystem::path path;
  const ExprProgram &program;
  const std::optional<ExprProgram> &uncomposed;
  const SizeRules &sizeRules;
  const std::vector<CachePair> &caches;
  const TargetState &state;
  const std::vector<std::string> &sizes;
  const std::vector<int> launches;
  const ModelNames modelNames;
  const std::shared_ptr<PatternOracle> oracle;
  std::map<TensorId, int> uses;
  std::map<std::string, Sums> alone;                // by equation
  std::map<std::string, MemoryRequests> movedAlone; // the same
  std::map<std::string, int> kernelOfEquation;
  std::vector<Prediction> predictions;             // one a pattern
  std::vector<MemoryRequests> moved;               // the same
  std::vector<BarrierCounts> barriers;             // the same
  std::vector<std::vector<std::string>> rules;     // the same
  std::vector<std::optional<StepReads>> stepReads; // the same
  ExplainedTarget out;
};

} // namespace

Result<std::vector<ExplainedTarget>> explain(const CompileState &state, const std::string &path,
                                             const std::vector<std::string> &sizes) {
  std::vector<ExplainedTarget> targets;
  for (const TargetState &target : state.targets) {
    FUSEC_TRY(ExplainedTarget explained, Explainer(state, path, target, sizes).run());
    targets.push_back(std::move(explained));
  }
  return targets;
}

} // namespace fusec
