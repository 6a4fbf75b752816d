#include "Driver/State.h"
#include "Expr/SizeLimits.h"
#include "Gir/Passes.h"
#include "Support/Diag.h"
#include "Support/RunPasses.h"
#include "Support/TypeText.h"
#include "Support/UniqueNames.h"
#include "Tiling/lower/Lower.h"
#include "Tiling/schedule/BoundSchedule.h"

#include <algorithm>

namespace fusec {

namespace {

/// Kernels of one schedule variant and what their parameters stand for.
struct BuiltKernel {
  int kernel;
  std::vector<KernelParam> params;
};

class GirProgramBuilder {
public:
  GirProgramBuilder(const ExprProgram &program, const TargetState &state,
                    const PassObserver &observer)
      : program(program), state(state), observer(observer) {
    gir.name = program.name;
    gir.target = state.target.name;
    gir.symbols = program.symbols;
    gir.tensors = program.tensors;
    gir.inputs = program.inputs;
    gir.outputs = program.outputs;
  }

  Result<GirProgram> run() {
    for (size_t p = 0; p < state.plan.patterns.size(); ++p)
      FUSEC_CHECK(buildKernels(p));
    FUSEC_TRY(gir.steps, buildSteps(state.plan.steps));
    for (const auto &[kernel, of] : nodes)
      gir.kernels[kernel].onnxNodes = of.names();
    dropUnusedTensors();
    FUSEC_CHECK(verify(gir));
    return std::move(gir);
  }

private:
  Status buildKernels(size_t p) {
    const Pattern &pattern = state.plan.patterns[p];
    built.emplace_back();
    std::map<std::string, BuiltKernel> made;              // by all that a kernel depends on
    std::vector<Symbol> ranges = pattern.program.symbols; // those of the sizes that its plan is for
    for (size_t s = 0; s < ranges.size(); ++s)
      ranges[s].name = program.symbols[s].name;
    for (const ScheduleVariant &variant : state.schedules[p]) {
      const std::vector<Symbol> symbols = guardedSymbols(variant, ranges);
      std::string key = print(variant.schedule, pattern.program);
      for (const Symbol &symbol : symbols)
        key += symbolText(symbol);
      if (auto known = made.find(key); known != made.end()) {
        built.back().push_back(known->second);
        continue;
      }
      std::map<std::string, KernelParam> params; // by the buffer's name: passes drop unused ones
      auto lower = [&]() -> Result<GirKernel> {
        FUSEC_TRY(LoweredKernel lowered,
                  lowerAndRewrite(pattern.program, variant.schedule, symbols, state.target));
        lowered.kernel.name = pattern.program.name;
        if (&variant != &state.schedules[p].back())
          lowered.kernel.name += "_v" + std::to_string(&variant - state.schedules[p].data());
        for (size_t b = 0; b < lowered.params.size(); ++b)
          params.insert_or_assign(lowered.kernel.buffers[b].name, lowered.params[b]);
        return std::move(lowered.kernel);
      };
      FUSEC_TRY(GirKernel kernel,
                runPasses<GirKernel>(lower, kernelPasses(state.target.kind == TargetKind::Cpu),
                                     observer));
      std::vector<KernelParam> used;
      for (int b = 0; b < kernel.numParams(); ++b)
        used.push_back(params.at(kernel.buffers[static_cast<size_t>(b)].name));
      gir.kernels.push_back(std::move(kernel));
      built.back().push_back({static_cast<int>(gir.kernels.size() - 1), std::move(used)});
      made.emplace(std::move(key), built.back().back());
    }
    return success();
  }

  Result<std::vector<ExecStep>> buildSteps(const std::vector<PlanStep> &steps) {
    std::vector<ExecStep> result;
    for (const PlanStep &step : steps) {
      if (step.kind == PlanStep::Kind::Launch) {
        result.push_back(buildLaunch(step));
        continue;
      }
      if (step.kind == PlanStep::Kind::Where) {
        FUSEC_TRY(ExecStep where, buildWhere(step));
        result.push_back(std::move(where));
        continue;
      }
      FUSEC_TRY(ExecStep control, buildControl(step));
      result.push_back(std::move(control));
    }
    return result;
  }

