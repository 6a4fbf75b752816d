#pragma once
#include "Codegen/Codegen.h"
#include "Driver/Stages.h"
#include "Expr/Caches.h"
#include "Expr/Passes.h"
#include "Fusion/Plan.h"
#include "Gir/Program.h"
#include "Graph/Graph.h"
#include "Tiling/search/BestSchedules.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>

namespace fusec {

class Part;
class PatternOracle;
struct CompileOptions;

/// What the pipeline knows of one target.
struct TargetState {
  Target target;
  Plan plan;
  std::vector<std::vector<ScheduleVariant>> schedules; // one list a pattern of the plan
  std::string decisions;                               // decisionsText of both; the bundle tells it
  GirProgram gir;
  std::vector<CodeImage> images;
  bool checked = false; // the kernels of a GPU look for waits in vain, and each is waited for
  // By a user, in a dump or a file of decisions; else by the search.
  bool planWritten = false, schedulesWritten = false;
  std::string decisionsPath = ""; // of the file of decisions that both are from; empty: none
  std::shared_ptr<PatternOracle> oracle =
      nullptr; // remembers what planning found; null: the plan was read
  /// The program that `plan` is of, where it is another than the model's (makeOwnProgram).
  std::optional<ExprProgram> ownProgram = std::nullopt;
};

/// The program that the target's plan cuts into kernels, where `program` is the model's.
inline const ExprProgram &programOf(const ExprProgram &program, const TargetState &target) {
  return target.ownProgram ? *target.ownProgram : program;
}
/// Makes the target's own program: with a plan's copies, for GPUs without tests of the data.
Status makeOwnProgram(const ExprProgram &program, const std::vector<SharedCopy> &copies,
                      TargetState &target);
/// Copies and plan, verified, from text.
Status readPlan(TextReader &in, const ExprProgram &program, TargetState &target);

/// The model on its way through the compiler; later stages fill their part.
struct CompileState {
  Graph graph;
  SizeRules sizeRules; // of the graph, over the symbols that all later stages have too
  ExprProgram program;
  std::vector<CachePair> caches; // of the program and of all that is made of it
  /// `program` without vertical composition, to be compared with.
  std::optional<ExprProgram> uncomposed;
  std::vector<TargetState> targets;
  std::optional<Stage> loadedStage; // a dump has brought the result of this stage; a model: none
  /// True where the stage has to run.
  bool needs(Stage stage) const { return !loadedStage || stage > *loadedStage; }
};

/// The targets, and what the input holds of the state where it is a dump. Errors: options that cannot go together or
/// with this input, a dump that cannot be read or breaks a rule.
Status loadInput(const CompileOptions &options, CompileState &state);

/// The passes of a program of equations, constant folding in front; without `composed` all but the vertical
/// composition.
std::vector<Pass<ExprProgram>> equationPasses(bool composed = true);
/// Graph -> equations, all these passes run.
Result<ExprProgram> lowerProgram(const Graph &graph, bool composed,
                                 const PassObserver &observer = {});
/// Text of one stage with everything that the rest of the pipeline needs, or, where it is not `resumable`, without the
/// decisions that kernels bring along for the bundle. `store`, if there is one, takes the constants' data.
std::string dumpStage(Stage stage, const CompileState &state, ConstantStore *store,
                      bool resumable = true);
/// One file of a dump folder, which is made where it is missing.
Status writeDump(const std::string &folder, const std::string &file, const void *data,
                 size_t sizeBytes);
/// Where a dump goes: what `part` has, or all where there is none, to `print`, all to files of `folder`; either may be
/// empty.
struct DumpSink {
  std::function<void(const std::string &text)> print;
  const Part *part = nullptr;
  std::string folder;
};
/// LLVM IR, assembly or machine code of a target.
Status dumpCode(Stage stage, const TargetState &target, const DumpSink &sink,
                const CodegenOptions &options);
/// True if the bytes begin like a dump; `stage` tells which.
bool isDump(std::string_view text, Stage &stage);
/// An error where the bytes begin like what comes behind gir, which cannot be gone on from: LLVM IR, machine code, a
/// bundle.
Status refuseLateForms(std::string_view text, const std::string &fileName);
/// Inverse of dumpStage for graph to gir. `targets`: what the user asked for; empty takes the dump's own list.
Status loadDump(std::string_view text, const std::string &fileName,
                const std::vector<Target> &targets, const ConstantStore &store,
                CompileState &state);
/// The verifiers of all that a dump of this stage holds.
Status verifyState(Stage stage, const CompileState &state);

/// Plan + schedules -> kernels, all passes run, packed constants and the execution plan.
Result<GirProgram> buildGirProgram(const ExprProgram &program, const TargetState &state,
                                   const PassObserver &observer = {});
/// LimitExceeded for kernels whose blocks have no room on a GPU. The search goes by an estimate, and a schedule edited
/// by hand by nothing: here the allocator has spoken.
Status checkSharedMemory(const TargetState &state);

/// Copies of constants in the layouts that kernels read, one for each constant and layout.
class ConstantPacker {
public:
  /// Tensor of `gir` that holds operand `operand` of `schedule` for the constant `source`; added when it is new.
  TensorId packed(GirProgram &gir, TensorId source, const ExprProgram &pattern,
                  const Schedule &schedule, size_t operand);

private:
  std::map<std::string, TensorId> known; // by source and layout
};

} // namespace fusec
