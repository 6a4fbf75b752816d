// Calls that no caller should make: a defined error each, and what was there goes on working.
#include "Bundle/Writer.h"
#include "TestModels.h"
#include "fusec/runtime.h"

#include <cstring>
#include <stdexcept>
#include <thread>

using namespace test;

namespace {

/// An enum of the API with a number that a C caller can put into it.
template <typename Enum> Enum stray(int number) {
  Enum value;
  std::memcpy(&value, &number, sizeof value);
  return value;
}

/// addModel with four elements.
struct Loaded {
  std::vector<uint8_t> bytes = *writeBundle(addModel());
  fusert_model model = 0;
  fusert_context context = 0;
  std::vector<float> x = {1, 2, 3, 4}, w = {1, 1, 1, 1}, y = std::vector<float>(4), s = {0};
  explicit Loaded(const fusert_context_options *options = nullptr) {
    int64_t n = 4;
    REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), nullptr, &model) == FUSERT_OK);
    REQUIRE(fusert_context_create(model, options, &context) == FUSERT_OK);
    REQUIRE(fusert_set_symbols(context, &n, 1) == FUSERT_OK);
  }
  ~Loaded() {
    fusert_context_destroy(context);
    fusert_unload(model);
  }
  fusert_status run(void *yAt = nullptr, void *sAt = nullptr) {
    fusert_buffer inputs[] = {{x.data(), 16}, {w.data(), 16}},
                  outputs[] = {{yAt ? yAt : y.data(), 16}, {sAt ? sAt : s.data(), 4}};
    return fusert_run(context, inputs, 2, outputs, 2);
  }
  void requireGood() {
    y.assign(4, -1);
    REQUIRE(run() == FUSERT_OK);
    REQUIRE(y == std::vector<float>{3, 5, 7, 9});
    REQUIRE(s[0] == 24);
  }
};

} // namespace

TEST_CASE("null for each argument in turn") {
  Loaded l;
  fusert_model m = 0;
  fusert_context c = 0;
  int32_t rank = 1;
  int64_t dims[4];
  size_t bytes;
  void *data;
  const fusert_status statuses[] = {
      fusert_load_file(nullptr, nullptr, &m),
      fusert_load_file("x", nullptr, nullptr),
      fusert_load_memory(nullptr, 8, nullptr, &m),
      fusert_load_memory(l.bytes.data(), l.bytes.size(), nullptr, nullptr),
      fusert_get_model_info(l.model, nullptr),
      fusert_get_input_info(l.model, 0, nullptr),
      fusert_get_output_info(l.model, 0, nullptr),
      fusert_get_symbol_info(l.model, 0, nullptr),
      fusert_context_create(l.model, nullptr, nullptr),
      fusert_set_shapes(l.context, nullptr, 2),
      fusert_set_symbols(l.context, nullptr, 1),
      fusert_get_input_shape(l.context, 0, nullptr, &rank),
      fusert_get_input_shape(l.context, 0, dims, nullptr),
      fusert_get_output_shape(l.context, 0, nullptr, &rank),
      fusert_get_output_shape(l.context, 0, dims, nullptr),
      fusert_workspace_bytes(l.context, nullptr),
      fusert_set_workspace(l.context, nullptr, 4096),
      fusert_input_buffer(l.context, 0, nullptr, &bytes),
      fusert_input_buffer(l.context, 0, &data, nullptr),
      fusert_output_buffer(l.context, 0, nullptr, &bytes),
      fusert_output_buffer(l.context, 0, &data, nullptr),
      fusert_run(l.context, nullptr, 2, nullptr, 2),
      fusert_counters_json(l.context, nullptr),
      fusert_calibrate(nullptr, nullptr, nullptr),
  };
  for (const fusert_status &status : statuses) {
    INFO("number " << &status - statuses);
    CHECK(status == FUSERT_INVALID_ARGUMENT);
  }
  CHECK(c == 0);
  l.requireGood();
}

