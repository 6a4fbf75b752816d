#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace fusec {

/// The compiler's stages in the order of the data. The name is what --dump-ir and --stop-after take, what dump files
/// and timing rows are called, and what the help text lists.
enum class Stage : uint8_t { Graph, Expr, Plan, Schedule, Gir, Llvm, Asm, Object };

struct StageInfo {
  Stage stage;
  std::string_view name;
  std::string_view help;
};
inline constexpr StageInfo kStages[] = {
    {Stage::Graph, "graph", "the model's operators, typed and shaped"},
    {Stage::Expr, "expr", "tensor equations with access maps"},
    {Stage::Plan, "plan", "which equations form a kernel"},
    {Stage::Schedule, "schedule", "loop trees, tiles and memory levels of each kernel"},
    {Stage::Gir, "gir", "kernels as loops over memory slices, and the execution plan"},
    {Stage::Llvm, "llvm", "LLVM IR before optimisation"},
    {Stage::Asm, "asm", "assembly of each kernel, under the nodes that it computes"},
    {Stage::Object, "object", "machine code"},
};
constexpr std::string_view name(Stage stage) { return kStages[static_cast<int>(stage)].name; }
inline std::optional<Stage> parseStage(std::string_view text) {
  for (const StageInfo &info : kStages)
    if (info.name == text)
      return info.stage;
  return std::nullopt;
}

} // namespace fusec
