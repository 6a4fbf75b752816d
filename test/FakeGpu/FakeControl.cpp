// How a test steers a fake driver, and the bookkeeping of its calls.
#include "Fake.h"

#include <algorithm>
#include <cstdlib>

namespace fake {

Driver driver;
thread_local std::vector<int> currentContexts;
thread_local int currentDevice = 0;

Driver::Driver() {
  for (int d = 0; d < kMostDevices; ++d) {
    primary[d].device = d;
    defaults[d] = std::make_shared<Stream>();
    defaults[d]->device = d;
  }
}

int misuse(const std::string &text, int error) {
  if (driver.state.misuses++ == 0)
    std::strncpy(driver.state.firstMisuse, text.c_str(), sizeof driver.state.firstMisuse - 1);
  return error;
}

int enter(const char *name, bool needsContext) {
  ++driver.state.calls;
  const size_t used = std::strlen(driver.state.log), length = std::strlen(name);
  if (used + length + 2 < sizeof driver.state.log) {
    std::memcpy(driver.state.log + used, name, length);
    driver.state.log[used + length] = '\n';
  }
  if (driver.failAt > 0 && --driver.failAt == 0)
    return driver.failWith;
  if (needsContext && !driver.ready)
    return misuse(std::string(name) + " before init", kNotInitialised);
  if (needsContext && isNvidia && currentContexts.empty())
    return misuse(std::string(name) + " without a current context", kInvalidContext);
  return kSuccess;
}

int deviceInUse() {
  if (isNvidia)
    return currentContexts.empty() ? 0 : currentContexts.back();
  return currentDevice;
}

} // namespace fake

using namespace fake;

EXPORT void fakeGpuReset(void) {
  std::lock_guard lock(driver.mutex);
  driver.state = {};
  driver.failAt = 0;
  driver.devices = 1;
  driver.version = 12040;
  driver.resident = 4;
  driver.shared = kMostShared;
  driver.refusal = 0;
  currentContexts.clear(); // a call that was to fail may have left one
  for (auto &stream : driver.defaults)
    stream->pending.clear();
}
EXPORT void fakeGpuSetResident(int blocks) { driver.resident = blocks; }
EXPORT void fakeGpuSetShared(int bytes) { driver.shared = bytes; }
EXPORT void fakeGpuRefuseCooperative(int error) { driver.refusal = error; }
EXPORT void fakeGpuFailAt(int n, int error) {
  std::lock_guard lock(driver.mutex);
  driver.failAt = n;
  driver.failWith = error;
}
EXPORT void fakeGpuSetDevices(int count) { driver.devices = std::min(count, kMostDevices); }
EXPORT void fakeGpuSetVersion(int version) { driver.version = version; }
EXPORT void fakeGpuSetCapture(void *handle, int status) {
  std::lock_guard lock(driver.mutex);
  streamOf(handle)->capture = status;
}
EXPORT void fakeGpuGetState(FakeGpuState *state) {
  std::lock_guard lock(driver.mutex);
  driver.state.contexts = 0;
  for (const Context &c : driver.primary)
    driver.state.contexts += c.retained;
  driver.state.modules = static_cast<int>(driver.modules.size());
  driver.state.streams = static_cast<int>(driver.streams.size());
  driver.state.events = static_cast<int>(driver.events.size());
  driver.state.allocations = static_cast<int>(driver.allocations.size());
  driver.state.pushed = static_cast<int>(currentContexts.size());
  *state = driver.state;
}
EXPORT void *fakeGpuAllocate(FakeMemory kind, int device, size_t bytes) {
  std::lock_guard lock(driver.mutex);
  void *p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  driver.allocations[reinterpret_cast<uint64_t>(p)] = {bytes, device, kind};
  return p;
}
EXPORT void fakeGpuRelease(void *memory) {
  std::lock_guard lock(driver.mutex);
  driver.allocations.erase(reinterpret_cast<uint64_t>(memory));
  std::free(memory);
}
