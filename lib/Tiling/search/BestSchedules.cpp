#include "Tiling/search/BestSchedules.h"

#include "Expr/Rows.h"
#include "Expr/transforms/Profile.h"
#include "Support/OptValues.h"
#include "Tiling/candidates/ScheduleBuilder.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/schedule/GridScan.h"
#include "Tiling/schedule/LiveReads.h"
#include "Tiling/schedule/PersistentReads.h"
#include "Tiling/schedule/ReadReuse.h"
#include "Tiling/search/JoinPhases.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace fusec {

using namespace tiling;

namespace {

/// Loops and staged operands as a tiling expression.
void describe(const Schedule &schedule, const std::vector<TreeNode> &nodes, std::string &out) {
  auto isTold = [](const TreeNode &node) { return node.isLoop || node.leaf == LeafKind::Stage; };
  const auto told = std::count_if(nodes.begin(), nodes.end(), isTold);
  const char *before = told > 1 ? "(" : " ";
  for (const TreeNode &node : nodes) {
    if (!isTold(node))
      continue;
    out += before;
    before = ", ";
    if (!node.isLoop) {
      out += schedule.operands[node.target].name;
      continue;
    }
    out += node.axis >= 0 ? schedule.axes[node.axis].name : "step";
    out += ":";
    out += std::to_string(node.step);
    describe(schedule, node.children, out);
  }
  if (told > 1)
    out += ")";
}

/// Such as "mm of 8 units m:26 n:64 k:32(s0, s1, m:2 m:1 n:16)".
std::string describe(const Schedule &schedule) {
  std::string text = schedule.name;
  for (const Rewrite &rewrite : schedule.via)
    text += " via " + print(rewrite);
  if (schedule.units > 1)
    text += " of " + std::to_string(schedule.units) + " units";
  describe(schedule, schedule.tree, text);
  return text;
}

} // namespace

Candidates tiling::plainCandidates(const ExprProgram &pattern, const Target &target,
                                   const WorkMeter &meter) {
  if (scanOf(pattern))
    return scanCandidates(pattern, target);
  std::vector<const Equation *> equations = scheduledEquations(pattern);
  const Equation &first = *equations[0];
  const bool finished = equations.size() == 2 && finishesReduction(first, *equations[1]) &&
                        pattern.tensors[first.outputs[0]].kind == TensorKind::Temp;
  if ((equations.size() > 1 && !finished) || !first.states.empty()) {
    Candidates out = sharedWalkCandidates(pattern, target);
    // Contractions need tiles, which a nest among others has not.
    if (std::none_of(equations.begin(), equations.end(),
                     [](const Equation *e) { return isContraction(*e); }))
      for (Schedule &schedule : stitchCandidates(pattern, target, meter))
        out.push_back(std::move(schedule));
    return out;
  }
  View view = makeView(pattern, target, 0, equations.size() == 2 ? 1 : -1);
  switch (first.kind) {
  case EquationKind::Map: return mapCandidates(view);
  case EquationKind::Scatter: return scatterCandidates(view);
  case EquationKind::Reduction:
    if (!sharesFactor(first))
      return reductionCandidates(view);
    return target.kind == TargetKind::Cpu ? cpuContractionCandidates(view)
                                          : gpuContractionCandidates(view);
  case EquationKind::Opaque: return topKCandidates(view);
  case EquationKind::Scan: break;
  }
  assert(false && "scans are patterns of their own");
  return Candidates{};
}

Result<std::vector<Schedule>> candidateSchedules(const ExprProgram &pattern, const Target &target) {
  FUSEC_TRY(Weighed all, weighedCandidates(pattern, target, nullptr));
  Candidates schedules;
  for (WeighedSchedule &candidate : all)
    schedules.push_back(std::move(candidate.schedule));
  return schedules;
}

std::optional<Symbol> multiplesOf(Symbol symbol, int64_t divisor) {
  using Wide = __int128;
  const Wide common = Wide{symbol.divisor} / std::gcd(symbol.divisor, divisor) * divisor;
  const auto multiple = [&](int64_t bound, bool above) {
    return (Wide{bound} + (above ? common - 1 : 0)) / common * common;
  };
  const Wide least = multiple(symbol.min, true), most = multiple(symbol.max, false);
  if (common > INT64_MAX || least > most)
    return std::nullopt;
  symbol.divisor = static_cast<int64_t>(common);
  symbol.opt = static_cast<int64_t>(std::min(multiple(symbol.opt, true), most));
  return symbol;
}

