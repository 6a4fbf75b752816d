#include "Tiling/search/BestSchedules.h"

#include "Expr/Rows.h"
#include "Expr/transforms/Profile.h"
#include "Support/OptValues.h"
#include "Tiling/candidates/Candidates.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/counts/Prediction.h"
#include "Tiling/schedule/GridScan.h"
#include "Tiling/schedule/PersistentReads.h"
#include "Tiling/schedule/Schedule.h"
#include "Tiling/search/ChooseReuse.h"
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

/// Describes a schedule: "mm of 8 units m:26 n:64 k:32(s0, s1, m:2 m:1 n:16)".
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

Result<std::vector<Schedule>> candidateSchedules(const ExprProgram &pattern, const Target &target) {
  FUSEC_TRY(PricedSchedules all, pricedCandidates(pattern, target, nullptr));
  Candidates schedules;
  for (PricedSchedule &candidate : all)
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
  PartScheduleCache *known = how.known;
  ScheduleVariant best;
  std::vector<std::vector<int>> unitsOfPhases; // of consideredOfPhases
  auto notePhase = [&](const PricedSchedules &candidates) {
    best.consideredOfPhases.emplace_back();
    unitsOfPhases.emplace_back();
    for (const PricedSchedule &candidate : candidates) {
      best.consideredOfPhases.back().push_back({describe(candidate.schedule), candidate.seconds});
      unitsOfPhases.back().push_back(candidate.schedule.units);
    }
  };
  FUSEC_TRY(PricedSchedules all,
            phaseStarts.empty() ? pricedCandidates(pattern, target, known, how.thorough)
                                : phasedCandidates(pattern, target, phaseStarts, known, notePhase));
  if (!how.blocksWait)
    std::erase_if(all, [](const PricedSchedule &candidate) {
      return candidate.phases.size() > 1 || hasGridScan(candidate.schedule);
    });
  auto holds = [](const PricedSchedule &candidate) {
    return hasPersistentReads(candidate.schedule);
  };
  if (how.alwaysHolds && !phaseStarts.empty() && std::any_of(all.begin(), all.end(), holds))
    std::erase_if(all, [&](const PricedSchedule &candidate) { return !holds(candidate); });
  if (how.thorough)
    FUSEC_CHECK(chooseReuseOfFastest(all, pattern, target, known != nullptr));
  if (all.empty())
    return std::vector<ScheduleVariant>{};
  size_t chosen = search::chooseLowest(
      all.size(), [&](size_t i) { return all[i].seconds; },
      [&](size_t i) { return describe(all[i].schedule); }, best.considered);
  for (size_t p = 0; p < unitsOfPhases.size(); ++p)
    markChosen(best.consideredOfPhases[p], unitsOfPhases[p], all[chosen].schedule.units);
  for (const PricedSchedule &candidate : all)
    best.consideredVia.push_back(candidate.schedule.via);
  for (const PricedSchedule *candidate : fastestOfUnits(all))
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
      FUSEC_CHECK(chooseReadReuse(aligned.schedule, pattern, symbols, target));
    variants.push_back(std::move(aligned));
  }
  variants.push_back(std::move(best));
  return variants;
}

} // namespace fusec
