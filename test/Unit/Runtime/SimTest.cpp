#include "Bundle/Writer.h"
#include "TestModels.h"
#include "fusec/runtime.h"

#include <cmath>
#include <numeric>
#include <set>

using namespace test;

namespace {

struct Outcome {
  fusert_status status;
  std::string error, counters;
  std::vector<float> out;
};

struct SimRun {
  int64_t size, outSize, blocks; // of each input x = 0, 1, 2, ...; of the output
  int32_t units;
  int32_t inputs = 1;
  int32_t threads = 1; // of the host
  uint64_t seed = 0;
  int64_t sharedBytes = 8192;
  bool gridBarrier = false; // two phases, the second of one block, and an entry for both
  int32_t align = 128;
  std::vector<int64_t> dynamicShared = {};
  bool waits = false; // the same, the second of as many blocks, which wait for counters
};

/// Runs one sim kernel.
Outcome runSim(const std::string &symbol, const SimRun &run) {
  Model m = emptyModel("sim:sm_90");
  m.symbols = {{"n", 0, run.size, run.size, 1}};
  Program &p = m.programs[0];
  std::vector<int32_t> arguments;
  std::vector<Param> params;
  for (int32_t i = 0; i < run.inputs; ++i) {
    p.tensors.push_back(tensor("x" + std::to_string(i), TensorKind::Input, {DimCode::symbol(0)}));
    arguments.push_back(i);
    params.push_back(in);
    addValue(m, true, i);
  }
  p.tensors.push_back(tensor("y", TensorKind::Output, {run.outSize}));
  arguments.push_back(run.inputs);
  params.push_back(out);
  addValue(m, false, run.inputs);
  Kernel k = kernel(symbol, {run.blocks}, params, {0});
  k.units = run.units;
  k.lanes = 32;
  k.scratchBytes = run.sharedBytes;
  k.sharedAlign = run.align;
  k.dynamicShared = run.dynamicShared;
  p.maxDynamicShared = 227 << 10;
  k.gridBarrier = run.gridBarrier || run.waits;
  k.waits = run.waits;
  if (k.gridBarrier)
    k.grids.emplace_back(run.waits ? run.blocks : 1);
  p.kernels = {k};
  p.steps = {launch(symbol, 0, arguments)};

  std::vector<uint8_t> bytes = *writeBundle(std::move(m));
  fusert_load_options load{};
  load.struct_size = sizeof load;
  load.target = "sim:sm_90";
  fusert_model model = 0;
  fusert_context context = 0;
  Outcome r;
  r.status = fusert_load_memory(bytes.data(), bytes.size(), &load, &model);
  if (r.status != FUSERT_OK) {
    r.error = fusert_last_error();
    return r;
  }
  fusert_context_options options{};
  options.struct_size = sizeof options;
  options.counters = 1;
  options.threads = run.threads;
  options.sim_seed = run.seed;
  REQUIRE(fusert_context_create(model, &options, &context) == FUSERT_OK);
  REQUIRE(fusert_set_symbols(context, &run.size, 1) == FUSERT_OK);
  std::vector<float> x(run.size), y(run.outSize, 0);
  std::iota(x.begin(), x.end(), 0.f);
  std::vector<fusert_buffer> in(run.inputs, {x.data(), x.size() * 4});
  fusert_buffer o{y.data(), y.size() * 4};
  r.status = fusert_run(context, in.data(), in.size(), &o, 1);
  r.error = r.status == FUSERT_OK ? "" : fusert_last_error();
  const char *json = nullptr;
  REQUIRE(fusert_counters_json(context, &json) == FUSERT_OK);
  r.counters = json;
  r.out = y;
  fusert_context_destroy(context);
  fusert_unload(model);
  return r;
}

/// The rule is found broken in order, in shuffled orders (where what is found first may be another side of it) and on
/// two threads.
void broken(const std::string &symbol, const std::string &inOrder, const std::string &shuffled,
            int32_t units = 2, int64_t blocks = 2) {
  for (const uint64_t seed : {0, 1, 2, 3})
    for (const int32_t threads : {1, 2}) {
      const Outcome r = runSim(symbol, {.size = 128,
                                        .outSize = 128,
                                        .blocks = blocks,
                                        .units = units,
                                        .threads = threads,
                                        .seed = seed});
      CHECK(r.status == FUSERT_CHECK_FAILED);
      INFO(r.error << "\nthreads " << threads << ", seed " << seed);
      CHECK(r.error.rfind("kernel '" + symbol + "' (node 'node_" + symbol + "'), phase 0: ", 0) ==
            0);
      CHECK(r.error.find(seed == 0 ? inOrder : shuffled) != std::string::npos);
    }
}

uint64_t counter(const Outcome &r, const std::string &key) {
  const size_t at = r.counters.find("\"" + key + "\":");
  REQUIRE(at != std::string::npos);
  return std::stoull(r.counters.substr(at + key.size() + 3));
}

} // namespace

