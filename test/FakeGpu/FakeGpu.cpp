#include "FakeGpu.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#ifdef FAKE_NVIDIA
#define NAME(nvidia, amd) nvidia
constexpr bool isNvidia = true;
#else
#define NAME(nvidia, amd) amd
constexpr bool isNvidia = false;
#endif
#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

enum {
  kSuccess = 0,
  kInvalidValue = 1,
  kNoMemory = 2,
  kNotInitialised = 3,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kInvalidImage = 200,
  kNoBinary = 209,
  kNotFound = 500,
  kInvalidHandle = 400
};

using Work = std::function<void()>;
struct Module {
  void *library;
};
struct Function {
  FakeKernel kernel;
  int parameters;
};
struct Stream {
  std::vector<Work> pending;
};

struct Driver {
  std::mutex mutex;
  bool ready = false;
  int devices = 1, version = 12040, retained = 0;
  int failAt = 0, failWith = 0;
  int resident = 4; // blocks of a core
  FakeGpuState state{};
  std::map<uint64_t, size_t> allocations;
  std::set<Module *> modules;
  std::set<Stream *> streams;
  std::map<std::pair<Module *, std::string>, Function> functions;
} driver;

thread_local std::vector<int>
    currentContexts; // NVIDIA: the stack, entries are all the primary context
[[maybe_unused]] thread_local int currentDevice = 0; // AMD

int misuse(const std::string &text, int error) {
  if (driver.state.misuses++ == 0)
    std::strncpy(driver.state.firstMisuse, text.c_str(), sizeof driver.state.firstMisuse - 1);
  return error;
}

/// Counts and logs a call; the error to return at once, or success.
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

#define ENTER(name, needsContext)                                                                  \
  std::lock_guard lock(driver.mutex);                                                              \
  if (int error = enter(name, needsContext); error != kSuccess)                                    \
  return error

bool insideAllocation(uint64_t p, size_t bytes) {
  auto at = driver.allocations.upper_bound(p);
  if (at == driver.allocations.begin())
    return false;
  --at;
  return p >= at->first && p + bytes <= at->first + at->second;
}

int enqueue(void *stream, const char *name, Work work) {
  if (!stream) { // the default stream: at once
    work();
    return kSuccess;
  }
  auto *s = static_cast<Stream *>(stream);
  if (!driver.streams.count(s))
    return misuse(std::string(name) + " on a stream that does not exist", kInvalidHandle);
  s->pending.push_back(std::move(work));
  return kSuccess;
}

} // namespace

EXPORT void fakeGpuReset(void) {
  std::lock_guard lock(driver.mutex);
  driver.state = {};
  driver.failAt = 0;
  driver.devices = 1;
  driver.version = 12040;
  driver.resident = 4;
}
EXPORT void fakeGpuSetResident(int blocks) { driver.resident = blocks; }
EXPORT void fakeGpuFailAt(int n, int error) {
  std::lock_guard lock(driver.mutex);
  driver.failAt = n;
  driver.failWith = error;
}
EXPORT void fakeGpuSetDevices(int count) { driver.devices = count; }
EXPORT void fakeGpuSetVersion(int version) { driver.version = version; }
EXPORT void fakeGpuGetState(FakeGpuState *state) {
  std::lock_guard lock(driver.mutex);
  driver.state.contexts = driver.retained;
  driver.state.modules = static_cast<int>(driver.modules.size());
  driver.state.streams = static_cast<int>(driver.streams.size());
  driver.state.allocations = static_cast<int>(driver.allocations.size());
  *state = driver.state;
}

EXPORT int NAME(cuInit, hipInit)(unsigned flags) {
  ENTER("init", false);
  driver.ready = true;
  return flags == 0 ? kSuccess : misuse("init with flags", kInvalidValue);
}
EXPORT int NAME(cuDriverGetVersion, hipDriverGetVersion)(int *version) {
  ENTER("driverVersion", false);
  *version = driver.version;
  return kSuccess;
}
EXPORT int NAME(cuDeviceGetCount, hipGetDeviceCount)(int *count) {
  ENTER("deviceCount", false);
  *count = driver.devices;
  return driver.ready ? kSuccess : kNotInitialised;
}
EXPORT int NAME(cuDeviceGet, hipDeviceGet)(int *device, int ordinal) {
  ENTER("deviceGet", false);
  if (ordinal < 0 || ordinal >= driver.devices)
    return misuse("deviceGet of a device that does not exist", kInvalidDevice);
  *device = ordinal;
  return kSuccess;
}

