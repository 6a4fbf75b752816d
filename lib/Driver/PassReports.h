#pragma once
#include "Driver/Pipeline.h"
#include "Support/Pass.h"

namespace fusec {

/// Reports the passes of a stage as STAGE/PASS: their seconds, of all kernels together, and their texts where the
/// options ask for them. The text before a pass that broke a rule goes to the folder of dumps, where there is one, as
/// before-PASS.txt; else it is printed. Keeps references to both.
PassObserver observePasses(Stage stage, const CompileOptions &options, CompileReport &report);

/// All passes in the order in which they run, each with its stage.
std::vector<std::pair<Stage, std::string_view>> passNames();

} // namespace fusec
