#pragma once
#include "Driver/Resources.h"
#include "Driver/Stages.h"
#include "Fusion/Plan.h"
#include "Onnx/Import.h"
#include "Support/Result.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fusec {

struct CompileState;

struct CompileOptions {
  std::string inputPath;  // an ONNX model or a dump
  std::string outputPath; // bundle; empty with a stopAfter before the last stage
  ImportOptions import;
  std::vector<std::string> targets; // empty: host, or the targets that a dump names
  std::vector<Stage> dumpToText;    // printed through `print`
  std::string only;       // node or kernel that the printed text is limited to; empty: all
  bool resumable = false; // the printed text can be gone on from
  std::vector<std::string> dumpAfter; // STAGE/PASS whose text is printed behind it
  std::string dumpDir;                // one file a stage and the constants; empty: none
  std::optional<Stage> stopAfter;
  std::string decisionsPath;     // plan and schedules to take instead of searching; empty: search
  std::string emitDecisionsPath; // takes the plan and schedules as text; "-": `print`; empty: none
  std::string pagePath;          // explain's page; empty: none
  bool decisionsOnly = false;    // nothing is made behind them
  PlanOptions plan;              // how kernels are searched
  int threads = 1;
  std::string ptxasPath;
  bool ptxOnly = false;  // no ptxas by the user's wish: its absence is not reported as a lack
  int minDriverCuda = 0; // see CodegenOptions
  bool checked = false;  // see CodegenOptions
  /// Ed25519 secret key that the bundle is signed with; empty: not signed.
  std::string signingKeyPath;
  std::function<Status(const CompileState &)> inspect; // sees plan and schedules of all targets
  std::function<void(const std::string &text)> print;  // --dump-ir, --emit-decisions=-
  std::function<void(std::string_view what, const std::string &target)> progress; // a step begins
};

struct StageTime {
  std::string what; // stage, or STAGE/PASS
  double seconds;
};

struct CompileReport {
  std::vector<StageTime> times;
  int64_t bundleBytes = 0;
  struct TargetReport {
    std::string target;
    int kernels = 0, launches = 0;
    /// Predicted seconds of a run; none for a dump whose schedules were made before.
    std::optional<double> predictedSec;
    Evaluations evaluations;
    std::optional<std::vector<KernelResources>> resources;
  };
  std::vector<TargetReport> targets;
  /// Facts the user should know: no cubin without ptxas, a search cut short.
  std::vector<std::string> notes;
  Diagnostics warnings;
};

/// The compiler: model or dump in, bundle out (or nothing but dumps with stopAfter).
Result<CompileReport> compile(const CompileOptions &options);

} // namespace fusec
