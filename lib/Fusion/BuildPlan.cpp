// The plan: which equations form a kernel.
//
// Each list of items is searched on its own. Searches by the quick model (Beam.h) propose drafts: FusionStitching's
// beam over candidate patterns, greedy merging, Souffle's partition from the top. The accurate model, which asks for a
// schedule of every pattern, judges them, and the best ones are improved: a kernel is joined with that of a neighbour,
// or cut in two, wherever that makes the plan faster; then single equations move between kernels, and drafts that
// nothing has climbed from are looked at. The modes of single papers take the fastest of their own drafts, without
// kernels that are slower than their equations apart, and of the list as it is. For softmax over rows of x:
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
#include "Fusion/HillClimb.h"
#include "Fusion/JoinPhases.h"
#include "Fusion/JoinRemote.h"
#include "Fusion/MergeVerdict.h"
#include "Fusion/ShareCopies.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace fusec {
namespace {

/// True if kernels may become phases of one.
bool hasDeviceBarriers(const Target &target, const PlanOptions &options) {
  return cost::joinsPhases(target) && infoOf(options.mode).blocksWait &&
         options.mode != SearchMode::None;
}

/// True if scans may become a wavefront, whose steps fill a GPU and have barriers or launches between them. On a CPU
/// the cores run the steps of one scan after the other, since their caches hold one scan's weights.
bool hasWavefronts(const Target &target, const PlanOptions &options) {
  return target.kind != TargetKind::Cpu && infoOf(options.mode).blocksWait &&
         options.mode != SearchMode::None;
}

/// Modes whose drafts have packs before all else is tried.
bool packsFromTheStart(SearchMode mode) {
  return mode == SearchMode::Souffle || mode == SearchMode::PowerFusion;
}

/// Searches for the kernels of one list of items.
class RegionSearch {
public:
  RegionSearch(const FusionContext &context, const std::vector<Item> &items, const Target &target,
               const ScheduleOracle &oracle, const PlanOptions &options)
      : context(context), target(target), region(makeSearchGraph(items)),
        quick(this->context, region, target, allowed(options.limits.quickEvaluations)),
        accurate(this->context, region, target, oracle, allowed(options.limits.evaluations),
                 std::max<int64_t>(options.limits.leastWeighed, allowed(options.limits.weighed))),
        options(options), hillClimb(this->context, region, quick, accurate, sets),
        joiner(region, accurate, hasDeviceBarriers(target, options)) {
    for (size_t v = 0; v < region.vertices.size(); ++v)
      if (const Equation *equation = region.vertices[v].equation)
        vertexOf[equation] = static_cast<int>(v);
  }

