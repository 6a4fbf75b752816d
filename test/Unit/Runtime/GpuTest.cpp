#include "../../FakeGpu/FakeGpu.h"
#include "Bundle/Writer.h"
#include "TestModels.h"
#include "fusec/runtime.h"

#include <catch2/generators/catch_generators.hpp>
#include <dlfcn.h>

using namespace test;

namespace {

struct Vendor {
  const char *target, *library;
};
const Vendor vendors[] = {{"sm_90", "libcuda.so.1"}, {"gfx90a", "libamdhip64.so"}};

/// The control functions of a fake driver.
struct Fake {
  void *library;
  explicit Fake(const Vendor &v) : library(dlopen(v.library, RTLD_NOW | RTLD_LOCAL)) {
    REQUIRE(library);
    REQUIRE(dlsym(library, "fakeGpuReset")); // not a real driver
    call<void()>("fakeGpuReset")();
  }
  template <typename F> F *call(const char *name) const {
    return reinterpret_cast<F *>(dlsym(library, name));
  }
  FakeGpuState state() const {
    FakeGpuState s;
    call<void(FakeGpuState *)>("fakeGpuGetState")(&s);
    return s;
  }
  void failAt(int n, int error) const { call<void(int, int)>("fakeGpuFailAt")(n, error); }
  void requireClean() const {
    const FakeGpuState s = state();
    INFO(s.firstMisuse);
    CHECK(s.misuses == 0);
    CHECK(s.contexts == 0);
    CHECK(s.modules == 0);
    CHECK(s.streams == 0);
    CHECK(s.allocations == 0);
  }
};

std::vector<uint8_t> text(const std::string &s) {
  return std::vector<uint8_t>(s.c_str(), s.c_str() + s.size() + 1);
}

/// t = x + w, y = t + x; x: f32 [100].
std::vector<uint8_t> gpuBundle(const std::string &target, const std::string &firstImage = "") {
  static const std::vector<float> w(100, 10.f);
  Model m = emptyModel();
  m.symbols = {{"n", 100, 100, 100, 1}};
  Program &p = m.programs[0];
  p.target = target;
  p.images.clear();
  const ImageKind kind = target[0] == 's' ? ImageKind::Cubin : ImageKind::CodeObject;
  if (!firstImage.empty())
    p.images.push_back({kind, text(firstImage), 0});
  p.images.push_back({kind, text(std::string("FAKE:") + TEST_FAKE_KERNELS), 12000});
  p.tensors = {tensor("x", TensorKind::Input, {100}), tensor("w", TensorKind::Constant, {100}),
               tensor("t", TensorKind::Temp, {100}), tensor("y", TensorKind::Output, {100}),
               tensor("unused", TensorKind::Temp, {100})};
  p.tensors[1].weight = 0;
  m.weights.push_back({DType::F32, reinterpret_cast<const uint8_t *>(w.data()), 400});
  p.kernels = {kernel("add", {2}, {in, in, out}, {0})};
  p.kernels[0].units = 2;
  p.kernels[0].lanes = 32;
  p.steps = {launch("a", 0, {0, 1, 2}), launch("b", 0, {2, 0, 3})};
  addValue(m, true, 0);
  addValue(m, false, 3);
  return *writeBundle(std::move(m));
}

/// Loads, runs once with host buffers, takes everything down; the first status that is not FUSERT_OK.
fusert_status wholeLife(const std::vector<uint8_t> &bytes, const char *target, int runs = 1,
                        int device = 0) {
  fusert_load_options load{};
  load.struct_size = sizeof load;
  load.target = target;
  load.device = device;
  fusert_model model = 0;
  fusert_context context = 0;
  fusert_status status = fusert_load_memory(bytes.data(), bytes.size(), &load, &model);
  if (status == FUSERT_OK)
    status = fusert_context_create(model, nullptr, &context);
  int64_t n = 100;
  if (status == FUSERT_OK)
    status = fusert_set_symbols(context, &n, 1);
  std::vector<float> x(100, 1), y(100, -1);
  fusert_buffer in{x.data(), 400}, out{y.data(), 400};
  for (int i = 0; i < runs && status == FUSERT_OK; ++i) {
    y.assign(100, -1);
    status = fusert_run(context, &in, 1, &out, 1);
    if (status == FUSERT_OK)
      CHECK(y == std::vector<float>(100, 12.f));
  }
  if (context != 0)
    CHECK(fusert_context_destroy(context) == FUSERT_OK);
  if (model != 0)
    CHECK(fusert_unload(model) == FUSERT_OK);
  return status;
}

} // namespace

