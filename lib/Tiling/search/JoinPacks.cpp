// Kernel packing (FusionStitching, section 4.1): equations that do not need each other run side by side in one kernel,
// each with blocks of its own, so that small ones fill a device together and one launch stands for all. Three
// projections of one tensor:
//
//   block m0:64 { block n0:64 { .. compute e0 .. } }      # blocks 0 to 23
//   block m1:64 { block n1:64 { .. compute e1 .. } }      # blocks 24 to 47
//   block m2:64 { block n2:64 { .. compute e2 .. } }      # blocks 48 to 71
//
// A part is what the pattern's values hold together, and takes the schedule that is best for it: alone on the device,
// or with its share of it. All parts have a block's units in common. Packs are ranked by what their parts count alone,
// and the first ones are candidates. Parts without a block loop (one block does all) are not packed. What threads keep
// is decided once a part: blocks of one part have no values of another's.
#include "Tiling/search/JoinPacks.h"
#include "Cost/Cost.h"
#include "Support/Hash.h"
#include "Tiling/candidates/LoopTemplates.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/schedule/Phases.h"
#include "Tiling/schedule/Schedule.h"
#include "Tiling/search/ChooseReuse.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

namespace fusec::tiling {

namespace {

constexpr size_t kMostPacks = 2; // of those that the parts' counts rank best

/// Positions of equations that values of the program connect, in order of their first one.
std::vector<std::vector<int>> partsOf(const std::vector<EquationFacts> &equations) {
  std::vector<int> part(equations.size());
  std::iota(part.begin(), part.end(), 0);
  std::map<TensorId, size_t> makers;
  for (size_t e = 0; e < equations.size(); ++e) {
    const Equation &equation = equations[e].equation;
    for (TensorId t : equations[e].tensors)
      if (auto maker = makers.find(t); maker != makers.end()) {
        const int other = part[maker->second], own = part[e];
        std::ranges::replace(part, std::max(other, own), std::min(other, own));
      }
    for (TensorId t : equation.outputs)
      makers[t] = e;
  }
  std::map<int, std::vector<int>> groups;
  for (size_t e = 0; e < equations.size(); ++e)
    groups[part[e]].push_back(static_cast<int>(e));
  std::vector<std::vector<int>> out;
  for (auto &[first, group] : groups)
    out.push_back(std::move(group));
  return out;
}

struct Part {
  std::vector<int> equations; // positions in the pattern
  ExprProgram program;
  std::vector<TensorId> made;
  std::shared_ptr<PartSchedules> known;
};

/// Index of the fastest schedule with these units; nullopt where there is none.
std::optional<size_t> best(const PartSchedules &part, int units, const Target &target) {
  std::optional<size_t> found;
  double least = 0;
  for (size_t s = 0; s < part.schedules.size(); ++s) {
    if (part.schedules[s].schedule.units != units)
      continue;
    const double seconds = cost::latency(part.schedules[s].phases, target);
    if (!found || seconds < least) {
      found = s;
      least = seconds;
    }
  }
  return found;
}

/// What candidates and their counts depend on: the equations without the names of tensors, which of the tensors they
/// read are the same, and which values leave.
std::string keyOf(const ExprProgram &part) {
  std::string key;
  std::map<TensorId, std::string> names;
  for (const Equation *e : scheduledEquations(part)) {
    key += canonicalText(*e, part) + "\n";
    for (const Axis &axis : e->axes)
      key += axis.extent.str(part.symbols) + ",";
    for (NodeId read : readsOf(*e)) {
      const TensorId t = e->body[read].index;
      const char *kind = part.tensors[t].kind == TensorKind::Constant ? "c" : "i";
      key += names.try_emplace(t, kind + std::to_string(names.size())).first->second;
    }
    for (TensorId t : e->outputs) {
      key += part.tensors[t].kind == TensorKind::Temp ? "t" : "o";
      names[t] = "v" + std::to_string(names.size());
    }
  }
  return key;
}

/// The part's candidates that are made of blocks.
Result<std::shared_ptr<PartSchedules>>
schedulesOf(const ExprProgram &part, std::vector<TensorId> made, const Target &target) {
  auto out = std::make_shared<PartSchedules>();
  out->part = part;
  out->made = std::move(made);
  FUSEC_TRY(PricedSchedules all, ownCandidates(part, target));
  for (PricedSchedule &candidate : all)
    if (onlyBlockLoop(candidate.schedule.tree))
      out->schedules.push_back(std::move(candidate));
  return out;
}

/// The schedule with what its threads keep.
Result<const PricedSchedule *> keepingSchedule(PartSchedules &known, size_t number,
                                               const Target &target) {
  auto it = known.keeping.find(number);
  if (it == known.keeping.end()) {
    PricedSchedule schedule = known.schedules[number];
    FUSEC_CHECK(chooseReadReuse(schedule, known.part, target));
    it = known.keeping.emplace(number, std::move(schedule)).first;
  }
  return &it->second;
}

/// One schedule of each part, side by side.
struct Pack {
  int units = 1;
  std::vector<size_t> chosen; // of each part's schedules
  double seconds = 0;         // without what parts read in common
};

std::optional<Pack> packOf(const std::vector<Part> &parts, int units, const Target &place,
                           const Target &target) {
  Pack pack;
  pack.units = units;
  std::vector<cost::Counts> counts;
  for (const Part &part : parts) {
    const std::optional<size_t> s = best(*part.known, units, place);
    if (!s)
      return std::nullopt;
    pack.chosen.push_back(*s);
    counts.push_back(part.known->schedules[*s].phases.front());
  }
  pack.seconds = cost::latency(cost::sideBySide(counts), target);
  return pack;
}

/// The pack as one schedule; nullopt where it has more axes than a schedule may.
Result<std::optional<PricedSchedule>> candidateOf(const Pack &pack, const std::vector<Part> &parts,
                                                  WorkMeter &meter, const Target &target) {
  Schedule out;
  std::vector<cost::Counts> counts;
  out.name = GeneratorName("pack");
  out.name += "-" + std::to_string(parts.size());
  out.units = pack.units;
  for (size_t p = 0; p < parts.size(); ++p) {
    const PartSchedules &known = *parts[p].known;
    FUSEC_TRY(const PricedSchedule *candidate,
              keepingSchedule(*parts[p].known, pack.chosen[p], target));
    counts.push_back(candidate->phases.front());
    Schedule schedule = candidate->schedule;
    out.lanes = schedule.lanes;
    renumberEquations(
        schedule, [&](int equation) { return parts[p].equations[static_cast<size_t>(equation)]; });
    auto renumbered = [&](TensorId tensor) {
      const auto at = std::ranges::find(known.made, tensor);
      return parts[p].made[static_cast<size_t>(at - known.made.begin())];
    };
    for (const auto &[tensor, level, in] : schedule.edges)
      out.edges.push_back({renumbered(tensor), level, in < 0 ? in : renumbered(in)});
    out.kept.insert(out.kept.end(), schedule.kept.begin(), schedule.kept.end());
    for (TreeNode &node : spliceLoops(out, std::move(schedule), "." + std::to_string(p)))
      out.tree.push_back(std::move(node));
  }
  std::ranges::sort(out.kept);
  if (out.axes.size() > kMostAxes)
    return std::optional<PricedSchedule>();
  const cost::Counts all = meter.pack(out, counts);
  return std::optional(priced(std::move(out), {all}, target));
}

} // namespace

Result<PricedSchedules> packCandidates(const ScheduledProgram &program, const Target &target,
                                       PartScheduleCache *known) {
  const std::vector<const Equation *> &equations = program.equations;
  if (program.scan || equations.size() < 2)
    return PricedSchedules{};
  for (const Equation *e : equations) {
    if (e->kind != EquationKind::Map && e->kind != EquationKind::Reduction)
      return PricedSchedules{};
    for (const Axis &axis : e->axes)
      if (axis.extent.isConst(0))
        return PricedSchedules{};
  }
  std::vector<std::vector<int>> groups = partsOf(program.facts);
  if (groups.size() < 2)
    return PricedSchedules{};
  const ExprProgram &pattern = program.expr;
  std::vector<Part> parts;
  for (std::vector<int> &group : groups) {
    Part part;
    part.program.symbols = pattern.symbols;
    part.program.tensors = pattern.tensors;
    part.program.inputs = pattern.inputs;
    part.program.outputs = pattern.outputs;
    for (int e : group) {
      part.program.items.push_back(pattern.items[e]);
      part.made.insert(part.made.end(), equations[e]->outputs.begin(), equations[e]->outputs.end());
    }
    const std::set<TensorId> made(part.made.begin(), part.made.end());
    for (size_t t = 0; t < part.program.tensors.size(); ++t)
      if (Tensor &tensor = part.program.tensors[t];
          tensor.kind == TensorKind::Temp && made.count(static_cast<TensorId>(t)) == 0)
        tensor.kind = TensorKind::Input; // another part's
    part.equations = std::move(group);
    parts.push_back(std::move(part));
  }
  PartScheduleCache own;
  PartScheduleCache &all = known ? *known : own;
  std::set<int> units;
  for (Part &part : parts) {
    std::shared_ptr<PartSchedules> &schedules = all.parts[hash128(keyOf(part.program))];
    ++all.lookups;
    if (!schedules) {
      FUSEC_TRY(schedules, schedulesOf(part.program, part.made, target));
    }
    part.known = schedules;
    if (schedules->schedules.empty())
      return PricedSchedules{};
    for (const PricedSchedule &candidate : schedules->schedules)
      units.insert(candidate.schedule.units);
  }
  Target share = target;
  share.cores = std::max(1, target.cores / static_cast<int>(parts.size()));
  std::vector<Pack> packs;
  for (int u : units)
    for (const Target *place : {&std::as_const(share), &target})
      if (std::optional<Pack> pack = packOf(parts, u, *place, target))
        packs.push_back(std::move(*pack));
  std::ranges::stable_sort(packs,
                           [](const Pack &a, const Pack &b) { return a.seconds < b.seconds; });
  PricedSchedules out;
  WorkMeter meter(program, target);
  for (size_t p = 0; p < std::min(kMostPacks, packs.size()); ++p) {
    FUSEC_TRY(std::optional<PricedSchedule> made, candidateOf(packs[p], parts, meter, target));
    if (made)
      out.push_back(std::move(*made));
  }
  return out;
}

} // namespace fusec::tiling