  Result<ExecStep> buildWhere(const PlanStep &step) {
    ExecStep where;
    where.kind = ExecStep::Kind::Where;
    where.name = step.name;
    where.guards = guardsOf(step.sizes, program.symbols);
    ownTemps.emplace();
    ownSuffix = ".where" + std::to_string(++wheres);
    FUSEC_TRY(where.thenSteps, buildSteps(step.thenSteps));
    ownTemps.reset();
    ownSuffix.clear();
    FUSEC_TRY(where.elseSteps, buildSteps(step.elseSteps));
    return where;
  }

  /// What a launch has for the program's tensor. Temps of a plan for some sizes are its own: their lives are not those
  /// in the plan for all sizes.
  TensorId argument(TensorId t) {
    if (!ownTemps || gir.tensors[static_cast<size_t>(t)].kind != TensorKind::Temp)
      return t;
    const auto [at, isNew] = ownTemps->emplace(t, static_cast<TensorId>(gir.tensors.size()));
    if (isNew) {
      Tensor own = gir.tensors[static_cast<size_t>(t)];
      own.name += ownSuffix;
      gir.tensors.push_back(std::move(own));
    }
    return at->second;
  }

  ExecStep buildLaunch(const PlanStep &step) {
    const Pattern &pattern = state.plan.patterns[step.pattern];
    ExecStep launch;
    launch.name = step.name;
    Workspace workspace;
    for (size_t v = 0; v < built[step.pattern].size(); ++v) {
      const BuiltKernel &kernel = built[step.pattern][v];
      const ScheduleVariant &variant = state.schedules[step.pattern][v];
      const tiling::ScheduledProgram scheduled(pattern.program, variant.schedule.via);
      nodes[kernel.kernel].add(step.onnxNodes);
      LaunchVariant choice;
      choice.kernel = kernel.kernel;
      choice.guards = variant.guards;
      for (const KernelParam &param : kernel.params) {
        if (param.operand >= 0)
          choice.arguments.push_back(packer.packed(gir, step.arguments[param.tensor],
                                                   scheduled.expr, variant.schedule,
                                                   static_cast<size_t>(param.operand)));
        else if (param.tensor < pattern.numArguments)
          choice.arguments.push_back(argument(step.arguments[param.tensor]));
        else
          choice.arguments.push_back(workspaceTensor(
              workspace, copied(scheduled.expr.tensors[param.tensor], param), step.name));
      }
      launch.variants.push_back(std::move(choice));
    }
    return launch;
  }

  static Tensor copied(Tensor tensor, const KernelParam &param) {
    if (param.copies != 1)
      tensor.shape.insert(tensor.shape.begin(), DimExpr(param.copies));
    return tensor;
  }

  /// Tensors of a launch, by the pattern's temp: variants of it share them where they agree on type and shape.
  using Workspace = std::map<std::string, std::vector<TensorId>>;

  TensorId workspaceTensor(Workspace &workspace, Tensor temp, const std::string &launch) {
    std::vector<TensorId> &same = workspace[temp.name];
    for (TensorId known : same)
      if (gir.tensors[known].type == temp.type && gir.tensors[known].shape == temp.shape)
        return known;
    temp.name = launch + ownSuffix + "." + temp.name;
    if (!same.empty())
      temp.name += "." + std::to_string(same.size());
    temp.kind = TensorKind::Temp;
    gir.tensors.push_back(std::move(temp));
    same.push_back(static_cast<TensorId>(gir.tensors.size() - 1));
    return same.back();
  }

  Result<ExecStep> buildControl(const PlanStep &step) {
    const Control &control = step.control;
    ExecStep result;
    result.name = step.name;
    result.condition = control.condition;
    FUSEC_TRY(result.thenSteps, buildSteps(step.thenSteps));
    auto copies = [](const std::vector<TensorId> &from, const std::vector<TensorId> &to) {
      std::vector<ExecStep::Copy> list;
      for (size_t i = 0; i < from.size(); ++i)
        if (from[i] != to[i])
          list.push_back({from[i], to[i]});
      return list;
    };
    if (step.kind == PlanStep::Kind::If) {
      result.kind = ExecStep::Kind::If;
      FUSEC_TRY(result.elseSteps, buildSteps(step.elseSteps));
      result.thenCopies = copies(control.thenYields, control.results);
      result.elseCopies = copies(control.elseYields, control.results);
      return result;
    }
    result.tripCount = control.tripCount < 0 ? -1 : argument(control.tripCount);
    if (step.kind == PlanStep::Kind::Size) {
      result.kind = ExecStep::Kind::Size;
      result.symbol = control.symbol;
      return result;
    }
    result.kind = ExecStep::Kind::Loop;
    result.iteration = control.iteration;
    result.nextCondition = control.nextCondition;
    result.before = copies(control.carriedInit, control.carriedIn);
    result.thenCopies = copies(control.carriedOut, control.carriedIn);
    result.after = copies(control.carriedIn, control.results);
    return result;
  }

