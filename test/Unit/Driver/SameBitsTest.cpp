// The networks under models/tiny give the same bits however their blocks are spread: over one thread or two, or by a
// caller's pool that runs the tasks one after the other, forwards or backwards.
#include "fusec/compiler.h"
#include "fusec/runtime.h"

#include <catch2/catch_all.hpp>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>
#include <unistd.h>

namespace fs = std::filesystem;

namespace {

void require(fusert_status status) {
  INFO(fusert_last_error());
  REQUIRE(status == FUSERT_OK);
}

/// A pool in the caller's own thread.
struct SerialPool {
  bool backwards = false;
  int64_t tasks = 0, widest = 0;

  fusert_thread_pool interface(int width) {
    fusert_thread_pool pool{};
    pool.struct_size = sizeof pool;
    pool.user = this;
    pool.width = width;
    pool.parallel = [](void *user, int32_t count, void (*task)(void *, int32_t), void *argument) {
      auto *self = static_cast<SerialPool *>(user);
      self->tasks += count;
      self->widest = std::max<int64_t>(self->widest, count);
      for (int32_t i = 0; i < count; ++i)
        task(argument, self->backwards ? count - 1 - i : i);
    };
    return pool;
  }
};

class Model {
public:
  explicit Model(const std::string &bundle) {
    require(fusert_load_file(bundle.c_str(), nullptr, &model));
    info.struct_size = sizeof info;
    require(fusert_get_model_info(model, &info));
  }
  ~Model() { fusert_unload(model); }

  /// Bytes of all outputs after `runs` runs on the same inputs: each run splits anew, by the times measured before.
  std::vector<std::string> outputs(int threads, const fusert_thread_pool *pool) const {
    fusert_context_options options{};
    options.struct_size = sizeof options;
    options.threads = threads;
    options.pool = pool;
    fusert_context context = 0;
    require(fusert_context_create(model, &options, &context));
    setSymbols(context);
    fillInputs(context);
    std::vector<std::string> all;
    for (int run = 0; run < 4; ++run) {
      require(fusert_run(context, nullptr, 0, nullptr, 0));
      for (size_t i = 0; i < info.outputs; ++i) {
        void *data = nullptr;
        size_t bytes = 0;
        require(fusert_output_buffer(context, i, &data, &bytes));
        all.emplace_back(static_cast<const char *>(data), bytes);
      }
    }
    require(fusert_context_destroy(context));
    return all;
  }

private:
  void setSymbols(fusert_context context) const {
    std::vector<int64_t> values;
    for (size_t i = 0; i < info.symbols; ++i) {
      fusert_symbol_info symbol{};
      symbol.struct_size = sizeof symbol;
      require(fusert_get_symbol_info(model, i, &symbol));
      values.push_back(std::min<int64_t>(symbol.max, 24));
    }
    if (!values.empty())
      require(fusert_set_symbols(context, values.data(), values.size()));
  }

  void fillInputs(fusert_context context) const {
    std::mt19937 random(7);
    for (size_t i = 0; i < info.inputs; ++i) {
      fusert_value_info value{};
      value.struct_size = sizeof value;
      require(fusert_get_input_info(model, i, &value));
      void *data = nullptr;
      size_t bytes = 0;
      require(fusert_input_buffer(context, i, &data, &bytes));
      if (value.type == FUSERT_F32)
        for (size_t at = 0; at < bytes; at += sizeof(float)) {
          // Of 24 bits, so that sums in another order would round to other values.
          float number = static_cast<float>(random() >> 8) / (1 << 23) - 1;
          std::memcpy(static_cast<char *>(data) + at, &number, sizeof number);
        }
      else if (value.type == FUSERT_I64)
        for (size_t at = 0; at < bytes; at += sizeof(int64_t)) {
          int64_t number = 1 + random() % 3;
          std::memcpy(static_cast<char *>(data) + at, &number, sizeof number);
        }
      else
        FAIL("an input of a type that this test does not fill");
    }
  }

  fusert_model model = 0;
  fusert_model_info info{};
};

} // namespace

TEST_CASE("Tiny networks: the same bits for one thread, two, and a serial pool of the caller's") {
  const fs::path folder =
      fs::temp_directory_path() / ("fusec-same-bits-" + std::to_string(getpid()));
  fs::create_directories(folder);
  int models = 0;
  int64_t tasks = 0, widest = 0;
  for (const fs::directory_entry &entry : fs::directory_iterator(FUSEC_SOURCE_DIR "/models/tiny")) {
    if (entry.path().extension() != ".onnx")
      continue;
    INFO(entry.path().filename());
    fusec::compiler::Options options;
    options.input = entry.path().string();
    options.output = (folder / "bundle").string();
    if (entry.path().stem() == "bert-sym")
      options.dims = {"batch=1..32", "seq=1..64"};
    fusec::compiler::Outcome outcome = fusec::compiler::compile(options);
    for (const fusec::compiler::Error &error : outcome.errors)
      UNSCOPED_INFO(error.line);
    REQUIRE(outcome.ok());
    Model model(options.output);
    const std::vector<std::string> one = model.outputs(1, nullptr);
    REQUIRE_FALSE(one.empty());
    CHECK(model.outputs(2, nullptr) == one);
    for (bool backwards : {false, true}) {
      SerialPool pool{backwards};
      fusert_thread_pool interface = pool.interface(backwards ? 5 : 2);
      CHECK(model.outputs(0, &interface) == one);
      tasks += pool.tasks;
      widest = std::max(widest, pool.widest);
    }
    ++models;
  }
  fs::remove_all(folder);
  CHECK(models == 16);
  CHECK(tasks > 100); // the pools did have work
  CHECK(widest >= 5);
}
