#include "FakeDriver.h"

using namespace test;

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

TEST_CASE("gpu: phases of one kernel are one launch where the driver holds all blocks at once") {
  const auto launches = [](const Vendor &v, int resident, int64_t blocks) {
    Fake fake(v);
    fake.call<void(int)>("fakeGpuSetResident")(resident);
    CHECK(wholeLife(gridBundle(v.target, blocks), v.target, 2) == FUSERT_OK);
    const std::string log = "\n" + std::string(fake.state().log);
    fake.requireClean();
    std::pair<int, int> count;
    for (size_t at = 0; (at = log.find("\nlaunch", at)) != std::string::npos; ++at)
      ++(log.compare(at, 8, "\nlaunch\n") == 0 ? count.first : count.second);
    return count;
  };
  const Vendor &nvidia = vendors[0], &amd = vendors[1];
  // Two steps, two runs. The grid is cut to what there is room for.
  CHECK(launches(nvidia, 4, 2) == std::pair(0, 4));
  CHECK(launches(nvidia, 1, 100) == std::pair(0, 4));
  CHECK(launches(nvidia, 0, 2) == std::pair(8, 0)); // the driver cannot: phase by phase
  CHECK(launches(amd, 4, 2) == std::pair(8, 0));
}

TEST_CASE("gpu: where the driver refuses blocks that wait for each other, phases are launched one "
          "by one") {
  for (const int error : {720, 801}) {
    Fake fake(vendors[0]);
    fake.call<void(int)>("fakeGpuRefuseCooperative")(error);
    CHECK(wholeLife(gridBundle("sm_90", 2), "sm_90", 2) == FUSERT_OK);
    fake.requireClean();
    const std::string log = fake.state().log;
    const size_t first = log.find("launchCooperative");
    REQUIRE(first != std::string::npos);
    CHECK(log.find("launchCooperative", first + 1) == std::string::npos); // asked once
  }
  Fake fake(vendors[0]);
  fake.call<void(int)>("fakeGpuRefuseCooperative")(719);
  CHECK(wholeLife(gridBundle("sm_90", 2), "sm_90") == FUSERT_DEVICE_LOST);
  fake.requireClean();
}

TEST_CASE("gpu: a function is allowed its shared memory once, when it is loaded") {
  // The fake driver compares what launches give with what kernels take, and with what it was told to allow.
  for (const auto &[grid, allowed] : {std::pair(false, 1), std::pair(true, 2)}) {
    Fake fake(vendors[0]);
    CHECK(wholeLife(*writeBundle(wideModel({"sm_90"}, grid)), "sm_90", 3) == FUSERT_OK);
    fake.requireClean();
    const std::string log = fake.state().log;
    int count = 0;
    for (size_t at = 0; (at = log.find("setFunctionAttribute\n", at)) != std::string::npos; ++at)
      ++count;
    CHECK(count == allowed); // not for the phase that has none
    CHECK((log.find("launchCooperative\n") != std::string::npos) == grid);
  }
  Fake fake(vendors[1]); // no such call
  CHECK(wholeLife(*writeBundle(wideModel({"gfx90a"}, false)), "gfx90a") == FUSERT_OK);
  fake.requireClean();
}

TEST_CASE("gpu: a device with less shared memory than a kernel needs is refused") {
  const std::string lack =
      "a block of kernel 'wide' (node 'node_add') needs 200000 bytes of shared "
      "memory, GPU number 0 has 101376. Compile for this GPU's target";
  Fake fake(vendors[0]);
  fake.call<void(int)>("fakeGpuSetShared")(99 << 10);
  CHECK(wholeLife(*writeBundle(wideModel({"sm_90"}, false)), "sm_90") == FUSERT_UNSUPPORTED);
  CHECK(fusert_last_error() == lack);
  Model m = wideModel({"sm_90", "sm_80"}, true);
  CHECK(wholeLife(*writeBundle(m), "cuda") == FUSERT_UNSUPPORTED);
  CHECK(fusert_last_error() ==
        "GPU number 0 runs none of the bundle's programs (sm_90, sm_80); " + lack);
  // The program for an older architecture may need less.
  m.programs[1] = gpuModel({"sm_80"}, {kGoodImage}).programs[0];
  CHECK(wholeLife(*writeBundle(m), "cuda") == FUSERT_OK);
  fake.requireClean();
  // Enough for a phase, not for all of them in one launch.
  fake.call<void(int)>("fakeGpuSetShared")(200032);
  CHECK(wholeLife(*writeBundle(wideModel({"sm_90"}, false)), "sm_90") == FUSERT_OK);
  CHECK(wholeLife(*writeBundle(wideModel({"sm_90"}, true)), "sm_90") == FUSERT_UNSUPPORTED);
  fake.requireClean();
}

TEST_CASE("gpu: a grid that the driver cannot count is refused") {
  for (const Vendor &v : vendors) {
    Fake fake(v);
    Model m = gpuModel({v.target}, {kGoodImage});
    m.programs[0].kernels[0].grids = {int64_t{1} << 26}; // of 64 threads
    const bool counts64 = v.target[0] == 's';
    CHECK(wholeLife(*writeBundle(m), v.target) == (counts64 ? FUSERT_OK : FUSERT_INVALID_ARGUMENT));
    if (!counts64)
      CHECK(std::string(fusert_last_error()) == "under these shapes kernel 'add' has 67108864 "
                                                "blocks; this GPU takes at most 67108863");
    fake.requireClean();
  }
}

TEST_CASE("gpu: each call may fail; nothing leaks and the next try works") {
  enum Kind { Plain, Grid, Wide };
  for (const Kind kind : {Plain, Grid, Wide})
    for (const Vendor &v : vendors) {
      Fake fake(v);
      const std::vector<uint8_t> bytes = kind == Plain  ? gpuBundle(v.target)
                                         : kind == Grid ? gridBundle(v.target, 2)
                                                        : *writeBundle(wideModel({v.target}, true));
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