TEST_CASE("indices that are out of range") {
  Loaded l;
  int32_t rank = 4;
  int64_t dims[4];
  size_t bytes;
  void *data;
  fusert_value_info value{};
  value.struct_size = sizeof value;
  fusert_symbol_info symbol{};
  symbol.struct_size = sizeof symbol;
  for (const size_t index : {size_t{2}, SIZE_MAX}) {
    CHECK(fusert_get_input_info(l.model, index, &value) == FUSERT_INVALID_ARGUMENT);
    CHECK(fusert_get_output_info(l.model, index, &value) == FUSERT_INVALID_ARGUMENT);
    CHECK(fusert_get_symbol_info(l.model, index, &symbol) == FUSERT_INVALID_ARGUMENT);
    CHECK(fusert_get_input_shape(l.context, index, dims, &rank) == FUSERT_INVALID_ARGUMENT);
    CHECK(fusert_get_output_shape(l.context, index, dims, &rank) == FUSERT_INVALID_ARGUMENT);
    CHECK(fusert_input_buffer(l.context, index, &data, &bytes) == FUSERT_INVALID_ARGUMENT);
    CHECK(fusert_output_buffer(l.context, index, &data, &bytes) == FUSERT_INVALID_ARGUMENT);
  }
  rank = 0;
  CHECK(fusert_get_input_shape(l.context, 0, dims, &rank) == FUSERT_INVALID_ARGUMENT);
  CHECK(rank == 1); // what it would take
  CHECK(fusert_dtype_bytes(stray<fusert_dtype>(99)) == 0);
  CHECK(std::string(fusert_status_name(stray<fusert_status>(99))) == "UNKNOWN");
  CHECK(std::string(fusert_status_name(stray<fusert_status>(-1))) == "UNKNOWN");
}

TEST_CASE("option and info structs of older and newer headers") {
  Loaded l;
  struct Newer {
    fusert_context_options known{};
    uint64_t added = 0;
  } newer;
  newer.known.struct_size = sizeof newer;
  fusert_context c = 0;
  REQUIRE(fusert_context_create(l.model, &newer.known, &c) == FUSERT_OK); // what is added is unused
  fusert_context_destroy(c);
  newer.added = 1;
  CHECK(fusert_context_create(l.model, &newer.known, &c) == FUSERT_INVALID_ARGUMENT);
  CHECK(std::string(fusert_last_error()) ==
        "options asks for something that this runtime is too old for");
  fusert_context_options older{};
  older.threads = 1;
  older.counters = 1;
  older.struct_size = offsetof(fusert_context_options, pool);
  older.pool =
      reinterpret_cast<const fusert_thread_pool *>(1); // not of that version: not looked at
  REQUIRE(fusert_context_create(l.model, &older, &c) == FUSERT_OK);
  fusert_context_destroy(c);
  for (const size_t size : {size_t{0}, size_t{7}, SIZE_MAX}) {
    older.struct_size = size;
    CHECK(fusert_context_create(l.model, &older, &c) == FUSERT_INVALID_ARGUMENT);
  }
  struct {
    fusert_model_info info;
    char after[8];
  } room;
  std::memset(static_cast<void *>(&room), 0x5a, sizeof room);
  room.info.struct_size = offsetof(fusert_model_info, target);
  REQUIRE(fusert_get_model_info(l.model, &room.info) == FUSERT_OK);
  CHECK(std::string(room.info.name) == "test");
  const std::string untouched(reinterpret_cast<char *>(&room.info.target), 8);
  CHECK(untouched == std::string(8, 0x5a));
  fusert_load_options load{};
  load.struct_size = sizeof load;
  fusert_model m = 0;
  for (auto edit : {+[](fusert_load_options &o) { o.device = -1; },
                    +[](fusert_load_options &o) { o.verify = stray<fusert_verify>(7); },
                    +[](fusert_load_options &o) { o.weights = stray<fusert_weights>(7); }}) {
    fusert_load_options bad = load;
    edit(bad);
    CHECK(fusert_load_memory(l.bytes.data(), l.bytes.size(), &bad, &m) == FUSERT_INVALID_ARGUMENT);
  }
}

TEST_CASE("buffers that overlap") {
  Loaded l;
  CHECK(l.run(l.y.data(), l.y.data() + 3) == FUSERT_INVALID_ARGUMENT); // output and output
  CHECK(l.run(l.y.data(), l.x.data() + 1) == FUSERT_INVALID_ARGUMENT); // output and input
  l.requireGood();
}

