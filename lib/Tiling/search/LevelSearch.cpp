// Where the values inside a pattern live, searched upwards from the block's memory, or from registers where the
// generator gave them.
//
// A generator gives values their places one by one while there is room. Rows of 60,000 floats (%e) and, made of them,
// 60,000 doubles (%t), both read by later loops, in a core's 512 KB:
//
//   edge e shared                    edge t shared        # raised: e
//   .. %t goes to device memory      .. %e goes to device memory
//
// It looks where a value lies higher than the rules ask for, or where what blocks hold leaves a GPU's cores too few of
// them to hide latency. It begins with both in the block's memory, which they overflow. An edge is raised to the next
// level, from registers to the block's memory to device memory, where that costs least for each byte that it frees,
// until all has room. From there, or from what the generator chose if that is faster, edges are raised as long as that
// makes the kernel faster: what a block does not hold leaves room for further blocks. A level is legal where the
// verifier says so, and every schedule on the way is priced like all others.
//
// The values of a scan's step are searched like others, of all phases of its rounds at once: what crosses one of their
// barriers, and states, which the next step's blocks read, have no lower level than device memory. Where one block
// takes all steps, states lie in its memory or in the device's.
//
// Levels above are other searches': barriers and launches between two equations are Fusion's, computing a value again
// is an alternative (Expr/transforms/Recompute.cpp). Not handled: equations with several results; of a kernel with
// phases that is no scan each phase by itself.
#include "Tiling/search/LevelSearch.h"

#include "Gir/Gir.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/counts/OnChipStorage.h"
#include "Tiling/schedule/Schedule.h"
#include "Tiling/verify/Verify.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace fusec::tiling {

namespace {

/// Schedules that one search prices: each value once for every one that is raised until there is room, and once for
/// each turn behind that. Of the networks in full size EfficientNet-B0 and MobileNet-V3 ask for the most, 43 on a CPU,
/// so that none is cut short; those under models/tiny ask for 5. A rule of this search like those of the generators
/// beside it, not a size that a user sets, as FusionLimits are: it only keeps a pattern of dozens of values from being
/// priced for seconds.
constexpr size_t kMostPriced = 48;

class LevelSearch {
public:
  LevelSearch(const PricedSchedule &start, const Target &target, WorkMeter &meter)
      : start(start), bound(start.schedule, meter.program()), program(bound.program.expr),
        target(target), inGridScan(bound.gridScan() != nullptr), phases(phaseOfEquations(bound)),
        meter(meter) {}

  std::optional<PricedSchedule> run() {
    if (start.phases.size() != 1 && !inGridScan)
      return std::nullopt;
    const Schedule low = withAllLow(start.schedule);
    const bool differs = low.edges.size() != start.schedule.edges.size();
    bool better = std::ranges::any_of(start.phases,
                                      [&](const cost::Counts &phase) { return starves(phase); });
    PricedSchedule best = start;
    if (differs && canMakeRoom(low))
      if (std::optional<PricedSchedule> candidate = untilRoom(priced(low));
          candidate && candidate->seconds < best.seconds) {
        best = std::move(*candidate);
        better = true;
      }
    while (better) {
      better = false;
      for (const TensorId t : raisable(best.schedule))
        if (std::optional<Schedule> raised = withRaised(best.schedule, t);
            raised && hasRoom(*raised) && count < kMostPriced)
          if (PricedSchedule candidate = priced(std::move(*raised));
              candidate.seconds < best.seconds) {
            best = std::move(candidate);
            better = true;
          }
    }
    if (best.seconds >= start.seconds)
      return std::nullopt;
    return best;
  }

private:
  /// More blocks wait than a core holds, and those that it holds are too few to hide their latency: room is worth
  /// something.
  bool starves(const cost::Counts &counts) const {
    if (!target.hidesLatency())
      return false;
    const auto places = double(cost::residentBlocks(counts, target));
    return counts.blocks > places &&
           places / target.cores * counts.unitsPerBlock < target.unitsToFill;
  }

  PricedSchedule priced(Schedule schedule) {
    ++count;
    return tiling::priced(std::move(schedule), meter, target);
  }

  double excess(const Schedule &schedule) const {
    return storageOf(BoundSchedule(schedule, meter.program())).sharedBytes +
           double(kSharedAlignment) - double(target.sharedBytesPerBlock);
  }
  bool hasRoom(const Schedule &schedule) const { return excess(schedule) <= 0; }

  bool isLegal(const Schedule &schedule) const { return verify(schedule, program, target).ok(); }

  /// The value of one equation, which makes nothing else, for others in the same phase; or a state of a block's own
  /// steps. An index that is 0 where a size is 1 has no reader left.
  bool isEdge(TensorId t) const {
    const Equation *scan = bound.scan();
    if (scan && !inGridScan && (isPreviousState(*scan, t) || isNextState(*scan, t)))
      return true;
    const int e = bound.program.producer(t);
    if (e < 0 || program.tensors[static_cast<size_t>(t)].kind != TensorKind::Temp ||
        bound.equation(e).outputs.size() != 1 || bound.facts(e).form == EquationForm::Cascade)
      return false;
    bool read = false;
    for (int reader = 0; reader < bound.numEquations(); ++reader)
      if (std::ranges::count(bound.facts(reader).tensors, t) != 0) {
        if (scan && phases[reader] != phases[e])
          return false;
        read = true;
      }
    return read;
  }