std::vector<Symbol> guardedSymbols(const ScheduleVariant &variant, std::vector<Symbol> symbols) {
  for (auto [symbol, divisor] : variant.divisors)
    if (std::optional<Symbol> guarded = multiplesOf(symbols[symbol], divisor))
      symbols[symbol] = std::move(*guarded);
  return symbols;
}

std::vector<cost::Counts> countWork(const Schedule &schedule, const ExprProgram &pattern,
                                    const Target &target) {
  const ScheduledPattern scheduled(schedule, pattern);
  return WorkMeter(scheduled.program(), target).phases(schedule);
}

/// Of the values inside the pattern that have no place on chip.
static double handedBytes(const Schedule &schedule, const ExprProgram &equations) {
  const std::vector<int64_t> symbols = optValues(equations.symbols);
  const Equation *scan = scanOf(equations);
  double bytes = 0;
  for (size_t i = 0; i < equations.tensors.size(); ++i) {
    const auto t = static_cast<TensorId>(i);
    const Tensor &tensor = equations.tensors[i];
    const bool onChip = levelOf(schedule, t) != MemLevel::Global &&
                        !(scan && outlivesStep(*scan, t, hasRounds(schedule)));
    if (tensor.kind == TensorKind::Temp && !onChip)
      bytes += double(numElements(tensor.shape).evaluate(symbols).value_or(1)) *
               sizeInBytes(tensor.type);
  }
  return bytes;
}

static Prediction predictionOf(const std::vector<cost::Counts> &phases, double seconds,
                               const Schedule &schedule, const ExprProgram &pattern,
                               const Target &target) {
  Prediction prediction{seconds, 0, 0};
  double constants = 0;
  for (const cost::Counts &counts : phases) {
    constants += counts.constantBytes;
    prediction.readBytes += counts.rounds * counts.readBytes;
    prediction.writtenBytes += counts.rounds * counts.writtenBytes;
  }
  if (!hasRounds(schedule))
    return prediction;
  // Constants, and what rounds hand to each other, are at the same places in every round: the last cache keeps them
  // where it has room.
  const ScheduledPattern scheduled(schedule, pattern);
  const double handed = handedBytes(schedule, scheduled.program());
  if (constants + handed <= double(target.memory.end()[-2].capacityBytes)) {
    const Traffic once = compulsoryTraffic(scheduled.program());
    prediction.readBytes = once.readBytes + handed;
    prediction.writtenBytes = once.writtenBytes + handed;
  }
  return prediction;
}

Prediction predict(const Schedule &schedule, const ExprProgram &pattern, const Target &target) {
  const std::vector<cost::Counts> phases = countWork(schedule, pattern, target);
  return predictionOf(phases, cost::latency(phases, target), schedule, pattern, target);
}

std::optional<StepReads> readsOfStep(const Schedule &schedule, const ExprProgram &pattern,
                                     const Target &target) {
  const ScheduledPattern scheduled(schedule, pattern);
  const ExprProgram &program = scheduled.program();
  const Equation *scan = scanOf(program);
  if (!scan)
    return std::nullopt;
  const std::vector<int64_t> symbols = optValues(pattern.symbols);
  std::set<TensorId> initial; // states that no step reads again
  for (const ScanCarry &carry : scan->carries)
    if (program.tensors[carry.init].kind == TensorKind::Constant)
      initial.insert(carry.init);
  for (const Equation *e : scheduledEquations(program))
    for (NodeId read : readsOf(*e))
      initial.erase(e->body[read].index);
  double once = 0;
  for (TensorId t : initial)
    once += double(numElements(program.tensors[t].shape).evaluate(symbols).value_or(1)) *
            sizeInBytes(program.tensors[t].type);
  StepReads reads;
  reads.steps = scan->steps.evaluate(symbols).value_or(1);
  std::array<double, cost::kLevels> bytes{};
  const bool rounds = hasRounds(schedule);
  for (const cost::Counts &phase : countWork(schedule, pattern, target)) {
    if (rounds &&
        phase.rounds == 1) { // copies the initial states, and fetches what the rounds hold
      reads.heldBytes += phase.constantBytes;
      continue;
    }
    const double constants = phase.constantBytes - (rounds ? 0 : once);
    const std::array<double, cost::kLevels> shares = cost::servedAgain(phase, target);
    for (size_t level = 0; level < shares.size(); ++level)
      bytes[level] += shares[level] * constants;
    reads.constantBytes += constants;
  }
  for (size_t level = 0; level < target.memory.size(); ++level)
    if (bytes[level] > 0)
      reads.levels.emplace_back(target.memory[level].name, bytes[level]);
  return reads.steps > 1 && reads.constantBytes + reads.heldBytes > 0
             ? std::optional(std::move(reads))
             : std::nullopt;
}

