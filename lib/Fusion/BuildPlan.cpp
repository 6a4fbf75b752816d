// The plan: which equations form a kernel.
//
// Each list of items is searched on its own. Searches by the quick model (Beam.h) propose drafts: FusionStitching's
// beam over candidate patterns, greedy merging, Souffle's partition from the top. The accurate model, which asks for a
// schedule of every pattern, judges them, and the best ones are improved: a kernel is joined with that of a neighbour,
// or cut in two, wherever that makes the plan faster. Example, softmax over the rows of x:
//   %m[i] = max_k x[i,k]           |
//   %e[i,j] = exp(x[i,j] - m[i])   |  one kernel: a block owns rows, %m and %s stay in registers,
//   %s[i] = sum_k e[i,k]           |  %e in the block's own memory; x is read once, y written once
//   %y[i,j] = e[i,j] / s[i]        |
// Equations that do not need each other are packed side by side where that is faster: three projections of one tensor
// fill a device in one launch. Kernels that follow each other may then become phases of one, with a device-wide barrier
// between them (JoinPhases.h).
#include "Cost/Cost.h"
#include "Cost/SecondsText.h"
#include "Fusion/Beam.h"
#include "Fusion/JoinPhases.h"
#include "Fusion/JoinRemote.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <set>

namespace fusec {

namespace {

/// Kernels may hold device-wide barriers: FusionStitching's have none.
bool hasDeviceBarriers(const Target &target, const PlanOptions &options) {
  return cost::joinsPhases(target) && options.mode != SearchMode::Fs &&
         options.mode != SearchMode::None;
}

/// Scans may become a wavefront, whose steps fill a GPU: with barriers, or with launches between them. On a CPU the
/// cores share the steps of one scan after the other, whose weights their caches hold.
bool hasWavefronts(const Target &target, const PlanOptions &options) {
  return target.kind != TargetKind::Cpu && options.mode != SearchMode::Fs &&
         options.mode != SearchMode::None;
}

/// One list of items on its way into kernels.
class RegionSearch {
public:
  RegionSearch(const FusionContext &context, const std::vector<Item> &items, const Target &target,
               const ScheduleOracle &oracle, const PlanOptions &options)
      : context(context), target(target), region(makeRegion(items)), score(context, region, target),
        judge(context, region, target, oracle), options(options),
        joiner(region, judge, hasDeviceBarriers(target, options)) {
    for (size_t v = 0; v < region.vertices.size(); ++v) {
      for (TensorId t : region.vertices[v].reads)
        readersOf[t].push_back(static_cast<int>(v));
      if (const Equation *equation = region.vertices[v].equation)
        vertexOf[equation] = static_cast<int>(v);
    }
  }

  Status run() {
    FUSEC_TRY(std::vector<PlanDraft> drafts, judged(propose()));
    if (options.mode == SearchMode::Full) {
      // Climbing from single equations too finds what the quick model misjudges.
      FUSEC_CHECK(sortByLaunches(drafts));
      std::stable_partition(drafts.begin(), drafts.end(),
                            [](const PlanDraft &d) { return d.origin != "none"; });
      const auto kept = static_cast<size_t>(options.limits.beamWidth);
      if (drafts.size() > kept)
        drafts.erase(drafts.begin() + static_cast<std::ptrdiff_t>(kept) - 1, drafts.end() - 1);
      dropEqual(drafts, sets);
      PlanDraft best = drafts.front();
      for (PlanDraft &draft : drafts)
        FUSEC_CHECK(improve(draft, 0));
      dropEqual(drafts, sets);
      // A kernel that becomes a phase costs less than a launch: smaller ones are then worth it.
      const size_t asLaunches = drafts.size();
      constexpr size_t kMostVertices = 4096; // budget: longer lists do without some of the drafts
      const bool large = region.vertices.size() > kMostVertices;
      const double asPhase = large ? 0 : cost::savedByPhase(target);
      if (asPhase > 0) {
        FUSEC_CHECK(improve(best, asPhase));
        drafts.push_back(std::move(best));
      }
      // Packs come last and beside the drafts without them: a pack may be in the way of phases. Climbing pair by pair
      // and remote patterns as a whole lead to different ones.
      context.packs = true;
      const size_t count = drafts.size();
      for (size_t d = 0; d < count; ++d) {
        const double perKernel = d < asLaunches ? 0 : asPhase;
        PlanDraft packed = drafts[d], remote = drafts[d];
        if (!large) {
          FUSEC_CHECK(improve(packed, perKernel));
          drafts.push_back(std::move(packed));
        }
        FUSEC_TRY(bool changed,
                  joinRemote(context, region, score, judge, options.limits, sets, remote));
        if (!changed)
          continue;
        FUSEC_CHECK(improve(remote, perKernel));
        drafts.push_back(std::move(remote));
      }
      dropEqual(drafts, sets);
    }
    FUSEC_CHECK(sortByLaunches(drafts));
    chosen = std::move(drafts.front());
    FUSEC_TRY(chosenLaunches, joiner.join(kernelsOf(chosen)));
    return success();
  }

