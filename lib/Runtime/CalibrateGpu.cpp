// What an NVIDIA device's launches, barriers and memories take, from kernels that do nothing else (CalibratePtx.h). The
// host's clock around work that lasts long enough for a launch not to matter.
#include "Runtime/CalibrateGpu.h"

#include "Runtime/CalibratePtx.h"
#include "Runtime/Error.h"
#include "Runtime/GpuApi.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace fusec::rt {

namespace {

constexpr double kKernelSeconds = 2e-3; // that a measurement lasts at least
constexpr uint64_t kMostRounds = uint64_t{1} << 40;

/// CUdevice_attribute of cuda.h
enum Attribute {
  kMultiprocessors = 16,
  kL2Bytes = 38,
  kMajor = 75,
  kMinor = 76,
  kSharedBytes = 81,
  kCooperativeLaunch = 95
};

class GpuCalibration {
public:
  GpuCalibration(const fusert_calibrate_options &options, fusert_figure_fn take, void *user)
      : options(options), take(take), user(user) {}
  ~GpuCalibration() {
    if (!opened)
      return;
    for (GpuApi::Pointer p : memory)
      api->release(p);
    if (stream)
      api->streamDestroy(stream);
    if (module)
      api->moduleUnload(module);
    GpuApi::Handle popped;
    if (current)
      api->popContext(&popped);
    api->releaseContext(device);
  }
  GpuCalibration(const GpuCalibration &) = delete;
  GpuCalibration &operator=(const GpuCalibration &) = delete;

  fusert_status run() {
    FUSERT_TRY(open());
    FUSERT_TRY(launches());
    FUSERT_TRY(blockBarriers());
    FUSERT_TRY(gridBarriers());
    FUSERT_TRY(sharedMemory());
    return deviceMemory();
  }

private:
  using Work = std::function<fusert_status(uint64_t rounds)>;

  fusert_status open();
  fusert_status launches();
  fusert_status blockBarriers();
  fusert_status gridBarriers();
  fusert_status sharedMemory();
  fusert_status deviceMemory();
  fusert_status bandwidth(bool copies, const char *what, uint64_t bytes, int64_t told);
  fusert_status ask(int &value, Attribute attribute);
  fusert_status find(const char *name, GpuApi::Handle &function);
  fusert_status allocate(GpuApi::Pointer &p, uint64_t bytes);
  fusert_status launch(GpuApi::Handle function, unsigned blocks, unsigned threads,
                       std::vector<void *> parameters);
  fusert_status seconds(const Work &work, uint64_t rounds, double &spent);
  fusert_status measure(const Work &work, std::vector<double> &secondsOfRound);
  void tell(const char *what, int64_t bytes, std::vector<double> values);

