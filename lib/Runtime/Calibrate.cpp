#include "Runtime/Calibrate.h"

#include "Runtime/CalibrateGpu.h"
#include "Runtime/CpuFeatures.h"
#include "Runtime/CpuQueue.h"
#include "Runtime/Error.h"
#include "Runtime/Executor.h"
#include "Runtime/Memory.h"
#include "Runtime/MemorySweeps.h"
#include "Runtime/ThreadPool.h"

#include <algorithm>
#include <chrono>
#include <cpuid.h>
#include <cstring>
#include <functional>
#include <sched.h>
#include <span>
#include <string>
#include <thread>
#include <x86intrin.h>

namespace fusec::rt {

namespace {

constexpr int64_t kSmallestSet = 16 << 10; // bytes of a thread
constexpr double kSweepSeconds = 2e-3;     // that a measurement of bandwidth lasts at least
constexpr int64_t kForgotten = 4 << 20;    // more than a core's own caches hold

double now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// Where `count` threads wait for each other, again and again.
class Meeting {
public:
  explicit Meeting(int32_t count) : count(static_cast<uint64_t>(count)) {}
  void meet() {
    constexpr int kPauses = 1000; // then others may need the core
    const uint64_t all = (came.fetch_add(1) / count + 1) * count;
    for (int i = 0; came.load(std::memory_order_acquire) < all; ++i)
      if (i < kPauses)
        _mm_pause();
      else
        sched_yield();
  }

private:
  const uint64_t count;
  std::atomic<uint64_t> came{0};
};

int32_t emptyKernel(const fusec_kernel_args *, int32_t, int64_t) { return FUSEC_KERNEL_OK; }

/// Its blocks need a thread each.
int32_t meetingKernel(const fusec_kernel_args *args, int32_t, int64_t) {
  static_cast<Meeting *>(args->buffers[0])->meet();
  return FUSEC_KERNEL_OK;
}

/// The brand string of cpuid, without the spaces around it.
std::string processorName() {
  constexpr unsigned kFirst = 0x80000002, kWords = 12;
  unsigned words[kWords] = {};
  for (unsigned leaf = 0; leaf < 3; ++leaf) {
    unsigned *w = words + leaf * 4;
    __get_cpuid(kFirst + leaf, w, w + 1, w + 2, w + 3);
  }
  char text[sizeof words + 1] = {};
  std::memcpy(text, words, sizeof words);
  std::string name = text;
  name.erase(0, name.find_first_not_of(' '));
  name.erase(name.find_last_not_of(' ') + 1);
  return name.empty() ? "CPU" : name;
}

class CpuCalibration {
public:
  CpuCalibration(const fusert_calibrate_options &options, fusert_figure_fn take, void *user)
      : options(options), take(take), user(user), name(processorName()) {}
  fusert_status run() {
    const int32_t wanted = options.threads > 0 ? options.threads : availableProcessors();
    threads = pool.start(wanted);
    code = {&program, {emptyKernel, meetingKernel}, 0};
    program.kernels.resize(code.entries.size());
    FUSERT_TRY(launches());
    FUSERT_TRY(bandwidth(1));
    return threads > 1 ? bandwidth(threads) : FUSERT_OK;
  }

private:
  fusert_status launches();
  fusert_status launch(const char *what, int32_t width, int launchCount, int phases);
  fusert_status single(const char *what, int32_t width, const std::function<void()> &before);
  fusert_status cycle();
  fusert_status makeQueue(int32_t width, std::unique_ptr<Queue> &queue);
  fusert_status bandwidth(int32_t width);
  fusert_status sweep(int32_t width, int64_t bytes, const std::vector<HostBlock> &memory);
  void tell(const char *what, int32_t width, int64_t bytes, std::vector<double> values);