TEST_CASE("calls from inside of callbacks") {
  struct Inside {
    Loaded *loaded = nullptr;
    fusert_status run = FUSERT_OK, destroy = FUSERT_OK, unload = FUSERT_INTERNAL;
    int calls = 0;
  } inside;
  fusert_thread_pool pool{};
  pool.struct_size = sizeof pool;
  pool.width = 2;
  pool.user = &inside;
  pool.parallel = [](void *user, int32_t count, void (*task)(void *, int32_t), void *argument) {
    Inside &i = *static_cast<Inside *>(user);
    ++i.calls;
    i.run = i.loaded->run();
    i.destroy = fusert_context_destroy(i.loaded->context);
    for (int32_t t = 0; t < count; ++t)
      task(argument, t);
  };
  fusert_context_options options{};
  options.struct_size = sizeof options;
  options.pool = &pool;
  Loaded l(&options);
  inside.loaded = &l;
  int64_t n = 100000; // enough for the pool
  REQUIRE(fusert_set_symbols(l.context, &n, 1) == FUSERT_OK);
  REQUIRE(fusert_run(l.context, nullptr, 0, nullptr, 0) == FUSERT_OK);
  CHECK(inside.calls > 0);
  CHECK(inside.run == FUSERT_BUSY);
  CHECK(inside.destroy == FUSERT_BUSY);

  // The log function may use the library, another model included.
  fusert_load_options load{};
  load.struct_size = sizeof load;
  load.log_user = &inside;
  load.log = [](void *user, fusert_log_level, const char *) {
    Inside &i = *static_cast<Inside *>(user);
    fusert_model m = 0;
    if (fusert_load_memory(i.loaded->bytes.data(), i.loaded->bytes.size(), nullptr, &m) ==
        FUSERT_OK)
      i.unload = fusert_unload(m);
  };
  fusert_model m = 0;
  REQUIRE(fusert_load_memory(l.bytes.data(), l.bytes.size(), &load, &m) == FUSERT_OK);
  CHECK(inside.unload == FUSERT_OK);
  fusert_unload(m);
}

TEST_CASE("allocators that give nothing, something crooked, or throw") {
  std::vector<uint8_t> bytes = *writeBundle(addModel());
  fusert_model model = 0;
  REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), nullptr, &model) == FUSERT_OK);
  fusert_allocator memory{};
  memory.struct_size = sizeof memory;
  memory.release = [](void *, void *p, size_t) { free(static_cast<char *>(p) - 8); };
  fusert_context_options options{};
  options.struct_size = sizeof options;
  options.memory = &memory;
  fusert_context c = 0;
  memory.allocate = [](void *, size_t, size_t) -> void * { return nullptr; };
  CHECK(fusert_context_create(model, &options, &c) == FUSERT_NO_MEMORY);
  memory.allocate = [](void *, size_t size, size_t) -> void * {
    return static_cast<char *>(malloc(size + 8)) + 8;
  };
  CHECK(fusert_context_create(model, &options, &c) == FUSERT_NO_MEMORY);
  CHECK(std::string(fusert_last_error()).find("not aligned to 256") != std::string::npos);
  memory.allocate = [](void *, size_t, size_t) -> void * { throw std::runtime_error("no"); };
  CHECK(fusert_context_create(model, &options, &c) == FUSERT_INTERNAL);
  memory.allocate = [](void *, size_t, size_t) -> void * { throw 7; };
  CHECK(fusert_context_create(model, &options, &c) == FUSERT_INTERNAL);
  fusert_unload(model);
}

TEST_CASE("each thread has its own last error") {
  Loaded l;
  fusert_model m = 0;
  REQUIRE(fusert_load_file("/nonexistent", nullptr, &m) == FUSERT_IO_ERROR);
  const std::string mine = fusert_last_error();
  std::thread([&] {
    CHECK(std::string(fusert_last_error()) == "");
    CHECK(fusert_unload(0) == FUSERT_INVALID_HANDLE);
    CHECK(std::string(fusert_last_error()) == "not a loaded model");
  }).join();
  CHECK(fusert_last_error() == mine);
}