TEST_CASE("sim: kernels that keep the rules") {
  Outcome add = runSim("good_add", {1000, 1000, 16, 2, 2});
  INFO(add.error);
  REQUIRE(add.status == FUSERT_OK);
  for (int i = 0; i < 1000; ++i)
    REQUIRE(add.out[i] == 2.f * float(i));
  CHECK(counter(add, "blocks") == 16);
  CHECK(counter(add, "threads") == 1024);
  CHECK(counter(add, "read_bytes") == 8000);
  CHECK(counter(add, "write_bytes") == 4000);

  Outcome reverse = runSim("good_reverse", {128, 128, 2, 2});
  INFO(reverse.error);
  REQUIRE(reverse.status == FUSERT_OK);
  for (int i = 0; i < 128; ++i)
    REQUIRE(reverse.out[i] == float(i / 64 * 64 + 63 - i % 64));
  CHECK(counter(reverse, "barriers") == 2);
  CHECK(counter(reverse, "shared_bytes") == 2 * 128 * 4);
  CHECK(counter(reverse, "shared_conflicts") == 0);

  Outcome unit = runSim("good_unit_reverse", {128, 128, 2, 2});
  INFO(unit.error);
  REQUIRE(unit.status == FUSERT_OK);
  CHECK(unit.out[0] == 31);
  CHECK(counter(unit, "unit_syncs") == 4);

  Outcome sum = runSim("good_sum", {96, 3, 3, 1});
  INFO(sum.error);
  REQUIRE(sum.status == FUSERT_OK);
  CHECK(sum.out == std::vector<float>{496, 1520, 2544});
  CHECK(counter(sum, "shuffles") == 15);
}

TEST_CASE("sim: sectors and bank conflicts") {
  // 1024 elements: 64 threads read every eighth, a sector each; the stores of a unit lie side by side.
  Outcome r = runSim("strided", {1024, 1024, 1, 2});
  INFO(r.error);
  REQUIRE(r.status == FUSERT_OK);
  CHECK(counter(r, "read_sectors") == 64);
  CHECK(counter(r, "write_sectors") == 2 * 4); // 128 bytes a unit
  CHECK(counter(r, "tile_sectors") == 64 + 8);
  CHECK(counter(r, "shared_conflicts") == 4 * 31);
  // Threads that have no part in an iteration are back in the next one.
  r = runSim("late", {512, 64, 1, 2});
  CHECK(counter(r, "read_sectors") == 8 * 64 / 8);
}

TEST_CASE("sim: each broken rule is found and names the kernel") {
  const std::string unwritten = "read of shared memory that this block has not written yet",
                    sharedRace = "race on shared memory", shared = "shared memory";
  broken("missing_barrier", unwritten, shared);
  broken("weak_barrier", unwritten, shared);
  broken("unit_race", unwritten, shared);
  broken("overwrite", sharedRace, sharedRace);
  broken("uninitialised", unwritten, unwritten);
  const std::string outside = " of parameter 0, which has 512 bytes";
  broken("out_of_bounds", "read of 4 bytes at offset 512" + outside, outside, 2, 3);
  const std::string barrier = " while thread 0 waits at barrier 0";
  broken("divergent_barrier", barrier, barrier);
  broken("divergent_shuffle", "is not at the same shuffle", "is not at the same shuffle", 1);
  broken("block_race", "race on element ", "race on element ");
  broken("far_race", "race on element 0 of parameter 1 ", "race on element 0 of parameter 1 ");
  broken("far_read", "race on element ", "race on element ");
  broken("writes_input", "write to parameter 0, which is read-only",
         "write to parameter 0, which is read-only");
}

