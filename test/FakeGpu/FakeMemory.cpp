// Memory of a fake driver, and what fills it.
#include "Fake.h"

#include <algorithm>
#include <cstdlib>

namespace fake {

uint64_t baseOf(uint64_t p) {
  auto at = driver.allocations.upper_bound(p);
  if (at == driver.allocations.begin())
    return 0;
  --at;
  return p < at->first + at->second.bytes ? at->first : 0;
}

const Allocation *allocationOf(uint64_t p, size_t bytes) {
  const uint64_t base = baseOf(p);
  if (base == 0)
    return nullptr;
  const Allocation &a = driver.allocations.at(base);
  return p + bytes <= base + a.bytes ? &a : nullptr;
}

} // namespace fake

using namespace fake;

namespace {

bool ofDevice(uint64_t p, size_t bytes) {
  const Allocation *a = allocationOf(p, bytes);
  return a && a->kind != FAKE_PINNED;
}

/// A copy from host memory: pageable memory is read before the call returns, pinned memory when the copy runs.
Work upload(uint64_t to, const void *from, size_t bytes) {
  const auto *source = static_cast<const char *>(from);
  if (allocationOf(reinterpret_cast<uint64_t>(from), bytes))
    return {[=] { std::memcpy(reinterpret_cast<void *>(to), source, bytes); }, {to}, to};
  std::vector<char> staged(source, source + bytes);
  return {[to, staged = std::move(staged)] {
            std::memcpy(reinterpret_cast<void *>(to), staged.data(), staged.size());
          },
          {to},
          to};
}

} // namespace

EXPORT int NAME(cuMemAlloc_v2, hipMalloc)(uint64_t *memory, size_t bytes) {
  ENTER("allocate", true);
  if (bytes == 0)
    return misuse("allocate of 0 bytes", kInvalidValue);
  if (anyCapture())
    return kCaptureUnsupported;
  void *p = nullptr;
  if (posix_memalign(&p, 256, bytes) != 0)
    return kNoMemory;
  std::memset(p, 0xee, bytes);
  *memory = reinterpret_cast<uint64_t>(p);
  driver.allocations[*memory] = {bytes, deviceInUse(), FAKE_DEVICE};
  return kSuccess;
}
EXPORT int NAME(cuMemFree_v2, hipFree)(uint64_t memory) {
  ENTER("release", true);
  auto at = driver.allocations.find(memory);
  if (at == driver.allocations.end())
    return misuse("release of memory that is not allocated", kInvalidValue);
  // Waits for all that the device does.
  for (auto &stream : driver.defaults)
    runAll(*stream);
  for (auto &[handle, stream] : driver.streams)
    runAll(*stream);
  driver.allocations.erase(at);
  std::free(reinterpret_cast<void *>(memory));
  return kSuccess;
}

EXPORT int NAME(cuMemcpyHtoD_v2, hipMemcpyHtoD)(uint64_t to, const void *from, size_t bytes) {
  ENTER("upload", true);
  if (!ofDevice(to, bytes))
    return misuse("upload outside of an allocation", kInvalidValue);
  runAll(*streamOf(nullptr));
  return enqueue(nullptr, "upload", upload(to, from, bytes));
}
EXPORT int NAME(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync)(uint64_t to, const void *from,
                                                          size_t bytes, void *stream) {
  ENTER("uploadAsync", true);
  if (!ofDevice(to, bytes))
    return misuse("uploadAsync outside of an allocation", kInvalidValue);
  return enqueue(stream, "uploadAsync", upload(to, from, bytes));
}
EXPORT int NAME(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)(void *to, uint64_t from, size_t bytes,
                                                          void *stream) {
  ENTER("downloadAsync", true);
  if (!ofDevice(from, bytes))
    return misuse("downloadAsync outside of an allocation", kInvalidValue);
  return enqueue(stream, "downloadAsync",
                 {[=] { std::memcpy(to, reinterpret_cast<const void *>(from), bytes); }, {from}});
}
EXPORT int NAME(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)(uint64_t to, uint64_t from, size_t bytes,
                                                          void *stream) {
  ENTER("copyAsync", true);
  if (!ofDevice(to, bytes) || !ofDevice(from, bytes))
    return misuse("copyAsync outside of an allocation", kInvalidValue);
  return enqueue(stream, "copyAsync",
                 {[=] {
                    std::memmove(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from),
                                 bytes);
                  },
                  {to, from},
                  to});
}
EXPORT int NAME(cuMemsetD8Async, hipMemsetD8Async)(uint64_t to, unsigned char value, size_t bytes,
                                                   void *stream) {
  ENTER("memsetAsync", true);
  if (!ofDevice(to, bytes))
    return misuse("memsetAsync outside of an allocation", kInvalidValue);
  return enqueue(stream, "memsetAsync",
                 {[=] { std::memset(reinterpret_cast<void *>(to), value, bytes); }, {to}, to});
}

#ifdef FAKE_NVIDIA
EXPORT int cuPointerGetAttributes(unsigned count, int *attributes, void **data, uint64_t p) {
  ENTER("pointerAttributes", true);
  enum { kContext = 1, kType = 2, kManaged = 8, kOrdinal = 9 };
  const Allocation *a = allocationOf(p, 1);
  for (unsigned i = 0; i < count; ++i)
    switch (attributes[i]) {
    case kContext: {
      void *context = nullptr;
      if (a)
        context = a->kind == FAKE_OTHER_CONTEXT ? &driver.other : &driver.primary[a->device];
      std::memcpy(data[i], &context, sizeof context);
      break;
    }
    case kType: *static_cast<unsigned *>(data[i]) = !a ? 0 : a->kind == FAKE_PINNED ? 1 : 2; break;
    case kManaged: *static_cast<bool *>(data[i]) = a && a->kind == FAKE_MANAGED; break;
    case kOrdinal: *static_cast<int *>(data[i]) = a ? a->device : -2; break;
    default: return misuse("pointerAttributes of an unknown one", kInvalidValue);
    }
  return kSuccess;
}
#else
EXPORT int hipPointerGetAttributes(void *attributes, const void *p) {
  ENTER("pointerAttributes", true);
  struct {
    int type, device;
    void *devicePointer, *hostPointer;
    int managed;
    unsigned flags;
  } found{};
  const Allocation *a = allocationOf(reinterpret_cast<uint64_t>(p), 1);
  const bool six = driver.version >= 60000000; // hipMemoryType has other numbers since ROCm 6
  if (!a && !six)
    return kInvalidValue;
  if (a) {
    const int types[2][4] = {{1, 1, 0, 4}, {2, 2, 1, 3}};
    found.type = types[six][a->kind];
    found.device = a->device;
    found.managed = a->kind == FAKE_MANAGED;
  }
  std::memcpy(attributes, &found, sizeof found);
  return kSuccess;
}
#endif
