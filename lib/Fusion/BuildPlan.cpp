// The plan: which equations form a kernel.
//
// Every equation starts as a pattern of its own. A map E that finishes a reduction R (same spatial domain, reads R's
// result only at its own point) joins it when everything else that E reads is there before R runs, and when the
// oracle predicts no loss. Example, after vertical composition:
//   %c[i,j] = sum_k a[i,k]*b[k,j]        \  one kernel, %c stays in registers
//   %y[i,j] = gelu(%c[i,j] + bias[j])    /
// Not handled here: chains of reductions, several finishing maps, horizontal packing.
#include "Cost/SecondsText.h"
#include "Fusion/CutPattern.h"

#include <cassert>
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
    countUses(program.items, uses);
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

  /// Of a value that stands between two kernels of the plan that was built.
  std::string whyApart(TensorId t, const Equation &consumer) const {
    if (consumer.kind != EquationKind::Map)
      return consumer.name + " is " + std::string(kindOf(consumer)) +
             ", and only a map joins the kernel of what it reads";
    auto it = reasons.find({t, &consumer});
    assert(it != reasons.end() && "every value that a map reads from a kernel was looked at");
    return it->second;
  }

  Plan plan;

private:
  struct Group {
    std::vector<const Equation *> equations;
    const Control *control = nullptr;
    bool gone = false;
  };

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
      TensorId joined = -1;
      for (TensorId t : tensorsRead(map)) {
        auto it = producer.find(t);
        if (it == producer.end() || groups[it->second].control)
          continue;
        std::string &reason = reasons[{t, &map}];
        reason = whyNotFinishing(groups[it->second], map, t);
        if (!reason.empty())
          continue;
        reason = map.name + " joins the latest reduction that it reads or none";
        if (best == SIZE_MAX || it->second > best) {
          best = it->second;
          joined = t;
        }
      }
      if (best == SIZE_MAX)
        continue;
      std::string &reason = reasons[{joined, &map}];
      if (const std::string *later = latestAfter(map, producer, groups, best)) {
        reason = map.name + " also reads what " + *later + " makes later";
        continue;
      }
      FUSEC_TRY(reason, whyJoiningLoses(groups[best].equations[0], &map));
      if (!reason.empty())
        continue;
      groups[best].equations.push_back(&map);
      groups[g].gone = true;
      for (TensorId t : map.outputs)
        producer[t] = best;
    }
    return success();
  }

  /// Empty if the map may finish the group's reduction.
  std::string whyNotFinishing(const Group &group, const Equation &map, TensorId t) const {
    const Equation &from = *group.equations.front();
    if (group.equations.size() > 1)
      return "the kernel of " + from.name + " ends with " + group.equations.back()->name +
             " already";
    if (from.kind != EquationKind::Reduction)
      return from.name + " is no reduction, and a map finishes those alone";
    if (isArgMonoid(from.monoid))
      return from.name + " gives a value and its index, which no map finishes";
    if (isUsedOutside({&from, &map}, uses, t))
      return "others than " + map.name + " need it too";
    if (!sameDomain(from, map))
      return map.name + " runs over another domain than " + from.name;
    if (!readsAtOwnPoint(map, t))
      return map.name + " reads it at other points than its own";
    return "";
  }

  /// The map moves up to the reduction's place: everything else that it reads must be there by then, so that program
  /// order stays a topological order of the groups. Null if it is, else the name of what is too late.
  static const std::string *latestAfter(const Equation &map,
                                        const std::map<TensorId, size_t> &producer,
                                        const std::vector<Group> &groups, size_t reduction) {
    for (TensorId t : tensorsRead(map))
      if (auto it = producer.find(t); it != producer.end() && it->second > reduction) {
        const Group &group = groups[it->second];
        return group.control ? &group.control->name : &group.equations.front()->name;
      }
    return nullptr;
  }

  /// Empty if one kernel is no slower than two.
  Result<std::string> whyJoiningLoses(const Equation *reduction, const Equation *map) {
    auto seconds = [&](std::vector<const Equation *> equations) {
      std::vector<TensorId> arguments;
      return oracle(cutPattern(
          program, equations, [&](TensorId t) { return isUsedOutside(equations, uses, t); },
          arguments));
    };
    FUSEC_TRY(double together, seconds({reduction, map}));
    FUSEC_TRY(double first, seconds({reduction}));
    FUSEC_TRY(double second, seconds({map}));
    if (together < 0)
      return std::string("no schedule runs both as one kernel");
    if (together > first + second)
      return "one kernel would take " + cost::secondsText(together) + ", two take " +
             cost::secondsText(first + second);
    return std::string();
  }

  static std::string_view kindOf(const Equation &e) {
    switch (e.kind) {
    case EquationKind::Map: return "a map";
    case EquationKind::Reduction: return "a reduction";
    case EquationKind::Scan: return "a scan";
    case EquationKind::Scatter: return "a scatter";
    case EquationKind::Opaque: return "opaque";
    }
    assert(false && "all kinds are above");
    return "";
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
  std::map<std::pair<TensorId, const Equation *>, std::string> reasons; // value, map that reads it
};

} // namespace

Result<Plan> buildPlan(const ExprProgram &program, const ScheduleOracle &oracle) {
  PlanBuilder builder(program, oracle);
  FUSEC_TRY(std::vector<PlanStep> steps, builder.build(program.items));
  builder.plan.steps = std::move(steps);
  builder.plan.apart = valuesBetween(builder.plan, program,
                                     [&](TensorId t, const Equation &, const Equation &consumer) {
                                       return builder.whyApart(t, consumer);
                                     });
  return std::move(builder.plan);
}

} // namespace fusec
