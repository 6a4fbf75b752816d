// What the drivers' error numbers mean for a caller. Numbers and meanings: enum cudaError_enum in cuda.h; hipError_t
// has the same ones.
#include "Runtime/Error.h"
#include "Runtime/GpuApi.h"

namespace fusec::rt {

namespace {

enum class Means {
  NoMemory,
  Unavailable, // nothing is wrong with the call; another driver, device or moment may do
  Image,       // not for this device or driver: another image may do
  Lost,        // the device's context is of no more use
  Failed
};

struct GpuError {
  int number;
  Means means;
  const char *words;
};

constexpr GpuError errors[] = {
    {1, Means::Failed, "invalid value"},
    {2, Means::NoMemory, "out of memory"},
    {3, Means::Unavailable, "the driver is not initialised"},
    {4, Means::Unavailable, "the driver is shutting down"},
    {34, Means::Unavailable, "a stub stands in for the driver"},
    {35, Means::Unavailable, "the driver is too old"},
    {36, Means::Unavailable, "the call needs a newer driver"},
    {46, Means::Unavailable, "the device is busy, or another process uses it alone"},
    {100, Means::Unavailable, "no device"},
    {101, Means::Unavailable, "no such device"},
    {102, Means::Unavailable, "the device has no licence"},
    {200, Means::Image, "invalid image"},
    {201, Means::Failed, "invalid context"},
    {209, Means::Image, "no code for this device"},
    {214, Means::Lost, "uncorrectable memory error"},
    {218, Means::Image, "invalid PTX"},
    {220, Means::Lost, "uncorrectable NVLink error"},
    {221, Means::Image, "no compiler for PTX"},
    {222, Means::Image, "PTX of a newer version"},
    {223, Means::Image, "compiling PTX is switched off"},
    {224, Means::Unavailable,
     "the share of the device's processors that is asked for is not supported"},
    {225, Means::Image, "code that waits for its own launches"},
    {226, Means::Lost, "an error that the device has contained"},
    {301, Means::Image, "file not found"},
    {400, Means::Failed, "invalid handle"},
    {500, Means::Failed, "not found"},
    {700, Means::Lost, "illegal address"},
    {701, Means::Failed, "too many registers or threads for the device"},
    {702, Means::Lost, "a kernel ran for too long"},
    {709, Means::Lost, "the context was destroyed"},
    {710, Means::Lost, "a kernel's assertion"},
    {714, Means::Lost, "hardware stack error"},
    {715, Means::Lost, "illegal instruction"},
    {716, Means::Lost, "misaligned address"},
    {717, Means::Lost, "address of another space"},
    {718, Means::Lost, "invalid program counter"},
    {719, Means::Lost, "a kernel failed"},
    {720, Means::Failed, "more blocks at once than there is room for"},
    {721, Means::Lost, "a kernel kept tensor memory"},
    {800, Means::Failed, "not permitted"},
    {801, Means::Failed, "not supported"},
    {802, Means::Unavailable, "the system is not ready"},
    {803, Means::Unavailable, "driver and libraries are of different versions"},
    {804, Means::Unavailable, "the device does not support the compatibility package"},
    {805, Means::Unavailable, "no connection to the MPS server"},
    {806, Means::Unavailable, "a call of the MPS server failed"},
    {807, Means::Unavailable, "the MPS server is not ready"},
    {808, Means::Unavailable, "the MPS server has no room for a client"},
    {809, Means::Unavailable, "the MPS server has no room for a connection"},
    {810, Means::Lost, "the MPS server ended this client"},
    {900, Means::Failed, "not allowed while a stream is captured"},
    {901, Means::Failed, "the capture of a stream is invalid"},
    {902, Means::Failed, "would join two captures"},
    {903, Means::Failed, "not captured by this stream"},
    {904, Means::Failed, "a captured fork was not joined"},
    {905, Means::Failed, "would reach out of a capture"},
    {906, Means::Failed, "the default stream would wait for a captured one"},
    {907, Means::Failed, "an event of a captured stream"},
    {908, Means::Failed, "a capture of another thread"},
    {911, Means::Lost, "an external device failed"},
    {999, Means::Lost, "unknown"},
};

const GpuError *find(int number) {
  for (const GpuError &e : errors)
    if (e.number == number)
      return &e;
  return nullptr;
}

bool means(int number, Means what) {
  const GpuError *e = find(number);
  return e && e->means == what;
}

} // namespace

fusert_status statusOfGpuError(int error) {
  if (error == 0)
    return FUSERT_OK;
  const GpuError *e = find(error);
  switch (e ? e->means : Means::Failed) {
  case Means::NoMemory: return FUSERT_NO_MEMORY;
  case Means::Unavailable: return FUSERT_UNAVAILABLE;
  case Means::Image: return FUSERT_UNSUPPORTED;
  case Means::Lost: return FUSERT_DEVICE_LOST;
  case Means::Failed: break;
  }
  return FUSERT_DEVICE_ERROR;
}

std::string gpuErrorText(int error) {
  const GpuError *e = find(error);
  return "driver error " + std::to_string(error) + (e ? std::string(" (") + e->words + ")" : "");
}

fusert_status checkGpu(int error, const std::string &what) {
  if (error == 0)
    return FUSERT_OK;
  return fail(statusOfGpuError(error), what + " failed: " + gpuErrorText(error));
}

bool isStickyGpuError(int error) { return means(error, Means::Lost); }
bool isImageGpuError(int error) { return means(error, Means::Image); }

bool isCooperativeRefusal(int error) { return error == 720 || error == 801; }

} // namespace fusec::rt
