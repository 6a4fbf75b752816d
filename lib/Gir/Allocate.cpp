// allocate: offsets of Shared buffers; how many registers a lane needs.
//
// Buffers with disjoint live ranges (Liveness.h) share bytes; the barriers that this makes necessary are inserted
// afterwards. Largest buffers are placed first, each at the lowest offset that is free during its whole range, and in
// the statements next to it where that takes no byte more: between neighbours stands no barrier yet.
#include "Gir/Liveness.h"
#include "Gir/Passes.h"
#include "Gir/Syncs.h"

#include <algorithm>
#include <functional>

namespace fusec {
namespace {

int64_t sizeOf(const GirBuffer &b) {
  return numElements(b.shape).constValue() * sizeInBytes(b.type);
}

/// Whether some of the ranges overlap, or are at most `beside` points apart.
bool meet(std::span<const LiveRange> a, std::span<const LiveRange> b, int beside) {
  return std::ranges::any_of(a, [&](const LiveRange &one) {
    const LiveRange wide{one.first - beside, one.last + beside};
    return std::ranges::any_of(b, [&](const LiveRange &other) { return wide.overlaps(other); });
  });
}

} // namespace

int64_t placeBuffers(std::span<PlacedBuffer> buffers) {
  std::vector<PlacedBuffer *> order;
  for (PlacedBuffer &buffer : buffers)
    order.push_back(&buffer);
  std::ranges::stable_sort(order, std::greater(), &PlacedBuffer::bytes);

  int64_t all = 0;
  std::vector<std::pair<int64_t, int64_t>> taken; // [begin, end) of buffers live at the same time
  for (auto next = order.begin(); next != order.end(); ++next) {
    PlacedBuffer &buffer = **next;
    auto lowestFree = [&](int beside) {
      taken.clear();
      for (const PlacedBuffer *other : std::span(order.begin(), next))
        if (meet(buffer.ranges, other->ranges, beside))
          taken.emplace_back(other->offsetBytes, other->offsetBytes + other->bytes);
      std::ranges::sort(taken);
      int64_t offset = 0;
      for (auto [begin, end] : taken)
        if (offset < end && begin < offset + buffer.bytes)
          offset = (end + buffer.alignBytes - 1) / buffer.alignBytes * buffer.alignBytes;
      return offset;
    };
    buffer.offsetBytes = lowestFree(1);
    if (buffer.offsetBytes + buffer.bytes > all)
      buffer.offsetBytes = lowestFree(0);
    all = std::max(all, buffer.offsetBytes + buffer.bytes);
  }
  return all;
}

void allocate(GirKernel &kernel) {
  const std::vector<std::vector<LiveRange>> ranges =
      livenessOf(kernel, kernel.phases, MemLevel::Shared).buffers;
  std::vector<BufferId> shared;
  std::vector<PlacedBuffer> placed;
  for (BufferId b = 0; b < static_cast<BufferId>(kernel.buffers.size()); ++b)
    if (const GirBuffer &buffer = kernel.buffers[b]; buffer.level == MemLevel::Shared) {
      shared.push_back(b);
      placed.push_back({ranges[b], sizeOf(buffer), buffer.alignBytes});
    }
  kernel.sharedBytes = placeBuffers(placed);
  for (size_t i = 0; i < shared.size(); ++i)
    kernel.buffers[shared[i]].offsetBytes = placed[i].offsetBytes;

  insertSyncs(kernel, [&](BufferId a, BufferId b) {
    const GirBuffer &x = kernel.buffers[a], &y = kernel.buffers[b];
    return x.level == MemLevel::Shared && y.level == MemLevel::Shared &&
           x.offsetBytes < y.offsetBytes + sizeOf(y) && y.offsetBytes < x.offsetBytes + sizeOf(x);
  });
  canonicalise(kernel);
}

int64_t sharedBytesOf(const GirKernel &kernel, std::span<const Phase> phases) {
  const std::vector<std::vector<LiveRange>> ranges =
      livenessOf(kernel, phases, MemLevel::Shared).buffers;
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