TEST_CASE("sim: phases of one kernel with a barrier of the grid between them") {
  const auto run = [](const std::string &symbol, int64_t size, uint64_t seed = 0) {
    return runSim(symbol, {.size = size,
                           .outSize = size,
                           .blocks = size / 64,
                           .units = 2,
                           .seed = seed,
                           .gridBarrier = true});
  };
  // With a seed the phases run one after the other, 8 blocks and 1; else three blocks share both.
  for (const uint64_t seed : {0, 1, 2}) {
    const Outcome r = run("grid_last", 512, seed);
    INFO(r.error);
    REQUIRE(r.status == FUSERT_OK);
    CHECK(r.out[0] == 511);
    for (int i = 1; i < 512; ++i)
      REQUIRE(r.out[i] == float(i));
    CHECK(counter(r, "blocks") == (seed == 0 ? 3 : 9));
  }
  const auto refused = [&](const std::string &symbol, const std::string &text) {
    const Outcome r = run(symbol, 128);
    CHECK(r.status == FUSERT_CHECK_FAILED);
    CHECK(r.error == "kernel '" + symbol + "' (node 'node_" + symbol + "'), phase 0: " + text);
  };
  refused("grid_race",
          "race on element 127 of parameter 1 between blocks 0 and 1, which may run in "
          "any order");
  refused("grid_deadlock",
          "deadlock: block 0 waits for the grid at barrier 2, where block 1 does not come");
  refused("grid_diverges",
          "block 0: thread 32 waits at barrier 3 while thread 0 waits at barrier 2");
  const Outcome alone = runSim("grid_in_phase", {64, 64, 1, 2});
  CHECK(alone.status == FUSERT_CHECK_FAILED);
  CHECK(alone.error == "kernel 'grid_in_phase' (node 'node_grid_in_phase'), phase 0: block 0 waits "
                       "for the grid in an entry for one phase, where blocks run in any order");
}

TEST_CASE("sim: phases that wait for counters") {
  const auto run = [](const std::string &symbol, uint64_t seed) {
    return runSim(
        symbol,
        {.size = 512, .outSize = 1024, .blocks = 8, .units = 2, .seed = seed, .waits = true});
  };
  for (const char *symbol : {"counted", "counted_range"})
    for (uint64_t seed = 0; seed < 24; ++seed) {
      const Outcome r = run(symbol, seed);
      INFO(r.error << " seed " << seed);
      REQUIRE(r.status == FUSERT_OK);
      for (int i = 0; i < 512; ++i)
        REQUIRE(r.out[512 + i] == float(i + (i + 64) % 512));
    }
  // Whatever the order of the blocks: a wait that happens to come late enough is missing all the same. Some of the
  // seeds run the phases apart, where nothing waits.
  const auto refused = [&](const std::string &symbol, const std::string &text) {
    int found = 0;
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const Outcome r = run(symbol, seed);
      INFO(symbol << " seed " << seed << ": " << r.error);
      CHECK((r.status == FUSERT_CHECK_FAILED || (seed > 0 && r.status == FUSERT_OK)));
      found += r.error.find(text) != std::string::npos;
      CHECK((r.status == FUSERT_OK || r.error.find(text) != std::string::npos));
    }
    CHECK(found > 2);
  };
  refused("counted_missing", "with no counter between them");
  refused("counted_unsynced", "with no counter between them");
  refused("counted_never", "waits for 2 signals of each of the counters 0 to 7, which do not come");
  refused("counted_stranger", "wait for counters -1 to -1");
  refused("counted_early", "for 1 signals of");
}

TEST_CASE("sim: a kernel may report bad data") {
  const Outcome r = runSim("fails", {64, 64, 1, 2});
  CHECK(r.status == FUSERT_OUT_OF_RANGE);
  CHECK(r.error == "kernel 'fails' (node 'node_fails'): an index in the data is out of range");
}

