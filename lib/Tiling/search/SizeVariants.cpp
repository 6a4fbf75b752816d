// Variants for sizes. A product [n,k] x [k,m] whose n is tuned for 1, 8, 128 and 512 asks for its best schedule at
// each of these; they may be four, or the same one three times. What each would take at all of these sizes, and at
// those half way between, makes a table; of it a few schedules are enough (search/PlanVariants.cpp), and a tree of
// tests that tells them apart:
//
//   n:        1     3     8     32    128   256   512   1024
//   rows      2     6     17    66    264   529   1057  2115     us
//   mm 4      7     7     14    56    225   450   900   1800
//   mm 16     20    20    20    40    150   300   600   1200
//
//   n >= 16: "mm 16"
//   n >= 5: "mm 4"
//   "rows"
//
// Where a symbol may be 1, what is best there may be a schedule of the pattern with this 1 written in
// (Expr/transforms/SizeLimits.cpp): its guards let no other size through. Where rows of symbolic length are summed,
// each search may take lengths to be twice the size at hand at most, so that a block's own memory holds what it makes
// of a row; guards see to that, and larger sizes take what is best for them among the schedules without a limit.
//
// Tests speak of what schedules feel: the extents of the pattern's axes, and the product of those that are symbolic, as
// batch*length is for the rows of a product.
#include "Tiling/search/SizeVariants.h"

#include "Cost/Cost.h"
#include "Expr/Padding.h"
#include "Expr/SizeLimits.h"
#include "Support/OptValues.h"
#include "Support/TunedSizes.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/counts/OnChipStorage.h"
#include "Tiling/lower/Lower.h"
#include "Tiling/search/SizeChoice.h"
#include "Tiling/search/VariantList.h"
#include "Tiling/verify/Verify.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <set>

namespace fusec {

using namespace tiling;

namespace {

using Values = std::vector<int64_t>;

void addFeature(const DimExpr &feature, std::vector<DimExpr> &list) {
  if (!feature.isConst() && std::find(list.begin(), list.end(), feature) == list.end())
    list.push_back(feature);
}

void addExtents(const Equation &e, std::vector<DimExpr> &list) {
  for (const Axis &axis : e.axes)
    addFeature(axis.extent, list);
  addFeature(e.steps, list);
  for (const Equation &inner : e.scanBody)
    addExtents(inner, list);
}

void addProducts(const Equation &e, std::vector<DimExpr> &list) {
  DimExpr product(1);
  for (int axis = 0; axis < e.numSpatial; ++axis)
    if (!e.axes[static_cast<size_t>(axis)].extent.isConst())
      product = product * e.axes[static_cast<size_t>(axis)].extent;
  addFeature(product, list);
  for (const Equation &inner : e.scanBody)
    addProducts(inner, list);
}

/// What tests speak of: extents, then products.
std::vector<DimExpr> featuresOf(const ExprProgram &pattern, size_t &extents) {
  std::vector<DimExpr> list;
  for (const Item &item : pattern.items)
    addExtents(std::get<Equation>(item.value), list);
  extents = list.size();
  for (const Item &item : pattern.items)
    addProducts(std::get<Equation>(item.value), list);
  return list;
}

Values valuesOf(const std::vector<DimExpr> &features, const Values &symbols) {
  Values values;
  for (const DimExpr &feature : features)
    values.push_back(feature.evaluate(symbols).value_or(0));
  return values;
}

/// Half way by the ratio, as near as the symbol comes to it.
int64_t middle(const Symbol &symbol, int64_t low, int64_t high) {
  const auto wanted = static_cast<int64_t>(std::llround(std::sqrt(double(low) * double(high))));
  const int64_t multiple = wanted / symbol.divisor * symbol.divisor;
  return std::clamp(multiple, low, high);
}

bool isAtMost(const Values &a, const Values &b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](int64_t x, int64_t y) { return x <= y; });
}