  /// Raw constants that only packed copies stand for, and temps that live inside kernels.
  void dropUnusedTensors() {
    std::vector<bool> used(gir.tensors.size(), false);
    std::function<void(const std::vector<ExecStep> &)> mark =
        [&](const std::vector<ExecStep> &steps) {
          for (const ExecStep &step : steps) {
            for (const LaunchVariant &variant : step.variants)
              for (TensorId t : variant.arguments)
                used[t] = true;
            for (TensorId t : {step.condition, step.tripCount, step.iteration, step.nextCondition})
              if (t >= 0)
                used[t] = true;
            for (const auto *list : {&step.before, &step.thenCopies, &step.elseCopies, &step.after})
              for (const ExecStep::Copy &copy : *list)
                used[copy.from] = used[copy.to] = true;
            mark(step.thenSteps);
            mark(step.elseSteps);
          }
        };
    mark(gir.steps);
    for (TensorId t : gir.inputs)
      used[t] = true;
    for (TensorId t : gir.outputs)
      used[t] = true;
    for (size_t t = 0; t < used.size(); ++t)
      if (!used[t])
        gir.tensors[t].constant = nullptr;
    removeTensors(used);
  }

  void removeTensors(const std::vector<bool> &used) {
    std::vector<TensorId> number(used.size(), -1);
    std::vector<Tensor> kept;
    for (size_t t = 0; t < used.size(); ++t)
      if (used[t]) {
        number[t] = static_cast<TensorId>(kept.size());
        kept.push_back(std::move(gir.tensors[t]));
      }
    gir.tensors = std::move(kept);
    auto renumber = [&](TensorId &t) {
      if (t >= 0)
        t = number[t];
    };
    std::function<void(std::vector<ExecStep> &)> visit = [&](std::vector<ExecStep> &steps) {
      for (ExecStep &step : steps) {
        for (LaunchVariant &variant : step.variants)
          for (TensorId &t : variant.arguments)
            renumber(t);
        for (TensorId *t : {&step.condition, &step.tripCount, &step.iteration, &step.nextCondition})
          renumber(*t);
        for (auto *list : {&step.before, &step.thenCopies, &step.elseCopies, &step.after})
          for (ExecStep::Copy &copy : *list) {
            renumber(copy.from);
            renumber(copy.to);
          }
        visit(step.thenSteps);
        visit(step.elseSteps);
      }
    };
    visit(gir.steps);
    for (TensorId &t : gir.inputs)
      renumber(t);
    for (TensorId &t : gir.outputs)
      renumber(t);
    std::map<TensorId, PackedConstant> packed;
    for (auto &[t, constant] : gir.packed)
      if (number[t] >= 0)
        packed.emplace(number[t], std::move(constant));
    gir.packed = std::move(packed);
  }

  const ExprProgram &program;
  const TargetState &state;
  const PassObserver &observer;
  GirProgram gir;
  std::vector<std::vector<BuiltKernel>> built; // one list a pattern
  std::map<int, UniqueNames> nodes;            // by kernel, of the model
  ConstantPacker packer;
  std::optional<std::map<TensorId, TensorId>> ownTemps; // of a Where's thenSteps, by the program's
  std::string ownSuffix;                                // of their names
  int wheres = 0;
};

} // namespace

Result<GirProgram> buildGirProgram(const ExprProgram &program, const TargetState &state,
                                   const PassObserver &observer) {
  return GirProgramBuilder(program, state, observer).run();
}

Status checkSharedMemory(const TargetState &state) {
  Diagnostics errors;
  const int64_t most = state.target.mostSharedBytes();
  for (const GirKernel &kernel : state.gir.kernels)
    if (state.target.kind != TargetKind::Cpu && kernel.sharedBytes > most)
      errors.push_back({Diag::LimitExceeded, "kernel " + kernel.name,
                        "a block needs " + std::to_string(kernel.sharedBytes) +
                            " bytes of shared memory, and has at most " + std::to_string(most) +
                            " on " + state.target.name + "; take smaller tiles"});
  if (!errors.empty())
    return errors;
  return success();
}

} // namespace fusec
