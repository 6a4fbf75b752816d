// The machine fails: system calls, threads that do not start, small stacks, signals, a fork.
#include "Bundle/Writer.h"
#include "TestModels.h"
#include "fusec/runtime.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

thread_local bool watched = false; // calls of this thread count
thread_local long failAt = 0;      // the n-th watched call from now fails; 0: none
int failWith = 0;                  // errno
std::atomic<long> mapped{0};       // bytes

bool fails() {
  if (!watched || failAt == 0 || --failAt > 0)
    return false;
  errno = failWith;
  return true;
}

/// What the program would call without the definitions below: libc's, or a sanitizer's, which has to see mappings
/// and threads.
template <typename F> F next(const char *name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

} // namespace

// The program's own definitions come before those of libc.
extern "C" {
int open(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
  va_end(list);
  return fails() ? -1 : static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int fstat(int fd, struct stat *st) noexcept {
  return fails() ? -1 : static_cast<int>(syscall(SYS_fstat, fd, st));
}
ssize_t pread(int fd, void *to, size_t size, off_t at) {
  return fails() ? -1 : syscall(SYS_pread64, fd, to, size, at);
}
void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  static auto *real = next<decltype(&mmap)>("mmap");
  if (fails())
    return MAP_FAILED;
  void *p = real(at, size, protection, flags, fd, offset);
  if (watched && p != MAP_FAILED)
    mapped += static_cast<long>(size);
  return p;
}
int munmap(void *at, size_t size) noexcept {
  static auto *real = next<decltype(&munmap)>("munmap");
  if (watched)
    mapped -= static_cast<long>(size);
  return real(at, size);
}
int mprotect(void *at, size_t size, int protection) noexcept {
  return fails() ? -1 : static_cast<int>(syscall(SYS_mprotect, at, size, protection));
}
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *argument) {
  if (fails())
    return EAGAIN;
  static auto *real = next<decltype(&pthread_create)>("pthread_create");
  return real(thread, attributes, start, argument);
}
}

using namespace test;
namespace fs = std::filesystem;

namespace {

/// A bundle of a sim or CPU target in a file.
struct BundleFile {
  std::string path;
  explicit BundleFile(const std::vector<uint8_t> &bytes) {
    path = (fs::temp_directory_path() / "fusec-fault-XXXXXX").string();
    const int fd = mkstemp(path.data());
    REQUIRE(fd >= 0);
    REQUIRE(::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    close(fd);
  }
  ~BundleFile() { fs::remove(path); }
};

size_t openFiles() {
  return static_cast<size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), {}));
}

Model simAdd() {
  Model m = emptyModel("sim:sm_90");
  m.symbols = {{"n", 100, 100, 100, 1}};
  Program &p = m.programs[0];
  p.tensors = {tensor("x", TensorKind::Input, {100}), tensor("y", TensorKind::Output, {100})};
  addValue(m, true, 0);
  addValue(m, false, 1);
  p.kernels = {kernel("good_add", {2}, {in, in, out}, {0})};
  p.kernels[0].units = 2;
  p.kernels[0].lanes = 32;
  p.steps = {launch("s", 0, {0, 0, 1})};
  return m;
}

/// One whole life of addModel or simAdd with x = 1; the first status that is not FUSERT_OK.
fusert_status wholeLife(const char *path, const char *target, fusert_weights weights,
                        int32_t threads = 2) {
  static thread_local float x[100], w[100], y[100], s[1];
  std::fill_n(x, 100, 1.f);
  std::fill_n(w, 100, 2.f);
  std::fill_n(y, 100, -1.f);
  fusert_load_options load{};
  load.struct_size = sizeof load;
  load.target = target;
  load.weights = weights;
  fusert_context_options options{};
  options.struct_size = sizeof options;
  options.threads = threads;
  fusert_model model = 0;
  fusert_context context = 0;
  int64_t n = 100;
  const bool sim = target != nullptr;
  fusert_buffer inputs[] = {{x, sizeof x}, {w, sizeof w}},
                outputs[] = {{y, sizeof y}, {s, sizeof s}};
  fusert_status status = fusert_load_file(path, &load, &model);
  if (status == FUSERT_OK)
    status = fusert_context_create(model, &options, &context);
  if (status == FUSERT_OK)
    status = fusert_set_symbols(context, &n, 1);
  if (status == FUSERT_OK)
    status = fusert_run(context, inputs, sim ? 1 : 2, outputs, sim ? 1 : 2);
  if (context != 0)
    fusert_context_destroy(context);
  if (model != 0)
    fusert_unload(model);
  if (status == FUSERT_OK)
    for (const float v : y)
      if (v != (sim ? 2.f : 4.f))
        return FUSERT_INTERNAL;
  return status;
}

} // namespace

