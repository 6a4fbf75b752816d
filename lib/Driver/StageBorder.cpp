#include "Driver/StageBorder.h"

#include "Support/Diag.h"

#include <algorithm>

namespace fusec {

StageBorder::StageBorder(const CompileOptions &options, const CompileState &state)
    : options(options), state(state), store(options.dumpDir) {
  if (!options.only.empty())
    part.emplace(options.only);
}

Result<bool> StageBorder::pass(Stage stage) {
  bool isStop = options.stopAfter && stage >= *options.stopAfter;
  // A dump that was loaded passes the same border as a stage that ran.
  if (state.loadedStage && stage < *state.loadedStage)
    return true;
  bool toText = std::count(options.dumpToText.begin(), options.dumpToText.end(), stage) != 0;
  // Assembly takes as long as the machine code: it is made where it is asked for.
  bool toFile = !options.dumpDir.empty() && (stage != Stage::Asm || toText);
  toFile &= !options.stopAfter || stage <= *options.stopAfter;
  if (part && (toText || !waiting.empty()))
    FUSEC_CHECK(printPart(stage, toText));
  if (stage > Stage::Gir) {
    const DumpSink sink{toText ? options.print : nullptr, part ? &*part : nullptr,
                        toFile ? options.dumpDir : ""};
    for (const TargetState &target : state.targets)
      FUSEC_CHECK(dumpCode(stage, target, sink, codegenOptions(options, target)));
    return !isStop;
  }
  if (toText && !part)
    options.print(dumpStage(stage, state, nullptr, options.resumable));
  if (toFile) {
    const std::string text = dumpStage(stage, state, &store);
    if (!store.failures().empty())
      return store.failures();
    FUSEC_CHECK(
        writeDump(options.dumpDir, std::string(name(stage)) + ".txt", text.data(), text.size()));
  }
  return !isStop || !waiting.empty();
}

/// What --only leaves of this stage. Kernels are known from the plan on: what they have of earlier stages waits for
/// that one.
Status StageBorder::printPart(Stage stage, bool toText) {
  if (toText)
    waiting.push_back(stage);
  std::string text;
  bool found = false;
  if (stage > Stage::Gir) { // dumpCode prints the kernels
    waiting.clear();
    for (const TargetState &target : state.targets)
      found |= !part->kernelsOf(target).empty();
  }
  for (Stage earlier : waiting) {
    const std::optional<std::string> own = part->dump(earlier, state);
    found |= own.has_value();
    text += own.value_or("# nothing of '" + options.only + "' is in " + std::string(name(earlier)) +
                         "\n");
  }
  if (!found && stage < Stage::Plan)
    return success();
  waiting.clear();
  partFound |= found;
  if (!partFound)
    return Diagnostic{Diag::BadOption, "--only=" + options.only,
                      "no node of the model and no kernel has this name; what has been folded "
                      "away is in none (--dump-ir=plan prints kernels under their nodes)"};
  options.print(text);
  return success();
}

CodegenOptions codegenOptions(const CompileOptions &options, const TargetState &target) {
  return {options.threads, options.ptxasPath, target.checked, options.minDriverCuda};
}

} // namespace fusec
