#include "Bundle/Writer.h"
#include "TestModels.h"
#include "fusec/runtime.h"

#include <numeric>

using namespace test;

namespace {

struct Outcome {
  fusert_status status;
  std::string error, counters;
  std::vector<float> out;
};

/// Runs one sim kernel with the inputs x (0, 1, 2, ...) of `size` elements and an output of `outSize`.
Outcome runSim(const std::string &symbol, int64_t size, int64_t outSize, int64_t blocks,
               int32_t units, int32_t inputs = 1) {
  Model m = emptyModel("sim:sm_90");
  m.symbols = {{"n", 0, size, size, 1}};
  Program &p = m.programs[0];
  std::vector<int32_t> arguments;
  std::vector<Param> params;
  for (int32_t i = 0; i < inputs; ++i) {
    p.tensors.push_back(tensor("x" + std::to_string(i), TensorKind::Input, {DimCode::symbol(0)}));
    arguments.push_back(i);
    params.push_back(in);
    addValue(m, true, i);
  }
  p.tensors.push_back(tensor("y", TensorKind::Output, {outSize}));
  arguments.push_back(inputs);
  params.push_back(out);
  addValue(m, false, inputs);
  Kernel k = kernel(symbol, {blocks}, params, {0});
  k.units = units;
  k.lanes = 32;
  k.scratchBytes = 8192;
  p.kernels = {k};
  p.steps = {launch(symbol, 0, arguments)};

  std::vector<uint8_t> bytes = *writeBundle(std::move(m));
  fusert_load_options load{};
  load.struct_size = sizeof load;
  load.target = "sim:sm_90";
  fusert_model model = 0;
  fusert_context context = 0;
  INFO(fusert_last_error());
  REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), &load, &model) == FUSERT_OK);
  fusert_context_options options{};
  options.struct_size = sizeof options;
  options.counters = 1;
  REQUIRE(fusert_context_create(model, &options, &context) == FUSERT_OK);
  REQUIRE(fusert_set_symbols(context, &size, 1) == FUSERT_OK);
  std::vector<float> x(size), y(outSize, -1);
  std::iota(x.begin(), x.end(), 0.f);
  std::vector<fusert_buffer> in(inputs, {x.data(), x.size() * 4});
  fusert_buffer o{y.data(), y.size() * 4};
  Outcome r;
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

void broken(const std::string &symbol, const std::string &text, int32_t units = 2,
            int64_t blocks = 2) {
  const Outcome r = runSim(symbol, 128, 128, blocks, units);
  CHECK(r.status == FUSERT_CHECK_FAILED);
  INFO(r.error);
  CHECK(r.error.rfind("kernel '" + symbol + "' (node 'node_" + symbol + "'), phase 0: ", 0) == 0);
  CHECK(r.error.find(text) != std::string::npos);
}

uint64_t counter(const Outcome &r, const std::string &key) {
  const size_t at = r.counters.find("\"" + key + "\":");
  REQUIRE(at != std::string::npos);
  return std::stoull(r.counters.substr(at + key.size() + 3));
}

} // namespace

TEST_CASE("sim: kernels that keep the rules") {
  Outcome add = runSim("good_add", 1000, 1000, 16, 2, 2);
  INFO(add.error);
  REQUIRE(add.status == FUSERT_OK);
  for (int i = 0; i < 1000; ++i)
    REQUIRE(add.out[i] == 2.f * float(i));
  CHECK(counter(add, "blocks") == 16);
  CHECK(counter(add, "threads") == 1024);
  CHECK(counter(add, "read_bytes") == 8000);
  CHECK(counter(add, "write_bytes") == 4000);

  Outcome reverse = runSim("good_reverse", 128, 128, 2, 2);
  INFO(reverse.error);
  REQUIRE(reverse.status == FUSERT_OK);
  for (int i = 0; i < 128; ++i)
    REQUIRE(reverse.out[i] == float(i / 64 * 64 + 63 - i % 64));
  CHECK(counter(reverse, "barriers") == 2);
  CHECK(counter(reverse, "shared_bytes") == 2 * 128 * 4);
  CHECK(counter(reverse, "shared_conflicts") == 0);

  Outcome unit = runSim("good_unit_reverse", 128, 128, 2, 2);
  INFO(unit.error);
  REQUIRE(unit.status == FUSERT_OK);
  CHECK(unit.out[0] == 31);
  CHECK(counter(unit, "unit_syncs") == 4);

  Outcome sum = runSim("good_sum", 96, 3, 3, 1);
  INFO(sum.error);
  REQUIRE(sum.status == FUSERT_OK);
  CHECK(sum.out == std::vector<float>{496, 1520, 2544});
  CHECK(counter(sum, "shuffles") == 15);
}

TEST_CASE("sim: sectors and bank conflicts") {
  // 1024 elements: 64 threads read every eighth, a sector each; the stores of a unit lie side by side.
  Outcome r = runSim("strided", 1024, 1024, 1, 2);
  INFO(r.error);
  REQUIRE(r.status == FUSERT_OK);
  CHECK(counter(r, "read_sectors") >= 64);
  CHECK(counter(r, "write_sectors") <=
        2 * 5); // 128 bytes a unit, the buffer need not begin with a sector
  CHECK(counter(r, "shared_conflicts") == 4 * 31);
}

TEST_CASE("sim: each broken rule is found and names the kernel") {
  broken("missing_barrier", "read of shared memory that this block has not written yet");
  broken("weak_barrier", "read of shared memory that this block has not written yet");
  broken("overwrite", "race on shared memory");
  broken("out_of_bounds", "read of 4 bytes at offset 512 of parameter 0, which has 512 bytes", 2,
         3);
  broken("divergent_barrier", "while thread 0 waits at barrier 0");
  broken("divergent_shuffle", "is not at the same shuffle", 1);
  broken("uninitialised", "read of shared memory that this block has not written yet");
  broken("block_race", "race on element 0 of parameter 1");
  broken("writes_input", "write to parameter 0, which is read-only");
}

TEST_CASE("sim: a kernel may report bad data") {
  const Outcome r = runSim("fails", 64, 64, 1, 2);
  CHECK(r.status == FUSERT_OUT_OF_RANGE);
  CHECK(r.error == "kernel 'fails' (node 'node_fails'): an index in the data is out of range");
}