  Group groupOf(const Phases &launch) { return judge.groupOf(launch); }

  /// In the order in which they run.
  const std::vector<Phases> &launches() const { return chosenLaunches.list; }

  /// Why the launches of two vertices are two.
  Result<std::string> whyApart(const Equation &producer, const Equation &consumer) {
    const std::vector<int> a = kernelOf(sets, chosen.partition, vertexOf.at(&producer)),
                           b = kernelOf(sets, chosen.partition, vertexOf.at(&consumer));
    FUSEC_TRY(std::string reason, whyTwoKernels(a, b));
    FUSEC_TRY(const std::string noPhases, joiner.whyApart(chosenLaunches, a, b));
    return noPhases.empty() || noPhases == reason
               ? reason
               : reason + "; no phases of one kernel: " + noPhases;
  }

  const Region &vertices() const { return region; }

private:
  Result<std::string> whyTwoKernels(const std::vector<int> &a, const std::vector<int> &b) {
    std::vector<int> all = united(a, b);
    if (std::string reason = whyNotOneKernel(context, region, all); !reason.empty())
      return reason;
    if (!staysAcyclic(region, sets, chosen.partition, all))
      return std::string("another kernel needs the one and makes what the other one needs");
    FUSEC_TRY(double together, judge.kernelSeconds(all));
    FUSEC_TRY(double first, judge.kernelSeconds(a));
    FUSEC_TRY(double second, judge.kernelSeconds(b));
    if (together == kNever)
      return std::string("no schedule runs both as one kernel");
    if (together >= first + second)
      return "one kernel would take " + cost::secondsText(together) + ", two take " +
             cost::secondsText(first + second);
    return std::string("this search mode does not join them");
  }

  std::vector<PlanDraft> propose() {
    const SearchMode mode = options.mode;
    const bool full = mode == SearchMode::Full;
    std::vector<PlanDraft> drafts;
    if (full || mode == SearchMode::Fs)
      drafts = beamSearch(region, explorePatterns(context, region, score, options.limits),
                          options.limits, sets);
    if (full || mode == SearchMode::PowerFusion)
      drafts.push_back(greedyMerge(context, region, score, sets));
    if (full || mode == SearchMode::Souffle)
      drafts.push_back(topDown(context, region, score, sets));
    if (full || mode == SearchMode::None)
      drafts.push_back({"none", Partition(region.vertices.size(), -1)});
    return drafts;
  }

  Result<std::vector<PlanDraft>> judged(std::vector<PlanDraft> drafts) {
    for (PlanDraft &draft : drafts) {
      for (size_t v = 0; v < draft.partition.size(); ++v) {
        std::vector<int> kernel = kernelOf(sets, draft.partition, static_cast<int>(v));
        if (kernel.front() != static_cast<int>(v))
          continue;
        FUSEC_TRY(double seconds, judge.kernelSeconds(kernel));
        if (seconds == kNever && kernel.size() > 1) { // the quick model knows no schedules
          seconds = 0;
          for (int u : kernel) {
            draft.partition[u] = -1;
            FUSEC_TRY(double alone, judge.kernelSeconds({u}));
            seconds += alone;
          }
        }
        draft.seconds += seconds;
      }
    }
    return drafts;
  }

