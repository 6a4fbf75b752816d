// Streams, events and launches of a fake driver.
#include "Fake.h"

#include <algorithm>

namespace fake {

std::shared_ptr<Stream> streamOf(void *handle) {
  if (!handle || handle == reinterpret_cast<void *>(1)) // CU_STREAM_LEGACY
    return driver.defaults[deviceInUse()];
  auto at = driver.streams.find(handle);
  return at == driver.streams.end() ? nullptr : at->second;
}

bool anyCapture() {
  return std::any_of(driver.streams.begin(), driver.streams.end(),
                     [](const auto &s) { return s.second->capture != 0; });
}

namespace {

/// Whether memory that `work` touches is still to be written by a copy of another stream, which nothing orders: what
/// did has run by now.
void checkOrder(const Stream &stream, const Work &work) {
  const auto check = [&](const Stream &other) {
    if (&other == &stream)
      return;
    for (const Work &late : other.pending)
      for (uint64_t p : work.touches)
        if (late.writes != 0 && baseOf(late.writes) == baseOf(p))
          misuse("work on memory that a copy on another stream has not reached yet", 0);
  };
  for (const auto &s : driver.defaults)
    check(*s);
  for (const auto &[handle, s] : driver.streams)
    check(*s);
}

/// `stream` goes on when `other` has done what it has been given so far.
void waitFor(Stream &stream, const std::shared_ptr<Stream> &other) {
  if (!other->pending.empty())
    stream.pending.push_back({[other, end = endOf(*other)] { runUntil(*other, end); }, {}});
}

} // namespace

void runUntil(Stream &stream, uint64_t end) {
  while (stream.done < end && !stream.pending.empty()) {
    Work work = std::move(stream.pending.front());
    stream.pending.pop_front();
    ++stream.done;
    checkOrder(stream, work);
    work.run();
  }
}

void runAll(Stream &stream) { runUntil(stream, endOf(stream)); }

int enqueue(void *handle, const char *name, Work work) {
  const std::shared_ptr<Stream> stream = streamOf(handle);
  if (!stream)
    return misuse(std::string(name) + " on a stream that does not exist", kInvalidHandle);
  if (stream->capture != 0)
    return kSuccess; // a node of the graph
  if (stream->device != deviceInUse())
    return misuse(std::string(name) + " on a stream of another device", kInvalidHandle);
  for (uint64_t p : work.touches)
    if (const Allocation *a = allocationOf(p, 1);
        a &&
        (a->kind == FAKE_OTHER_CONTEXT || (a->device != stream->device && a->kind == FAKE_DEVICE)))
      misuse(std::string(name) + " with memory of another device or context", 0);
  const std::shared_ptr<Stream> &first = driver.defaults[stream->device];
  if (stream == first)
    for (const auto &[other, s] : driver.streams)
      if (s->waitsForDefault && s->device == stream->device)
        waitFor(*stream, s);
  if (stream->waitsForDefault)
    waitFor(*stream, first);
  stream->pending.push_back(std::move(work));
  return kSuccess;
}

} // namespace fake

using namespace fake;

EXPORT int NAME(cuStreamCreate, hipStreamCreateWithFlags)(void **stream, unsigned flags) {
  ENTER("streamCreate", true);
  if (flags > 1)
    return misuse("streamCreate with unknown flags", kInvalidValue);
  auto s = std::make_shared<Stream>();
  s->device = deviceInUse();
  s->waitsForDefault = flags == 0;
  driver.streams[s.get()] = s;
  *stream = s.get();
  return kSuccess;
}
EXPORT int NAME(cuStreamSynchronize, hipStreamSynchronize)(void *handle) {
  ENTER("streamWait", true);
  const std::shared_ptr<Stream> stream = streamOf(handle);
  if (!stream)
    return misuse("streamWait for a stream that does not exist", kInvalidHandle);
  if (stream->capture != 0)
    return kCaptureUnsupported;
  runAll(*stream);
  return kSuccess;
}
EXPORT int NAME(cuStreamIsCapturing, hipStreamIsCapturing)(void *handle, int *status) {
  ENTER("isCapturing", true);
  const std::shared_ptr<Stream> stream = streamOf(handle);
  if (!stream)
    return misuse("isCapturing of a stream that does not exist", kInvalidHandle);
  *status = stream->capture;
  return kSuccess;
}
EXPORT int NAME(cuStreamDestroy_v2, hipStreamDestroy)(void *stream) {
  ENTER("streamDestroy", true);
  return driver.streams.erase(stream) != 0
             ? kSuccess // what it has been given runs all the same
             : misuse("streamDestroy of a stream that does not exist", kInvalidHandle);
}

