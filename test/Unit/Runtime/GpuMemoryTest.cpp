// Whose memory a caller's pointer leads to.
#include "FakeDriver.h"

#include <cstring>

using namespace test;

namespace {

struct Where {
  Vendor vendor;
  int version; // of the driver: HIP has other numbers for memory since 6
};
const Where wheres[] = {{vendors[0], 12040}, {vendors[1], 50731921}, {vendors[1], 60032830}};

std::vector<float> values(const float *p) { return std::vector<float>(p, p + 100); }

} // namespace

TEST_CASE("gpu: memory of the device is used as it is, pinned memory is copied") {
  for (const Where &w : wheres)
    for (const int device : {0, 1})
      for (const FakeMemory kind : {FAKE_DEVICE, FAKE_PINNED, FAKE_MANAGED}) {
        INFO(w.vendor.target << " " << w.version << ", device " << device << ", memory " << kind);
        Fake fake(w.vendor);
        fake.call<void(int)>("fakeGpuSetDevices")(2);
        fake.call<void(int)>("fakeGpuSetVersion")(w.version);
        {
          Caller caller(fake, w.vendor, device);
          float *x = caller.memory(kind, device, 1), *y = caller.memory(kind, device, -1);
          void *stream = caller.stream();
          {
            Loaded loaded(gpuBundle(w.vendor.target), w.vendor.target, stream, device);
            const size_t before = std::strlen(fake.state().log);
            REQUIRE(loaded.run(x, y) == FUSERT_OK);
            const std::string log = std::string(fake.state().log).substr(before);
            INFO(log);
            const bool copied = log.find("uploadAsync") != std::string::npos &&
                                log.find("downloadAsync") != std::string::npos;
            CHECK(copied == (kind == FAKE_PINNED));
            // A copy ends before the call does.
            CHECK(values(y) == std::vector<float>(100, copied ? 12.f : -1.f));
          }
          CHECK(values(y) == std::vector<float>(100, 12.f));
          caller.destroy(stream);
          caller.release(x);
          caller.release(y);
        }
        fake.requireClean();
      }
}

TEST_CASE("gpu: memory of another device or context is refused by name") {
  for (const Where &w : wheres)
    for (const FakeMemory kind : {FAKE_DEVICE, FAKE_OTHER_CONTEXT}) {
      if (kind == FAKE_OTHER_CONTEXT && w.vendor.target[0] != 's')
        continue; // HIP has no contexts
      Fake fake(w.vendor);
      fake.call<void(int)>("fakeGpuSetDevices")(2);
      fake.call<void(int)>("fakeGpuSetVersion")(w.version);
      {
        Caller caller(fake, w.vendor);
        const int there = kind == FAKE_DEVICE ? 1 : 0;
        float *foreign = caller.memory(kind, there, 1), *mine = caller.memory(FAKE_DEVICE, 0, 1);
        const std::string is =
            kind == FAKE_DEVICE
                ? " is memory of GPU number 1; the model is loaded on GPU number 0"
                : " is memory of another context than the primary one of GPU number 0, in which "
                  "the model is loaded";
        {
          Loaded loaded(gpuBundle(w.vendor.target), w.vendor.target);
          std::vector<float> host(100, 1), y(100, -1);
          for (int turn = 0; turn < 2; ++turn) { // said again where the pointer is the same
            CHECK(loaded.run(foreign, y.data()) == FUSERT_INVALID_ARGUMENT);
            CHECK(fusert_last_error() == "the buffer of input 'x'" + is);
          }
          CHECK(loaded.run(host.data(), foreign) == FUSERT_INVALID_ARGUMENT);
          CHECK(fusert_last_error() == "the buffer of output 'y'" + is);
          CHECK(fusert_set_workspace(loaded.context, foreign, 400) == FUSERT_INVALID_ARGUMENT);
          CHECK(loaded.run(mine, y.data()) == FUSERT_OK);
          CHECK(y == std::vector<float>(100, 12.f));
        }
        caller.release(foreign);
        caller.release(mine);
      }
      fake.requireClean();
    }
}

TEST_CASE("gpu: device memory begins at a multiple of 16 bytes") {
  for (const Vendor &v : vendors) {
    Fake fake(v);
    {
      Caller caller(fake, v);
      auto *x = static_cast<float *>(
          fake.call<void *(FakeMemory, int, size_t)>("fakeGpuAllocate")(FAKE_DEVICE, 0, 432));
      {
        Loaded loaded(gpuBundle(v.target), v.target);
        std::vector<float> host(101, 1), y(101, -1);
        CHECK(loaded.run(x + 1, y.data()) == FUSERT_INVALID_ARGUMENT);
        CHECK(std::string(fusert_last_error()) ==
              "the buffer of input 'x' lies in device memory and must begin at a multiple of 16 "
              "bytes");
        CHECK(loaded.run(x + 4, y.data()) == FUSERT_OK);
        CHECK(loaded.run(host.data() + 1, y.data() + 1) == FUSERT_OK); // copied
        CHECK(values(y.data() + 1) == std::vector<float>(100, 12.f));
      }
      caller.release(x);
    }
    fake.requireClean();
  }
}