/// The typical sizes and all tuned ones, those half way between neighbours, those where one symbol alone has the larger
/// of them, so that tests speak of the one that matters, and one beyond the largest.
std::vector<Values> sizesAround(const ExprProgram &pattern, const std::vector<Values> &tuned) {
  std::vector<Values> sizes = {optValues(pattern.symbols)};
  sizes.insert(sizes.end(), tuned.begin(), tuned.end());
  auto add = [&](auto value) {
    sizes.emplace_back();
    for (size_t s = 0; s < pattern.symbols.size(); ++s)
      sizes.back().push_back(value(s));
  };
  for (const Values &low : tuned)
    for (const Values &high : tuned) {
      auto between = [&](const Values &other) {
        return other != low && other != high && isAtMost(low, other) && isAtMost(other, high);
      };
      if (low == high || !isAtMost(low, high) || std::any_of(tuned.begin(), tuned.end(), between))
        continue;
      add([&](size_t s) { return middle(pattern.symbols[s], low[s], high[s]); });
      for (size_t one = 0; one < pattern.symbols.size(); ++one)
        if (low[one] != high[one] && !pattern.symbols[one].definition)
          add([&](size_t s) { return s == one ? high[s] : low[s]; });
    }
  add([&](size_t s) {
    const Symbol &symbol = pattern.symbols[s];
    int64_t largest = 0;
    for (const Values &values : tuned)
      largest = std::max(largest, values[s]);
    return largest <= symbol.max / 2 ? 2 * largest : symbol.max / symbol.divisor * symbol.divisor;
  });
  for (Values &values : sizes)
    setComputed(pattern.symbols, values);
  return sizes;
}

/// The numbers of the first of those that look alike to the pattern's extents, for each size.
std::vector<size_t> firstAlike(const std::vector<Values> &sizes,
                               const std::vector<DimExpr> &extents) {
  std::vector<size_t> first;
  std::map<Values, size_t> seen;
  for (const Values &values : sizes)
    first.push_back(seen.emplace(valuesOf(extents, values), first.size()).first->second);
  return first;
}

/// Prices schedules at one size.
class SizePricer {
public:
  SizePricer(const ExprProgram &pattern, const Values &symbols, const Target &target)
      : pattern(pattern), symbols(symbols), target(target) {}

  /// Infinite where the schedule's alternatives do not apply.
  double seconds(const Schedule &schedule) {
    for (const SizeLimit &limit : sizeLimits(pattern, schedule.via))
      if (!limit.allows(symbols[static_cast<size_t>(limit.symbol)]))
        return std::numeric_limits<double>::infinity();
    auto at = std::find_if(programs.begin(), programs.end(),
                           [&](const auto &known) { return known->via == schedule.via; });
    if (at == programs.end())
      at = programs.insert(at, std::make_unique<Program>(*this, schedule.via));
    if (!(*at)->meter)
      return std::numeric_limits<double>::infinity();
    return cost::latency((*at)->meter->phases(schedule), target);
  }

private:
  /// Alternatives are taken at the typical sizes, as when kernels are made: at others they may find other equations
  /// long.
  struct Program {
    Program(const SizePricer &of, const std::vector<Rewrite> &via)
        : via(via), made(rewritten(of.pattern, via)) {
      if (!made)
        return;
      made = tunedFor(*made, of.symbols);
      meter.emplace(scheduled.emplace(*made), of.target);
    }
    const std::vector<Rewrite> via;
    std::optional<ExprProgram> made;
    std::optional<ScheduledProgram> scheduled;
    std::optional<WorkMeter> meter; // empty where the alternatives do not apply
  };
  const ExprProgram &pattern;
  const Values &symbols;
  const Target &target;
  std::vector<std::unique_ptr<Program>> programs;
};

/// Symbols that are 1 at these values, where some equation has no other symbolic size in its result: a product of one
/// row, then, and not of rows whose number is another symbol.
std::vector<Rewrite> sizesOne(const ExprProgram &pattern, const Values &symbols) {
  std::vector<Rewrite> rewrites;
  std::set<SymbolId> ones;
  ExprProgram program = pattern;
  for (size_t s = 0; s < symbols.size(); ++s) {
    const Rewrite one{std::string(kSizeOne), static_cast<int64_t>(s) + 1};
    // Where another size is 1 this one may have gone too: from mod(m, n), say.
    auto next = symbols[s] == 1 ? rewritten(program, {one}) : std::nullopt;
    if (!next)
      continue;
    program = std::move(*next);
    rewrites.push_back(one);
    ones.insert(static_cast<SymbolId>(s));
  }
  for (const Item &item : pattern.items) {
    const auto &e = std::get<Equation>(item.value);
    std::vector<SymbolId> used;
    for (int axis = 0; axis < e.numSpatial; ++axis)
      e.axes[static_cast<size_t>(axis)].extent.collectSymbols(used);
    if (!used.empty() && std::includes(ones.begin(), ones.end(), used.begin(), used.end()))
      return rewrites;
  }
  return {};
}

/// A schedule's variants as those of the pattern that these alternatives have not rewritten.
Result<std::vector<ScheduleVariant>> behind(const std::vector<Rewrite> &rewrites,
                                            Result<std::vector<ScheduleVariant>> found) {
  if (found.ok())
    for (ScheduleVariant &variant : *found)
      variant.schedule.via.insert(variant.schedule.via.begin(), rewrites.begin(), rewrites.end());
  return found;
}

