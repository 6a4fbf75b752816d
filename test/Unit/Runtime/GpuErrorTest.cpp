// What the drivers' error numbers do to a model, and which library stands for a driver.
#include "FakeDriver.h"
#include "Runtime/GpuApi.h"

#include <algorithm>
#include <filesystem>
#include <unistd.h>

using namespace test;

TEST_CASE("gpu: what an error of the driver means") {
  using namespace fusec::rt;
  const std::pair<fusert_status, std::vector<int>> meanings[] = {
      {FUSERT_NO_MEMORY, {2}},
      {FUSERT_UNAVAILABLE,
       {3, 4, 34, 35, 36, 46, 100, 101, 102, 224, 802, 803, 804, 805, 806, 807, 808, 809}},
      {FUSERT_UNSUPPORTED, {200, 209, 218, 221, 222, 223, 225, 301}},
      {FUSERT_DEVICE_LOST,
       {214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911, 999}},
      {FUSERT_DEVICE_ERROR, {1, 201, 400, 500, 701, 720, 800, 801, 900, 906, 908, 12345}},
  };
  for (const auto &[status, numbers] : meanings)
    for (const int n : numbers) {
      INFO(n);
      CHECK(statusOfGpuError(n) == status);
      CHECK(isStickyGpuError(n) == (status == FUSERT_DEVICE_LOST));
      CHECK(isImageGpuError(n) == (status == FUSERT_UNSUPPORTED));
    }
  CHECK(gpuErrorText(700) == "driver error 700 (illegal address)");
  CHECK(gpuErrorText(12345) == "driver error 12345");
}

TEST_CASE("gpu: errors that end a process stay, others do not") {
  Fake fake(vendors[0]);
  const auto after = [&](int error) {
    fake.call<void()>("fakeGpuReset")();
    Loaded loaded(gpuBundle("sm_90"), "sm_90");
    std::vector<float> x(100, 1), y(100, -1);
    REQUIRE(loaded.run(x.data(), y.data()) == FUSERT_OK);
    fake.failAt(3, error); // a call inside of the run
    REQUIRE(loaded.run(x.data(), y.data()) != FUSERT_OK);
    fake.failAt(0, 0);
    return loaded.run(x.data(), y.data());
  };
  for (const int error : {226, 721, 810})
    CHECK(after(error) == FUSERT_DEVICE_LOST);
  for (const int error : {46, 805})
    CHECK(after(error) == FUSERT_OK);
}

TEST_CASE("gpu: a checked program tells which kernel failed") {
  for (const Vendor &v : vendors) {
    Fake fake(v);
    Model m = gpuModel({v.target}, {kGoodImage});
    m.programs[0].checked = true;
    Loaded loaded(*writeBundle(m), v.target);
    std::vector<float> x(100, 1), y(100, -1);
    REQUIRE(loaded.run(x.data(), y.data()) == FUSERT_OK); // makes its buffers
    CHECK(y == std::vector<float>(100, 12.f));
    const size_t before = std::string(fake.state().log).size();
    REQUIRE(loaded.run(x.data(), y.data()) == FUSERT_OK);
    const std::string log = std::string(fake.state().log).substr(before);
    fake.failAt(
        static_cast<int>(1 + std::count(log.begin(), log.begin() + log.find("streamWait"), '\n')),
        700);
    CHECK(loaded.run(x.data(), y.data()) == FUSERT_DEVICE_LOST);
    CHECK(std::string(fusert_last_error()) ==
          "kernel 'add' failed: driver error 700 (illegal address)");
    fake.failAt(0, 0);
  }
}

TEST_CASE("gpu: an image that a driver may not compile is followed by the next one") {
  Fake fake(vendors[0]);
  const std::vector<uint8_t> bytes = *writeBundle(gpuModel({"sm_90"}, {kGoodImage, kGoodImage}));
  REQUIRE(wholeLife(bytes, "sm_90") == FUSERT_OK);
  const std::string log = fake.state().log;
  const auto call = 1 + std::count(log.begin(), log.begin() + log.find("moduleLoad\n"), '\n');
  for (const int error : {221, 222, 223}) {
    fake.call<void()>("fakeGpuReset")();
    fake.failAt(static_cast<int>(call), error);
    CHECK(wholeLife(bytes, "sm_90") == FUSERT_OK);
  }
  fake.requireClean();
}

TEST_CASE("gpu: a driver's library that is loaded already comes first, then the newest") {
  using namespace fusec::rt;
  const std::string loaded = TEST_FAKE_KERNELS;
  const std::string other = "/tmp/fusec-" + std::to_string(getpid()) + ".so";
  std::filesystem::copy_file(loaded, other, std::filesystem::copy_options::overwrite_existing);
  void *const handle = dlopen(loaded.c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(handle);
  const char *names[] = {"libfusec-no-such.so", other.c_str(), loaded.c_str(), nullptr};
  CHECK(openFirst(names) == handle);
  names[2] = nullptr;
  void *const second = openFirst(names);
  CHECK(second != nullptr);
  CHECK(second != handle);
  names[1] = nullptr;
  CHECK(openFirst(names) == nullptr);
  std::filesystem::remove(other);

  const char *const *amd = driverLibraryNames(GpuVendor::Amd);
  CHECK(amd[0] == std::string("libamdhip64.so.7"));
  CHECK(amd[3] == std::string("libamdhip64.so"));
}