  void assign(PlanDraft &draft, const std::vector<int> &vertices) {
    fusec::assign(draft, sets, vertices);
  }

  /// Hill climbing with two moves, in the order of the vertices, until a round changes nothing. `perKernel`: what each
  /// kernel takes less than by itself, since it becomes a phase.
  Status improve(PlanDraft &draft, double perKernel) {
    constexpr int kMaxRounds = 4;
    bool changed = true;
    for (int round = 0; changed && round < kMaxRounds; ++round) {
      changed = false;
      for (int v = 0; v < static_cast<int>(region.vertices.size()); ++v) {
        if (!region.vertices[v].equation)
          continue;
        FUSEC_TRY(bool joined, joinWithConsumers(draft, v, perKernel));
        bool packed = false;
        if (context.packs) {
          FUSEC_TRY(packed, joinBeside(draft, v, perKernel));
        }
        FUSEC_TRY(bool cut, cutBefore(draft, v, perKernel));
        changed = changed || joined || packed || cut;
      }
    }
    return success();
  }

  Result<bool> joinWithConsumers(PlanDraft &draft, int v, double perKernel) {
    bool changed = false;
    for (int c : region.vertices[v].consumers) {
      // The accurate model is asked where the quick one sees a chance.
      constexpr double kChance = 1.5;
      FUSEC_TRY(bool joined, join(draft, v, c, kChance, perKernel));
      changed = changed || joined;
    }
    return changed;
  }

  /// Kernels side by side, pair by pair: those that read what this one reads come first, then the next ones in the
  /// list.
  Result<bool> joinBeside(PlanDraft &draft, int v, double perKernel) {
    constexpr size_t kSharing = 6, kNext = 4; // kernels that are looked at
    constexpr double kChance = 1;
    if (kernelOf(sets, draft.partition, v).front() != v)
      return false;
    std::vector<int> others;
    auto add = [&](int u, size_t most) {
      if (u <= v || u > v + kSearchWindow || !region.vertices[u].equation || others.size() >= most)
        return;
      const int first = kernelOf(sets, draft.partition, u).front();
      if (first > v && std::count(others.begin(), others.end(), first) == 0)
        others.push_back(first);
    };
    for (TensorId t : region.vertices[v].reads)
      for (int u : readersOf.at(t))
        add(u, kSharing);
    const size_t most = others.size() + kNext;
    const int count = static_cast<int>(region.vertices.size());
    for (int u = v + 1; u < std::min(count, v + kSearchWindow) && others.size() < most; ++u)
      add(u, most);
    bool changed = false;
    for (int u : others) {
      FUSEC_TRY(bool joined, join(draft, v, u, kChance, perKernel));
      changed = changed || joined;
    }
    return changed;
  }

  /// Makes one kernel of those of two vertices if that is legal and faster; asked of the accurate model where the quick
  /// one says that it takes no more than `chance` times both.
  Result<bool> join(PlanDraft &draft, int v, int u, double chance, double perKernel) {
    std::vector<int> a = kernelOf(sets, draft.partition, v), b = kernelOf(sets, draft.partition, u);
    if (a == b || !region.vertices[u].equation)
      return false;
    std::vector<int> all = united(a, b);
    if (!whyNotOneKernel(context, region, all).empty() ||
        !staysAcyclic(region, sets, draft.partition, all))
      return false;
    if (score.kernelSeconds(all) > chance * (score.kernelSeconds(a) + score.kernelSeconds(b)))
      return false;
    FUSEC_TRY(double together, judge.kernelSeconds(all));
    FUSEC_TRY(double first, judge.kernelSeconds(a));
    FUSEC_TRY(double second, judge.kernelSeconds(b));
    if (together >= first + second - perKernel)
      return false;
    draft.seconds += together - first - second;
    assign(draft, all);
    return true;
  }