  const fusert_calibrate_options &options;
  const fusert_figure_fn take;
  void *const user;
  const GpuApi *api = nullptr;
  int device = 0, cores = 0;
  bool opened = false, current = false;
  std::string name;
  GpuApi::Handle module = nullptr, stream = nullptr;
  GpuApi::Pointer out = 0; // where a kernel may leave what it read
  std::vector<GpuApi::Pointer> memory;
};

fusert_status GpuCalibration::ask(int &value, Attribute attribute) {
  return checkGpu(api->deviceAttribute(&value, attribute, device), "asking for an attribute");
}

fusert_status GpuCalibration::open() {
  FUSERT_TRY(openGpuApi(GpuVendor::Nvidia, &api));
  FUSERT_TRY(checkGpu(api->init(0), "starting the driver"));
  int count = 0, major = 0, minor = 0;
  FUSERT_TRY(checkGpu(api->deviceCount(&count), "counting devices"));
  if (count == 0)
    return fail(FUSERT_UNAVAILABLE, "there is no GPU, the driver has 0");
  FUSERT_TRY(checkGpu(api->deviceGet(&device, 0), "opening the device"));
  char text[256] = {};
  FUSERT_TRY(checkGpu(api->deviceName(text, sizeof text, device), "asking for the device's name"));
  name = text;
  FUSERT_TRY(ask(cores, kMultiprocessors));
  FUSERT_TRY(ask(major, kMajor));
  FUSERT_TRY(ask(minor, kMinor));
  const std::string is = "sm_" + std::to_string(major) + std::to_string(minor);
  const std::string wanted = options.target;
  if (wanted != "cuda" && wanted != is)
    return fail(FUSERT_UNSUPPORTED, "'" + wanted + "' is wanted, GPU number 0 is " + is);
  GpuApi::Handle context = nullptr;
  FUSERT_TRY(checkGpu(api->retainContext(&context, device), "making a context"));
  opened = true;
  FUSERT_TRY(checkGpu(api->pushContext(context), "making the device current"));
  current = true;
  FUSERT_TRY(checkGpu(api->moduleLoad(&module, kCalibratePtx), "translating the kernels"));
  constexpr unsigned kNonBlocking = 1;
  FUSERT_TRY(checkGpu(api->streamCreate(&stream, kNonBlocking), "making a stream"));
  return allocate(out, sizeof(uint32_t));
}

fusert_status GpuCalibration::find(const char *kernel, GpuApi::Handle &function) {
  return checkGpu(api->moduleFunction(&function, module, kernel),
                  std::string("finding kernel '") + kernel + "'");
}

fusert_status GpuCalibration::allocate(GpuApi::Pointer &p, uint64_t bytes) {
  FUSERT_TRY(checkGpu(api->allocate(&p, bytes), "allocating device memory"));
  memory.push_back(p);
  return FUSERT_OK;
}

fusert_status GpuCalibration::launch(GpuApi::Handle function, unsigned blocks, unsigned threads,
                                     std::vector<void *> parameters) {
  return checkGpu(
      api->launch(function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters.data(), nullptr),
      "launching a kernel");
}

fusert_status GpuCalibration::seconds(const Work &work, uint64_t rounds, double &spent) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  FUSERT_TRY(work(rounds));
  FUSERT_TRY(checkGpu(api->streamWait(stream), "a kernel"));
  spent = std::chrono::duration<double>(Clock::now() - start).count();
  return FUSERT_OK;
}

/// Seconds of one round, a figure for each repetition.
fusert_status GpuCalibration::measure(const Work &work, std::vector<double> &secondsOfRound) {
  uint64_t rounds = 1;
  double spent = 0;
  FUSERT_TRY(seconds(work, rounds, spent));
  while (spent < kKernelSeconds) {
    if (rounds >= kMostRounds)
      return fail(FUSERT_DEVICE_ERROR,
                  "a kernel that measures takes no time, however much it has to do");
    rounds *= 2;
    FUSERT_TRY(seconds(work, rounds, spent));
  }
  for (int r = 0; r < options.repetitions; ++r) {
    FUSERT_TRY(seconds(work, rounds, spent));
    secondsOfRound.push_back(spent / static_cast<double>(rounds));
  }
  return FUSERT_OK;
}

void GpuCalibration::tell(const char *what, int64_t bytes, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const fusert_figure figure = {
      sizeof figure, name.c_str(), what, cores, 0, bytes, values.front(), values[values.size() / 2],
      values.back()};
  take(user, &figure);
}

fusert_status GpuCalibration::launches() {
  GpuApi::Handle kernel;
  FUSERT_TRY(find("empty", kernel));
  std::vector<double> values;
  FUSERT_TRY(measure(
      [&](uint64_t rounds) -> fusert_status {
        for (uint64_t r = 0; r < rounds; ++r)
          FUSERT_TRY(launch(kernel, 1, 32, {}));
        return FUSERT_OK;
      },
      values));
  tell("launch", 0, std::move(values));
  return FUSERT_OK;
}

fusert_status GpuCalibration::blockBarriers() {
  constexpr unsigned kThreads = 256;
  GpuApi::Handle kernel;
  FUSERT_TRY(find("block_barriers", kernel));
  std::vector<double> values;
  FUSERT_TRY(
      measure([&](uint64_t rounds) { return launch(kernel, 1, kThreads, {&rounds}); }, values));
  tell("block_barrier", 0, std::move(values));
  return FUSERT_OK;
}