TEST_CASE("sim: a block that the device would refuse") {
  const Outcome memory =
      runSim("good_reverse",
             {.size = 128, .outSize = 128, .blocks = 2, .units = 2, .sharedBytes = (48 << 10) + 1});
  CHECK(memory.status == FUSERT_CHECK_FAILED);
  CHECK(memory.error == "kernel 'good_reverse' (node 'node_good_reverse'): a block has 49153 bytes "
                        "of shared memory, 'sim:sm_90' allows 49152");
  const int64_t most = 227 << 10;
  const auto reverse = [](int64_t bytes, int64_t given) {
    return runSim("good_reverse", {.size = 128,
                                   .outSize = 128,
                                   .blocks = 2,
                                   .units = 2,
                                   .sharedBytes = bytes,
                                   .dynamicShared = {given}});
  };
  CHECK(reverse(most, most).status == FUSERT_OK);
  CHECK(reverse(most + 1, most).error ==
        "kernel 'good_reverse' (node 'node_good_reverse'): a block has 232449 bytes of shared "
        "memory, 'sim:sm_90' allows 232448");
  // A phase has what its launch gives, not what the kernel's others have.
  CHECK(reverse(most, 256).status == FUSERT_OK);
  CHECK(reverse(most, 252).error.find("of shared memory, which has 252 bytes") !=
        std::string::npos);
  Model m = emptyModel("sim:sm_90");
  Program &p = m.programs[0];
  m.symbols = {{"n", 64, 64, 64, 1}};
  p.maxBlockThreads = 32;
  p.tensors = {tensor("x", TensorKind::Input, {64}), tensor("y", TensorKind::Output, {64})};
  addValue(m, true, 0);
  addValue(m, false, 1);
  p.kernels = {kernel("good_reverse", {1}, {in, out}, {0})};
  p.kernels[0].units = 2;
  p.kernels[0].lanes = 32;
  p.kernels[0].scratchBytes = 256;
  p.steps = {launch("s", 0, {0, 1})};
  const auto load = [&] {
    const std::vector<uint8_t> bytes = *writeBundle(m);
    fusert_load_options options{};
    options.struct_size = sizeof options;
    options.target = "sim:sm_90";
    fusert_model model = 0;
    const fusert_status status = fusert_load_memory(bytes.data(), bytes.size(), &options, &model);
    if (status == FUSERT_OK)
      fusert_unload(model);
    return status;
  };
  CHECK(load() == FUSERT_CHECK_FAILED);
  CHECK(std::string(fusert_last_error()) == "kernel 'good_reverse' (node 'node_good_reverse'): a "
                                            "block has 64 threads, 'sim:sm_90' allows 32");
  p.maxBlockThreads = 64;
  CHECK(load() == FUSERT_OK);
}

TEST_CASE("sim: shared memory is aligned as the kernel says, and no better") {
  for (const int32_t align : {128, 256, 1024}) {
    const Outcome r =
        runSim("alignment", {.size = 64, .outSize = 64, .blocks = 1, .units = 2, .align = align});
    REQUIRE(r.status == FUSERT_OK);
    CHECK(r.out == std::vector<float>(64, float(align)));
  }
}