#ifdef FAKE_NVIDIA
EXPORT int cuDeviceGetName(char *name, int length, int) {
  ENTER("deviceName", false);
  std::strncpy(name, "Fake GPU", static_cast<size_t>(length));
  return length > 8 ? kSuccess : misuse("deviceName without room", kInvalidValue);
}
EXPORT int cuDevicePrimaryCtxRetain(void **context, int) {
  ENTER("retainContext", false);
  ++driver.retained;
  *context = &driver;
  return kSuccess;
}
EXPORT int cuDevicePrimaryCtxRelease_v2(int) {
  ENTER("releaseContext", false);
  return driver.retained-- > 0 ? kSuccess
                               : misuse("releaseContext once too often", kInvalidContext);
}
EXPORT int cuCtxPushCurrent_v2(void *context) {
  ENTER("pushContext", false);
  if (context != &driver || driver.retained == 0)
    return misuse("pushContext of a context that does not exist", kInvalidContext);
  currentContexts.push_back(0);
  return kSuccess;
}
EXPORT int cuCtxPopCurrent_v2(void **context) {
  ENTER("popContext", false);
  if (currentContexts.empty())
    return misuse("popContext once too often", kInvalidContext);
  currentContexts.pop_back();
  *context = &driver;
  return kSuccess;
}
#else
EXPORT int hipGetDevice(int *ordinal) {
  ENTER("getDevice", false);
  *ordinal = currentDevice;
  return kSuccess;
}
EXPORT int hipSetDevice(int ordinal) {
  ENTER("setDevice", false);
  currentDevice = ordinal;
  return ordinal < driver.devices
             ? kSuccess
             : misuse("setDevice of a device that does not exist", kInvalidDevice);
}
#endif