/// Puts a limit in front of the schedules that were found under it, unless they are right for all sizes in no more
/// memory, with room for all that they keep.
Result<std::vector<ScheduleVariant>>
withoutNeedless(const std::vector<Rewrite> &limit, Result<std::vector<ScheduleVariant>> found,
                const ExprProgram &pattern, const ExprProgram &limited, const Target &target) {
  const auto holdsMore = [&](const Schedule &schedule) {
    return storageOf(BoundSchedule(schedule, pattern)).sharedBytes >
           storageOf(BoundSchedule(schedule, limited)).sharedBytes;
  };
  const bool isNeeded =
      found.ok() && std::ranges::any_of(*found, [&](const ScheduleVariant &v) {
        return !verify(v.schedule, pattern).ok() || holdsMore(v.schedule) ||
               !lowerAndRewrite(pattern, v.schedule, pattern.symbols, target).ok();
      });
  return isNeeded ? behind(limit, std::move(found)) : std::move(found);
}

/// True if sums over rows of any length are made, or rows whose elements are read at other places: with a limit to it a
/// block has room for a row.
bool gainsByLimits(const ScheduledProgram &scheduled) {
  const auto isOpen = [](const DimExpr &extent) { return !extent.isConst(); };
  const auto isElsewhere = [](const Body &body, NodeId read) {
    return std::ranges::any_of(indexOperands(body[read]), [&](NodeId index) {
      return body[index].op != ScalarOp::Axis && body[index].op != ScalarOp::Const;
    });
  };
  return std::ranges::any_of(scheduled.facts, [&](const EquationFacts &facts) {
    const Equation &e = facts.equation;
    return std::any_of(e.axes.begin() + e.numSpatial, e.axes.end(),
                       [&](const Axis &a) { return isOpen(a.extent); }) ||
           std::ranges::any_of(facts.reads, [&](NodeId read) {
             const TensorId tensor = e.body[read].index;
             return scheduled.producer(tensor) >= 0 &&
                    std::ranges::any_of(scheduled.tensor(tensor).shape, isOpen) &&
                    isElsewhere(e.body, read);
           });
  });
}

/// Alternatives that all sizes are at most a few times what they are here: twice, so that a block has room for many
/// rows; on a CPU, whose blocks have more, sixteen times, too, such as for the rows of a long cache that no one tunes
/// for.
std::vector<Rewrite> fewTimesAtMost(const ExprProgram &pattern, const Values &symbols,
                                    const Target &target) {
  int64_t most = 1;
  for (SymbolId s : symbolsOf(pattern))
    most = std::max(most, symbols[static_cast<size_t>(s)]);
  std::vector<Rewrite> limits;
  for (const int64_t times : {16, 2})
    if (times == 2 || !target.blocksHaveUnits())
      limits.push_back(
          {std::string(kSizeMost), most <= INT64_MAX / times ? times * most : INT64_MAX});
  return limits;
}

void fillTable(SizedSchedules &out, const ExprProgram &pattern, const Target &target,
               const std::vector<DimExpr> &extents) {
  const std::vector<size_t> first = firstAlike(out.sizes, extents);
  out.table.seconds.resize(out.found.size());
  for (size_t at = 0; at < out.sizes.size(); ++at) {
    if (first[at] < at) {
      out.rows.push_back(out.rows[first[at]]);
      continue;
    }
    out.rows.push_back(out.table.features.size());
    out.table.features.push_back(valuesOf(out.features, out.sizes[at]));
    SizePricer pricer(pattern, out.sizes[at], target);
    for (size_t s = 0; s < out.found.size(); ++s)
      out.table.seconds[s].push_back(pricer.seconds(out.found[s].back().schedule));
  }
}

} // namespace

ExprProgram scheduledFor(const ExprProgram &pattern, const Schedule &schedule,
                         const std::vector<int64_t> &symbols) {
  std::optional<ExprProgram> made = rewritten(pattern, schedule.via);
  assert(made && "the schedule's alternatives have made its kernel");
  return tunedFor(*made, symbols);
}

ExprProgram tunedFor(const ExprProgram &pattern, const std::vector<int64_t> &symbols) {
  ExprProgram out = pattern;
  out.symbols = tunedFor(std::move(out.symbols), symbols);
  return out;
}

std::optional<SizeLimit> limitNotTested(const ScheduleVariant &variant,
                                        const ExprProgram &pattern) {
  for (const SizeLimit &limit : sizeLimits(pattern, variant.schedule.via))
    for (const Guard &guard : guardsOf(limit, pattern.symbols))
      if (!isImplied(guard, variant.guards))
        return limit;
  return std::nullopt;
}