TEST_CASE("sim: a seed changes the order, and nothing else of a kernel that keeps the rules") {
  const auto order = [](const char *kernel, uint64_t seed, int64_t blocks, int32_t units) {
    const Outcome r =
        runSim(kernel, {.size = 65, .outSize = 65, .blocks = blocks, .units = units, .seed = seed});
    INFO(r.error);
    REQUIRE(r.status == FUSERT_OK);
    return r.out;
  };
  for (const auto &[kernel, blocks, units] :
       {std::tuple{"block_order", 64, 1}, std::tuple{"thread_order", 1, 2}}) {
    std::vector<float> inOrder(65);
    std::iota(inOrder.begin(), inOrder.end(), 0.f);
    CHECK(order(kernel, 0, blocks, units) == inOrder);
    const std::vector<float> one = order(kernel, 1, blocks, units);
    CHECK(one != inOrder);
    CHECK(order(kernel, 1, blocks, units) == one);
    CHECK(order(kernel, 2, blocks, units) != one);
    CHECK(std::set<float>(one.begin(), one.end()).size() == 65);
  }
  for (const auto &[kernel, run] :
       {std::pair{"good_add", SimRun{1000, 1000, 16, 2, 2}},
        std::pair{"good_reverse", SimRun{128, 128, 2, 2}},
        std::pair{"good_unit_reverse", SimRun{128, 128, 2, 2}},
        std::pair{"good_sum", SimRun{96, 3, 3, 1}}, std::pair{"strided", SimRun{1024, 64, 1, 2}},
        std::pair{"three_flops", SimRun{128, 128, 2, 2}}}) {
    const Outcome expected = runSim(kernel, run);
    REQUIRE(expected.status == FUSERT_OK);
    for (uint64_t seed = 0; seed < 20; ++seed)
      for (const int32_t threads : {1, 2, 3, 7}) {
        SimRun other = run;
        other.seed = seed;
        other.threads = threads;
        const Outcome r = runSim(kernel, other);
        INFO(kernel << ", seed " << seed << ", threads " << threads << ": " << r.error);
        REQUIRE(r.status == FUSERT_OK);
        REQUIRE(r.out == expected.out);
        REQUIRE(r.counters == expected.counters);
      }
  }
}

TEST_CASE("sim: what no kernel writes is poison") {
  const Outcome r = runSim("half", {.size = 128, .outSize = 128, .blocks = 2, .units = 2});
  INFO(r.error);
  REQUIRE(r.status == FUSERT_OK);
  for (int i = 0; i < 128; ++i)
    REQUIRE((i < 64 ? r.out[i] == float(i) : std::isnan(r.out[i])));

  // The same by way of a temporary, run again and again: nothing of an earlier run shows.
  Model m = emptyModel("sim:sm_90");
  Program &p = m.programs[0];
  m.symbols = {{"n", 128, 128, 128, 1}};
  p.tensors = {tensor("x", TensorKind::Input, {128}), tensor("t", TensorKind::Temp, {128}),
               tensor("y", TensorKind::Output, {128})};
  addValue(m, true, 0);
  addValue(m, false, 2);
  p.kernels = {kernel("half", {2}, {in, out}, {0}), kernel("good_add", {2}, {in, in, out}, {0})};
  for (Kernel &k : p.kernels)
    k.units = 2, k.lanes = 32;
  p.steps = {launch("half", 0, {0, 1}), launch("add", 1, {0, 1, 2})};
  const std::vector<uint8_t> bytes = *writeBundle(std::move(m));
  fusert_load_options load{};
  load.struct_size = sizeof load;
  load.target = "sim:sm_90";
  fusert_model model = 0;
  fusert_context context = 0;
  REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), &load, &model) == FUSERT_OK);
  REQUIRE(fusert_context_create(model, nullptr, &context) == FUSERT_OK);
  const int64_t n = 128;
  REQUIRE(fusert_set_symbols(context, &n, 1) == FUSERT_OK);
  for (int run = 0; run < 3; ++run) {
    std::vector<float> x(128, 1), y(128, 0);
    fusert_buffer input{x.data(), 512}, output{y.data(), 512};
    REQUIRE(fusert_run(context, &input, 1, &output, 1) == FUSERT_OK);
    for (int i = 0; i < 128; ++i)
      REQUIRE((i < 64 ? y[i] == 2 : std::isnan(y[i])));
  }
  fusert_context_destroy(context);
  fusert_unload(model);
}

TEST_CASE("sim: flops") {
  const Outcome r = runSim("three_flops", {.size = 128, .outSize = 128, .blocks = 2, .units = 2});
  REQUIRE(r.status == FUSERT_OK);
  CHECK(counter(r, "flops") == 3 * 128);
}

TEST_CASE("a seed is for sim targets") {
  const std::vector<uint8_t> bytes = *writeBundle(addModel());
  fusert_model model = 0;
  fusert_context context = 0;
  REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), nullptr, &model) == FUSERT_OK);
  fusert_context_options options{};
  options.struct_size = sizeof options;
  options.sim_seed = 1;
  CHECK(fusert_context_create(model, &options, &context) == FUSERT_INVALID_ARGUMENT);
  CHECK(std::string(fusert_last_error()) == "a seed is for sim targets");
  fusert_unload(model);
}
