// In which order a GPU's streams do things, where the driver does each as late as it may.
#include "FakeDriver.h"

#include <cstring>

using namespace test;

namespace {
const std::vector<float> kRight(100, 12.f); // of inputs that are 1

std::vector<float> values(const float *p) { return std::vector<float>(p, p + 100); }
} // namespace

TEST_CASE("gpu: weights and the words of grids are there before kernels use them") {
  // Neither waits for the default stream, on which copies of host memory land late.
  for (const Vendor &v : vendors) {
    Fake fake(v);
    Caller caller(fake, v);
    void *stream = caller.stream();
    for (void *used : {static_cast<void *>(nullptr), stream}) {
      Loaded loaded(gridBundle(v.target, 2), v.target, used);
      std::vector<float> x(100, 1), y(100, -1);
      REQUIRE(loaded.run(x.data(), y.data()) == FUSERT_OK);
      CHECK(y == kRight);
    }
    caller.destroy(stream);
    const FakeGpuState s = fake.state();
    INFO(s.firstMisuse);
    CHECK(s.misuses == 0);
  }
}

TEST_CASE("gpu: without a stream, a run comes behind what the default stream has been given") {
  for (const Vendor &v : vendors) {
    Fake fake(v);
    Caller caller(fake, v);
    float *x = caller.memory(FAKE_DEVICE, 0, -1), *y = caller.memory(FAKE_DEVICE, 0, -1);
    {
      Loaded loaded(gpuBundle(v.target), v.target);
      auto *copy = caller.call<int(uint64_t, const void *, size_t, void *)>("cuMemcpyHtoDAsync_v2",
                                                                            "hipMemcpyHtoDAsync");
      for (int turn = 0; turn < 2; ++turn) {
        const std::vector<float> from(100, 1.f + static_cast<float>(turn));
        REQUIRE(copy(reinterpret_cast<uint64_t>(x), from.data(), 400, nullptr) == 0);
        REQUIRE(loaded.run(x, y) == FUSERT_OK);
        CHECK(values(y) == std::vector<float>(100, turn == 0 ? 12.f : 14.f));
      }
      // With host memory nothing needs to be waited for.
      std::vector<float> hostX(100, 1), hostY(100, -1);
      REQUIRE(loaded.run(hostX.data(), hostY.data()) == FUSERT_OK);
      const size_t before = std::strlen(fake.state().log);
      REQUIRE(loaded.run(hostX.data(), hostY.data()) == FUSERT_OK);
      CHECK(std::string(fake.state().log).find("streamWaitEvent", before) == std::string::npos);
    }
    caller.release(x);
    caller.release(y);
    const FakeGpuState s = fake.state();
    INFO(s.firstMisuse);
    CHECK(s.misuses == 0);
  }
}

TEST_CASE("gpu: the default stream by its handle") {
  Fake fake(vendors[0]);
  Loaded loaded(gpuBundle("sm_90"), "sm_90", reinterpret_cast<void *>(1));
  std::vector<float> x(100, 1), y(100, -1);
  REQUIRE(loaded.run(x.data(), y.data()) == FUSERT_OK);
  CHECK(y == kRight);
}

TEST_CASE("gpu: a context outlives the caller's stream, and waits for its runs") {
  for (const Vendor &v : vendors) {
    Fake fake(v);
    {
      Caller caller(fake, v);
      float *x = caller.memory(FAKE_DEVICE, 0, 1), *y = caller.memory(FAKE_DEVICE, 0, -1);
      void *stream = caller.stream();
      {
        Loaded loaded(gpuBundle(v.target), v.target, stream);
        REQUIRE(loaded.run(x, y) == FUSERT_OK);
        CHECK(values(y) == std::vector<float>(100, -1)); // enqueued
        caller.destroy(stream);
      }
      CHECK(values(y) == kRight);
      caller.release(x);
      caller.release(y);
    }
    fake.requireClean();
  }
}

TEST_CASE("gpu: a stream that is captured into a graph is refused") {
  const std::string text =
      "the stream is being captured into a graph, which cannot hold a run of a "
      "model. Make the context and run it outside of the capture";
  for (const Vendor &v : vendors) {
    Fake fake(v);
    {
      Caller caller(fake, v);
      float *x = caller.memory(FAKE_DEVICE, 0, 1), *y = caller.memory(FAKE_DEVICE, 0, -1);
      void *stream = caller.stream();
      auto *capture = fake.call<void(void *, int)>("fakeGpuSetCapture");
      {
        Loaded loaded(gridBundle(v.target, 2), v.target, stream);
        for (const int status : {1, 2}) { // active, invalid
          capture(stream, status);
          const size_t before = std::strlen(fake.state().log);
          CHECK(loaded.run(x, y) == FUSERT_INVALID_ARGUMENT);
          CHECK(fusert_last_error() == text);
          const std::string log = std::string(fake.state().log).substr(before);
          CHECK(log.find("launch") == std::string::npos);
          CHECK(log.find("allocate") == std::string::npos);
          fusert_context_options options{};
          options.struct_size = sizeof options;
          options.stream = stream;
          fusert_context other = 0;
          CHECK(fusert_context_create(loaded.model, &options, &other) == FUSERT_INVALID_ARGUMENT);
          CHECK(fusert_last_error() == text);
        }
        capture(stream, 0);
        CHECK(loaded.run(x, y) == FUSERT_OK);
      }
      CHECK(values(y) == kRight);
      caller.destroy(stream);
      caller.release(x);
      caller.release(y);
    }
    fake.requireClean();
  }
}
