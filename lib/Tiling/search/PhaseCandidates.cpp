#include "Tiling/search/PhaseCandidates.h"

#include "Expr/PatternPart.h"
#include "Tiling/candidates/LoopTemplates.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/schedule/PhaseSignals.h"
#include "Tiling/schedule/Phases.h"
#include "Tiling/search/ChooseReuse.h"
#include "Tiling/search/MatchingLoops.h"

#include <algorithm>
#include <cassert>
#include <map>

namespace fusec::tiling {

namespace {

/// Makes counters of the barriers where the model says that they cost less and the rules allow it, and notes it in
/// `phases`, the work of each phase.
void chooseSignals(Schedule &schedule, const ExprProgram &pattern,
                   std::vector<cost::Counts> &phases, const Target &target) {
  const std::vector<TreeNode> barriers = schedule.tree;
  const double before = cost::latency(phases, target);
  size_t phase = 0;
  bool any = false;
  for (TreeNode &node : schedule.tree) {
    if (!node.isBorder())
      continue;
    ++phase;
    if (!cost::countersPay(phases[phase - 1], phases[phase], target))
      continue;
    node.leaf()->kind = LeafKind::Counters;
    phases[phase].waits = any = true;
  }
  if (any && cost::latency(phases, target) < before &&
      phaseSignals({schedule, ScheduledProgram(pattern)}).problems.empty())
    return;
  schedule.tree = barriers;
  for (cost::Counts &counts : phases)
    counts.waits = false;
}

/// A read of a phase whose values threads have from an earlier one.
struct PersistentBetween {
  size_t phase, fromPhase;
  ReadPlace read, from; // in their phases
};

/// One kernel of several phases on its way: `pattern` with what the phases so far make of it.
struct MultiPhaseSchedule {
  ExprProgram pattern;
  PricedSchedule whole;
  /// Edges by name: alternatives give tensors other numbers, not other names.
  struct NamedEdge {
    std::string tensor;
    MemLevel level;
    std::string in; // empty: none
  };
  std::vector<NamedEdge> edges;
  int equations = 0; // of the phases so far

  std::vector<int> starts; // the first equation of each phase

  /// Adds a candidate as a phase of the pattern's `part`. False where its alternatives leave others nothing to do.
  bool add(PricedSchedule candidate, ExprProgram part, const std::string &suffix) {
    Schedule &phase = candidate.schedule, &schedule = whole.schedule;
    starts.push_back(equations);
    for (Rewrite rewrite : phase.via) {
      assert(rewrite.count == 0 && "the alternatives of a phase are about all of it");
      const Rewrite ofPart = rewrite;
      rewrite.first = equations;
      rewrite.count = static_cast<int>(part.items.size());
      std::optional<ExprProgram> next = rewritten(pattern, {rewrite});
      if (!next)
        return false;
      pattern = std::move(*next);
      part = *rewritten(part, {ofPart});
      schedule.via.push_back(std::move(rewrite));
    }
    for (const auto &[tensor, level, in] : phase.edges)
      edges.push_back({part.tensors[tensor].name, level, in < 0 ? "" : part.tensors[in].name});
    schedule.lanes = phase.lanes;
    renumberEquations(phase, [&](int equation) { return equation + equations; });
    equations += static_cast<int>(part.items.size());
    if (!schedule.tree.empty())
      schedule.tree.push_back(LeafNode{LeafKind::Barrier});
    for (TreeNode &node : spliceLoops(schedule, std::move(phase), suffix))
      schedule.tree.push_back(std::move(node));
    whole.phases.insert(whole.phases.end(), candidate.phases.begin(), candidate.phases.end());
    return true;
  }

  PricedSchedule finish(const Target &target) {
    placeEdges();
    cost::applyWorstOccupancy(whole.phases);
    return weigh(target);
  }

  /// The schedule whose threads hold that; nothing where the target does not hold all of its blocks at once.
  std::optional<PricedSchedule> holding(const std::vector<PersistentBetween> &held,
                                        const Target &target) {
    placeEdges();
    Schedule &schedule = whole.schedule;
    schedule.name += "-held";
    for (auto [phase, fromPhase, read, from] : held) {
      read.equation += starts[phase];
      from.equation += starts[fromPhase];
      schedule.kept.push_back({read, MemLevel::Register, from});
    }
    std::ranges::sort(schedule.kept);
    const ScheduledProgram program(pattern);
    whole.phases = WorkMeter(program, target).residentPhases({schedule, program});
    if (!areResident(whole.phases, target))
      return std::nullopt;
    return weigh(target);
  }

private:
  void placeEdges() {
    auto numberOf = [&](const std::string &name) {
      const auto at = std::ranges::find(pattern.tensors, name, &Tensor::name);
      return at == pattern.tensors.end() ? TensorId(-1)
                                         : static_cast<TensorId>(at - pattern.tensors.begin());
    };
    for (const auto &[tensor, level, in] : edges)
      if (const TensorId t = numberOf(tensor); t >= 0)
        whole.schedule.edges.push_back({t, level, in.empty() ? TensorId(-1) : numberOf(in)});
  }

