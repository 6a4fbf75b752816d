// Measuring the machine: which figures come, and what is refused. No test looks at how fast it is.
#include "FakeDriver.h"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

namespace {

struct Figure {
  std::string device, what;
  int threads;
  int64_t bytes;
  double lowest, median, highest;
};

fusert_status calibrate(const fusert_calibrate_options &options, std::vector<Figure> &figures) {
  return fusert_calibrate(
      &options,
      [](void *user, const fusert_figure *f) {
        REQUIRE(f->struct_size == sizeof *f);
        static_cast<std::vector<Figure> *>(user)->push_back(
            {f->device, f->what, f->threads, f->bytes, f->lowest, f->median, f->highest});
      },
      &figures);
}

fusert_calibrate_options smallOptions() {
  fusert_calibrate_options o{};
  o.struct_size = sizeof o;
  o.threads = 3;
  o.repetitions = 3;
  o.largest_bytes = 96 << 10;
  return o;
}

} // namespace

TEST_CASE("launches, phases and bandwidths are measured for one thread and for all") {
  std::vector<Figure> figures;
  REQUIRE(calibrate(smallOptions(), figures) == FUSERT_OK);
  std::vector<std::string> names;
  for (const Figure &f : figures) {
    names.push_back(f.what + " " + std::to_string(f.threads) + " " + std::to_string(f.bytes >> 10));
    CHECK(f.device == figures[0].device);
    CHECK(f.lowest > 0);
    CHECK(f.lowest <= f.median);
    CHECK(f.median <= f.highest);
  }
  CHECK(!figures[0].device.empty());
  std::vector<std::string> expected = {"launch 1 0",      "phase 1 0",         "cold_launch 1 0",
                                       "cycle 1 0",       "shared_launch 3 0", "shared_phase 3 0",
                                       "woken_launch 3 0"};
  for (const char *set : {"1 16", "1 32", "1 64", "3 48", "3 96"})
    for (const char *what : {"read", "copy", "stream", "rows", "product"})
      expected.push_back(what + std::string(" ") + set);
  CHECK(names == expected);
}

TEST_CASE("one thread has nobody to share with") {
  fusert_calibrate_options o = smallOptions();
  o.threads = 1;
  o.largest_bytes = 1; // less than the smallest working set
  std::vector<Figure> figures;
  REQUIRE(calibrate(o, figures) == FUSERT_OK);
  REQUIRE(figures.size() == 9);
  CHECK(figures[3].what == "cycle");
  CHECK(figures[4].what == "read");
}

TEST_CASE("what cannot be measured is refused by its name") {
  std::vector<Figure> figures;
  fusert_calibrate_options o = smallOptions();
  for (const char *target : {"hip", "gfx90a", "sim:sm_90", "x86-64-v5"}) {
    o.target = target;
    CHECK(calibrate(o, figures) == FUSERT_UNSUPPORTED);
    CHECK(fusert_last_error() ==
          "'" + std::string(target) +
              "' cannot be measured: only processors can, such as x86-64-v3, and GPUs of NVIDIA");
  }
  CHECK(figures.empty());
}

TEST_CASE("a GPU's launches, barriers and memories are measured") {
  const test::Fake fake(test::vendors[0]);
  fusert_calibrate_options o = smallOptions();
  o.largest_bytes = 300 << 10;
  for (const char *target : {"cuda", "sm_90"}) {
    o.target = target;
    std::vector<Figure> figures;
    REQUIRE(calibrate(o, figures) == FUSERT_OK);
    std::vector<std::string> names;
    for (const Figure &f : figures) {
      names.push_back(f.what + " " + std::to_string(f.bytes >> 10));
      CHECK(f.device == "Fake GPU");
      CHECK(f.threads == 2);
      CHECK(f.lowest > 0);
      CHECK(f.lowest <= f.median);
      CHECK(f.median <= f.highest);
    }
    CHECK(names == std::vector<std::string>{"launch 0", "block_barrier 0", "grid_barrier 0",
                                            "shared 48", "read 128", "copy 128", "read 256",
                                            "copy 256"});
    fake.requireClean();
  }
  // A cache that working sets fit, and a device without cooperative launches.
  o.largest_bytes = 600 << 10;
  fake.call<void(int)>("fakeGpuSetResident")(0);
  std::vector<Figure> figures;
  REQUIRE(calibrate(o, figures) == FUSERT_OK);
  CHECK(figures[2].what == "shared");
  CHECK(figures[3].what == "l2");
  CHECK(figures[3].bytes == 1 << 20);
  o.target = "sm_80";
  CHECK(calibrate(o, figures) == FUSERT_UNSUPPORTED);
  CHECK(fusert_last_error() == std::string("'sm_80' is wanted, GPU number 0 is sm_90"));
  fake.requireClean();
}

TEST_CASE("whatever call of the driver fails, measuring ends and leaves nothing behind") {
  const test::Fake fake(test::vendors[0]);
  fusert_calibrate_options o = smallOptions();
  o.target = "cuda";
  std::vector<Figure> figures;
  for (int call = 1; call <= 16; ++call) {
    fake.call<void()>("fakeGpuReset")();
    fake.failAt(call, 999);
    INFO("call " << call);
    CHECK(calibrate(o, figures) == FUSERT_DEVICE_LOST);
    fake.failAt(0, 0);
    fake.requireClean();
  }
}

TEST_CASE("options that make no sense are refused") {
  std::vector<Figure> figures;
  fusert_calibrate_options bad[5];
  for (fusert_calibrate_options &o : bad)
    o = smallOptions();
  bad[0].threads = -1;
  bad[1].repetitions = -1;
  bad[2].largest_bytes = -1;
  bad[3].struct_size = 1;
  bad[4].threads = 1 << 20;
  for (const fusert_calibrate_options &o : bad) {
    INFO("number " << &o - bad);
    CHECK(calibrate(o, figures) == FUSERT_INVALID_ARGUMENT);
  }
  CHECK(figures.empty());
}