  const fusert_calibrate_options &options;
  const fusert_figure_fn take;
  void *const user;
  const std::string name;
  ThreadPool pool;
  int32_t threads = 1;
  bundle::Program program;
  CpuCode code;
};

void CpuCalibration::tell(const char *what, int32_t width, int64_t bytes,
                          std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double median = values[values.size() / 2];
  const fusert_figure figure = {sizeof figure, name.c_str(),   what,   width,        0,
                                bytes,         values.front(), median, values.back()};
  take(user, &figure);
}

/// The nodes of so many launches.
PlanOutline outlineOf(int launchCount) {
  PlanOutline outline;
  for (int i = 0; i < launchCount; ++i) {
    PlanOutline::Node node;
    node.kind = bundle::StepKind::Launch;
    node.launch = i;
    outline.nodes.push_back(std::move(node));
  }
  return outline;
}

/// A plan of launches of the same kernel. `blocks` of more than one meet.
ExecPlan planOf(const PlanOutline &outline, int phases, int64_t blocks, Meeting &meeting) {
  ExecPlan plan(outline);
  for (size_t i = 0; i < outline.nodes.size(); ++i) {
    Launch launch;
    launch.kernel = blocks > 1 ? 1 : 0;
    launch.buffers = {&meeting};
    launch.grids.assign(static_cast<size_t>(phases), blocks);
    launch.cycles.assign(static_cast<size_t>(phases), -1);
    plan.launches.push_back(std::move(launch));
  }
  return plan;
}

fusert_status timed(ExecPlan &plan, Queue &queue, double &seconds) {
  for (Launch &launch : plan.launches) // short phases would be kept on one thread from now on
    std::fill(launch.cycles.begin(), launch.cycles.end(), -1);
  const double start = now();
  FUSERT_TRY(Executor(plan, queue, true).run());
  seconds = now() - start;
  return FUSERT_OK;
}

fusert_status CpuCalibration::makeQueue(int32_t width, std::unique_ptr<Queue> &queue) {
  QueueOptions o;
  o.memory = defaultAllocator();
  o.ownPool = false;
  o.pool = {sizeof o.pool, &pool, width,
            [](void *user, int32_t count, ThreadPool::Task task, void *argument) {
              static_cast<ThreadPool *>(user)->parallel(count, task, argument);
            }};
  return createCpuQueue(code, o, queue);
}

fusert_status CpuCalibration::launch(const char *what, int32_t width, int launchCount, int phases) {
  std::unique_ptr<Queue> queue;
  FUSERT_TRY(makeQueue(width, queue));
  Meeting meeting(width);
  const PlanOutline outline = outlineOf(launchCount);
  ExecPlan plan = planOf(outline, phases, width, meeting);
  std::vector<double> seconds;
  for (int r = -1; r < options.repetitions; ++r) { // one to warm up
    double spent = 0;
    FUSERT_TRY(timed(plan, *queue, spent));
    if (r >= 0)
      seconds.push_back(spent / launchCount / phases);
  }
  tell(what, width, 0, std::move(seconds));
  return FUSERT_OK;
}

/// One launch at a time.
fusert_status CpuCalibration::single(const char *what, int32_t width,
                                     const std::function<void()> &before) {
  constexpr int kTimes = 8;
  std::unique_ptr<Queue> queue;
  FUSERT_TRY(makeQueue(width, queue));
  Meeting meeting(width);
  const PlanOutline outline = outlineOf(1);
  ExecPlan plan = planOf(outline, 1, width, meeting);
  std::vector<double> seconds;
  for (int r = 0; r < options.repetitions; ++r) {
    double total = 0, spent = 0;
    for (int i = 0; i < kTimes; ++i) {
      before();
      FUSERT_TRY(timed(plan, *queue, spent));
      total += spent;
    }
    seconds.push_back(total / kTimes);
  }
  tell(what, width, 0, std::move(seconds));
  return FUSERT_OK;
}

/// From multiplications that need each other: three cycles each on the processors of levels 3 and 4 (Intel 64 and IA-32
/// Architectures Optimization Reference Manual; AMD, Software Optimization Guides for Zen).
fusert_status CpuCalibration::cycle() {
  constexpr int kRounds = 1 << 17, kMultiplications = 4, kCycles = 3;
  std::vector<double> seconds;
  for (int r = -1; r < options.repetitions; ++r) { // one to warm up
    uint64_t product = 1;
    const double start = now();
    for (int i = 0; i < kRounds; ++i)
      __asm__ volatile("imul %0, %0\n imul %0, %0\n imul %0, %0\n imul %0, %0" : "+r"(product));
    if (r >= 0)
      seconds.push_back((now() - start) / kRounds / kMultiplications / kCycles);
  }
  tell("cycle", 1, 0, std::move(seconds));
  return FUSERT_OK;
}

fusert_status CpuCalibration::launches() {
  constexpr int kMany = 1000;
  FUSERT_TRY(launch("launch", 1, kMany, 1));
  FUSERT_TRY(launch("phase", 1, 1, kMany));
  HostBlock others;
  FUSERT_TRY(others.allocate(defaultAllocator(), kForgotten));
  FUSERT_TRY(single("cold_launch", 1, [&] { std::memset(others.data(), 0, others.size()); }));
  FUSERT_TRY(cycle());
  if (threads == 1)
    return FUSERT_OK;
  FUSERT_TRY(launch("shared_launch", threads, kMany, 1));
  FUSERT_TRY(launch("shared_phase", threads, 1, kMany));
  return single("woken_launch", threads, [] { // the threads of the pool sleep too
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
}

fusert_status CpuCalibration::bandwidth(int32_t width) {
  std::vector<HostBlock> memory( // of each thread
      static_cast<size_t>(width));
  const int64_t largest = std::max(options.largest_bytes / width, kSmallestSet);
  for (HostBlock &block : memory) {
    FUSERT_TRY(block.allocate(defaultAllocator(), static_cast<size_t>(largest)));
    std::memset(block.data(), 0, block.size());
  }
  for (int64_t bytes = kSmallestSet; bytes <= largest; bytes *= 2)
    FUSERT_TRY(sweep(width, bytes, memory));
  return FUSERT_OK;
}

/// `bytes`: of each thread.
fusert_status CpuCalibration::sweep(int32_t width, int64_t bytes,
                                    const std::vector<HostBlock> &memory) {
  const std::span<const Sweep> sweeps(cpuLevel() >= 4 ? kWideSweeps : kNarrowSweeps, kSweepCount);
  std::vector<long> rounds(sweeps.size(), 1);
  std::vector<std::vector<double>> rates(sweeps.size());
  size_t kind = 0;
  Meeting meeting(width);
  std::vector<double> starts(memory.size()), ends(memory.size());
  auto work = [&](int32_t i) {
    void *const own = memory[static_cast<size_t>(i)].data();
    meeting.meet();
    starts[static_cast<size_t>(i)] = now();
    for (long r = 0; r < rounds[kind]; ++r)
      sweeps[kind].run(own, static_cast<size_t>(bytes));
    ends[static_cast<size_t>(i)] = now();
  };
  auto seconds = [&] {
    pool.parallel(width, [](void *w, int32_t i) { (*static_cast<decltype(work) *>(w))(i); }, &work);
    return *std::max_element(ends.begin(), ends.end()) -
           *std::min_element(starts.begin(), starts.end());
  };
  for (kind = 0; kind < sweeps.size(); ++kind)
    while (seconds() < kSweepSeconds)
      rounds[kind] *= 2;
  for (int r = 0; r < options.repetitions; ++r)
    for (kind = 0; kind < sweeps.size(); ++kind)
      rates[kind].push_back(static_cast<double>(bytes) * width * static_cast<double>(rounds[kind]) /
                            seconds());
  for (kind = 0; kind < sweeps.size(); ++kind)
    tell(sweeps[kind].what, width, bytes * width, std::move(rates[kind]));
  return FUSERT_OK;
}

} // namespace

fusert_status calibrate(const fusert_calibrate_options &options, fusert_figure_fn take,
                        void *user) {
  const std::string target = options.target ? options.target : "";
  if (target == "cuda" || target.rfind("sm_", 0) == 0)
    return calibrateGpu(options, take, user);
  const int asked = levelOfTarget(target);
  if (!target.empty() && asked == 0)
    return fail(FUSERT_UNSUPPORTED, "'" + target +
                                        "' cannot be measured: only processors can, such as "
                                        "x86-64-v3, and GPUs of NVIDIA");
  if (cpuLevel() < std::max(asked, 3))
    return fail(FUSERT_UNSUPPORTED, "an x86-64-v" + std::to_string(std::max(asked, 3)) +
                                        " is wanted, this processor is x86-64-v" +
                                        std::to_string(cpuLevel()));
  return CpuCalibration(options, take, user).run();
}

} // namespace fusec::rt