EXPORT int NAME(cuModuleLoadData, hipModuleLoadData)(void **module, const void *image) {
  ENTER("moduleLoad", true);
  const char *text = static_cast<const char *>(image);
  if (std::strncmp(text, ".version", 8) == 0 && std::strstr(text, ".entry block_barriers("))
    text = "FAKE:" FAKE_KERNELS; // twins of the kernels that measure a device
  if (std::strncmp(text, "OTHER", 5) == 0)
    return kNoBinary;
  if (std::strncmp(text, "FAKE:", 5) != 0)
    return misuse("moduleLoad of something else than a fake image", kInvalidImage);
  void *library = dlopen(text + 5, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return misuse(std::string("moduleLoad: ") + dlerror(), kInvalidImage);
  auto *m = new Module{library};
  driver.modules.insert(m);
  *module = m;
  return kSuccess;
}
EXPORT int NAME(cuModuleUnload, hipModuleUnload)(void *module) {
  ENTER("moduleUnload", true);
  auto *m = static_cast<Module *>(module);
  if (driver.modules.erase(m) == 0)
    return misuse("moduleUnload of a module that does not exist", kInvalidHandle);
  dlclose(m->library);
  delete m;
  return kSuccess;
}
EXPORT int NAME(cuModuleGetFunction, hipModuleGetFunction)(void **function, void *module,
                                                           const char *name) {
  ENTER("moduleFunction", true);
  auto *m = static_cast<Module *>(module);
  if (!driver.modules.count(m))
    return misuse("moduleFunction of a module that does not exist", kInvalidHandle);
  void *kernel = dlsym(m->library, name);
  void *parameters = dlsym(m->library, (std::string(name) + "_params").c_str());
  if (!kernel || !parameters)
    return kNotFound;
  Function &f = driver.functions[{m, name}];
  f = {reinterpret_cast<FakeKernel>(kernel), *static_cast<int *>(parameters)};
  *function = &f;
  return kSuccess;
}

EXPORT int NAME(cuMemAlloc_v2, hipMalloc)(uint64_t *memory, size_t bytes) {
  ENTER("allocate", true);
  if (bytes == 0)
    return misuse("allocate of 0 bytes", kInvalidValue);
  void *p = nullptr;
  if (posix_memalign(&p, 256, bytes) != 0)
    return kNoMemory;
  std::memset(p, 0xee, bytes);
  *memory = reinterpret_cast<uint64_t>(p);
  driver.allocations[*memory] = bytes;
  return kSuccess;
}
EXPORT int NAME(cuMemFree_v2, hipFree)(uint64_t memory) {
  ENTER("release", true);
  if (driver.allocations.erase(memory) == 0)
    return misuse("release of memory that is not allocated", kInvalidValue);
  std::free(reinterpret_cast<void *>(memory));
  return kSuccess;
}
EXPORT int NAME(cuMemcpyHtoD_v2, hipMemcpyHtoD)(uint64_t to, const void *from, size_t bytes) {
  ENTER("upload", true);
  if (!insideAllocation(to, bytes))
    return misuse("upload outside of an allocation", kInvalidValue);
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return kSuccess;
}
EXPORT int NAME(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync)(uint64_t to, const void *from,
                                                          size_t bytes, void *stream) {
  ENTER("uploadAsync", true);
  if (!insideAllocation(to, bytes))
    return misuse("uploadAsync outside of an allocation", kInvalidValue);
  const auto *source = static_cast<const char *>(from);
  std::vector<char> staged(source,
                           source + bytes); // pageable memory is read before the call returns
  return enqueue(stream, "uploadAsync", [to, staged = std::move(staged)] {
    std::memcpy(reinterpret_cast<void *>(to), staged.data(), staged.size());
  });
}
EXPORT int NAME(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)(void *to, uint64_t from, size_t bytes,
                                                          void *stream) {
  ENTER("downloadAsync", true);
  if (!insideAllocation(from, bytes))
    return misuse("downloadAsync outside of an allocation", kInvalidValue);
  return enqueue(stream, "downloadAsync",
                 [=] { std::memcpy(to, reinterpret_cast<const void *>(from), bytes); });
}
EXPORT int NAME(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)(uint64_t to, uint64_t from, size_t bytes,
                                                          void *stream) {
  ENTER("copyAsync", true);
  if (!insideAllocation(to, bytes) || !insideAllocation(from, bytes))
    return misuse("copyAsync outside of an allocation", kInvalidValue);
  return enqueue(stream, "copyAsync", [=] {
    std::memmove(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes);
  });
}

EXPORT int NAME(cuStreamCreate, hipStreamCreateWithFlags)(void **stream, unsigned flags) {
  ENTER("streamCreate", true);
  if (flags > 1)
    return misuse("streamCreate with unknown flags", kInvalidValue);
  auto *s = new Stream;
  driver.streams.insert(s);
  *stream = s;
  return kSuccess;
}
EXPORT int NAME(cuStreamSynchronize, hipStreamSynchronize)(void *stream) {
  ENTER("streamWait", true);
  auto *s = static_cast<Stream *>(stream);
  if (!s)
    return kSuccess;
  if (!driver.streams.count(s))
    return misuse("streamWait for a stream that does not exist", kInvalidHandle);
  for (const Work &w : s->pending)
    w();
  s->pending.clear();
  return kSuccess;
}
EXPORT int NAME(cuStreamDestroy_v2, hipStreamDestroy)(void *stream) {
  ENTER("streamDestroy", true);
  auto *s = static_cast<Stream *>(stream);
  if (driver.streams.erase(s) == 0)
    return misuse("streamDestroy of a stream that does not exist", kInvalidHandle);
  delete s;
  return kSuccess;
}
namespace {
int launchKernel(void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                 unsigned blockY, unsigned blockZ, unsigned sharedBytes, void *stream,
                 void **parameters) {
  if (gridX == 0 || gridY != 1 || gridZ != 1 || blockX == 0 || blockX > 1024 || blockY != 1 ||
      blockZ != 1 || sharedBytes != 0)
    return misuse("launch with an impossible grid", kInvalidValue);
  const Function *known = nullptr;
  for (const auto &[key, f] : driver.functions)
    if (&f == function && driver.modules.count(key.first))
      known = &f;
  if (!known)
    return misuse("launch of a function that does not exist", kInvalidHandle);
  std::vector<uint64_t> values; // parameters are read before the call returns
  for (int i = 0; i < known->parameters; ++i)
    values.push_back(*static_cast<uint64_t *>(parameters[i]));
  return enqueue(stream, "launch", [kernel = known->kernel, values, gridX, blockX]() mutable {
    std::vector<void *> pointers;
    for (uint64_t &v : values)
      pointers.push_back(&v);
    kernel(pointers.data(), gridX, blockX);
  });
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
namespace {
constexpr int kCores = 2;
} // namespace
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int) {
  ENTER("deviceAttribute", false);
  const std::map<int, int> known = {{16, kCores}, {38, 1 << 20},  {75, 9},
                                    {76, 0},      {81, 48 << 10}, {95, driver.resident > 0}};
  auto found = known.find(attribute);
  if (found == known.end())
    return misuse("deviceAttribute of an unknown one", kInvalidValue);
  *value = found->second;
  return kSuccess;
}
EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *, int threads,
                                                       size_t sharedBytes) {
  ENTER("residentBlocks", true);
  *blocks = driver.resident;
  return threads > 0 && sharedBytes == 0 ? kSuccess
                                         : misuse("residentBlocks of no threads", kInvalidValue);
}
EXPORT int cuLaunchCooperativeKernel(void *function, unsigned gridX, unsigned gridY, unsigned gridZ,
                                     unsigned blockX, unsigned blockY, unsigned blockZ,
                                     unsigned sharedBytes, void *stream, void **parameters) {
  ENTER("launchCooperative", true);
  if (gridX > static_cast<unsigned>(kCores * driver.resident))
    return misuse("launchCooperative of more blocks than there is room for", kInvalidValue);
  return launchKernel(function, gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes, stream,
                      parameters);
}
#endif
EXPORT int NAME(cuMemGetAddressRange_v2, hipMemGetAddressRange)(uint64_t *base, size_t *bytes,
                                                                uint64_t inside) {
  ENTER("addressRange", true);
  auto at = driver.allocations.upper_bound(inside);
  if (at == driver.allocations.begin() || !insideAllocation(inside, 1))
    return kNotFound;
  --at;
  *base = at->first;
  *bytes = at->second;
  return kSuccess;
}