TEST_CASE("each system call of load, create and run fails") {
  for (const char *target : {static_cast<const char *>(nullptr), "sim:sm_90"}) {
    const BundleFile file(*writeBundle(target ? simAdd() : addModel()));
    for (const fusert_weights weights : {FUSERT_WEIGHTS_MAP, FUSERT_WEIGHTS_COPY})
      for (const int error : {ENOMEM, EIO, EMFILE}) {
        REQUIRE(wholeLife(file.path.c_str(), target, weights) == FUSERT_OK);
        const size_t files = openFiles();
        long n = 1;
        for (;; ++n) {
          failWith = error;
          failAt = n;
          watched = true;
          const long before = mapped;
          const fusert_status status = wholeLife(file.path.c_str(), target, weights);
          const long leaked = mapped - before;
          watched = false;
          const bool reached = failAt == 0;
          failAt = 0;
          INFO("call " << n << ": " << fusert_last_error());
          REQUIRE(leaked == 0);
          REQUIRE(openFiles() == files);
          if (!reached) {
            REQUIRE(status == FUSERT_OK);
            break;
          }
          // A thread that cannot start is no error.
          REQUIRE((status == FUSERT_OK || status == FUSERT_IO_ERROR || status == FUSERT_NO_MEMORY ||
                   (status == FUSERT_UNSUPPORTED && error != ENOMEM)));
          REQUIRE(wholeLife(file.path.c_str(), target, weights) == FUSERT_OK);
        }
        CHECK(n > 5);
      }
  }
}

TEST_CASE("a read that is interrupted is taken up again") {
  const BundleFile file(*writeBundle(addModel()));
  failWith = EINTR;
  failAt = 4; // open, fstat, mmap, pread
  watched = true;
  const fusert_status status = wholeLife(file.path.c_str(), nullptr, FUSERT_WEIGHTS_COPY, 1);
  watched = false;
  CHECK(failAt == 0);
  failAt = 0;
  CHECK(status == FUSERT_OK);
}

TEST_CASE("a thread with a small stack") {
  const BundleFile cpu(*writeBundle(addModel())), sim(*writeBundle(simAdd()));
  struct Job {
    const char *cpu, *sim;
    fusert_status status[2];
  } job{cpu.path.c_str(), sim.path.c_str(), {FUSERT_INTERNAL, FUSERT_INTERNAL}};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  REQUIRE(pthread_attr_setstacksize(&attributes, 128 << 10) == 0);
  pthread_t thread;
  REQUIRE(pthread_create(
              &thread, &attributes,
              [](void *argument) -> void * {
                Job &j = *static_cast<Job *>(argument);
                j.status[0] = wholeLife(j.cpu, nullptr, FUSERT_WEIGHTS_MAP);
                j.status[1] = wholeLife(j.sim, "sim:sm_90", FUSERT_WEIGHTS_MAP);
                return nullptr;
              },
              &job) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  CHECK(job.status[0] == FUSERT_OK);
  CHECK(job.status[1] == FUSERT_OK);
}

TEST_CASE("signals while it runs") {
  const BundleFile cpu(*writeBundle(addModel())), sim(*writeBundle(simAdd()));
  static std::atomic<int> seen;
  seen = 0;
  struct sigaction action{}, old{};
  action.sa_handler = [](int) { ++seen; }; // without SA_RESTART
  REQUIRE(sigaction(SIGALRM, &action, &old) == 0);
  const itimerval every{{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &every, nullptr);
  int wrong = 0;
  for (int i = 0; i < 100000 && seen < 200; ++i) {
    wrong += wholeLife(cpu.path.c_str(), nullptr, FUSERT_WEIGHTS_COPY) != FUSERT_OK;
    wrong += wholeLife(sim.path.c_str(), "sim:sm_90", FUSERT_WEIGHTS_MAP) != FUSERT_OK;
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &old, nullptr);
  CHECK(seen >= 200);
  CHECK(wrong == 0);
}

TEST_CASE("the runtime installs no signal handlers") {
  const BundleFile cpu(*writeBundle(addModel())), sim(*writeBundle(simAdd()));
  std::vector<struct sigaction> before(65), after(65);
  for (int s = 1; s < 65; ++s)
    sigaction(s, nullptr, &before[static_cast<size_t>(s)]);
  REQUIRE(wholeLife(cpu.path.c_str(), nullptr, FUSERT_WEIGHTS_MAP) == FUSERT_OK);
  REQUIRE(wholeLife(sim.path.c_str(), "sim:sm_90", FUSERT_WEIGHTS_MAP) == FUSERT_OK);
  for (int s = 1; s < 65; ++s) {
    sigaction(s, nullptr, &after[static_cast<size_t>(s)]);
    CHECK(before[static_cast<size_t>(s)].sa_handler == after[static_cast<size_t>(s)].sa_handler);
  }
}

TEST_CASE("a fork after loading: the child runs, though it has none of the threads") {
  std::vector<uint8_t> bytes = *writeBundle(addModel());
  fusert_model model = 0;
  fusert_context context = 0;
  fusert_context_options options{};
  options.struct_size = sizeof options;
  options.threads = 3;
  REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), nullptr, &model) == FUSERT_OK);
  REQUIRE(fusert_context_create(model, &options, &context) == FUSERT_OK);
  int64_t n = 100000;
  REQUIRE(fusert_set_symbols(context, &n, 1) == FUSERT_OK);
  std::vector<float> x(100000, 1), w(100000, 2), y(100000), s(1);
  fusert_buffer inputs[] = {{x.data(), 400000}, {w.data(), 400000}},
                outputs[] = {{y.data(), 400000}, {s.data(), 4}};
  REQUIRE(fusert_run(context, inputs, 2, outputs, 2) == FUSERT_OK);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20); // a run that waits for a thread that is not there
    y.assign(100000, -1);
    const bool good = fusert_run(context, inputs, 2, outputs, 2) == FUSERT_OK &&
                      y == std::vector<float>(100000, 4.f);
    _exit(good ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(fusert_run(context, inputs, 2, outputs, 2) == FUSERT_OK);
  fusert_context_destroy(context);
  fusert_unload(model);
}
