#pragma once
#include "FakeGpu.h"

#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
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

/// What the parts of a fake driver share.
namespace fake {

enum {
  kSuccess = 0,
  kInvalidValue = 1,
  kNoMemory = 2,
  kNotInitialised = 3,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinary = 209,
  kInvalidHandle = 400,
  kNotFound = 500,
  kCaptureUnsupported = 900
};

constexpr int kMostDevices = 2, kCores = 2, kMostShared = 227 << 10;

struct Context {
  int device = 0, retained = 0;
};
struct Module {
  void *library;
  int device;
};
struct Function {
  FakeKernel kernel;
  int parameters, device;
  unsigned shared;        // bytes that each launch has to give it
  int allowed = 48 << 10; // bytes that a launch may give it
};
struct Allocation {
  size_t bytes;
  int device;
  FakeMemory kind;
};

/// Something that a stream does. `touches`: addresses in allocations that it reads or writes; `writes`: one of them
/// that a copy writes.
struct Work {
  std::function<void()> run;
  std::vector<uint64_t> touches;
  uint64_t writes = 0;
};
struct Stream {
  int device = 0, capture = 0;
  bool waitsForDefault = false;
  std::deque<Work> pending;
  uint64_t done = 0; // works that have run
};
/// What stands in front of it in a stream.
struct Event {
  std::shared_ptr<Stream> stream;
  uint64_t end = 0;
};

struct Driver {
  Driver();
  std::mutex mutex;
  bool ready = false;
  int devices = 1, version = 12040;
  int failAt = 0, failWith = 0;
  int resident = 4; // blocks of a core
  int shared = kMostShared;
  int refusal = 0; // of cooperative launches
  FakeGpuState state{};
  Context primary[kMostDevices], other; // `other`: one that is not a primary one
  std::map<uint64_t, Allocation> allocations;
  std::set<Module *> modules;
  std::map<void *, std::shared_ptr<Stream>> streams;
  std::set<Event *> events;
  std::map<std::pair<Module *, std::string>, Function> functions;
  std::shared_ptr<Stream> defaults[kMostDevices];
};
extern Driver driver;
extern thread_local std::vector<int>
    currentContexts;                   // NVIDIA: the devices of the primary contexts pushed
extern thread_local int currentDevice; // AMD

int misuse(const std::string &text, int error);
/// Counts and logs a call; the error to return at once, or success.
int enter(const char *name, bool needsContext);
int deviceInUse();
/// Of that handle, on the device in use; null where there is none.
Function *functionOf(void *handle);

/// The allocation that holds these bytes, or null.
const Allocation *allocationOf(uint64_t p, size_t bytes);
uint64_t baseOf(uint64_t p); // of the allocation that holds `p`, or 0

/// The stream of a handle, the default one of the current device for null; null where there is none.
std::shared_ptr<Stream> streamOf(void *handle);
int enqueue(void *handle, const char *name, Work work);
/// Runs a stream's works up to number `end`.
void runUntil(Stream &stream, uint64_t end);
inline uint64_t endOf(const Stream &stream) { return stream.done + stream.pending.size(); }
void runAll(Stream &stream);
bool anyCapture();

} // namespace fake

#define ENTER(name, needsContext)                                                                  \
  std::lock_guard lock(fake::driver.mutex);                                                        \
  if (int error = fake::enter(name, needsContext); error != fake::kSuccess)                        \
  return error