EXPORT int NAME(cuEventCreate, hipEventCreateWithFlags)(void **event, unsigned flags) {
  ENTER("eventCreate", true);
  constexpr unsigned kNoTimes = 2;
  if (flags != kNoTimes)
    return misuse("eventCreate for times, which nobody asks for", kInvalidValue);
  auto *e = new Event;
  driver.events.insert(e);
  *event = e;
  return kSuccess;
}
EXPORT int NAME(cuEventDestroy_v2, hipEventDestroy)(void *event) {
  ENTER("eventDestroy", true);
  auto *e = static_cast<Event *>(event);
  if (driver.events.erase(e) == 0)
    return misuse("eventDestroy of an event that does not exist", kInvalidHandle);
  delete e;
  return kSuccess;
}
EXPORT int NAME(cuEventRecord, hipEventRecord)(void *event, void *handle) {
  ENTER("eventRecord", true);
  auto *e = static_cast<Event *>(event);
  const std::shared_ptr<Stream> stream = streamOf(handle);
  if (!driver.events.count(e) || !stream)
    return misuse("eventRecord of an event or stream that does not exist", kInvalidHandle);
  *e = {stream, endOf(*stream)};
  return kSuccess;
}
EXPORT int NAME(cuEventSynchronize, hipEventSynchronize)(void *event) {
  ENTER("eventWait", true);
  auto *e = static_cast<Event *>(event);
  if (!driver.events.count(e))
    return misuse("eventWait for an event that does not exist", kInvalidHandle);
  if (e->stream)
    runUntil(*e->stream, e->end);
  return kSuccess;
}
EXPORT int NAME(cuStreamWaitEvent, hipStreamWaitEvent)(void *handle, void *event, unsigned flags) {
  ENTER("streamWaitEvent", true);
  auto *e = static_cast<Event *>(event);
  if (!driver.events.count(e) || flags != 0)
    return misuse("streamWaitEvent for an event that does not exist", kInvalidHandle);
  return enqueue(handle, "streamWaitEvent",
                 {[at = *e] {
                    if (at.stream)
                      runUntil(*at.stream, at.end);
                  },
                  {}});
}

namespace {
int launchKernel(void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                 unsigned blockY, unsigned blockZ, unsigned sharedBytes, void *stream,
                 void **parameters) {
  if (gridX == 0 || gridY != 1 || gridZ != 1 || blockX == 0 || blockX > 1024 || blockY != 1 ||
      blockZ != 1 || (!isNvidia && uint64_t{gridX} * blockX > UINT32_MAX))
    return misuse("launch with an impossible grid", kInvalidValue);
  const Function *known = functionOf(function);
  if (!known)
    return misuse("launch of a function that does not exist on the device", kInvalidHandle);
  if (sharedBytes != known->shared)
    return misuse("launch with another size of shared memory than the kernel's", kInvalidValue);
  if (isNvidia && sharedBytes > static_cast<unsigned>(known->allowed))
    return misuse("launch with more shared memory than the function was allowed", kInvalidValue);
  std::vector<uint64_t> values, touches; // parameters are read before the call returns
  for (int i = 0; i < known->parameters; ++i) {
    values.push_back(*static_cast<uint64_t *>(parameters[i]));
    if (baseOf(values.back()) != 0)
      touches.push_back(values.back());
  }
  return enqueue(stream, "launch",
                 {[kernel = known->kernel, values, gridX, blockX]() mutable {
                    std::vector<void *> pointers;
                    for (uint64_t &v : values)
                      pointers.push_back(&v);
                    kernel(pointers.data(), gridX, blockX);
                  },
                  touches});
}
} // namespace

EXPORT int NAME(cuLaunchKernel,
                hipModuleLaunchKernel)(void *function, unsigned gridX, unsigned gridY,
                                       unsigned gridZ, unsigned blockX, unsigned blockY,
                                       unsigned blockZ, unsigned sharedBytes, void *stream,
                                       void **parameters, void **extra) {
  ENTER("launch", true);
  if (extra)
    return misuse("launch with two kinds of parameters", kInvalidValue);
  return launchKernel(function, gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes, stream,
                      parameters);
}
#ifdef FAKE_NVIDIA
EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads,
                                                       size_t sharedBytes) {
  ENTER("residentBlocks", true);
  const Function *known = functionOf(function);
  if (!known || threads <= 0 || sharedBytes != known->shared ||
      sharedBytes > static_cast<size_t>(known->allowed))
    return misuse("residentBlocks of a launch that cannot be", kInvalidValue);
  *blocks = driver.resident;
  return kSuccess;
}
EXPORT int cuLaunchCooperativeKernel(void *function, unsigned gridX, unsigned gridY, unsigned gridZ,
                                     unsigned blockX, unsigned blockY, unsigned blockZ,
                                     unsigned sharedBytes, void *stream, void **parameters) {
  ENTER("launchCooperative", true);
  if (driver.refusal != 0)
    return driver.refusal;
  if (gridX > static_cast<unsigned>(kCores * driver.resident))
    return misuse("launchCooperative of more blocks than there is room for", kInvalidValue);
  return launchKernel(function, gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes, stream,
                      parameters);
}
#endif
