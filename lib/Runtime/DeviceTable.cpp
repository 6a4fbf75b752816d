#include "Runtime/CpuFeatures.h"
#include "Runtime/Device.h"

namespace fusec::rt {

namespace {

const DeviceKind kinds[] = {
    {"Cpu", nullptr, [](const std::string &t) { return levelOfTarget(t) > 0; }, makeCpuDevice},
    {"Sim", nullptr, [](const std::string &t) { return t.rfind("sim:", 0) == 0; }, makeSimDevice},
    {"Cuda", "cuda", [](const std::string &t) { return t.rfind("sm_", 0) == 0; }, makeCudaDevice},
    {"Hip", "hip", [](const std::string &t) { return t.rfind("gfx", 0) == 0; }, makeHipDevice},
};

} // namespace

const DeviceKind *findDeviceKind(const std::string &target) {
  for (const DeviceKind &k : kinds)
    if (k.serves(target))
      return &k;
  return nullptr;
}

const DeviceKind *findDeviceKindByWord(const std::string &any) {
  for (const DeviceKind &k : kinds)
    if (k.any && any == k.any)
      return &k;
  return nullptr;
}

} // namespace fusec::rt
