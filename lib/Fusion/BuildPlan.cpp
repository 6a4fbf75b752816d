// The plan: which equations form a kernel.
//
// Every equation starts as a pattern of its own. A map E that finishes a reduction R (same spatial domain, reads R's
// result only at its own point) joins it when everything else that E reads is there before R runs, and when the
// oracle predicts no loss. Example, after vertical composition:
//   %c[i,j] = sum_k a[i,k]*b[k,j]        \  one kernel, %c stays in registers
//   %y[i,j] = gelu(%c[i,j] + bias[j])    /
// Not handled here: chains of reductions, several finishing maps, horizontal packing.
#include "Fusion/CutPattern.h"

#include <algorithm>
#include <map>

namespace fusec {

namespace {

/// Reads of `tensor` in `map` are all at the point of the spatial domain itself.
bool readsAtOwnPoint(const Equation &map, TensorId tensor) {
  for (NodeId id : map.body.reachable(map.results)) {
    const Scalar &node = map.body[id];
    if ((node.op != ScalarOp::Read && node.op != ScalarOp::ReadIf) || node.index != tensor)
      continue;
    if (node.op == ScalarOp::ReadIf || static_cast<int>(node.args.size()) != map.numSpatial)
      return false;
    for (size_t d = 0; d < node.args.size(); ++d) {
      const Scalar &index = map.body[node.args[d]];
      bool own = index.op == ScalarOp::Axis && index.index == static_cast<int>(d);
      bool single = map.axes[d].extent.isConst(1) && index.op == ScalarOp::Const && index.imm == 0;
      if (!own && !single)
        return false;
    }
  }
  return true;
}

bool sameDomain(const Equation &reduction, const Equation &map) {
  if (reduction.numSpatial != map.numSpatial)
    return false;
  for (int d = 0; d < map.numSpatial; ++d)
    if (reduction.axes[d].extent != map.axes[d].extent)
      return false;
  return true;
}

class PlanBuilder {
public:
  PlanBuilder(const ExprProgram &program, const ScheduleOracle &oracle)
      : program(program), oracle(oracle) {
    countUses(program.items);
    for (TensorId t : program.outputs)
      ++uses[t];
  }

  Result<std::vector<PlanStep>> build(const std::vector<Item> &items) {
    std::vector<Group> groups;
    for (const Item &item : items) {
      Group group;
      if (const auto *equation = std::get_if<Equation>(&item.value))
        group.equations = {equation};
      else
        group.control = &std::get<Control>(item.value);
      groups.push_back(std::move(group));
    }
    FUSEC_CHECK(joinFinishingMaps(groups));
    std::vector<PlanStep> steps;
    for (const Group &group : groups) {
      if (group.gone)
        continue;
      FUSEC_TRY(PlanStep step, makeStep(group));
      steps.push_back(std::move(step));
    }
    return steps;
  }

  Plan plan;

private:
  struct Group {
    std::vector<const Equation *> equations;
    const Control *control = nullptr;
    bool gone = false;
  };

  void countUses(const std::vector<Item> &items) {
    for (const Item &item : items) {
      if (const auto *equation = std::get_if<Equation>(&item.value)) {
        for (TensorId t : tensorsRead(*equation))
          ++uses[t];
        continue;
      }
      for (TensorId t : controlReads(std::get<Control>(item.value)))
        ++uses[t];
      const Control &control = std::get<Control>(item.value);
      countUses(control.thenItems);
      countUses(control.elseItems);
    }
  }

  Status joinFinishingMaps(std::vector<Group> &groups) {
    std::map<TensorId, size_t> producer;
    for (size_t g = 0; g < groups.size(); ++g) {
      for (const Equation *e : groups[g].equations)
        for (TensorId t : tensorsWritten(*e))
          producer[t] = g;
      if (groups[g].control)
        for (TensorId t : groups[g].control->results)
          producer[t] = g;
    }
    for (size_t g = 0; g < groups.size(); ++g) {
      if (groups[g].equations.size() != 1 || groups[g].equations[0]->kind != EquationKind::Map)
        continue;
      const Equation &map = *groups[g].equations[0];
      // The latest reduction is the one whose other inputs are all there.
      size_t best = SIZE_MAX;
      for (TensorId t : tensorsRead(map)) {
        auto it = producer.find(t);
        if (it == producer.end() || groups[it->second].equations.size() != 1)
          continue;
        const Equation &reduction = *groups[it->second].equations[0];
        if (reduction.kind != EquationKind::Reduction || isArgMonoid(reduction.monoid) ||
            isUsedOutside({&reduction, &map}, uses, t) || !sameDomain(reduction, map) ||
            !readsAtOwnPoint(map, t))
          continue;
        if (best == SIZE_MAX || it->second > best)
          best = it->second;
      }
      if (best == SIZE_MAX || !othersComeBefore(map, producer, best))
        continue;
      FUSEC_TRY(bool pays, joiningPays(groups[best].equations[0], &map));
      if (!pays)
        continue;
      groups[best].equations.push_back(&map);
      groups[g].gone = true;
      for (TensorId t : map.outputs)
        producer[t] = best;
    }
    return success();
  }

  /// The map moves up to the reduction's place: everything else that it reads must be there by then. Program order
  /// stays a topological order of the groups.
  static bool othersComeBefore(const Equation &map, const std::map<TensorId, size_t> &producer,
                               size_t reduction) {
    std::vector<TensorId> reads = tensorsRead(map);
    return std::all_of(reads.begin(), reads.end(), [&](TensorId t) {
      auto it = producer.find(t);
      return it == producer.end() || it->second <= reduction;
    });
  }

  Result<bool> joiningPays(const Equation *reduction, const Equation *map) {
    auto cost = [&](std::vector<const Equation *> equations) {
      std::vector<TensorId> arguments;
      return oracle(cutPattern(
          program, equations, [&](TensorId t) { return isUsedOutside(equations, uses, t); },
          arguments));
    };
    FUSEC_TRY(double together, cost({reduction, map}));
    FUSEC_TRY(double first, cost({reduction}));
    FUSEC_TRY(double second, cost({map}));
    return together >= 0 && together <= first + second;
  }

  Result<PlanStep> makeStep(const Group &group) {
    if (!group.control)
      return launchStep(program, group.equations, uses, plan, signatures);
    PlanStep step = controlStep(*group.control);
    FUSEC_TRY(step.thenSteps, build(group.control->thenItems));
    FUSEC_TRY(step.elseSteps, build(group.control->elseItems));
    return step;
  }

  const ExprProgram &program;
  const ScheduleOracle &oracle;
  std::map<TensorId, int> uses;
  std::map<Hash128, int> signatures;
};

} // namespace

Result<Plan> buildPlan(const ExprProgram &program, const ScheduleOracle &oracle) {
  PlanBuilder builder(program, oracle);
  FUSEC_TRY(std::vector<PlanStep> steps, builder.build(program.items));
  builder.plan.steps = std::move(steps);
  return std::move(builder.plan);
}

} // namespace fusec
