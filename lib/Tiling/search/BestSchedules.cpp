#include "Tiling/search/BestSchedules.h"

#include "Expr/SizeLimits.h"
#include "Expr/transforms/Profile.h"
#include "Support/OptValues.h"
#include "Support/TunedSizes.h"
#include "Tiling/counts/Prediction.h"
#include "Tiling/schedule/PersistentReads.h"
#include "Tiling/search/ChooseReuse.h"
#include "Tiling/search/PhaseCandidates.h"
#include "Tiling/space/Generate.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace fusec {

using namespace tiling;

namespace {

/// Loops and staged operands as a tiling expression.
void describe(const Schedule &schedule, const std::vector<TreeNode> &nodes, std::string &out) {
  auto isTold = [](const TreeNode &node) { return node.loop() || node.leaf(LeafKind::Stage); };
  const auto told = std::ranges::count_if(nodes, isTold);
  const char *before = told > 1 ? "(" : " ";
  for (const TreeNode &node : nodes) {
    if (!isTold(node))
      continue;
    out += before;
    before = ", ";
    if (const LeafNode *stage = node.leaf()) {
      out += schedule.operands[stage->operand].name;
      continue;
    }
    const LoopNode &loop = *node.loop();
    out += loop.axis >= 0 ? schedule.axes[loop.axis].name : "step";
    out += ":";
    out += std::to_string(loop.step);
    describe(schedule, loop.children, out);
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
  symbols = tunedFor(symbols, optValues(symbols));
  for (const Rewrite &rewrite : variant.schedule.via)
    if (rewrite.alternative == kSizeMost)
      for (size_t s = 0; s < symbols.size(); ++s) {
        const DimExpr most(rewrite.choice), size = DimExpr::symbol(static_cast<SymbolId>(s));
        if (symbols[s].max > rewrite.choice && isImplied({most - size}, variant.guards)) {
          symbols[s].max =
              floorDiv(most, DimExpr(symbols[s].divisor)).constValue() * symbols[s].divisor;
          symbols[s].opt = std::min(symbols[s].opt, symbols[s].max);
        }
      }
  for (const Guard &guard : variant.guards) {
    if (guard.modulus == 0 || guard.value.op() != DimExpr::Op::Symbol)
      continue;
    Symbol &symbol = symbols[guard.value.symbolId()];
    if (std::optional<Symbol> guarded = multiplesOf(symbol, guard.modulus))
      symbol = std::move(*guarded);
  }
  return symbols;
}

namespace {

/// The candidates of each phase of a kernel, and their numbers of units.
struct PhaseLogs {
  std::vector<search::Log> &logs;
  std::vector<std::vector<int>> units;

  void note(const PricedSchedules &candidates) {
    logs.emplace_back();
    units.emplace_back();
    for (const PricedSchedule &candidate : candidates) {
      logs.back().push_back({describe(candidate.schedule), candidate.seconds});
      units.back().push_back(candidate.schedule.units);
    }
  }

  /// Marks in each phase the cheapest one with the kernel's number of units, as tiling::phasedCandidates takes it.
  void markChosen(int wanted) {
    for (size_t p = 0; p < logs.size(); ++p) {
      search::Evaluation *best = nullptr;
      for (size_t i = 0; i < logs[p].size(); ++i)
        if (units[p][i] == wanted && (!best || logs[p][i].score < best->score))
          best = &logs[p][i];
      best->chosen = true;
    }
  }
};

/// Seconds that the bytes of a candidate take, if nothing else took any.
double secondsOfBytes(const PricedSchedule &candidate, const Target &target) {
  std::vector<cost::Counts> phases = candidate.phases;
  for (cost::Counts &phase : phases)
    phase.vectorOps = phase.vectorLoads = phase.stagedLoads = phase.gathers = phase.stalls =
        phase.fills = phase.barriers = 0;
  return cost::latency(phases, target);
}

void keepFewestBytes(PricedSchedules &trees, const Target &target) {
  double least = std::numeric_limits<double>::infinity();
  for (const PricedSchedule &tree : trees)
    least = std::min(least, secondsOfBytes(tree, target));
  std::erase_if(trees,
                [&](const PricedSchedule &tree) { return secondsOfBytes(tree, target) > least; });
}

/// The candidates that the search may choose from, with what their threads keep where it is thorough.
Result<PricedSchedules> allowedCandidates(const ExprProgram &pattern, const Target &target,
                                          const std::vector<int> &phaseStarts,
                                          const ScheduleSearch &how, PhaseLogs &phases) {
  FUSEC_TRY(PricedSchedules all,
            phaseStarts.empty()
                ? pricedCandidates(pattern, target, how.known, how.thorough)
                : phasedCandidates(pattern, target, phaseStarts, how.known,
                                   [&](const PricedSchedules &of) { phases.note(of); }));
  if (!how.blocksWait)
    std::erase_if(all, [](const PricedSchedule &candidate) {
      return candidate.phases.size() > 1 || hasGridScan(candidate.schedule);
    });
  if (how.bytesAlone && !all.empty() && all.front().isTree)
    keepFewestBytes(all, target);
  auto holds = [](const PricedSchedule &candidate) {
    return hasPersistentReads(candidate.schedule);
  };
  if (how.alwaysHolds && !phaseStarts.empty() && std::ranges::any_of(all, holds))
    std::erase_if(all, [&](const PricedSchedule &candidate) { return !holds(candidate); });
  if (how.thorough)
    FUSEC_CHECK(chooseReuseOfFastest(all, pattern, target, how.known != nullptr));
  return all;
}

/// The largest power of 2 up to 16 that the extent is always a multiple of.
int64_t multipleOf(const DimExpr &extent, const std::vector<Symbol> &symbols) {
  int64_t multiple = 16;
  while (multiple > 1 && !extent.divisibleBy(multiple, symbols))
    multiple /= 2;
  return multiple;
}

/// A contraction whose tiles may be cut pays for its checks in code size and branches: a variant for symbols that are
/// multiples of 16 goes without. It runs where those that the pattern is tuned for are such multiples; others would
/// double its code for sizes that seldom run, such as 16 rows of what is tuned for 8.
Result<std::optional<ScheduleVariant>> alignedVariant(const ScheduleVariant &best,
                                                      const BoundSchedule &bound,
                                                      const ExprProgram &pattern,
                                                      const Target &target, bool thorough) {
  std::optional<ScheduleVariant> aligned;
  if (scanOf(pattern) || bound.phases().size() > 1 || !sharesFactor(bound.equation(0)))
    return aligned;
  std::vector<Symbol> symbols = tunedFor(pattern.symbols, optValues(pattern.symbols));
  std::vector<Guard> guards;
  for (const ScheduleAxis &axis : best.schedule.axes) {
    std::vector<SymbolId> used;
    axis.extent.collectSymbols(used);
    std::erase_if(used, [&](SymbolId s) { return symbols[s].opt % 16 != 0; });
    std::vector<Symbol> multiples = symbols;
    std::vector<Guard> tests;
    for (SymbolId s : used)
      if (std::optional<Symbol> multiple = multiplesOf(multiples[s], 16);
          multiple && multiples[s].divisor % 16 != 0 && multipleOf(axis.extent, multiples) < 16) {
        tests.push_back({DimExpr::symbol(s), 16});
        multiples[s] = std::move(*multiple);
      }
    // They tell nothing of a number of windows, floordiv(n - 10, 80).
    if (multipleOf(axis.extent, multiples) > multipleOf(axis.extent, symbols)) {
      guards.insert(guards.end(), tests.begin(), tests.end());
      symbols = std::move(multiples);
    }
  }
  if (guards.empty())
    return aligned;
  aligned = best;
  aligned->guards = std::move(guards);
  if (thorough)
    FUSEC_CHECK(chooseReadReuse(aligned->schedule, pattern, symbols, target));
  return aligned;
}

} // namespace

Result<std::vector<ScheduleVariant>> bestSchedules(const ExprProgram &pattern, const Target &target,
                                                   const std::vector<int> &phaseStarts,
                                                   const ScheduleSearch &how) {
  ScheduleVariant best;
  PhaseLogs phases{best.consideredOfPhases, {}};
  FUSEC_TRY(PricedSchedules all, allowedCandidates(pattern, target, phaseStarts, how, phases));
  if (all.empty())
    return std::vector<ScheduleVariant>{};
  PricedSchedule &chosen = all[search::chooseLowest(
      all.size(), [&](size_t i) { return all[i].seconds; },
      [&](size_t i) { return describe(all[i].schedule); }, best.considered)];
  phases.markChosen(chosen.schedule.units);
  for (const PricedSchedule &candidate : all)
    best.consideredVia.push_back(candidate.schedule.via);
  for (const PricedSchedule *candidate : fastestOfUnits(all))
    best.ofUnits[candidate->schedule.units] = {candidate->seconds, candidate->phases};
  best.schedule = std::move(chosen.schedule);
  best.seconds = chosen.seconds;
  const BoundSchedule bound(best.schedule, pattern);
  const Prediction prediction = predictionOf(chosen.phases, chosen.seconds, bound, target);
  best.bytes = prediction.readBytes + prediction.writtenBytes;
  std::vector<ScheduleVariant> variants;
  FUSEC_TRY(std::optional<ScheduleVariant> aligned,
            alignedVariant(best, bound, pattern, target, how.thorough));
  if (aligned)
    variants.push_back(std::move(*aligned));
  variants.push_back(std::move(best));
  return variants;
}

} // namespace fusec