  Status run() {
    for (int v = 0; v < static_cast<int>(region.vertices.size()); ++v)
      FUSEC_CHECK(accurate.kernelSeconds({v}));
    FUSEC_TRY(std::vector<PlanDraft> drafts, propose(options.mode));
    FUSEC_CHECK(dropSlow(drafts, !infoOf(options.mode).full));
    const bool large = region.vertices.size() > options.limits.allDrafts;
    if (infoOf(options.mode).full) {
      // Climbing from single equations too finds what the quick model misjudges; in long lists it asks for too much.
      FUSEC_CHECK(sortByLaunches(drafts));
      std::stable_partition(drafts.begin(), drafts.end(),
                            [](const PlanDraft &d) { return d.origin != "none"; });
      const size_t kept = std::max<size_t>(options.limits.beamWidth, 2); // "none" and one more
      if (drafts.size() > kept)
        drafts.erase(drafts.begin() + static_cast<std::ptrdiff_t>(kept) - 1, drafts.end() - 1);
      if (large && drafts.size() > 1)
        drafts.pop_back();
      dropEqual(drafts, sets);
      PlanDraft best = drafts.front();
      for (PlanDraft &draft : drafts)
        FUSEC_CHECK(hillClimb.improve(draft, 0));
      dropEqual(drafts, sets);
      // A kernel that becomes a phase costs less than a launch: smaller ones are then worth it.
      const size_t asLaunches = drafts.size();
      const double asPhase = large ? 0 : cost::savedByPhase(target);
      if (asPhase > 0) {
        FUSEC_CHECK(hillClimb.improve(best, asPhase));
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
          FUSEC_CHECK(hillClimb.improve(packed, perKernel));
          drafts.push_back(std::move(packed));
        }
        FUSEC_TRY(bool changed,
                  joinRemote(context, region, quick, accurate, options.limits, sets, remote));
        if (!changed)
          continue;
        FUSEC_CHECK(hillClimb.improve(remote, perKernel));
        drafts.push_back(std::move(remote));
      }
      // The seeds once more: from the start packs lead them to other kernels than behind all else.
      if (!large && options.limits.otherSeeds) {
        FUSEC_TRY(PlanDraft fromTop, fromTopDown());
        std::vector<PlanDraft> packed = {std::move(fromTop),
                                         greedyMerge(context, region, quick, sets)};
        FUSEC_CHECK(dropSlow(packed, false));
        for (PlanDraft &seed : packed) {
          FUSEC_CHECK(hillClimb.improve(seed, 0));
          drafts.push_back(std::move(seed));
        }
      }
      dropEqual(drafts, sets);
    }
    if (options.mode == SearchMode::Fs)
      FUSEC_CHECK(addRemote(drafts));
    FUSEC_CHECK(sortByLaunches(drafts));
    chosen = std::move(drafts.front());
    FUSEC_TRY(chosenLaunches, joiner.join(kernelsOf(chosen)));
    if (!infoOf(options.mode).full)
      return success();
    if (!large)
      FUSEC_CHECK(joinMissed());
    FUSEC_CHECK(moveBetween(large));
    return large ? success() : takeAsProposed();
  }

  Group groupOf(const Phases &launch) { return accurate.groupOf(launch); }

  /// The launches in the order in which they run.
  const std::vector<Phases> &launches() const { return chosenLaunches.list; }

  /// Why two equations that a value joins are in two launches.
  Result<std::string> whyApart(const Equation &producer, const Equation &consumer) {
    const std::vector<int> a = kernelOf(sets, chosen.partition, vertexOf.at(&producer)),
                           b = kernelOf(sets, chosen.partition, vertexOf.at(&consumer));
    FUSEC_TRY(std::string reason,
              whyTwoKernels(a, b, {vertexOf.at(&producer), vertexOf.at(&consumer)}));
    FUSEC_TRY(const std::string noPhases, joiner.whyApart(chosenLaunches, a, b));
    return noPhases.empty() || noPhases == reason
               ? reason
               : reason + "; no phases of one kernel: " + noPhases;
  }

  const SearchGraph &vertices() const { return region; }

  double seconds() const { return chosenLaunches.seconds; }
  Evaluations evaluations() const { return {quick.evaluations(), accurate.evaluations()}; }

private:
  int64_t allowed(int ofEquation) const {
    return int64_t{ofEquation} * static_cast<int64_t>(region.vertices.size());
  }

  /// Moves equations between kernels of the plan if that makes it faster. Behind the climbs: the evaluations that
  /// moves take would be missing there (GPT-2's decoding on sm_80, 3 %).
  Status moveBetween(bool large) {
    std::vector<double> saved = {0};
    if (!large && cost::savedByPhase(target) > 0)
      saved.push_back(cost::savedByPhase(target));
    bool anyMoved = false;
    for (const double perKernel : saved) {
      PlanDraft draft = chosen;
      FUSEC_TRY(const bool changed, hillClimb.improveByMoves(draft, perKernel));
      if (!changed)
        continue;
      FUSEC_TRY(Launches launches, joiner.join(kernelsOf(draft)));
      if (launches.seconds >= chosenLaunches.seconds)
        continue;
      chosen = std::move(draft);
      chosenLaunches = std::move(launches);
      anyMoved = true;
    }
    return anyMoved && !large ? joinMissed() : success();
  }

