#include "Tiling/schedule/GridScan.h"

#include <algorithm>

namespace fusec::tiling {

const LoopNode *gridScanOf(std::span<const TreeNode> phase) {
  const LoopNode *loop = phase.size() == 1 ? phase[0].loop() : nullptr;
  const bool spread = loop && loop->axis == kStepAxis &&
                      std::ranges::any_of(loop->children, [](const TreeNode &node) {
                        return node.isBorder() || node.loop(LoopKind::Block);
                      });
  return spread ? loop : nullptr;
}

bool hasGridScan(const Schedule &schedule) {
  const std::vector<std::span<const TreeNode>> phases = phasesOf(schedule.tree);
  return std::ranges::any_of(
      phases, [](std::span<const TreeNode> phase) { return gridScanOf(phase) != nullptr; });
}

bool isPreviousState(const Equation &scan, TensorId t) {
  return std::ranges::find(scan.carries, t, &ScanCarry::previous) != scan.carries.end();
}

bool isNextState(const Equation &scan, TensorId t) {
  return std::ranges::find(scan.carries, t, &ScanCarry::next) != scan.carries.end();
}

bool isStacked(const Equation &scan, TensorId t) {
  return std::ranges::find(scan.scanOutputs, t, &ScanOutput::perStep) != scan.scanOutputs.end();
}

std::vector<std::pair<TensorId, TensorId>> carriedStates(const Equation &scan, int when) {
  std::vector<std::pair<TensorId, TensorId>> copies;
  for (const ScanCarry &c : scan.carries) {
    const TensorId from = when == 0 ? c.init : when == 1 ? c.next : c.previous;
    const TensorId to = when == 2 ? c.final : c.previous;
    if (to >= 0 && from != to)
      copies.emplace_back(from, to);
  }
  return copies;
}

bool outlivesStep(const BoundSchedule &bound, TensorId t) {
  const Equation *scan = bound.scan();
  return scan && (isStacked(*scan, t) || (bound.gridScan() && isNextState(*scan, t)));
}

} // namespace fusec::tiling
