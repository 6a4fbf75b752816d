// What must not grow, and what must not be busy: many runs, loads, failures and threads.
#include "Bundle/Writer.h"
#include "TestModels.h"
#include "fusec/runtime.h"

#include <filesystem>
#include <thread>
#include <unistd.h>

using namespace test;
namespace fs = std::filesystem;

namespace {

size_t entries(const char *folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

long residentBytes() {
  std::ifstream in("/proc/self/statm");
  long total = 0, resident = 0;
  in >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kOwnAllocator = true; // keeps what was freed
#else
constexpr bool kOwnAllocator = false;
#endif

/// Returns when `done` comes true; one that never does is ended by ctest's limit.
template <typename F> void waitUntil(F done) {
  while (!done())
    usleep(1000);
}

/// Does `work` `count` times; after the first tenth nothing may be left over.
template <typename F> void flat(int count, F work) {
  for (int i = 0; i < count / 10; ++i)
    work();
  const long resident = residentBytes();
  const size_t files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  for (int i = 0; i < count; ++i)
    work();
  if (!kOwnAllocator)
    CHECK(residentBytes() - resident < (256 << 10));
  CHECK(entries("/proc/self/fd") == files);
  // A joined thread is listed until the kernel has taken it down, a little after the join.
  waitUntil([&] { return entries("/proc/self/task") <= threads; });
}

struct Loaded {
  std::vector<uint8_t> bytes = *writeBundle(addModel());
  fusert_model model = 0;
  fusert_context context = 0;
  float x[100] = {}, w[100] = {}, y[100] = {}, s[1] = {};
  explicit Loaded(int32_t threads) {
    fusert_context_options options{};
    options.struct_size = sizeof options;
    options.threads = threads;
    int64_t n = 100;
    REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), nullptr, &model) == FUSERT_OK);
    REQUIRE(fusert_context_create(model, &options, &context) == FUSERT_OK);
    REQUIRE(fusert_set_symbols(context, &n, 1) == FUSERT_OK);
  }
  ~Loaded() {
    fusert_context_destroy(context);
    fusert_unload(model);
  }
  bool run() {
    fusert_buffer inputs[] = {{x, sizeof x}, {w, sizeof w}},
                  outputs[] = {{y, sizeof y}, {s, sizeof s}};
    return fusert_run(context, inputs, 2, outputs, 2) == FUSERT_OK;
  }
};

/// Of all other threads: how many are awake, and how often they have been put to sleep so far.
struct Others {
  int awake = 0;
  long sleeps = 0;
};
Others others() {
  Others found;
  for (const auto &task : fs::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(gettid()))
      continue;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("State:", 0) == 0)
        found.awake += line.find("\tS") == std::string::npos;
      if (line.find("ctxt_switches:") != std::string::npos)
        found.sleeps += std::stol(line.substr(line.find(':') + 1));
    }
  }
  return found;
}

} // namespace

TEST_CASE("a million runs") {
  Loaded l(2);
  int bad = 0;
  flat(kOwnAllocator ? 20000 : 1000000, [&] { bad += !l.run(); });
  CHECK(bad == 0);
}

TEST_CASE("sizes that change back and forth") {
  Loaded l(2);
  std::vector<float> x(1000, 1.f), y(1000), s(1);
  int bad = 0, round = 0;
  const int64_t sizes[] = {1, 1000, 64, 7, 0, 65};
  flat(10000, [&] {
    const int64_t n = sizes[round++ % std::size(sizes)];
    const fusert_shape shapes[] = {{1, &n}, {1, &n}};
    const size_t bytes = static_cast<size_t>(n) * sizeof(float);
    fusert_buffer inputs[] = {{x.data(), bytes}, {x.data(), bytes}},
                  outputs[] = {{y.data(), bytes}, {s.data(), sizeof(float)}};
    bad += fusert_set_shapes(l.context, shapes, 2) != FUSERT_OK;
    bad += fusert_run(l.context, inputs, 2, outputs, 2) != FUSERT_OK;
    bad += s[0] != 3.f * float(n);
  });
  CHECK(bad == 0);
}

TEST_CASE("thousands of loads, contexts and failures") {
  const std::vector<uint8_t> bytes = *writeBundle(addModel());
  std::vector<uint8_t> damaged = bytes;
  damaged[5000] ^= 1;
  int bad = 0;
  flat(2000, [&] {
    Loaded l(2);
    bad += !l.run();
    int64_t n = -1;
    bad += fusert_set_symbols(l.context, &n, 1) != FUSERT_INVALID_ARGUMENT;
    fusert_model none = 0;
    bad += fusert_load_memory(damaged.data(), damaged.size(), nullptr, &none) != FUSERT_BAD_BUNDLE;
    bad += fusert_load_memory(bytes.data(), bytes.size() / 2, nullptr, &none) != FUSERT_BAD_BUNDLE;
    bad += fusert_load_file("/nonexistent", nullptr, &none) != FUSERT_IO_ERROR;
    bad += fusert_run(l.context, nullptr, 1, nullptr, 0) != FUSERT_INVALID_ARGUMENT;
  });
  CHECK(bad == 0);
}

TEST_CASE("thousands of threads that run once and end") {
  Loaded l(2);
  int bad = 0;
  flat(5000, [&] { std::thread([&] { bad += !l.run(); }).join(); });
  CHECK(bad == 0);
}

TEST_CASE("more threads than processors, and none of them busy between runs") {
  const std::vector<uint8_t> bytes = *writeBundle(addModel());
  fusert_model model = 0;
  fusert_context context = 0;
  fusert_context_options options{};
  options.struct_size = sizeof options;
  options.threads = 32;
  int64_t n = 1 << 20;
  REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), nullptr, &model) == FUSERT_OK);
  REQUIRE(fusert_context_create(model, &options, &context) == FUSERT_OK);
  REQUIRE(fusert_set_symbols(context, &n, 1) == FUSERT_OK);
  for (int i = 0; i < 5; ++i)
    REQUIRE(fusert_run(context, nullptr, 0, nullptr, 0) == FUSERT_OK);
  waitUntil([] { return others().awake == 0; });
  const long sleeps = others().sleeps;
  usleep(50000);
  CHECK(others().awake == 0);
  CHECK(others().sleeps == sleeps); // nobody wakes up to look for work
  fusert_context_destroy(context);
  fusert_unload(model);
}
