// Which program a GPU gets, and what a run asks of the driver.
#include "FakeDriver.h"

#include <algorithm>
#include <cstring>

using namespace test;

TEST_CASE("gpu: the newest program that the device takes") {
  struct Case {
    const char *any;
    Vendor vendor;
    std::vector<std::string> targets;
    std::vector<bool> taken; // the device runs this program
    const char *chosen;      // null: none
  };
  const Case cases[] = {
      {"cuda", vendors[0], {"sm_80", "sm_90"}, {true, true}, "sm_90"},
      {"cuda", vendors[0], {"sm_90", "sm_80"}, {true, true}, "sm_90"},
      {"cuda", vendors[0], {"sm_80", "sm_90", "sm_100"}, {true, true, false}, "sm_90"},
      {"cuda", vendors[0], {"sm_80", "sm_90", "sm_100"}, {true, true, true}, "sm_100"},
      {"cuda", vendors[0], {"sm_80", "sm_90"}, {true, false}, "sm_80"},
      {"cuda", vendors[0], {"sm_80", "sm_90"}, {false, false}, nullptr},
      {"hip", vendors[1], {"gfx90a", "gfx942"}, {true, false}, "gfx90a"},
      {"hip", vendors[1], {"gfx90a", "gfx942"}, {false, true}, "gfx942"},
      {"hip", vendors[1], {"sm_90"}, {true}, nullptr},
      {"cuda", vendors[0], {"gfx942"}, {true}, nullptr},
  };
  for (const Case &c : cases) {
    Fake fake(c.vendor);
    Model m = gpuModel(c.targets, {kGoodImage});
    for (size_t i = 0; i < c.targets.size(); ++i)
      if (!c.taken[i])
        m.programs[i].images = {{m.programs[i].images[0].kind, text("OTHER"), 0}};
    const std::vector<uint8_t> bytes = *writeBundle(m);
    std::string logged;
    fusert_load_options load{};
    load.struct_size = sizeof load;
    load.target = c.any;
    load.log_user = &logged;
    load.log = [](void *user, fusert_log_level, const char *message) {
      *static_cast<std::string *>(user) = message;
    };
    fusert_model model = 0;
    const fusert_status status = fusert_load_memory(bytes.data(), bytes.size(), &load, &model);
    INFO(c.any << ": " << logged);
    if (!c.chosen) {
      CHECK(status == FUSERT_UNSUPPORTED);
    } else {
      REQUIRE(status == FUSERT_OK);
      CHECK(logged == "bundle: loaded the program for '" + std::string(c.chosen) + "'");
      fusert_model_info info{};
      info.struct_size = sizeof info;
      REQUIRE(fusert_get_model_info(model, &info) == FUSERT_OK);
      CHECK(std::string(info.target) == c.chosen);
      fusert_unload(model);
      CHECK(wholeLife(bytes, c.any) == FUSERT_OK);
    }
    fake.requireClean();
  }
}

TEST_CASE("gpu: a failure that is not the image's ends the search for a program") {
  Fake fake(vendors[0]);
  const std::vector<uint8_t> bytes = *writeBundle(gpuModel({"sm_80", "sm_90"}, {kGoodImage}));
  REQUIRE(wholeLife(bytes, "cuda") == FUSERT_OK);
  const std::string log = fake.state().log;
  int call = 1; // of the first moduleLoad
  for (size_t at = 0; log.compare(at, 11, "moduleLoad\n") != 0; at = log.find('\n', at) + 1)
    ++call;
  fake.call<void()>("fakeGpuReset")();
  fake.failAt(call, 2);
  CHECK(wholeLife(bytes, "cuda") == FUSERT_NO_MEMORY);
  fake.requireClean();
}

