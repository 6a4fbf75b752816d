#include "Driver/ExplainPlan.h"

#include "Driver/PatternOracle.h"
#include "Driver/TargetSearch.h"
#include "Expr/SizeLimits.h"
#include "Fusion/CutPattern.h"
#include "Fusion/QuickSeconds.h"
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
#include <set>

namespace fusec {

namespace {

void add(Sums &sums, const Prediction &prediction) {
  ++sums.launches;
  sums.readBytes += prediction.readBytes;
  sums.writtenBytes += prediction.writtenBytes;
  sums.seconds += prediction.seconds;
}
void add(Sums &sums, const Sums &more) {
  sums.launches += more.launches;
  sums.readBytes += more.readBytes;
  sums.writtenBytes += more.writtenBytes;
  sums.seconds += more.seconds;
}

void add(MemoryRequests &sums, const MemoryRequests &more) {
  sums.readBytes += more.readBytes;
  sums.writtenBytes += more.writtenBytes;
  sums.readSectors += more.readSectors;
  sums.writtenSectors += more.writtenSectors;
  sums.sharedBytes += more.sharedBytes;
  sums.fromData |= more.fromData;
}

/// Equations, each a kernel of its own, by name.
struct Apart {
  std::map<std::string, Sums> sums;
  std::map<std::string, MemoryRequests>
      moved; // what their instructions ask for; only where that was wanted

  Sums total() const {
    Sums all;
    for (const auto &[name, one] : sums)
      add(all, one);
    return all;
  }
};

/// By the same oracle as the search's.
Result<Apart> measureApart(const ExprProgram &program, const std::vector<int64_t> &symbols,
                           const Target &target, PatternOracle &oracle, bool withMoved) {
  const Plan plan = unfusedPlan(program);
  std::vector<Prediction> ofPattern;
  std::vector<MemoryRequests> movedOf;
  for (const Pattern &pattern : plan.patterns) {
    FUSEC_TRY(std::vector<ScheduleVariant> variants, oracle.unrestrictedSchedules(pattern));
    const Schedule &schedule = variantAt(variants, symbols).schedule;
    const ExprProgram sized = scheduledFor(pattern.program, schedule, symbols);
    const tiling::ScheduledProgram made(sized);
    ofPattern.push_back(predict({schedule, made}, target));
    movedOf.push_back(withMoved ? movedBytes({schedule, made}, target, tiling::Effort::Thorough)
                                : MemoryRequests());
  }
  Apart out;
  std::function<void(const std::vector<PlanStep> &)> visit =
      [&](const std::vector<PlanStep> &steps) {
        for (const PlanStep &step : steps) {
          if (step.kind == PlanStep::Kind::Launch) {
            add(out.sums[step.equations[0]], ofPattern[static_cast<size_t>(step.pattern)]);
            if (withMoved)
              out.moved[step.equations[0]] = movedOf[static_cast<size_t>(step.pattern)];
          }
          visit(step.thenSteps);
          visit(step.elseSteps);
        }
      };
  visit(plan.steps);
  return out;
}

/// A kernel's figures, whichever launch runs it.
struct Figures {
  const ScheduleVariant *variant = nullptr; // that runs at these sizes
  Prediction prediction;
  MemoryRequests moved;
  BarrierCounts barriers;
  std::optional<StepReads> stepReads;
  std::vector<std::string> rules;
  int launches = 0;
};

class PlanExplainer {
public:
  PlanExplainer(const ExprProgram &program, const std::vector<int64_t> &symbols,
                const TargetState &state, PatternOracle &oracle)
      : program(program), sized(tunedFor(program, symbols)), symbols(symbols), state(state),
        oracle(oracle), modelNames(program) {
    countUses(program.items, uses);
    for (TensorId t : program.outputs)
      ++uses[t];
  }

  Result<ExplainedPlan> run(const SizedPlan &plan) {
    out.where = plan.where;
    FUSEC_TRY(apart, measureApart(program, symbols, state.target, oracle, true));
    out.unfused = apart.total();
    FUSEC_CHECK(addFigures(*plan.steps));
    addKernels(*plan.steps, "");
    if (plan.sizes.empty())
      addApart();
    else
      out.forAllSizes = sumsOf(*plansBySize(state.plan).back().steps);
    return std::move(out);
  }

private:
  Status addFigures(const std::vector<PlanStep> &steps) {
    for (const PlanStep &step : steps) {
      if (step.kind == PlanStep::Kind::Launch) {
        const auto p = static_cast<size_t>(step.pattern);
        if (figures.count(p) == 0) {
          FUSEC_TRY(figures[p], figuresOf(p));
        }
        ++figures[p].launches;
      }
      FUSEC_CHECK(addFigures(step.thenSteps));
      FUSEC_CHECK(addFigures(step.elseSteps));
    }
    return success();
  }

  /// What other steps take at these sizes.
  Sums sumsOf(const std::vector<PlanStep> &steps) const {
    Sums sums;
    for (const PlanStep &step : steps) {
      if (step.kind == PlanStep::Kind::Launch) {
        const auto p = static_cast<size_t>(step.pattern);
        const ScheduleVariant &variant = variantAt(state.schedules[p], symbols);
        const ExprProgram sized =
            scheduledFor(state.plan.patterns[p].program, variant.schedule, symbols);
        const tiling::ScheduledProgram made(sized);
        add(sums, predict({variant.schedule, made}, state.target));
      }
      add(sums, sumsOf(step.thenSteps));
      add(sums, sumsOf(step.elseSteps));
    }
    return sums;
  }