/// The cheapest of those with so many units, as tiling::phasedCandidates takes it.
static void markChosen(search::Log &log, const std::vector<int> &units, int wanted) {
  search::Evaluation *best = nullptr;
  for (size_t i = 0; i < log.size(); ++i)
    if (units[i] == wanted && (!best || log[i].score < best->score))
      best = &log[i];
  best->chosen = true;
}

Result<std::vector<ScheduleVariant>> bestSchedules(const ExprProgram &pattern, const Target &target,
                                                   const std::vector<int> &phaseStarts,
                                                   const ScheduleSearch &how) {
  KnownParts *known = how.known;
  ScheduleVariant best;
  std::vector<std::vector<int>> unitsOfPhases; // of consideredOfPhases
  auto notePhase = [&](const Weighed &candidates) {
    best.consideredOfPhases.emplace_back();
    unitsOfPhases.emplace_back();
    for (const WeighedSchedule &candidate : candidates) {
      best.consideredOfPhases.back().push_back({describe(candidate.schedule), candidate.seconds});
      unitsOfPhases.back().push_back(candidate.schedule.units);
    }
  };
  FUSEC_TRY(Weighed all, phaseStarts.empty()
                             ? weighedCandidates(pattern, target, known, how.thorough)
                             : phasedCandidates(pattern, target, phaseStarts, known, notePhase));
  if (!how.blocksWait)
    std::erase_if(all, [](const WeighedSchedule &candidate) {
      return candidate.phases.size() > 1 || hasRounds(candidate.schedule);
    });
  auto holds = [](const WeighedSchedule &candidate) { return holdsValues(candidate.schedule); };
  if (how.alwaysHolds && !phaseStarts.empty() && std::any_of(all.begin(), all.end(), holds))
    std::erase_if(all, [&](const WeighedSchedule &candidate) { return !holds(candidate); });
  if (how.thorough)
    FUSEC_CHECK(keepInFastest(all, pattern, target, known != nullptr));
  if (all.empty())
    return std::vector<ScheduleVariant>{};
  size_t chosen = search::chooseLowest(
      all.size(), [&](size_t i) { return all[i].seconds; },
      [&](size_t i) { return describe(all[i].schedule); }, best.considered);
  for (size_t p = 0; p < unitsOfPhases.size(); ++p)
    markChosen(best.consideredOfPhases[p], unitsOfPhases[p], all[chosen].schedule.units);
  for (const WeighedSchedule &candidate : all)
    best.consideredVia.push_back(candidate.schedule.via);
  for (const WeighedSchedule *candidate : fastestOfUnits(all))
    best.ofUnits[candidate->schedule.units] = {candidate->seconds, candidate->phases};
  best.schedule = std::move(all[chosen].schedule);
  best.seconds = all[chosen].seconds;
  const Prediction prediction =
      predictionOf(all[chosen].phases, all[chosen].seconds, best.schedule, pattern, target);
  best.bytes = prediction.readBytes + prediction.writtenBytes;
  std::vector<ScheduleVariant> variants;
  // A contraction whose tiles may be cut pays for its checks in code size and branches: one variant for symbols
  // that are multiples of 16 goes without.
  ScheduleVariant aligned = best;
  std::vector<Symbol> symbols = pattern.symbols;
  for (const ScheduleAxis &axis : best.schedule.axes) {
    std::vector<SymbolId> used;
    axis.extent.collectSymbols(used);
    for (SymbolId s : used)
      if (symbols[s].divisor % 16 != 0) {
        std::optional<Symbol> multiple = multiplesOf(symbols[s], 16);
        if (!multiple)
          continue;
        aligned.divisors.push_back({s, 16});
        symbols[s] = std::move(*multiple);
      }
  }
  const ScheduledPattern scheduled(best.schedule, pattern);
  if (!aligned.divisors.empty() && !scanOf(pattern) && all[chosen].phases.size() == 1 &&
      sharesFactor(*scheduledEquations(scheduled.program())[0])) {
    if (how.thorough)
      FUSEC_CHECK(decideKept(aligned.schedule, pattern, symbols, target));
    variants.push_back(std::move(aligned));
  }
  variants.push_back(std::move(best));
  return variants;
}

} // namespace fusec