TEST_CASE("gpu: a driver that is too old for the newest program takes an older one") {
  Fake fake(vendors[0]);
  Model m = gpuModel({"sm_80", "sm_90"}, {kGoodImage});
  m.programs[0].images[0].minDriver = 11000;
  const auto bytes = [&] { return *writeBundle(m); };
  fake.call<void(int)>("fakeGpuSetVersion")(11040);
  CHECK(wholeLife(bytes(), "cuda") == FUSERT_OK);
  m.programs[0].images[0].minDriver = 11080;
  CHECK(wholeLife(bytes(), "cuda") == FUSERT_UNAVAILABLE);
  CHECK(std::string(fusert_last_error()) ==
        "the driver is too old: it has version 11040, version 11080 is needed");
  // One that the device would not run anyway says nothing about what is needed.
  m.programs[1].images = {{m.programs[1].images[0].kind, text("OTHER"), 0}};
  CHECK(wholeLife(bytes(), "cuda") == FUSERT_UNAVAILABLE);
  fake.requireClean();
}

TEST_CASE("gpu: weights go up once for a model, however many contexts it has") {
  for (const Vendor &v : vendors) {
    Fake fake(v);
    const std::vector<uint8_t> bytes = gpuBundle(v.target);
    const auto uploads = [&] {
      const std::string log = fake.state().log;
      int n = 0;
      for (size_t at = 0; (at = log.find("upload\n", at)) != std::string::npos; ++at)
        ++n;
      return n;
    };
    fusert_load_options load{};
    load.struct_size = sizeof load;
    load.target = v.target;
    fusert_model first = 0, second = 0;
    REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), &load, &first) == FUSERT_OK);
    CHECK(uploads() == 1);
    const int64_t n = 100;
    std::vector<fusert_context> contexts(3);
    for (fusert_context &c : contexts) {
      REQUIRE(fusert_context_create(first, nullptr, &c) == FUSERT_OK);
      REQUIRE(fusert_set_symbols(c, &n, 1) == FUSERT_OK);
      REQUIRE(fusert_run(c, nullptr, 0, nullptr, 0) == FUSERT_OK);
    }
    CHECK(uploads() == 1);
    REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), &load, &second) == FUSERT_OK);
    CHECK(uploads() == 2); // another model, other weights
    for (fusert_context c : contexts)
      fusert_context_destroy(c);
    fusert_unload(first);
    fusert_unload(second);
    fake.requireClean();
  }
}