  /// Joins kernels that a value connects if that makes the plan faster, also where the quick model saw no chance:
  /// whyApart asks for these pairs anyway. A join that lost is not tried again.
  Status joinMissed() {
    std::set<std::vector<int>> lost;
    for (bool changed = true; changed;) {
      changed = false;
      for (int v = 0; v < static_cast<int>(region.vertices.size()); ++v)
        for (int c : region.vertices[v].consumers) {
          const std::vector<int> a = kernelOf(sets, chosen.partition, v),
                                 b = kernelOf(sets, chosen.partition, c);
          if (a == b || !region.vertices[v].equation || !region.vertices[c].equation)
            continue;
          const std::vector<int> all = united(a, b);
          if (lost.count(all) != 0)
            continue;
          FUSEC_TRY(const MergeVerdict verdict,
                    judgeMerge(context, region, quick, accurate, sets, chosen.partition, a, b));
          if (!verdict.isFaster)
            continue;
          PlanDraft draft = chosen;
          assign(draft, sets, all);
          FUSEC_TRY(Launches launches, joiner.join(kernelsOf(draft)));
          if (launches.seconds >= chosenLaunches.seconds) {
            lost.insert(all);
            continue;
          }
          chosen = std::move(draft);
          chosenLaunches = std::move(launches);
          changed = true;
        }
    }
    return success();
  }

  /// Why two kernels are not one. `ends`: the equation of each that makes or reads the value between them.
  Result<std::string> whyTwoKernels(const std::vector<int> &a, const std::vector<int> &b,
                                    const std::vector<int> &ends) {
    FUSEC_TRY(const MergeVerdict verdict,
              judgeMerge(context, region, quick, accurate, sets, chosen.partition, a, b));
    if (!verdict.isLegal) {
      const std::string own = whyNotOneKernel(context, region, ends);
      return own.empty() ? "with what else their kernels hold: " + verdict.reason : own;
    }
    if (!verdict.isFaster)
      return verdict.reason;
    if (!infoOf(options.mode).full)
      return verdict.reason + ": --search-mode=" + std::string(infoOf(options.mode).name) +
             " does not join them";
    PlanDraft draft = chosen;
    assign(draft, sets, united(a, b));
    FUSEC_TRY(const Launches launches, joiner.join(kernelsOf(draft)));
    return verdict.reason + ", but the plan would take " +
           cost::secondsText(launches.seconds - chosenLaunches.seconds) +
           " longer: other kernels would no longer be phases of one";
  }

  Result<std::vector<PlanDraft>> propose(SearchMode mode) {
    const bool full = infoOf(mode).full, seeds = full && options.limits.otherSeeds;
    std::vector<PlanDraft> drafts;
    if (full || mode == SearchMode::Fs)
      drafts = beamSearch(region, explorePatterns(context, region, quick, options.limits),
                          options.limits, sets);
    if (seeds || mode == SearchMode::PowerFusion)
      drafts.push_back(greedyMerge(context, region, quick, sets));
    // Build this seed before dropSlow: on very long lists dropSlow exhausts the budget, and without this seed plans run
    // four times slower (10,000 operations).
    if (seeds || mode == SearchMode::Souffle) {
      FUSEC_TRY(drafts.emplace_back(), fromTopDown());
    }
    drafts.push_back({"none", Partition(region.vertices.size(), -1)});
    return drafts;
  }

