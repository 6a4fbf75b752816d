#pragma once
#include "../../FakeGpu/FakeGpu.h"
#include "Bundle/Writer.h"
#include "TestModels.h"
#include "fusec/runtime.h"

#include <dlfcn.h>

/// The fake drivers, and models that run on them.
namespace test {

struct Vendor {
  const char *target, *library;
};
inline const Vendor vendors[] = {{"sm_90", "libcuda.so.1"}, {"gfx90a", "libamdhip64.so"}};

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
    CHECK(s.events == 0);
    CHECK(s.pushed == 0);
    CHECK(s.allocations == 0);
  }
};

/// The caller's own use of a fake driver: a device is current, and its functions by their names for CUDA.
struct Caller {
  const Fake &fake;
  const bool nvidia;
  const int device;
  Caller(const Fake &fake, const Vendor &v, int device = 0)
      : fake(fake), nvidia(v.target[0] == 's'), device(device) {
    void *context = nullptr;
    if (nvidia) {
      REQUIRE(fake.call<int(void **, int)>("cuDevicePrimaryCtxRetain")(&context, device) == 0);
      REQUIRE(fake.call<int(void *)>("cuCtxPushCurrent_v2")(context) == 0);
    } else {
      REQUIRE(fake.call<int(int)>("hipSetDevice")(device) == 0);
    }
  }
  ~Caller() {
    void *context = nullptr;
    if (nvidia) {
      fake.call<int(void **)>("cuCtxPopCurrent_v2")(&context);
      fake.call<int(int)>("cuDevicePrimaryCtxRelease_v2")(device);
    } else {
      fake.call<int(int)>("hipSetDevice")(0);
    }
  }
  template <typename F> F *call(const char *cuda, const char *hip) const {
    return fake.call<F>(nvidia ? cuda : hip);
  }
  void *stream() const {
    void *s = nullptr;
    REQUIRE(call<int(void **, unsigned)>("cuStreamCreate", "hipStreamCreateWithFlags")(&s, 1) == 0);
    return s;
  }
  void destroy(void *stream) const {
    CHECK(call<int(void *)>("cuStreamDestroy_v2", "hipStreamDestroy")(stream) == 0);
  }
  /// 100 elements of this value.
  float *memory(FakeMemory kind, int where, float value) const {
    auto *p = static_cast<float *>(
        fake.call<void *(FakeMemory, int, size_t)>("fakeGpuAllocate")(kind, where, 400));
    for (int i = 0; i < 100; ++i)
      p[i] = value;
    return p;
  }
  void release(void *memory) const { fake.call<void(void *)>("fakeGpuRelease")(memory); }
};

inline std::vector<uint8_t> text(const std::string &s) {
  return std::vector<uint8_t>(s.c_str(), s.c_str() + s.size() + 1);
}

inline const std::string kGoodImage = std::string("FAKE:") + TEST_FAKE_KERNELS;

/// t = x + w, y = t + x; x: f32 [100]. Each program has these images.
inline Model gpuModel(const std::vector<std::string> &targets,
                      const std::vector<std::string> &images) {
  static const std::vector<float> w(100, 10.f);
  Model m = emptyModel();
  m.symbols = {{"n", 100, 100, 100, 1}};
  Program &p = m.programs[0];
  setTarget(p, targets[0]);
  p.images.clear();
  const ImageKind kind = targets[0][0] == 's' ? ImageKind::Cubin : ImageKind::CodeObject;
  for (const std::string &image : images)
    p.images.push_back({kind, text(image), image == kGoodImage ? 12000 : 0});
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
  for (size_t i = 1; i < targets.size(); ++i) {
    m.programs.push_back(m.programs[0]);
    setTarget(m.programs.back(), targets[i]);
  }
  return m;
}

/// The same with kernels of two phases that have an entry for both.
inline std::vector<uint8_t> gridBundle(const std::string &target, int64_t blocks) {
  Model m = gpuModel({target}, {kGoodImage});
  Kernel &k = m.programs[0].kernels[0];
  k.grids = {blocks, 1};
  k.gridBarrier = true;
  return *writeBundle(m);
}

/// The same with kernels whose launches give a block shared memory.
inline Model wideModel(const std::vector<std::string> &targets, bool grid) {
  Model m = gpuModel(targets, {kGoodImage});
  for (Program &p : m.programs) {
    Kernel &k = p.kernels[0];
    k.symbol = "wide";
    k.grids = {2, 1};
    k.scratchBytes = 200064;
    k.dynamicShared = {200000, 0};
    k.gridBarrier = grid;
    p.maxDynamicShared = 227 << 10;
  }
  return m;
}

inline std::vector<uint8_t> gpuBundle(const std::string &target,
                                      const std::string &firstImage = "") {
  std::vector<std::string> images = {kGoodImage};
  if (!firstImage.empty())
    images.insert(images.begin(), firstImage);
  return *writeBundle(gpuModel({target}, images));
}

/// A model with one context whose shapes are set.
struct Loaded {
  fusert_model model = 0;
  fusert_context context = 0;
  Loaded(const std::vector<uint8_t> &bytes, const char *target, void *stream = nullptr,
         int device = 0) {
    fusert_load_options load{};
    load.struct_size = sizeof load;
    load.target = target;
    load.device = device;
    REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), &load, &model) == FUSERT_OK);
    fusert_context_options options{};
    options.struct_size = sizeof options;
    options.stream = stream;
    REQUIRE(fusert_context_create(model, &options, &context) == FUSERT_OK);
    const int64_t n = 100;
    REQUIRE(fusert_set_symbols(context, &n, 1) == FUSERT_OK);
  }
  ~Loaded() {
    CHECK(fusert_context_destroy(context) == FUSERT_OK);
    CHECK(fusert_unload(model) == FUSERT_OK);
  }
  Loaded(const Loaded &) = delete;
  Loaded &operator=(const Loaded &) = delete;
  fusert_status run(void *x, void *y) const {
    const fusert_buffer in{x, 400}, out{y, 400};
    return fusert_run(context, &in, 1, &out, 1);
  }
};

/// Loads, runs once with host buffers, takes everything down; the first status that is not FUSERT_OK.
inline fusert_status wholeLife(const std::vector<uint8_t> &bytes, const char *target, int runs = 1,
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

} // namespace test