  Result<Figures> figuresOf(size_t p) const {
    const ExprProgram &pattern = state.plan.patterns[p].program;
    const ScheduleVariant &variant = variantAt(state.schedules[p], symbols);
    const ExprProgram sizedPattern = scheduledFor(pattern, variant.schedule, symbols);
    const tiling::ScheduledProgram made(sizedPattern);
    Result<LoweredKernel> lowered = lowerAndRewrite(
        pattern, variant.schedule, guardedSymbols(variant, pattern.symbols), state.target);
    if (!lowered)
      return scheduleFault(std::move(lowered.errors()), state);
    return Figures{&variant,
                   predict({variant.schedule, made}, state.target),
                   movedBytes({variant.schedule, made}, state.target, tiling::Effort::Thorough),
                   barriersOf({variant.schedule, made}),
                   readsOfStep({variant.schedule, made}, state.target),
                   {lowered->rules.begin(), lowered->rules.end()}};
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
    const Figures &own = figures.at(p);
    const Schedule &schedule = own.variant->schedule;
    ExplainedKernel kernel;
    kernel.name = pattern.program.name;
    kernel.launches = own.launches;
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
    addEdges(step, pattern, schedule, kernel);
    addHeld(step, pattern, schedule, kernel);
    addRecomputed(step, pattern, schedule, kernel);
    kernel.prediction = own.prediction;
    for (size_t level = 0; level < state.target.memory.size(); ++level)
      kernel.levelBytes.emplace_back(state.target.memory[level].name,
                                     own.prediction.levelBytes[level]);
    kernel.moved = own.moved;
    kernel.barriers = own.barriers;
    kernel.stepReads = own.stepReads;
    if (pattern.phaseStarts.empty() && step.equations.size() > 1)
      kernel.space = tiling::spaceReport(pattern.program, state.target);
    kernel.rules = own.rules;
    std::vector<const Equation *> equations;
    for (const std::string &name : step.equations)
      equations.push_back(&modelNames.equation(name));
    kernel.quickSeconds = quickSeconds(sized, uses, equations, state.target);
    for (const std::string &name : step.equations) {
      add(kernel.unfused, apart.sums[name]);
      add(kernel.unfusedMoved, apart.moved[name]);
    }
    for (const ScheduleVariant &variant : state.schedules[p]) {
      kernel.schedules.push_back(modelNames.withNames(print(variant.schedule, pattern.program),
                                                      variant.schedule.via, step, pattern));
      kernel.guards.push_back(guardWords(variant.guards, program.symbols));
    }
    kernel.considered = own.variant->considered;
    for (size_t c = 0; c < kernel.considered.size(); ++c)
      kernel.considered[c].name = modelNames.withNames(
          std::move(kernel.considered[c].name), own.variant->consideredVia[c], step, pattern);
    kernel.consideredOfPhases = own.variant->consideredOfPhases;
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

  BarrierCounts barriersOf(const tiling::BoundSchedule &bound) const {
    BarrierCounts barriers;
    double runs = 0;
    for (const cost::Counts &phase : countWork(bound, state.target)) {
      barriers.ofBlock += phase.rounds * phase.barriers;
      barriers.counters += phase.waits;
      runs += phase.rounds;
    }
    barriers.ofDevice = runs - 1 - double(barriers.counters);
    return barriers;
  }

  void addApart() {
    for (const CrossKernelValue &value : state.plan.crossKernelValues)
      out.apart.push_back({program.tensors[value.tensor].name, value.producer, value.consumer,
                           value.reason, modelNames.onnxNodes(value.producer),
                           modelNames.onnxNodes(value.consumer), kernelOf(value.producer),
                           kernelOf(value.consumer)});
    std::map<std::pair<int, int>, std::set<std::string>> tensors;
    for (const ExplainedPlan::Between &b : out.apart)
      tensors[{b.from, b.to}].insert(b.tensor);
    for (ExplainedPlan::Between &b : out.apart)
      b.tensors = static_cast<int>(tensors[{b.from, b.to}].size());
  }

  int kernelOf(const std::string &equation) const {
    auto it = kernelOfEquation.find(equation);
    return it == kernelOfEquation.end() ? -1 : it->second;
  }

  const ExprProgram &program;
  const ExprProgram sized; // tuned for these values
  const std::vector<int64_t> symbols;
  const TargetState &state;
  PatternOracle &oracle;
  const ModelNames modelNames;
  std::map<TensorId, int> uses;
  Apart apart;
  std::map<std::string, int> kernelOfEquation;
  std::map<size_t, Figures> figures; // by pattern
  ExplainedPlan out;
};

} // namespace

Result<ExplainedPlan> explainPlan(const ExprProgram &program, const SizedPlan &plan,
                                  const std::vector<int64_t> &symbols, const TargetState &state,
                                  PatternOracle &oracle) {
  const std::optional<ExprProgram> own = within(program, plan.sizes);
  return PlanExplainer(own ? *own : program, symbols, state, oracle).run(plan);
}

Result<Sums> sumsApart(const ExprProgram &program, const Target &target, PatternOracle &oracle) {
  FUSEC_TRY(const Apart apart,
            measureApart(program, optValues(program.symbols), target, oracle, false));
  return apart.total();
}

} // namespace fusec