/// One block on each multiprocessor.
fusert_status GpuCalibration::gridBarriers() {
  constexpr unsigned kThreads = 256;
  int cooperative = 0;
  FUSERT_TRY(ask(cooperative, kCooperativeLaunch));
  if (cooperative == 0)
    return FUSERT_OK;
  GpuApi::Handle kernel;
  FUSERT_TRY(find("grid_barriers", kernel));
  GpuApi::Pointer word = 0;
  FUSERT_TRY(allocate(word, sizeof(uint64_t)));
  std::vector<double> values;
  FUSERT_TRY(measure(
      [&](uint64_t rounds) -> fusert_status {
        FUSERT_TRY(checkGpu(api->fillAsync(word, 0, sizeof word, stream), "clearing a barrier"));
        uint64_t blocks = static_cast<uint64_t>(cores);
        void *parameters[] = {&rounds, &blocks, &word};
        return checkGpu(api->launchCooperative(kernel, static_cast<unsigned>(cores), 1, 1, kThreads,
                                               1, 1, 0, stream, parameters),
                        "launching a kernel of blocks that wait for each other");
      },
      values));
  tell("grid_barrier", 0, std::move(values));
  return FUSERT_OK;
}

fusert_status GpuCalibration::sharedMemory() {
  constexpr unsigned kThreads = 1024;
  constexpr double kBytesOfRound = 64 * 16.0 * kThreads; // of a block (read_shared)
  int bytes = 0;
  FUSERT_TRY(ask(bytes, kSharedBytes));
  GpuApi::Handle kernel;
  FUSERT_TRY(find("read_shared", kernel));
  std::vector<double> values;
  FUSERT_TRY(measure(
      [&](uint64_t rounds) {
        return launch(kernel, static_cast<unsigned>(cores), kThreads, {&rounds, &out});
      },
      values));
  for (double &v : values)
    v = kBytesOfRound * cores / v;
  tell("shared", bytes, std::move(values));
  return FUSERT_OK;
}

/// `bytes` are read, or half of them written and half of them read.
fusert_status GpuCalibration::bandwidth(bool copies, const char *what, uint64_t bytes,
                                        int64_t told) {
  constexpr unsigned kThreads = 1024;
  GpuApi::Handle function;
  FUSERT_TRY(find("sweep_global", function));
  GpuApi::Pointer from = memory.back(), to = copies ? from + bytes / 2 : out;
  uint64_t each = copies ? bytes / 2 : bytes, isCopy = copies ? 1 : 0;
  std::vector<double> values;
  FUSERT_TRY(measure(
      [&](uint64_t rounds) {
        return launch(function, static_cast<unsigned>(cores), kThreads,
                      {&rounds, &from, &each, &to, &isCopy});
      },
      values));
  for (double &v : values)
    v = static_cast<double>(bytes) / v;
  tell(what, told, std::move(values));
  return FUSERT_OK;
}

fusert_status GpuCalibration::deviceMemory() {
  int cacheBytes = 0;
  FUSERT_TRY(ask(cacheBytes, kL2Bytes));
  const uint64_t turn = static_cast<uint64_t>(cores) << 16; // read in one, of 1,024 threads each
  uint64_t largest = turn;
  while (largest * 2 <= static_cast<uint64_t>(options.largest_bytes))
    largest *= 2;
  GpuApi::Pointer p = 0;
  FUSERT_TRY(allocate(p, largest));
  uint64_t cached = turn;
  while (cached * 4 <= static_cast<uint64_t>(cacheBytes))
    cached *= 2;
  if (cached * 2 <= static_cast<uint64_t>(cacheBytes) && cached <= largest)
    FUSERT_TRY(bandwidth(true, "l2", cached, cacheBytes));
  for (uint64_t bytes = turn; bytes <= largest; bytes *= 2) {
    FUSERT_TRY(bandwidth(false, "read", bytes, static_cast<int64_t>(bytes)));
    FUSERT_TRY(bandwidth(true, "copy", bytes, static_cast<int64_t>(bytes)));
  }
  return FUSERT_OK;
}

} // namespace

fusert_status calibrateGpu(const fusert_calibrate_options &options, fusert_figure_fn take,
                           void *user) {
  return GpuCalibration(options, take, user).run();
}

} // namespace fusec::rt
