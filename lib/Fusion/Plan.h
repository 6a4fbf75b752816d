#pragma once
#include "Cost/LaunchTime.h"
#include "Expr/Expr.h"
#include "Expr/SharedCopies.h"
#include "Expr/SizeLimits.h"
#include "Support/Hash.h"
#include "Target/Target.h"

#include <functional>
#include <map>

namespace fusec {

/// The equations of one kernel, cut out of the program. Its tensors are numbered: arguments first (inputs in order of
/// use, then outputs), then internal temps. They carry no names of the model, so that patterns that differ in names
/// only are equal. A constant argument is a Constant tensor without data.
struct Pattern {
  ExprProgram program;
  int numArguments = 0;
  std::vector<int> phaseStarts; // positions of equations that begin a phase, ascending, without 0
  Hash128 signature;            // hash of the canonical text and the phases
};

struct PlanStep {
  enum class Kind : uint8_t { Launch, If, Loop, Size, Where } kind = Kind::Launch;
  std::string name; // of a Where: what whereText says
  std::vector<std::string> onnxNodes;
  // Launch
  std::vector<std::string> equations; // names, in the pattern's order
  int pattern = -1;
  std::vector<TensorId> arguments; // tensors of the ExprProgram, one an argument of the pattern
  // If, Loop, Size: the Control they come from, with its items replaced by steps
  Control control;
  std::vector<PlanStep> thenSteps, elseSteps;
  // Where: thenSteps run the program within these sizes (Expr/SizeLimits.h), elseSteps that beyond them. It is the only
  // step of a plan, or of the elseSteps of another one.
  std::vector<SizeLimit> sizes;
};

/// A value that one launch writes to device memory and another reads, and the reason why the two are not one kernel.
struct CrossKernelValue {
  TensorId tensor;                // of the ExprProgram
  std::string producer, consumer; // equations or control items
  std::string reason;             // for people: "y reads it at other points than its own"
};

/// What a search has spent: kernels that each model priced. Equal kernels of one list count once.
struct Evaluations {
  int64_t quick = 0, accurate = 0;
  int64_t thoroughEquations =
      0;               // equations of the kernels that the accurate model priced thoroughly
  int64_t cursory = 0; // kernels that it priced in its fast mode, beyond the budget
};

/// A partition of a program's equations into patterns (convex sets) and the order in which they run.
struct Plan {
  /// The plan is one of the program with these (withSharedCopies): its equations and tensors are meant.
  std::vector<SharedCopy> copies;
  std::vector<Pattern> patterns;
  std::vector<PlanStep> steps;
  std::vector<CrossKernelValue> crossKernelValues; // see valuesBetween
  // Results of the search that the text does not hold.
  Evaluations evaluations{};
  double seconds = 0; // predicted for all launches; each launch of a branch or a loop counts once
};

/// Steps of a plan for runs of some sizes.
struct SizedPlan {
  std::vector<SizeLimit> sizes;       // none: all runs
  std::string where;                  // whereText of them
  const std::vector<PlanStep> *steps; // of the plan
};
/// False where the host decides more than whether indices lie within their axes.
bool mayHavePlansBySize(const ExprProgram &program);
/// In the order in which a run asks; the one for all sizes comes last.
std::vector<SizedPlan> plansBySize(const Plan &plan);
/// The first of them that runs at these values of the symbols.
SizedPlan planAt(const Plan &plan, const std::vector<int64_t> &symbols);

/// The predicted cost of a pattern as one kernel without phases.
struct KernelTime {
  double seconds = -1; // negative: no schedule
  /// Cost by the number of units a block, which all phases of one kernel share.
  std::map<int, cost::LaunchTime> ofUnits;
  double bytes = 0; // read from and written to device memory
};
/// Predicts for the target that is compiled for. Handed in by the driver, implemented by Tiling.
using ScheduleOracle = std::function<Result<KernelTime>(const Pattern &)>;
/// Predicts the seconds of a pattern's kernels at given values of its symbols, at best: with the fastest of the
/// schedules that are found for its sizes. Handed in as ScheduleOracle is.
using SizedOracle =
    std::function<Result<double>(const Pattern &, const std::vector<int64_t> &symbols)>;
/// What plans by size ask.
struct WhereOracle {
  ScheduleOracle best;
  SizedOracle sized;
};

/// The search that cuts a program into kernels: one paper's alone, for comparison, or all of them as seeds of one.
enum class SearchMode : uint8_t { None, Fs, Souffle, PowerFusion, Chimera, McFuser, Full };
struct SearchModeInfo {
  SearchMode mode;
  std::string_view name, help;
  /// False: each contraction (isContraction) is a kernel of its own, as if a library ran it.
  bool joinsContractions = true;
  bool blocksWait = true; // kernels may have grid barriers: several phases, or grid-wide scans
  /// True: values that fit in registers or shared memory persist from phase to phase, even if the model finds that
  /// slower.
  bool alwaysHolds = false;
  /// All seeds, improved under the accurate model.
  bool full = false;
  /// Kernels may hold several contractions in one tree of loops (Expr/LoopSpace.h).
  bool trees = false;
  /// The tree whose bytes take the least time is taken where a kernel is one (not a pack).
  bool bytesAlone = false;
};
inline constexpr SearchModeInfo kSearchModes[] = {
    {SearchMode::Full, "full", "all seeds, improved under the accurate model", true, true, false,
     true, true},
    {SearchMode::McFuser, "mcfuser",
     "MCFuser: as full, chains of contractions in one tree of loops with what stands between "
     "them, but no grid barriers",
     true, false, false, true, true},
    {SearchMode::Chimera, "chimera",
     "Chimera: as mcfuser, but a chain's tree is the one that moves its bytes fastest, whatever "
     "its arithmetic takes",
     true, false, false, true, true, true},
    {SearchMode::Fs, "fs",
     "FusionStitching: candidate patterns of each vertex, beam search, remote patterns; no "
     "contractions (a matrix times one vector is none), nothing between blocks",
     false, false},
    {SearchMode::Souffle, "souffle",
     "Souffle: from the top down, everything between contractions, independent parts side by "
     "side",
     true, true, true},
    {SearchMode::PowerFusion, "powerfusion",
     "PowerFusion: greedy merging along values and of what reads the same; no contractions (a "
     "matrix times one vector is none)",
     false},
    {SearchMode::None, "none", "every equation a kernel of its own"},
};
const SearchModeInfo &infoOf(SearchMode mode);

/// The number of equations that this one counts as in the budget of the accurate model, whose time grows with the
/// body.
int64_t equationsWeighed(const Equation &equation);

/// Sizes of the search, by default FusionStitching's (section 5), and its budgets per equation of a list. With a budget
/// of 1, the minimum, every equation stays a kernel of its own.
struct FusionLimits {
  int topPatterns = 3;       // candidates kept for each vertex
  int consumersTogether = 2; // consumers whose candidates are combined at once
  int beamWidth = 3;
  int quickEvaluations = 200; // kernels that the quick model prices
  int evaluations = 50;       // kernels that the accurate model prices
  /// Equations, summed over the kernels of a program, that the accurate model prices thoroughly. It prices further
  /// kernels in its fast mode (ScheduleSearch).
  int thoroughlyWeighed = 5800;
  /// Budget of the accurate model, in equations summed over all kernels of several equations that it prices:
  /// max(leastWeighed, weighed x equations of the list).
  int weighed = 1;
  int leastWeighed = 6144;
  size_t allDrafts = 4096; // equations of the longest list that gets every kind of draft
  /// True: the full search also begins from greedy merging and from the top down, and looks at such drafts at its
  /// end. OwnSearchTest shows what it finds without.
  bool otherSeeds = true;
};

struct PlanOptions {
  SearchMode mode = SearchMode::Full;
  FusionLimits limits;
};

/// Searches for the kernels of a program: see BuildPlan.cpp. Equal patterns are one. In the full mode values that
/// several equations would move, each by itself, are moved once where that makes the whole plan faster (Plan::copies).
Result<Plan> buildPlan(const ExprProgram &program, const Target &target,
                       const ScheduleOracle &oracle, const PlanOptions &options = {});

/// Adds plans of their own for few tokens, where the plan for all sizes would be much slower than one that knows them:
/// there most of the time goes into launches, and a block holds what else goes through memory. One where all of
/// `lengths` are 1, as for a single token, one for a batch of one too, and one where they are small. Only in the full
/// search, and where the program may have some.
Status addWherePlans(Plan &plan, const ExprProgram &program, const std::vector<SymbolId> &lengths,
                     const Target &target, const WhereOracle &oracle,
                     const PlanOptions &options = {});

/// Every equation a kernel of its own, in program order: what a plan is compared with.
Plan unfusedPlan(const ExprProgram &program);

/// The values that pass between launches of the plan, ordered by consumer. `why` gives the reason for two equations of
/// one list; if a branch or a loop of the host separates them, that is the reason.
using WhyApart =
    std::function<std::string(TensorId, const Equation &producer, const Equation &consumer)>;
std::vector<CrossKernelValue> valuesBetween(const Plan &plan, const ExprProgram &program,
                                            const WhyApart &why);

/// `program` is with the plan's copies, whose lines come first.
std::string print(const Plan &plan, const ExprProgram &program);
/// Reads the copies of a plan's text; the plan follows.
Result<std::vector<SharedCopy>> parseCopies(TextReader &in);
/// Reads a plan. The values between launches follow from the launches. Their reasons come from the text's `apart` lines
/// if those are as they were printed; otherwise they are kNoReason.
Result<Plan> parsePlan(TextReader &in, const ExprProgram &program);
constexpr std::string_view kNoReason = "no reason: the search did not make this plan";
/// Every equation in exactly one launch, every value produced before it is read.
Status verify(const Plan &plan, const ExprProgram &program);

} // namespace fusec