  PricedSchedule weigh(const Target &target) {
    chooseSignals(whole.schedule, pattern, whole.phases, target);
    whole.seconds = cost::latency(whole.phases, target);
    return std::move(whole);
  }
};

/// Phases of one map, or that their alternatives make one, get the loops of the nearest one before them that walks the
/// same elements; says what they read of these.
std::vector<PersistentBetween> walkAlike(std::vector<PricedSchedule> &phases,
                                         const std::vector<ExprProgram> &parts,
                                         const Target &target) {
  std::vector<PersistentBetween> out;
  if (!cost::joinsPhases(target) || !target.keepsReads)
    return out;
  for (size_t p = 1; p < phases.size(); ++p) {
    const std::vector<Rewrite> via = phases[p].schedule.via;
    if (parts[p].items.size() != 1 && via.empty())
      continue;
    const ScheduledProgram part(parts[p], via);
    if (part.equations.size() != 1)
      continue;
    for (size_t before = p; before-- > 0;) {
      const Schedule &schedule = phases[before].schedule;
      const BoundSchedule bound(schedule, parts[before]);
      if (std::optional<MatchedLoops> walk = matchLoops(bound, part.expr)) {
        for (const auto &[read, from] : walk->held) {
          // What that one holds itself comes from the phase that has read it.
          const auto held = std::ranges::find_if(
              out, [&](const PersistentBetween &h) { return h.phase == before && h.read == from; });
          out.push_back(held == out.end()
                            ? PersistentBetween{p, before, read, from}
                            : PersistentBetween{p, held->fromPhase, read, held->from});
        }
        phases[p].schedule = std::move(walk->schedule);
        phases[p].schedule.via = via;
        break;
      }
    }
  }
  return out;
}

/// One kernel of a schedule for each phase; nothing where alternatives leave a phase nothing to do, or there are too
/// many axes.
std::optional<MultiPhaseSchedule> joined(const ExprProgram &pattern,
                                         std::vector<PricedSchedule> phases,
                                         const std::vector<ExprProgram> &parts,
                                         const Target &target) {
  std::optional<MultiPhaseSchedule> joining(std::in_place);
  joining->pattern = pattern;
  joining->whole.schedule.name = GeneratorName("phases");
  joining->whole.schedule.units = phases.front().schedule.units;
  for (size_t p = 0; p < phases.size(); ++p)
    if (!joining->add(std::move(phases[p]), parts[p], "p" + std::to_string(p)))
      return std::nullopt;
  if (hasTooManyAxes(joining->whole.schedule, target))
    return std::nullopt;
  return joining;
}

} // namespace

Result<PricedSchedules> joinedPhases(const ExprProgram &pattern, const Target &target,
                                     const std::vector<int> &phaseStarts,
                                     const CandidatesOf &candidatesOf) {
  for (const Equation *e : scheduledEquations(pattern))
    if (scanOf(pattern) || (e->kind != EquationKind::Map && e->kind != EquationKind::Reduction))
      return PricedSchedules{};
  std::map<int, std::vector<PricedSchedule>> ofUnits; // one a phase
  std::vector<int> bounds = phaseStarts;
  bounds.insert(bounds.begin(), 0);
  bounds.push_back(static_cast<int>(pattern.items.size()));
  std::vector<ExprProgram> parts;
  for (size_t p = 0; p + 1 < bounds.size(); ++p) {
    parts.push_back(partOfPattern(pattern, bounds[p], bounds[p + 1]));
    FUSEC_TRY(PricedSchedules candidates, candidatesOf(parts.back()));
    for (PricedSchedule &candidate : candidates) {
      std::vector<PricedSchedule> &phases = ofUnits[candidate.schedule.units];
      if (phases.size() == p)
        phases.push_back(std::move(candidate));
      else if (phases.size() == p + 1 && candidate.seconds < phases[p].seconds)
        phases[p] = std::move(candidate);
    }
  }
  PricedSchedules out;
  for (auto &[units, phases] : ofUnits) {
    if (phases.size() + 1 != bounds.size())
      continue;
    std::vector<PricedSchedule> alike = phases;
    if (std::optional<MultiPhaseSchedule> joining =
            joined(pattern, std::move(phases), parts, target))
      out.push_back(joining->finish(target));
    if (const std::vector<PersistentBetween> held = walkAlike(alike, parts, target); !held.empty())
      if (std::optional<MultiPhaseSchedule> joining =
              joined(pattern, std::move(alike), parts, target))
        if (std::optional<PricedSchedule> holding = joining->holding(held, target))
          out.push_back(std::move(*holding));
  }
  return out;
}

Result<PricedSchedules> phasedCandidates(const ExprProgram &pattern, const Target &target,
                                         const std::vector<int> &phaseStarts,
                                         PartScheduleCache *known,
                                         const std::function<void(const PricedSchedules &)> &see) {
  return joinedPhases(pattern, target, phaseStarts,
                      [&](const ExprProgram &part) -> Result<PricedSchedules> {
                        FUSEC_TRY(PricedSchedules all, pricedCandidates(part, target, known));
                        FUSEC_CHECK(chooseReuseOfFastest(all, part, target, known != nullptr));
                        if (see)
                          see(all);
                        return all;
                      });
}

} // namespace fusec::tiling