  /// Takes the fastest of the drafts of this mode and of single papers, as such a mode has them, if that is faster:
  /// FusionStitching's packs on GPT-2's decoding (x86-64-v3) beat by 0.2 % what climbing finds, those on a small
  /// ResNet-50 (sm_80) by 13 %. Last, with the evaluations that are left: in front of joins and moves it took theirs,
  /// and GPT-2's decoding on gfx90a 2.5 % longer.
  Status takeAsProposed() {
    std::vector<PlanDraft> drafts;
    for (const SearchMode mode :
         {SearchMode::Full, SearchMode::Fs, SearchMode::PowerFusion, SearchMode::Souffle}) {
      const bool isSeed = mode == SearchMode::PowerFusion || mode == SearchMode::Souffle;
      if (isSeed && !options.limits.otherSeeds)
        continue;
      FUSEC_TRY(std::vector<PlanDraft> own, draftsOf(mode));
      std::ranges::move(own, std::back_inserter(drafts));
    }
    FUSEC_CHECK(sortByLaunches(drafts));
    FUSEC_TRY(Launches launches, joiner.join(kernelsOf(drafts.front())));
    if (launches.seconds >= chosenLaunches.seconds)
      return success();
    chosen = std::move(drafts.front());
    chosenLaunches = std::move(launches);
    return joinMissed();
  }

  /// The drafts of such a mode, with what it lets a kernel be.
  Result<std::vector<PlanDraft>> draftsOf(SearchMode mode) {
    const bool packs = context.packs, joins = context.joinsContractions, trees = context.trees;
    context.packs = packsFromTheStart(mode);
    context.joinsContractions = infoOf(mode).joinsContractions;
    context.trees = infoOf(mode).trees;
    const auto propose = [&]() -> Result<std::vector<PlanDraft>> {
      FUSEC_TRY(std::vector<PlanDraft> drafts, this->propose(mode));
      FUSEC_CHECK(dropSlow(drafts, true));
      if (mode == SearchMode::Fs || mode == SearchMode::Full)
        FUSEC_CHECK(addRemote(drafts));
      return drafts;
    };
    Result<std::vector<PlanDraft>> drafts = propose();
    context.packs = packs;
    context.joinsContractions = joins;
    context.trees = trees;
    return drafts;
  }

  /// True if the kernel is no slower than one kernel per equation, which may be phases of one launch.
  Result<bool> pays(const std::vector<int> &kernel) {
    FUSEC_TRY(const double seconds, accurate.kernelSeconds(kernel));
    VertexSets alone;
    for (int v : kernel)
      alone.push_back({v});
    FUSEC_TRY(const Launches apart, joiner.join(std::move(alone)));
    return seconds <= apart.seconds;
  }

  Result<PlanDraft> fromTopDown() {
    const auto paysInBoth = [&](const std::vector<int> &kernel) -> Result<bool> {
      return quick.gain(kernel) > 0 ? pays(kernel) : Result<bool>(false);
    };
    return topDown(context, region, paysInBoth, sets);
  }

  /// Splits kernels without a schedule, and where they must pay those that do not.
  Status dropSlow(std::vector<PlanDraft> &drafts, bool mustPay) {
    for (PlanDraft &draft : drafts)
      for (size_t v = 0; v < draft.partition.size(); ++v) {
        const std::vector<int> kernel = kernelOf(sets, draft.partition, static_cast<int>(v));
        if (kernel.size() == 1 || kernel.front() != static_cast<int>(v))
          continue;
        FUSEC_TRY(const double seconds, accurate.kernelSeconds(kernel));
        bool isKept = seconds < kNever;
        if (mustPay) {
          FUSEC_TRY(isKept, pays(kernel));
        }
        if (!isKept)
          for (int u : kernel)
            draft.partition[u] = -1;
      }
    return success();
  }

  /// Adds a copy of each draft with its remote patterns.
  Status addRemote(std::vector<PlanDraft> &drafts) {
    context.packs = true;
    for (size_t d = 0, count = drafts.size(); d < count; ++d) {
      PlanDraft remote = drafts[d];
      FUSEC_TRY(bool changed,
                joinRemote(context, region, quick, accurate, options.limits, sets, remote));
      if (changed)
        drafts.push_back(std::move(remote));
    }
    return success();
  }

