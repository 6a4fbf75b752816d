// What one context does on a GPU: a stream, the caller's or our own, which does not wait for the default stream.
#include "Runtime/Error.h"
#include "Runtime/GpuDevice.h"

#include <algorithm>
#include <optional>

namespace fusec::rt {

namespace {

class GpuQueue final : public Queue {
public:
  explicit GpuQueue(const GpuDevice &device)
      : device(device), api(*device.api), refused(device.gridEntries.size()) {}
  ~GpuQueue() override {
    if (!own && !event && gridWords == 0)
      return;
    CurrentGpu here(device);
    if (event)
      api.eventDestroy(event);
    if (own)
      api.streamDestroy(stream);
    if (gridWords != 0)
      api.release(gridWords);
  }
  fusert_status init(GpuApi::Handle given);
  fusert_status begin() override;
  fusert_status followDefaultStream() override;
  fusert_status launch(Launch &l) override;
  fusert_status copy(void *to, const void *from, size_t bytes, Direction direction) override;
  fusert_status finish() override;
  fusert_status end() override;
  std::string countersJson() override { return "{\"kernels\":[]}"; }

private:
  fusert_status checkCapture();
  fusert_status checkedLaunch(const bundle::Kernel &kernel);
  fusert_status launchGrid(const Launch &l, const GpuDevice::GridEntry &entry, bool &launched);