TEST_CASE("gpu: the caller's stream and memory: all is enqueued there and nothing waits") {
  for (const Vendor &v : vendors) {
    Fake fake(v);
    const bool nvidia = v.target[0] == 's';
    const std::vector<uint8_t> bytes = gpuBundle(v.target);
    fusert_load_options load{};
    load.struct_size = sizeof load;
    load.target = v.target;
    fusert_model model = 0;
    REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), &load, &model) == FUSERT_OK);

    // The caller's own use of the driver.
    void *context = nullptr, *stream = nullptr;
    if (nvidia) {
      REQUIRE(fake.call<int(void **, int)>("cuDevicePrimaryCtxRetain")(&context, 0) == 0);
      REQUIRE(fake.call<int(void *)>("cuCtxPushCurrent_v2")(context) == 0);
    }
    auto *allocate = fake.call<int(uint64_t *, size_t)>(nvidia ? "cuMemAlloc_v2" : "hipMalloc");
    auto *release = fake.call<int(uint64_t)>(nvidia ? "cuMemFree_v2" : "hipFree");
    auto *wait = fake.call<int(void *)>(nvidia ? "cuStreamSynchronize" : "hipStreamSynchronize");
    REQUIRE(fake.call<int(void **, unsigned)>(
                nvidia ? "cuStreamCreate" : "hipStreamCreateWithFlags")(&stream, 1) == 0);
    uint64_t x = 0, y = 0, workspace = 0;
    REQUIRE(allocate(&x, 400) == 0);
    REQUIRE(allocate(&y, 400) == 0);
    std::fill_n(reinterpret_cast<float *>(x), 100, 1.f); // host memory behind it
    std::fill_n(reinterpret_cast<float *>(y), 100, -1.f);

    fusert_context_options options{};
    options.struct_size = sizeof options;
    options.stream = stream;
    fusert_context c = 0;
    REQUIRE(fusert_context_create(model, &options, &c) == FUSERT_OK);
    const int64_t n = 100;
    REQUIRE(fusert_set_symbols(c, &n, 1) == FUSERT_OK);
    size_t needed = 0;
    REQUIRE(fusert_workspace_bytes(c, &needed) == FUSERT_OK);
    REQUIRE(allocate(&workspace, needed) == 0);
    REQUIRE(fusert_set_workspace(c, reinterpret_cast<void *>(workspace), needed) == FUSERT_OK);
    fusert_buffer input{reinterpret_cast<void *>(x), 400}, output{reinterpret_cast<void *>(y), 400};
    const size_t before = std::strlen(fake.state().log);
    REQUIRE(fusert_run(c, &input, 1, &output, 1) == FUSERT_OK);
    const std::string log = std::string(fake.state().log).substr(before);
    INFO(log);
    for (const char *call : {"streamWait", "streamCreate", "allocate", "upload", "download"})
      CHECK(log.find(call) == std::string::npos);
    CHECK(log.find("launch") != std::string::npos);
    const auto *result = reinterpret_cast<const float *>(y);
    CHECK(result[0] == -1); // still waits on the caller's stream
    REQUIRE(wait(stream) == 0);
    CHECK(std::vector<float>(result, result + 100) == std::vector<float>(100, 12.f));

    // Host memory in a run means that the caller waits for it.
    std::vector<float> host(100, -1);
    fusert_buffer hostOutput{host.data(), 400};
    REQUIRE(fusert_run(c, &input, 1, &hostOutput, 1) == FUSERT_OK);
    CHECK(host == std::vector<float>(100, 12.f));

    fusert_context_destroy(c);
    fusert_unload(model);
    for (uint64_t p : {x, y, workspace})
      CHECK(release(p) == 0);
    CHECK(fake.call<int(void *)>(nvidia ? "cuStreamDestroy_v2" : "hipStreamDestroy")(stream) == 0);
    if (nvidia) {
      fake.call<int(void **)>("cuCtxPopCurrent_v2")(&context);
      fake.call<int(int)>("cuDevicePrimaryCtxRelease_v2")(0);
    }
    fake.requireClean();
  }
}

TEST_CASE("gpu: a run with a stream of our own waits once, at its end") {
  for (const Vendor &v : vendors) {
    Fake fake(v);
    const std::vector<uint8_t> bytes = gpuBundle(v.target);
    fusert_load_options load{};
    load.struct_size = sizeof load;
    load.target = v.target;
    fusert_model model = 0;
    fusert_context c = 0;
    REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), &load, &model) == FUSERT_OK);
    REQUIRE(fusert_context_create(model, nullptr, &c) == FUSERT_OK);
    const int64_t n = 100;
    REQUIRE(fusert_set_symbols(c, &n, 1) == FUSERT_OK);
    REQUIRE(fusert_run(c, nullptr, 0, nullptr, 0) == FUSERT_OK); // makes its buffers
    const size_t before = std::strlen(fake.state().log);
    REQUIRE(fusert_run(c, nullptr, 0, nullptr, 0) == FUSERT_OK);
    const std::string log = std::string(fake.state().log).substr(before);
    INFO(log);
    const size_t wait = log.find("streamWait");
    REQUIRE(wait != std::string::npos);
    CHECK(log.find("streamWait", wait + 1) == std::string::npos);
    CHECK(log.find("launch", wait) == std::string::npos);
    CHECK(log.find("downloadAsync", wait) == std::string::npos);
    CHECK(log.find("allocate") == std::string::npos);
    fusert_context_destroy(c);
    fusert_unload(model);
    fake.requireClean();
  }
}
