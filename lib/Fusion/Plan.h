#pragma once
#include "Cost/LaunchTime.h"
#include "Expr/Expr.h"
#include "Support/Hash.h"
#include "Target/Target.h"

#include <functional>
#include <map>

namespace fusec {

/// A kernel's worth of equations, cut out of the program: tensors are numbered arguments first (inputs in order of
/// use, then outputs), then internal temps, and carry no names of the model, so that patterns that differ in names only
/// are equal. A constant argument is a Constant tensor without data.
struct Pattern {
  ExprProgram program;
  int numArguments = 0;
  std::vector<int> phaseStarts; // positions of equations that begin a phase, ascending, without 0
  Hash128 signature;            // of the canonical text and the phases
};

struct PlanStep {
  enum class Kind : uint8_t { Launch, If, Loop } kind = Kind::Launch;
  std::string name;
  std::vector<std::string> onnxNodes;
  // Launch
  std::vector<std::string> equations; // names, in the pattern's order
  int pattern = -1;
  std::vector<TensorId> arguments; // tensors of the ExprProgram, one an argument of the pattern
  // If, Loop: the Control they come from, with its items replaced by steps
  Control control;
  std::vector<PlanStep> thenSteps, elseSteps;
};

/// A value that goes from one launch to another through device memory, and why no kernel holds both ends.
struct Apart {
  TensorId tensor;                // of the ExprProgram
  std::string producer, consumer; // equations or control items
  std::string reason;             // for people: "y reads it at other points than its own"
};

/// What a search has spent: kernels that each model was asked for, equal ones of a list once.
struct Evaluations {
  int64_t quick = 0, accurate = 0;
  int64_t thoroughEquations = 0; // of the kernels that the accurate model weighed with all it knows
  int64_t cursory = 0;           // kernels that it weighed with less, since there were too many
};

/// A partition of a program's equations into patterns (convex sets) and the order in which they run.
struct Plan {
  std::vector<Pattern> patterns;
  std::vector<PlanStep> steps;
  std::vector<Apart> apart; // see valuesBetween
  // Of the search; no part of the text.
  Evaluations evaluations{};
  double seconds = 0; // predicted, of all launches; those of branches and loops once
};

/// What a pattern is predicted to take as one kernel without phases.
struct KernelTime {
  double seconds = -1; // negative: no schedule
  /// With so many units a block; phases of one kernel have the number in common.
  std::map<int, cost::LaunchTime> ofUnits;
  double bytes = 0; // of device memory that it reads and writes
};
/// Predicts for the target that is compiled for. Handed in by the driver, implemented by Tiling.
using ScheduleOracle = std::function<Result<KernelTime>(const Pattern &)>;

/// Which search cuts a program into kernels: each paper's alone, for comparison, or all of them as seeds of one.
enum class SearchMode : uint8_t { None, Fs, Souffle, PowerFusion, Full };
struct SearchModeInfo {
  SearchMode mode;
  std::string_view name, help;
  /// Else each contraction (isContraction) is a kernel of its own: left to a library.
  bool joinsContractions = true;
  bool blocksWait = true; // for each other, between phases and rounds of a kernel
  /// What threads can hold from phase to phase they hold, whether the model finds it faster or not.
  bool alwaysHolds = false;
};
inline constexpr SearchModeInfo kSearchModes[] = {
    {SearchMode::Full, "full", "all seeds, improved under the accurate model"},
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

/// How many equations this one counts as where those are bounded that the accurate model weighs: what that takes grows
/// with the body.
int64_t equationsWeighed(const Equation &equation);

/// Sizes of the search, FusionStitching's (section 5) by default, and what it may spend on each equation of a list:
/// with the least, 1, all equations stay alone.
struct FusionLimits {
  int topPatterns = 3;       // candidates kept for each vertex
  int consumersTogether = 2; // consumers whose candidates are combined at once
  int beamWidth = 3;
  int quickEvaluations = 200; // kernels that the quick model looks at
  int evaluations = 50;       // kernels that the accurate one is asked for
  /// Equations of the kernels of a program that the accurate model weighs with all that it knows; of further ones it
  /// finds out less (ScheduleSearch).
  int thoroughlyWeighed = 5800;
  /// Equations that all kernels have which the accurate model is asked for, since what it takes grows with them: so
  /// many for each equation of a list, and these where that is less.
  int weighed = 1;
  int leastWeighed = 6144;
  size_t allDrafts = 4096; // equations of the longest list that gets every kind of draft
  /// The full search begins from greedy merging and from the top down too (OwnSearchTest: nearly all plans are the same
  /// without).
  bool otherSeeds = true;
};

struct PlanOptions {
  SearchMode mode = SearchMode::Full;
  FusionLimits limits;
};

/// Searches for the kernels of a program: see BuildPlan.cpp. Equal patterns are one.
Result<Plan> buildPlan(const ExprProgram &program, const Target &target,
                       const ScheduleOracle &oracle, const PlanOptions &options = {});

/// Every equation a kernel of its own, in program order: what a plan is compared with.
Plan unfusedPlan(const ExprProgram &program);

/// The values that pass between launches of the plan, ordered by consumer. `why` gives the reason for two equations of
/// one list; where a branch or a loop of the host stands between, that is the reason.
using WhyApart =
    std::function<std::string(TensorId, const Equation &producer, const Equation &consumer)>;
std::vector<Apart> valuesBetween(const Plan &plan, const ExprProgram &program, const WhyApart &why);

std::string print(const Plan &plan, const ExprProgram &program);
/// The values between launches are those of the launches that were read. Reasons come from the text's `apart` lines as
/// long as they are what was printed; else it is kNoReason.
Result<Plan> parsePlan(TextReader &in, const ExprProgram &program);
constexpr std::string_view kNoReason = "no reason: the search did not make this plan";
/// Every equation in exactly one launch, every value produced before it is read.
Status verify(const Plan &plan, const ExprProgram &program);

} // namespace fusec
