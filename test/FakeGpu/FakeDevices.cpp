// Devices, contexts and modules of a fake driver.
#include "Fake.h"

#include <dlfcn.h>

using namespace fake;

Function *fake::functionOf(void *handle) {
  for (auto &[key, f] : driver.functions)
    if (&f == handle && driver.modules.count(key.first) && f.device == deviceInUse())
      return &f;
  return nullptr;
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
EXPORT int cuDevicePrimaryCtxRetain(void **context, int device) {
  ENTER("retainContext", false);
  ++driver.primary[device].retained;
  *context = &driver.primary[device];
  return kSuccess;
}
EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
  ENTER("releaseContext", false);
  return driver.primary[device].retained-- > 0
             ? kSuccess
             : misuse("releaseContext once too often", kInvalidContext);
}
EXPORT int cuCtxPushCurrent_v2(void *context) {
  ENTER("pushContext", false);
  for (const Context &c : driver.primary)
    if (context == &c && c.retained > 0) {
      currentContexts.push_back(c.device);
      return kSuccess;
    }
  return misuse("pushContext of a context that does not exist", kInvalidContext);
}
EXPORT int cuCtxPopCurrent_v2(void **context) {
  ENTER("popContext", false);
  if (currentContexts.empty())
    return misuse("popContext once too often", kInvalidContext);
  *context = &driver.primary[currentContexts.back()];
  currentContexts.pop_back();
  return kSuccess;
}
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int) {
  ENTER("deviceAttribute", false);
  const std::map<int, int> known = {{16, kCores},
                                    {38, 1 << 20},
                                    {75, 9},
                                    {76, 0},
                                    {81, 48 << 10},
                                    {95, driver.resident > 0},
                                    {97, driver.shared}};
  auto found = known.find(attribute);
  if (found == known.end())
    return misuse("deviceAttribute of an unknown one", kInvalidValue);
  *value = found->second;
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
  if (ordinal < 0 || ordinal >= driver.devices)
    return misuse("setDevice of a device that does not exist", kInvalidDevice);
  currentDevice = ordinal;
  return kSuccess;
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
  auto *m = new Module{library, deviceInUse()};
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
  void *shared = dlsym(m->library, (std::string(name) + "_shared").c_str());
  f = {reinterpret_cast<FakeKernel>(kernel), *static_cast<int *>(parameters), m->device,
       shared ? *static_cast<unsigned *>(shared) : 0};
  *function = &f;
  return kSuccess;
}
#ifdef FAKE_NVIDIA
EXPORT int cuFuncSetAttribute(void *function, int attribute, int value) {
  ENTER("setFunctionAttribute", true);
  constexpr int kMostDynamicShared = 8;
  Function *f = functionOf(function);
  if (!f)
    return misuse("setFunctionAttribute of a function that does not exist", kInvalidHandle);
  if (attribute != kMostDynamicShared || value < 0 || value > driver.shared)
    return misuse("setFunctionAttribute that the device does not have", kInvalidValue);
  f->allowed = value;
  return kSuccess;
}
#endif
