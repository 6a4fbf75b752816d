#include "Tiling/counts/ScanStorage.h"

#include "Tiling/schedule/GridScan.h"

#include <algorithm>

namespace fusec::tiling {

std::vector<ScanPlace> writtenPlaces(const BoundSchedule &bound, TensorId t) {
  const Equation *scan = bound.scan();
  const int64_t steps = scan ? bound.valueOf(scan->steps) : 1;
  std::vector<ScanPlace> places;
  for (size_t o = 0; scan && o < scan->scanOutputs.size(); ++o) {
    const ScanOutput &output = scan->scanOutputs[o];
    if (output.perStep != t)
      continue;
    const int64_t first = std::max<int64_t>(0, output.first);
    const int64_t rows = bound.valueOf(bound.program().tensors[output.stacked].shape[0]);
    places.push_back({{first, std::clamp<int64_t>(rows, 0, std::max<int64_t>(0, steps - first))},
                      -first,
                      std::max<int64_t>(1, rows)});
  }
  if (scan && bound.gridScan() && isNextState(*scan, t))
    places.push_back({{0, steps}, 1, 2});
  else if (places.empty() && bound.level(t) == MemLevel::Global)
    places.push_back({{0, steps}});
  return places;
}

ScanPlace readPlace(const BoundSchedule &bound, TensorId t) {
  const Equation *scan = bound.scan();
  if (!scan || bound.level(t) != MemLevel::Global)
    return {};
  const StepRange steps{0, bound.valueOf(scan->steps)};
  const bool written = isNextState(*scan, t);
  if (bound.gridScan() && (written || isPreviousState(*scan, t)))
    return {steps, written ? 1 : 0, 2};
  return {steps, 0, isStacked(*scan, t) ? std::max<int64_t>(1, steps.count) : 1};
}

} // namespace fusec::tiling