  const GpuDevice &device;
  const GpuApi &api;
  GpuApi::Handle stream = nullptr;
  bool own = false;
  /// A caller's stream may be gone when a run is waited for behind its end: recorded there. Own stream: recorded on the
  /// default one.
  GpuApi::Handle event = nullptr;
  GpuApi::Pointer gridWords = 0;     // of this queue's grids: one of them runs at a time
  std::vector<bool> refused;         // [kernel]: a launch of all its phases at once
  std::optional<CurrentGpu> current; // during a run
  std::vector<void *> parameters;
};

fusert_status GpuQueue::init(GpuApi::Handle given) {
  CurrentGpu here(device);
  FUSERT_TRY(device.check(here.error(), "making the device current"));
  if (given) {
    stream = given;
    FUSERT_TRY(checkCapture());
  } else {
    constexpr unsigned kNonBlocking = 1;
    FUSERT_TRY(device.check(api.streamCreate(&stream, kNonBlocking), "making a stream"));
    own = true;
  }
  constexpr unsigned kNoTimes = 2;
  FUSERT_TRY(device.check(api.eventCreate(&event, kNoTimes), "making an event"));
  if (std::none_of(device.gridEntries.begin(), device.gridEntries.end(),
                   [](const GpuDevice::GridEntry &e) { return e.resident > 0; }))
    return FUSERT_OK;
  FUSERT_TRY(device.check(api.allocate(&gridWords, FUSEC_GRID_BYTES), "allocating a barrier"));
  // On the stream itself: a copy from host memory on the default stream may land while kernels run on this one.
  return device.check(api.fillAsync(gridWords, 0, FUSEC_GRID_BYTES, stream), "clearing a barrier");
}

/// A run allocates and waits, which no graph holds; and a graph's replay would share the words of grids with runs.
fusert_status GpuQueue::checkCapture() {
  int capturing = 0;
  FUSERT_TRY(device.check(api.isCapturing(stream, &capturing), "asking for the stream's state"));
  if (capturing != 0)
    return fail(FUSERT_INVALID_ARGUMENT,
                "the stream is being captured into a graph, which cannot hold a run of a model. "
                "Make the context and run it outside of the capture");
  return FUSERT_OK;
}

fusert_status GpuQueue::begin() {
  if (device.lost)
    return fail(FUSERT_DEVICE_LOST, "the GPU reported an error that it cannot recover from");
  if (!own) {
    CurrentGpu here(device);
    FUSERT_TRY(device.check(here.error(), "making the device current"));
    FUSERT_TRY(checkCapture());
  }
  current.emplace(device);
  const int error = current->error();
  if (error != 0)
    current.reset();
  return device.check(error, "making the device current");
}

fusert_status GpuQueue::followDefaultStream() {
  if (!own)
    return FUSERT_OK;
  FUSERT_TRY(device.check(api.eventRecord(event, nullptr), "marking the default stream"));
  return device.check(api.streamWaitEvent(stream, event, 0), "waiting for the default stream");
}

fusert_status GpuQueue::copy(void *to, const void *from, size_t bytes, Direction direction) {
  const auto source = reinterpret_cast<GpuApi::Pointer>(from),
             target = reinterpret_cast<GpuApi::Pointer>(to);
  switch (direction) {
  case Direction::ToDevice:
    return device.check(api.uploadAsync(target, from, bytes, stream), "copying to the device");
  case Direction::ToHost:
    return device.check(api.downloadAsync(to, source, bytes, stream), "copying from the device");
  default:
    return device.check(api.copyAsync(target, source, bytes, stream), "copying on the device");
  }
}

/// Within a run by the stream; behind it by the event, since a caller's stream may have been destroyed.
fusert_status GpuQueue::finish() {
  if (current)
    return device.check(api.streamWait(stream), "a kernel");
  CurrentGpu here(device);
  FUSERT_TRY(device.check(here.error(), "making the device current"));
  return device.check(own ? api.streamWait(stream) : api.eventWait(event), "a kernel");
}

fusert_status GpuQueue::end() {
  const int error = own ? 0 : api.eventRecord(event, stream);
  current.reset();
  return device.check(error, "marking the end of a run");
}

fusert_status GpuQueue::launch(Launch &l) {
  const bundle::Kernel &k = device.program->kernels[l.kernel];
  parameters.clear();
  for (void *&b : l.buffers)
    parameters.push_back(&b);
  for (int64_t &d : l.dims)
    parameters.push_back(&d);
  const int64_t threads = int64_t{k.units} * k.lanes;
  // HIP counts the threads of a grid in 32 bits.
  const int64_t most = device.vendor == GpuVendor::Amd
                           ? std::min(int64_t{INT32_MAX}, int64_t{UINT32_MAX} / threads)
                           : int64_t{INT32_MAX};
  for (int64_t blocks : l.grids)
    if (blocks > most)
      return fail(FUSERT_INVALID_ARGUMENT,
                  "under these shapes kernel '" + k.symbol + "' has " + std::to_string(blocks) +
                      " blocks; this GPU takes at most " + std::to_string(most));
  if (const GpuDevice::GridEntry &entry = device.gridEntries[l.kernel];
      entry.resident > 0 && !refused[l.kernel]) {
    bool launched = false;
    FUSERT_TRY(launchGrid(l, entry, launched));
    if (launched)
      return FUSERT_OK;
  }
  return forEachPhase(l, [&](int32_t phase) {
    const int error =
        api.launch(device.entries[l.kernel][phase], static_cast<unsigned>(l.grids[phase]), 1, 1,
                   static_cast<unsigned>(threads), 1, 1,
                   static_cast<unsigned>(k.dynamicSharedOf(static_cast<size_t>(phase))), stream,
                   parameters.data(), nullptr);
    return error == 0 ? checkedLaunch(k)
                      : device.check(error, ("launching kernel '" + k.symbol + "'").c_str());
  });
}

/// What a kernel did wrong is told when the stream is waited for: in a checked program behind each launch.
fusert_status GpuQueue::checkedLaunch(const bundle::Kernel &kernel) {
  if (!device.program->checked)
    return FUSERT_OK;
  const int error = api.streamWait(stream);
  return error == 0 ? FUSERT_OK : device.check(error, ("kernel '" + kernel.symbol + "'").c_str());
}

/// `parameters` holds buffers and dims. Not launched where the driver does not let blocks wait for each other, be it on
/// this stream alone: the phases' own entries do, and it is not asked again.
fusert_status GpuQueue::launchGrid(const Launch &l, const GpuDevice::GridEntry &entry,
                                   bool &launched) {
  const bundle::Kernel &k = device.program->kernels[l.kernel];
  launched = true;
  const int64_t widest = *std::max_element(l.grids.begin(), l.grids.end());
  if (widest == 0)
    return FUSERT_OK;
  int64_t blocks = std::min(widest, entry.resident);
  parameters.push_back(&blocks);
  parameters.push_back(&gridWords);
  const int error = api.launchCooperative(
      entry.function, static_cast<unsigned>(blocks), 1, 1, static_cast<unsigned>(k.units * k.lanes),
      1, 1, static_cast<unsigned>(k.dynamicSharedOfAll()), stream, parameters.data());
  if (isCooperativeRefusal(error)) {
    refused[l.kernel] = true;
    launched = false;
    return FUSERT_OK;
  }
  return error == 0 ? checkedLaunch(k)
                    : device.check(error, ("launching kernel '" + k.symbol + "'").c_str());
}

} // namespace

fusert_status GpuDevice::createQueue(const QueueOptions &options, std::unique_ptr<Queue> &queue) {
  if (options.counters)
    return fail(FUSERT_INVALID_ARGUMENT, "a GPU has no counters; use a sim target");
  if (options.simSeed != 0)
    return fail(FUSERT_INVALID_ARGUMENT, "a seed is for sim targets");
  auto q = std::make_unique<GpuQueue>(*this);
  FUSERT_TRY(q->init(options.stream));
  queue = std::move(q);
  return FUSERT_OK;
}

} // namespace fusec::rt