  /// The kernel of v becomes two: what comes before v, and v with the rest.
  Result<bool> cutBefore(PlanDraft &draft, int v, double perKernel) {
    std::vector<int> whole = kernelOf(sets, draft.partition, v);
    auto place = std::find(whole.begin(), whole.end(), v);
    if (place == whole.begin())
      return false;
    std::vector<int> head(whole.begin(), place), tail(place, whole.end());
    if (!whyNotOneKernel(context, region, head).empty() ||
        !whyNotOneKernel(context, region, tail).empty())
      return false;
    FUSEC_TRY(double together, judge.kernelSeconds(whole));
    FUSEC_TRY(double first, judge.kernelSeconds(head));
    FUSEC_TRY(double second, judge.kernelSeconds(tail));
    if (first + second - perKernel >= together)
      return false;
    draft.seconds += first + second - together;
    assign(draft, head);
    assign(draft, tail);
    return true;
  }

  VertexSets kernelsOf(const PlanDraft &draft) const {
    return topologicalOrder(region, sets, draft.partition);
  }

  /// The fastest first.
  Status sortByLaunches(std::vector<PlanDraft> &drafts) {
    std::vector<std::pair<double, PlanDraft>> timed;
    for (PlanDraft &draft : drafts) {
      FUSEC_TRY(const Launches launches, joiner.join(kernelsOf(draft)));
      timed.emplace_back(launches.seconds, std::move(draft));
    }
    std::stable_sort(timed.begin(), timed.end(),
                     [](const auto &a, const auto &b) { return a.first < b.first; });
    for (size_t d = 0; d < drafts.size(); ++d)
      drafts[d] = std::move(timed[d].second);
    return success();
  }

  FusionContext context; // packs: not before all else is tried
  const Target &target;
  Region region;
  Score score;
  Judge judge;
  const PlanOptions &options;
  PhaseJoiner joiner;
  std::map<TensorId, std::vector<int>> readersOf;
  std::map<const Equation *, int> vertexOf;
  VertexSets sets;
  PlanDraft chosen;
  Launches chosenLaunches;
};

class PlanBuilder {
public:
  PlanBuilder(const ExprProgram &program, const Target &target, const ScheduleOracle &oracle,
              const PlanOptions &options)
      : context{program, {}, false, hasWavefronts(target, options)}, target(target), oracle(oracle),
        options(options) {
    countUses(program.items, context.uses);
    for (TensorId t : program.outputs)
      ++context.uses[t];
  }

  Result<Plan> build() {
    FUSEC_TRY(plan.steps, steps(context.program.items));
    Status status = success();
    plan.apart = valuesBetween(
        plan, context.program,
        [&](TensorId, const Equation &producer, const Equation &consumer) -> std::string {
          Result<std::string> why = searchOf.at(&producer)->whyApart(producer, consumer);
          if (why.ok())
            return *why;
          status = why.errors();
          return "";
        });
    FUSEC_CHECK(std::move(status));
    return std::move(plan);
  }

private:
  Result<std::vector<PlanStep>> steps(const std::vector<Item> &items) {
    searches.push_back(std::make_unique<RegionSearch>(context, items, target, oracle, options));
    RegionSearch &search = *searches.back();
    FUSEC_CHECK(search.run());
    for (const Region::Vertex &v : search.vertices().vertices)
      if (v.equation)
        searchOf[v.equation] = &search;
    std::vector<PlanStep> list;
    for (const Phases &launch : search.launches()) {
      const Region::Vertex &first = search.vertices().vertices[launch[0][0]];
      if (first.equation) {
        list.push_back(
            launchStep(context.program, search.groupOf(launch), context.uses, plan, signatures));
        continue;
      }
      PlanStep step = controlStep(*first.control);
      FUSEC_TRY(step.thenSteps, steps(first.control->thenItems));
      FUSEC_TRY(step.elseSteps, steps(first.control->elseItems));
      list.push_back(std::move(step));
    }
    return list;
  }

  FusionContext context;
  const Target &target;
  const ScheduleOracle &oracle;
  const PlanOptions &options;
  Plan plan;
  std::map<Hash128, int> signatures;
  std::vector<std::unique_ptr<RegionSearch>> searches;
  std::map<const Equation *, RegionSearch *> searchOf;
};

} // namespace

Result<Plan> buildPlan(const ExprProgram &program, const Target &target,
                       const ScheduleOracle &oracle, const PlanOptions &options) {
  return PlanBuilder(program, target, oracle, options).build();
}

} // namespace fusec
