// allocate: offsets of Shared buffers; how many registers a lane needs.
//
// Buffers with disjoint live ranges (Liveness.h) share bytes; the barriers that this makes necessary are inserted
// afterwards. Largest buffers are placed first, each at the lowest offset that is free during its whole range, and in
// the statements next to it where that takes no byte more: between neighbours stands no barrier yet.
#include "Gir/Liveness.h"
#include "Gir/Passes.h"
#include "Gir/Syncs.h"

#include <algorithm>

namespace fusec {
namespace {

int64_t sizeOf(const GirBuffer &b) {
  return numElements(b.shape).constValue() * sizeInBytes(b.type);
}

} // namespace

void allocate(GirKernel &kernel) {
  const std::vector<LiveRange> ranges = livenessOf(kernel, kernel.phases, MemLevel::Shared).buffers;
  std::vector<BufferId> order;
  for (BufferId b = 0; b < static_cast<BufferId>(kernel.buffers.size()); ++b)
    if (kernel.buffers[b].level == MemLevel::Shared)
      order.push_back(b);
  std::stable_sort(order.begin(), order.end(), [&](BufferId a, BufferId b) {
    return sizeOf(kernel.buffers[a]) > sizeOf(kernel.buffers[b]);
  });

  kernel.sharedBytes = 0;
  std::vector<BufferId> placed;
  for (BufferId b : order) {
    GirBuffer &buffer = kernel.buffers[b];
    auto lowestFree = [&](int beside) {
      const LiveRange range{ranges[b].first - beside, ranges[b].last + beside};
      std::vector<std::pair<int64_t, int64_t>>
          taken; // [begin, end) of buffers live at the same time
      for (BufferId other : placed) {
        int64_t begin = kernel.buffers[other].offsetBytes;
        if (range.overlaps(ranges[other]))
          taken.emplace_back(begin, begin + sizeOf(kernel.buffers[other]));
      }
      std::sort(taken.begin(), taken.end());
      int64_t offset = 0;
      for (auto [begin, end] : taken)
        if (offset < end && begin < offset + sizeOf(buffer))
          offset = (end + buffer.alignBytes - 1) / buffer.alignBytes * buffer.alignBytes;
      return offset;
    };
    int64_t offset = lowestFree(1);
    if (offset + sizeOf(buffer) > kernel.sharedBytes)
      offset = lowestFree(0);
    buffer.offsetBytes = offset;
    kernel.sharedBytes = std::max(kernel.sharedBytes, offset + sizeOf(buffer));
    placed.push_back(b);
  }

  insertSyncs(kernel, [&](BufferId a, BufferId b) {
    const GirBuffer &x = kernel.buffers[a], &y = kernel.buffers[b];
    return x.level == MemLevel::Shared && y.level == MemLevel::Shared &&
           x.offsetBytes < y.offsetBytes + sizeOf(y) && y.offsetBytes < x.offsetBytes + sizeOf(x);
  });
  canonicalise(kernel);
}

int64_t sharedBytesOf(const GirKernel &kernel, std::span<const Phase> phases) {
  const std::vector<LiveRange> ranges = livenessOf(kernel, phases, MemLevel::Shared).buffers;
  int64_t bytes = 0;
  for (size_t b = 0; b < ranges.size(); ++b)
    if (const GirBuffer &buffer = kernel.buffers[b]; !ranges[b].empty())
      bytes = std::max(bytes, buffer.offsetBytes + sizeOf(buffer));
  return bytes;
}

int64_t sharedAlignment(const GirKernel &kernel) {
  int64_t bytes = kSharedAlignment;
  for (const GirBuffer &buffer : kernel.buffers)
    bytes = std::max(bytes, buffer.alignBytes);
  return bytes;
}

int64_t registersPerLane(const GirKernel &kernel) {
  const std::vector<double> registers =
      livenessOf(kernel, kernel.phases, MemLevel::Register).registersAt(kernel);
  return int64_t(*std::max_element(registers.begin(), registers.end()));
}

} // namespace fusec
