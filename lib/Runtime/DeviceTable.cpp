#include "Runtime/CpuFeatures.h"
#include "Runtime/Device.h"

namespace fusec::rt {

namespace {

const DeviceKind kinds[] = {
    {"Cpu", [](const std::string &t) { return levelOfTarget(t) > 0; }, makeCpuDevice},
    {"Sim", [](const std::string &t) { return t.rfind("sim:", 0) == 0; }, makeSimDevice},
    {"Cuda", [](const std::string &t) { return t.rfind("sm_", 0) == 0; }, makeCudaDevice},
    {"Hip", [](const std::string &t) { return t.rfind("gfx", 0) == 0; }, makeHipDevice},
};

} // namespace

const DeviceKind *findDeviceKind(const std::string &target) {
  for (const DeviceKind &k : kinds)
    if (k.serves(target))
      return &k;
  return nullptr;
}

} // namespace fusec::rt
