#pragma once
#include "Driver/ModelNames.h"
#include "Driver/State.h"
#include "Tiling/counts/Prediction.h"

namespace fusec {

/// Launches of each pattern in a run with these values of the symbols, those in branches and loops counted once.
std::vector<int> countLaunches(const Plan &plan, const std::vector<int64_t> &symbols);

/// Schedules of a pattern as dumps and decisions hold them: comments that name its equations as `launch` does, guards,
/// then the schedule.
std::string printSchedule(size_t pattern, const ScheduleVariant &variant, const Plan &plan,
                          const PlanStep *launch, const ModelNames &names);
/// All schedules of the patterns that `wanted` has, as a dump holds them.
std::string printSchedules(const TargetState &state, const ExprProgram &program,
                           const std::function<bool(size_t pattern)> &wanted);
/// Inverse; adds the schedule to its pattern in `state`, whose number it gives.
Result<size_t> parseSchedule(TextReader &in, TargetState &state);
/// The rules of a schedule, broken ones told with the model's names.
Status verifySchedule(size_t pattern, const Schedule &schedule, const TargetState &state,
                      const ExprProgram &program);
/// Each pattern has one schedule without guards, behind those with guards.
Status checkSchedules(TextReader &in, const TargetState &state);

/// What was decided for one target, as text: the plan with its reasons, and for each kernel a line
///   kernel k_0123456789abcdef launches 12 reads 4096 writes 1024 seconds 1.5e-06 signature 0123...
/// (numbers of one launch) in front of its schedules. A schedule is named after its kernel, with a label behind the dot
/// that whoever edits it may change; each value inside has its level. The same from the search and from a replay
/// of the text.
std::string decisionsText(const ExprProgram &program, const TargetState &state);

/// The file of --emit-decisions: all targets.
std::string decisionsFile(const CompileState &state);
bool isDecisionsFile(std::string_view text);
/// The version of the compiler that wrote such a file, "fusec 0.0.9"; empty where it is this one.
std::string otherMaker(std::string_view text);

/// Takes plan and schedules of all targets from such a file. Whatever does not fit the program, or is missing, is a
/// StaleDecisions diagnostic: nothing is chosen in its place.
Status replayDecisions(std::string_view text, const std::string &fileName, CompileState &state);

/// Errors of parsers, verifiers and the lowering say where and what; of decisions they mean that the file does not
/// fit.
Diagnostics decisionsDoNotFit(Diagnostics errors, const std::string &fileName,
                              const std::string &target);

/// Lines of a file that was replayed, written for its reader and by this version, which say what is not so: numbers of
/// kernels, the kernels' names in those of schedules, the model's names for equations and launches, extents, reasons
/// why values stay apart, or a value that stays apart and no longer has a line. `state` holds the
/// decisions that were made of it. Comments that their reader added are none of these. Of a file of another version
/// its version alone is told: that one may count otherwise.
Diagnostics editedFacts(std::string_view text, const std::string &fileName,
                        const CompileState &state);

/// One kernel of a decisions text, read without the program.
struct DecidedKernel {
  std::string name; // of the pattern: k_...
  int64_t launches = 0;
  Prediction prediction; // of one launch
  std::string schedules; // text, without the pattern's number
};
struct DecidedPlan {
  std::string plan; // text
  std::vector<DecidedKernel> kernels;
};
/// Takes texts that nobody vouches for: numbers are finite and at most 1e18, launches below 2^31.
Result<DecidedPlan> readDecisions(std::string_view text, const std::string &fileName);

} // namespace fusec