TEST_CASE("gpu: load, run, unload, in the right order and without leaks") {
  for (const Vendor &v : vendors) {
    Fake fake(v);
    CHECK(wholeLife(gpuBundle(v.target), v.target, 3) == FUSERT_OK);
    fake.requireClean();
    const std::string log = fake.state().log;
    size_t at = 0;
    for (const char *name : {"init", "moduleLoad", "moduleFunction", "allocate", "upload\n",
                             "streamCreate", "uploadAsync", "launch", "launch", "downloadAsync",
                             "streamWait", "uploadAsync", "streamDestroy", "moduleUnload"}) {
      at = log.find(name, at);
      INFO(name << " in\n" << log);
      REQUIRE(at != std::string::npos);
      ++at;
    }
    CHECK(log.find("upload\n") == log.rfind("upload\n")); // the weights once
  }
}

TEST_CASE("gpu: each call may fail; nothing leaks and the next try works") {
  for (const Vendor &v : vendors) {
    Fake fake(v);
    const std::vector<uint8_t> bytes = gpuBundle(v.target);
    REQUIRE(wholeLife(bytes, v.target) == FUSERT_OK);
    const int calls = fake.state().calls;
    REQUIRE(calls > 20);
    for (int n = 1; n <= calls; ++n) {
      INFO("call " << n << " of " << calls);
      fake.call<void()>("fakeGpuReset")();
      fake.failAt(n, 2);
      const fusert_status status = wholeLife(bytes, v.target);
      const FakeGpuState s = fake.state();
      INFO(s.log);
      // Where the failed call was one that takes down, what it should have taken down is left.
      const bool inTearDown = status == FUSERT_OK;
      if (!inTearDown) {
        CHECK(status == FUSERT_NO_MEMORY);
        CHECK(s.modules + s.streams + s.allocations + s.contexts == 0);
      }
      INFO(s.firstMisuse);
      CHECK(s.misuses == 0);
      fake.failAt(0, 0);
      CHECK(wholeLife(bytes, v.target) == FUSERT_OK);
      if (inTearDown)
        break; // from here on only the taking down is left
    }
  }
}

TEST_CASE("gpu: an error that the device cannot recover from stays") {
  for (const Vendor &v : vendors) {
    Fake fake(v);
    const std::vector<uint8_t> bytes = gpuBundle(v.target);
    fusert_load_options load{};
    load.struct_size = sizeof load;
    load.target = v.target;
    fusert_model model = 0;
    fusert_context context = 0;
    REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), &load, &model) == FUSERT_OK);
    REQUIRE(fusert_context_create(model, nullptr, &context) == FUSERT_OK);
    int64_t n = 100;
    REQUIRE(fusert_set_symbols(context, &n, 1) == FUSERT_OK);
    REQUIRE(fusert_run(context, nullptr, 0, nullptr, 0) == FUSERT_OK);
    int waits = 0;
    for (fusert_status status = FUSERT_OK; status == FUSERT_OK; ++waits) {
      REQUIRE(waits < 100);
      fake.failAt(waits + 1, 700);
      status = fusert_run(context, nullptr, 0, nullptr, 0);
      if (status != FUSERT_OK)
        CHECK(status == FUSERT_DEVICE_LOST);
      fake.failAt(0, 0);
    }
    CHECK(fusert_run(context, nullptr, 0, nullptr, 0) == FUSERT_DEVICE_LOST);
    fusert_context_destroy(context);
    fusert_unload(model);
  }
}

TEST_CASE("gpu: wrong device, wrong architecture, old driver") {
  for (const Vendor &v : vendors) {
    Fake fake(v);
    CHECK(wholeLife(gpuBundle(v.target), v.target, 1, 1) == FUSERT_UNAVAILABLE);
    CHECK(std::string(fusert_last_error()) == "there is no GPU number 1, the driver has 1");
    CHECK(wholeLife(gpuBundle(v.target, "OTHER"), v.target) == FUSERT_OK); // the second image does
    fake.call<void(int)>("fakeGpuSetVersion")(11000);
    CHECK(wholeLife(gpuBundle(v.target), v.target) == FUSERT_UNAVAILABLE);
    CHECK(wholeLife(gpuBundle(v.target, "OTHER"), v.target) == FUSERT_UNSUPPORTED);
    fake.call<void(int)>("fakeGpuSetDevices")(0);
    CHECK(wholeLife(gpuBundle(v.target), v.target) == FUSERT_UNAVAILABLE);
    fake.requireClean();
  }
}

TEST_CASE("gpu: no fallback to another device") {
  Fake fake(vendors[0]);
  const std::vector<uint8_t> bytes = gpuBundle("sm_90");
  CHECK(wholeLife(bytes, nullptr) == FUSERT_UNSUPPORTED);
  CHECK(wholeLife(bytes, "gfx90a") == FUSERT_UNSUPPORTED);
  CHECK(fake.state().calls == 0);
}
