#include "Runtime/CpuFeatures.h"
#include "Runtime/Device.h"

namespace fusec::rt {

namespace {

const DeviceKind kinds[] = {
    {"Cpu", [](const std::string &t) { return levelOfTarget(t) > 0; }, makeCpuDevice},
    {"Sim", [](const std::string &t) { return t.rfind("sim:", 0) == 0; }, makeSimDevice},
};

} // namespace

const DeviceKind *findDeviceKind(const std::string &target) {
  for (const DeviceKind &k : kinds)
    if (k.serves(target))
      return &k;
  return nullptr;
}

} // namespace fusec::rt