const ScheduleVariant &variantAt(const std::vector<ScheduleVariant> &variants,
                                 const std::vector<int64_t> &symbols) {
  for (const ScheduleVariant &variant : variants)
    if (allHold(variant.guards, symbols))
      return variant;
  return variants.back();
}

Result<SizedSchedules> schedulesBySize(const ExprProgram &pattern, const Target &target,
                                       const BestSchedulesAt &best) {
  SizedSchedules out;
  FUSEC_TRY(std::vector<ScheduleVariant> own, best(pattern));
  if (own.empty())
    return out;
  out.found.push_back(std::move(own));
  const std::vector<Values> tuned = tunedSizes(pattern.symbols);
  if (tuned.empty())
    return out;
  auto add = [&](Result<std::vector<ScheduleVariant>> there) -> Status {
    if (!there.ok() || there->empty())
      return there.ok() ? success() : Status(there.errors());
    const Schedule &schedule = there->back().schedule;
    // What is long at this size may be too short for an alternative at the typical one.
    if (!verify(schedule, pattern, target).ok())
      return success();
    const std::string text = print(schedule, pattern);
    const bool isKnown = std::any_of(out.found.begin(), out.found.end(), [&](const auto &known) {
      return print(known.back().schedule, pattern) == text;
    });
    if (!isKnown)
      out.found.push_back(std::move(*there));
    return success();
  };
  size_t numExtents = 0;
  out.features = featuresOf(pattern, numExtents);
  const std::vector<DimExpr> extents(
      out.features.begin(), out.features.begin() + static_cast<std::ptrdiff_t>(numExtents));
  out.sizes = sizesAround(pattern, tuned);
  const bool gains = gainsByLimits(ScheduledProgram(pattern));
  const std::vector<size_t> first = firstAlike(out.sizes, extents);
  for (size_t at = 0; at <= tuned.size() && !extents.empty(); ++at) {
    if (first[at] < at)
      continue;
    const Values &values = out.sizes[at];
    const ExprProgram sized = tunedFor(pattern, values);
    if (const std::vector<Rewrite> ones = sizesOne(pattern, values); !ones.empty())
      FUSEC_CHECK(add(behind(ones, best(*rewritten(sized, ones)))));
    for (const Rewrite &limit :
         gains ? fewTimesAtMost(pattern, values, target) : std::vector<Rewrite>())
      if (const auto limited = rewritten(sized, {limit}))
        FUSEC_CHECK(add(withoutNeedless({limit}, best(*limited), pattern, *limited, target)));
    if (at > 0 && (!gains || values == tuned.back()))
      FUSEC_CHECK(add(best(sized)));
  }
  fillTable(out, pattern, target, extents);
  return out;
}

double secondsOfFastest(const SizedSchedules &schedules, const ExprProgram &pattern,
                        const std::vector<int64_t> &symbols, const Target &target) {
  SizePricer pricer(pattern, symbols, target);
  double fastest = std::numeric_limits<double>::infinity();
  for (const std::vector<ScheduleVariant> &variants : schedules.found)
    fastest = std::min(fastest, pricer.seconds(variants.back().schedule));
  return fastest;
}

std::vector<ScheduleVariant> variantsOf(const ExprProgram &pattern, SizedSchedules schedules,
                                        const SizeTree &tree) {
  const auto isRightForAll = [&](size_t s) {
    return sizeLimits(pattern, schedules.found[s].back().schedule.via).empty();
  };
  // One schedule keeps what saves its bounds checks; several are code enough.
  if (tree.isLeaf() && isRightForAll(static_cast<size_t>(tree.schedule)))
    return std::move(schedules.found[static_cast<size_t>(tree.schedule)]);
  const size_t largest = schedules.rows.back();
  const auto fastestFar = [&](const std::vector<size_t> &of) {
    std::optional<size_t> far;
    for (size_t s : of)
      if (isRightForAll(s) &&
          (!far || schedules.table.seconds[s][largest] < schedules.table.seconds[*far][largest]))
        far = s;
    return far;
  };
  std::vector<size_t> all(schedules.found.size());
  std::iota(all.begin(), all.end(), size_t{0});
  const std::optional<size_t> chosen = fastestFar(tree.schedules());
  const bool isEnough = chosen && schedules.table.slowdown(*chosen, largest) <= kMostSlower;
  const size_t far = isEnough ? *chosen : *fastestFar(all);
  return variantsOf(tree, {pattern, schedules.features, schedules.found, far});
}

} // namespace fusec
