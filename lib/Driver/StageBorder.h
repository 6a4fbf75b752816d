#pragma once
#include "Driver/Part.h"
#include "Driver/Pipeline.h"
#include "Driver/State.h"

namespace fusec {

/// What happens when a stage has run, or a dump has brought its result: dumps to print and to files, and the end of
/// the work where that is asked for. Keeps references to both arguments.
class StageBorder {
public:
  StageBorder(const CompileOptions &options, const CompileState &state);

  /// True where the next stage is to run. Errors: E6001 for a file that cannot be written, E2001 for an --only that
  /// names nothing.
  Result<bool> pass(Stage stage);
  /// True while a printed part of the graph or the equations waits for the plan to tell what --only names.
  bool isWaiting() const { return !waiting.empty(); }

private:
  Status printPart(Stage stage, bool toText);

  const CompileOptions &options;
  const CompileState &state;
  ConstantStore store;
  std::optional<Part> part;
  std::vector<Stage> waiting;
  bool partFound = false;
};

/// How the kernels of a target become machine code under these options.
CodegenOptions codegenOptions(const CompileOptions &options, const TargetState &target);

} // namespace fusec