  /// A block's part of it has a size with a bound: what is no row of blocks has one. Of a scan's steps it has all.
  bool hasBoundedPart(const Schedule &schedule, TensorId t) const {
    if (bound.scan() && !inGridScan)
      return bound.program.mostOf(numElements(program.tensors[static_cast<size_t>(t)].shape))
          .has_value();
    const int e = bound.program.producer(t);
    for (size_t a = 0; a < schedule.axes.size(); ++a)
      if (const AxisUse *use = schedule.axes[a].in(e); use && !use->reduction)
        if (!bound.program.mostOf(schedule.axes[a].extent) &&
            std::ranges::none_of(schedule.tree, [&](const TreeNode &node) {
              const LoopNode *block = node.loop(LoopKind::Block);
              return block && block->axis == AxisId(a);
            }))
          return false;
    return true;
  }

  /// Every value that lies in device memory in the block's own: one that its phase alone reads may lie in either.
  Schedule withAllLow(const Schedule &schedule) const {
    Schedule low = schedule;
    for (size_t i = 0; i < program.tensors.size(); ++i) {
      const auto t = static_cast<TensorId>(i);
      if (levelOf(low, t) == MemLevel::Global && isEdge(t) && hasBoundedPart(low, t))
        setLevel(low, t, MemLevel::Shared);
    }
    return low;
  }

  std::vector<TensorId> raisable(const Schedule &schedule) const {
    std::vector<TensorId> found;
    for (const EdgeLevel &edge : schedule.edges)
      if (isEdge(edge.tensor))
        found.push_back(edge.tensor);
    return found;
  }

  /// One level up; nullopt where that breaks a rule.
  std::optional<Schedule> withRaised(const Schedule &schedule, TensorId t) const {
    Schedule raised = schedule;
    if (levelOf(raised, t) == MemLevel::Register) {
      setLevel(raised, t, MemLevel::Shared);
      if (!hasBoundedPart(raised, t))
        return std::nullopt;
    } else {
      // A sum comes to device memory by a statement of its own.
      const int e = bound.program.producer(t);
      if (e >= 0 && bound.facts(e).reduces() &&
          !BoundSchedule(raised, meter.program()).has(LeafKind::Store, e))
        return std::nullopt;
      setLevel(raised, t, MemLevel::Global);
    }
    return isLegal(raised) ? std::optional(std::move(raised)) : std::nullopt;
  }

  /// Whether kMostPriced lets untilRoom come to its end: it prices every value once for each that it raises.
  bool canMakeRoom(const Schedule &schedule) const {
    const double over = excess(schedule);
    std::vector<double> freed;
    for (const TensorId t : raisable(schedule))
      if (levelOf(schedule, t) == MemLevel::Shared) {
        Schedule raised = schedule;
        setLevel(raised, t, MemLevel::Global);
        freed.push_back(over - excess(raised));
      }
    std::ranges::sort(freed, std::greater<>());
    double left = over;
    size_t prices = 1; // the schedule itself
    for (size_t turn = 0; turn < freed.size() && left > 0; ++turn) {
      left -= freed[turn];
      prices += freed.size() - turn;
    }
    return prices <= kMostPriced;
  }

  /// Raises until the block's memory suffices: what costs least for each byte that the block has too little.
  std::optional<PricedSchedule> untilRoom(PricedSchedule low) {
    for (double over = excess(low.schedule); over > 0; over = excess(low.schedule)) {
      std::optional<PricedSchedule> best;
      double least = std::numeric_limits<double>::infinity();
      for (const TensorId t : raisable(low.schedule)) {
        if (levelOf(low.schedule, t) != MemLevel::Shared || count >= kMostPriced)
          continue;
        std::optional<Schedule> raised = withRaised(low.schedule, t);
        const double freed = raised ? std::min(over, over - excess(*raised)) : 0;
        if (freed <= 0)
          continue;
        PricedSchedule candidate = priced(std::move(*raised));
        if (const double price = (candidate.seconds - low.seconds) / freed; price < least) {
          least = price;
          best = std::move(candidate);
        }
      }
      if (!best)
        return std::nullopt;
      low = std::move(*best);
    }
    return low;
  }

  const PricedSchedule &start;
  const BoundSchedule bound; // `start`
  const ExprProgram &program;
  const Target &target;
  const bool inGridScan;
  const std::vector<int> phases; // of each equation
  WorkMeter &meter;
  size_t count = 0; // of priced schedules
};

} // namespace

std::optional<PricedSchedule> withFasterLevels(const PricedSchedule &start, const Target &target,
                                               WorkMeter &meter) {
  return LevelSearch(start, target, meter).run();
}

} // namespace fusec::tiling