  VertexSets kernelsOf(const PlanDraft &draft) const {
    return topologicalOrder(region, sets, draft.partition);
  }

  /// Sorts drafts by seconds; among equal ones by launches, by bytes, then by what they compute.
  Status sortByLaunches(std::vector<PlanDraft> &drafts) {
    std::vector<std::pair<Launches, PlanDraft>> timed;
    for (PlanDraft &draft : drafts) {
      FUSEC_TRY(Launches launches, joiner.join(kernelsOf(draft)));
      timed.emplace_back(std::move(launches), std::move(draft));
    }
    std::stable_sort(timed.begin(), timed.end(), [&](const auto &one, const auto &other) {
      const Launches &a = one.first, &b = other.first;
      const auto rank = [](const Launches &l) {
        return std::tuple(l.seconds, l.list.size(), l.bytes);
      };
      return rank(a) != rank(b) ? rank(a) < rank(b)
                                : accurate.tieOf(a.list) < accurate.tieOf(b.list);
    });
    for (size_t d = 0; d < drafts.size(); ++d)
      drafts[d] = std::move(timed[d].second);
    return success();
  }

  FusionContext context; // packs: in the full search not before all else is tried
  const Target &target;
  SearchGraph region;
  QuickCost quick;
  AccurateCost accurate;
  const PlanOptions &options;
  VertexSets sets;
  HillClimb hillClimb;
  PhaseJoiner joiner;
  std::map<const Equation *, int> vertexOf;
  PlanDraft chosen;
  Launches chosenLaunches;
};

class PlanBuilder {
public:
  PlanBuilder(const ExprProgram &program, const Target &target, const ScheduleOracle &oracle,
              const PlanOptions &options)
      : context{program,
                {},
                packsFromTheStart(options.mode),
                hasWavefronts(target, options),
                infoOf(options.mode).joinsContractions,
                infoOf(options.mode).trees},
        target(target), oracle(oracle), options(options) {
    countUses(program.items, context.uses);
    for (TensorId t : program.outputs)
      ++context.uses[t];
  }

  Result<Plan> build() {
    FUSEC_TRY(plan.steps, steps(context.program.items));
    Status status = success();
    plan.crossKernelValues = valuesBetween(
        plan, context.program,
        [&](TensorId, const Equation &producer, const Equation &consumer) -> std::string {
          Result<std::string> why = searchOf.at(&producer)->whyApart(producer, consumer);
          if (why.ok())
            return *why;
          status = why.errors();
          return "";
        });
    FUSEC_CHECK(std::move(status));
    for (const auto &search : searches) {
      plan.evaluations.quick += search->evaluations().quick;
      plan.evaluations.accurate += search->evaluations().accurate;
      plan.seconds += search->seconds();
    }
    return std::move(plan);
  }

private:
  Result<std::vector<PlanStep>> steps(const std::vector<Item> &items) {
    searches.push_back(std::make_unique<RegionSearch>(context, items, target, oracle, options));
    RegionSearch &search = *searches.back();
    FUSEC_CHECK(search.run());
    for (const SearchGraph::Vertex &v : search.vertices().vertices)
      if (v.equation)
        searchOf[v.equation] = &search;
    std::vector<PlanStep> list;
    for (const Phases &launch : search.launches()) {
      const SearchGraph::Vertex &first = search.vertices().vertices[launch[0][0]];
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

const SearchModeInfo &infoOf(SearchMode mode) {
  return *std::find_if(std::begin(kSearchModes), std::end(kSearchModes),
                       [&](const SearchModeInfo &info) { return info.mode == mode; });
}

Result<Plan> planAsIs(const ExprProgram &program, const Target &target,
                      const ScheduleOracle &oracle, const PlanOptions &options) {
  return PlanBuilder(program, target, oracle, options).build();
}

} // namespace fusec
