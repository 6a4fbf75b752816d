#include "Bundle/Writer.h"
#include "Runtime/ParallelTrial.h"
#include "TestModels.h"
#include "fusec/runtime.h"

#include <numeric>
#include <xmmintrin.h>

using namespace test;

namespace {

/// A model and a context that end with the test.
struct Loaded {
  fusert_model model = 0;
  fusert_context context = 0;
  std::vector<uint8_t> bytes;
  explicit Loaded(Model m, const fusert_context_options *options = nullptr) {
    Result<std::vector<uint8_t>> written = writeBundle(std::move(m));
    REQUIRE(written.ok());
    bytes = std::move(*written);
    INFO(fusert_last_error());
    REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), nullptr, &model) == FUSERT_OK);
    REQUIRE(fusert_context_create(model, options, &context) == FUSERT_OK);
  }
  ~Loaded() {
    fusert_context_destroy(context);
    fusert_unload(model);
  }
  fusert_status setLength(int64_t n) {
    fusert_shape shapes[2] = {{1, &n}, {1, &n}};
    return fusert_set_shapes(context, shapes, 2);
  }
};

template <typename T> fusert_buffer buffer(std::vector<T> &v) {
  return {v.data(), v.size() * sizeof(T)};
}

/// Runs addModel with n elements and checks the outputs.
void runAdd(Loaded &l, int64_t n) {
  REQUIRE(l.setLength(n) == FUSERT_OK);
  std::vector<float> x(n), w(n), y(n, -1), s(1, -1);
  std::iota(x.begin(), x.end(), 0.f);
  std::iota(w.begin(), w.end(), 1.f);
  fusert_buffer inputs[] = {buffer(x), buffer(w)}, outputs[] = {buffer(y), buffer(s)};
  INFO(fusert_last_error());
  REQUIRE(fusert_run(l.context, inputs, 2, outputs, 2) == FUSERT_OK);
  float total = 0;
  for (int64_t i = 0; i < n; ++i) {
    REQUIRE(y[i] == x[i] + w[i] + x[i]);
    total += y[i];
  }
  if (n < 1000) // exact in float
    CHECK(s[0] == total);
}

} // namespace

TEST_CASE("symbolic shapes, several sizes, one context") {
  for (int threads : {1, 3}) {
    fusert_context_options options{};
    options.struct_size = sizeof options;
    options.threads = threads;
    Loaded l(addModel(), &options);
    CHECK(fusert_run(l.context, nullptr, 0, nullptr, 0) == FUSERT_NOT_READY);
    for (int64_t n : {1, 63, 64, 65, 500, 0, 100000, 7})
      runAdd(l, n);
  }
}

TEST_CASE("the same bits for any number of threads and the caller's pool") {
  auto result = [](const fusert_context_options &options) {
    Loaded l(addModel(), &options);
    const int64_t n = 50000;
    REQUIRE(l.setLength(n) == FUSERT_OK);
    std::vector<float> x(n), y(n), s(1);
    for (int64_t i = 0; i < n; ++i)
      x[i] = 1.f / float(i + 1);
    std::vector<float> w = x;
    fusert_buffer inputs[] = {buffer(x), buffer(w)}, outputs[] = {buffer(y), buffer(s)};
    for (int i = 0; i < 20; ++i)
      REQUIRE(fusert_run(l.context, inputs, 2, outputs, 2) == FUSERT_OK);
    return s[0];
  };
  fusert_context_options one{};
  one.struct_size = sizeof one;
  one.threads = 1;
  fusert_context_options many = one;
  many.threads = 7;
  fusert_thread_pool backwards{};
  backwards.struct_size = sizeof backwards;
  backwards.width = 5;
  int calls = 0;
  backwards.user = &calls;
  backwards.parallel = [](void *user, int32_t count, void (*task)(void *, int32_t),
                          void *argument) {
    ++*static_cast<int *>(user);
    for (int32_t i = count; i-- > 0;)
      task(argument, i);
  };
  fusert_context_options own = one;
  own.pool = &backwards;
  const float expected = result(one);
  CHECK(result(many) == expected);
  CHECK(result(own) == expected);
  CHECK(calls > 0);
}

TEST_CASE("rounds: the same bits for any number of threads and the caller's pool") {
  const int64_t n = 1000, steps = 2 * rt::ParallelTrial::kRuns + 1;
  std::vector<float> x(n), counted(steps), now(n), next(n);
  for (int64_t i = 0; i < n; ++i)
    now[i] = x[i] = 1.f / float(i + 1);
  auto result = [&](int32_t threads, const fusert_thread_pool *pool, int64_t rounds) {
    fusert_context_options options{};
    options.struct_size = sizeof options;
    options.threads = threads;
    options.pool = pool;
    Loaded l(roundsModel(), &options);
    fusert_shape shapes[] = {{1, &n}, {1, &rounds}};
    REQUIRE(fusert_set_shapes(l.context, shapes, 2) == FUSERT_OK);
    std::vector<float> y(n);
    fusert_buffer inputs[] = {buffer(x), {counted.data(), size_t(rounds) * sizeof(float)}};
    fusert_buffer outputs[] = {buffer(y)};
    for (int i = 0; i < 3; ++i)
      REQUIRE(fusert_run(l.context, inputs, 2, outputs, 1) == FUSERT_OK);
    return y;
  };
  fusert_thread_pool backwards{};
  backwards.struct_size = sizeof backwards;
  backwards.width = 3;
  backwards.parallel = [](void *, int32_t count, void (*task)(void *, int32_t), void *argument) {
    for (int32_t i = count; i-- > 0;)
      task(argument, i);
  };
  CHECK(result(2, nullptr, 0) == x);
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t i = 0; i < n; ++i)
      next[i] = now[i] * 0.5f + now[(i + n - 1) % n] * 0.25f + now[(i + 1) % n] * 0.125f;
    now.swap(next);
  }
  for (int32_t threads : {1, 2, 3})
    CHECK(result(threads, nullptr, steps) == now);
  CHECK(result(0, &backwards, steps) == now);
}

TEST_CASE("phases in rounds: the faster way is taken, and tried anew") {
  using rt::ParallelTrial;
  // Cycles alone and on several threads.
  auto sharedAfterTrial = [](int64_t alone, int64_t shared) {
    ParallelTrial trial;
    int64_t trials = 0, before = 0;
    for (int run = 0; run < ParallelTrial::kRuns; ++run) {
      trials += trial.isTrial();
      before = trial.shares();
      // The first run of a way finds other caches than the ones after it.
      trial.ran((trial.shares() ? shared : alone) + (run % ParallelTrial::kTurn == 0 ? 50000 : 0));
    }
    CHECK(trials <= ParallelTrial::kTrials);
    CHECK(trial.isTrial());
    return before == 1;
  };
  CHECK(sharedAfterTrial(40000, 25000));
  CHECK(!sharedAfterTrial(2000, 3000));
  CHECK(sharedAfterTrial(1, ParallelTrial::kLongCycles));
}

TEST_CASE("constants, own buffers, workspace") {
  const float w[4] = {10, 20, 30, 40};
  Model m = constantModel(w);
  m.symbols = {{"n", 0, 4, 8, 1}};
  Loaded l(std::move(m));
  int64_t n = 4;
  fusert_shape shape{1, &n};
  // Symbol n appears in no input's shape: it must be given by value.
  CHECK(fusert_set_shapes(l.context, &shape, 1) == FUSERT_INVALID_ARGUMENT);
  CHECK(std::string(fusert_last_error()) ==
        "size 'n' does not follow from the inputs' shapes: its value must be given by its name");
  REQUIRE(fusert_set_symbols(l.context, &n, 1) == FUSERT_OK);
  void *in = nullptr, *out = nullptr;
  size_t bytes = 0;
  REQUIRE(fusert_input_buffer(l.context, 0, &in, &bytes) == FUSERT_OK);
  REQUIRE(bytes == 16);
  for (int i = 0; i < 4; ++i)
    static_cast<float *>(in)[i] = float(i);
  REQUIRE(fusert_run(l.context, nullptr, 0, nullptr, 0) == FUSERT_OK);
  REQUIRE(fusert_output_buffer(l.context, 0, &out, &bytes) == FUSERT_OK);
  for (int i = 0; i < 4; ++i)
    CHECK(static_cast<float *>(out)[i] == w[i] + float(i));
  for (void *own : {in, out})
    CHECK(reinterpret_cast<uintptr_t>(own) % 4096 == 0);
  REQUIRE(fusert_workspace_bytes(l.context, &bytes) == FUSERT_OK);
  CHECK(bytes == 0);
}

TEST_CASE("a symbol that can have one value only needs no input that tells it") {
  const float w[4] = {10, 20, 30, 40};
  int64_t n = 4;
  fusert_shape shape{1, &n};
  // The second and third have one multiple of the divisor inside the range.
  for (const Symbol &fixed : {Symbol{"n", 4, 4, 4, 1}, {"n", 3, 4, 5, 4}, {"n", 4, 4, 7, 4}}) {
    Model m = constantModel(w);
    m.symbols = {fixed};
    Loaded l(std::move(m));
    CHECK(fusert_set_shapes(l.context, &shape, 1) == FUSERT_OK);
    void *in = nullptr;
    size_t bytes = 0;
    REQUIRE(fusert_input_buffer(l.context, 0, &in, &bytes) == FUSERT_OK);
    CHECK(bytes == 16);
    int64_t wrong = 5;
    fusert_shape other{1, &wrong};
    CHECK(fusert_set_shapes(l.context, &other, 1) == FUSERT_INVALID_ARGUMENT);
  }
}

TEST_CASE("caller's workspace and allocator") {
  struct Counter {
    int live = 0, total = 0;
  } counter;
  fusert_allocator memory{};
  memory.struct_size = sizeof memory;
  memory.user = &counter;
  memory.allocate = [](void *user, size_t bytes, size_t alignment) -> void * {
    auto *c = static_cast<Counter *>(user);
    ++c->live, ++c->total;
    void *p = nullptr;
    return posix_memalign(&p, alignment, bytes) == 0 ? p : nullptr;
  };
  memory.release = [](void *user, void *p, size_t) {
    --static_cast<Counter *>(user)->live;
    free(p);
  };
  fusert_context_options options{};
  options.struct_size = sizeof options;
  options.memory = &memory;
  {
    Loaded l(addModel(), &options);
    runAdd(l, 100);
    CHECK(counter.live > 0);
    size_t bytes = 0;
    REQUIRE(fusert_workspace_bytes(l.context, &bytes) == FUSERT_OK);
    CHECK(bytes == 512); // t (400 bytes) and partial (8 bytes) are never alive together
    alignas(256) static char space[4096];
    CHECK(fusert_set_workspace(l.context, space + 1, 4000) == FUSERT_INVALID_ARGUMENT);
    CHECK(fusert_set_workspace(l.context, space, bytes - 1) == FUSERT_INVALID_ARGUMENT);
    CHECK(fusert_set_workspace(l.context, space, bytes) == FUSERT_OK);
    runAdd(l, 100);
  }
  CHECK(counter.live == 0);

  memory.allocate = [](void *, size_t, size_t) -> void * { return nullptr; };
  fusert_model model = 0;
  fusert_context context = 0;
  std::vector<uint8_t> bytes = *writeBundle(addModel());
  REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), nullptr, &model) == FUSERT_OK);
  CHECK(fusert_context_create(model, &options, &context) == FUSERT_NO_MEMORY);
  fusert_unload(model);
}

TEST_CASE("an index out of range is reported and the context stays usable") {
  Model m = emptyModel();
  m.symbols = {};
  m.symbols.push_back({"size", 3, 3, 3, 1});
  Program &p = m.programs[0];
  p.tensors = {tensor("table", TensorKind::Input, {DimCode::symbol(0)}),
               tensor("i", TensorKind::Input, {}, DType::I64), tensor("y", TensorKind::Output, {})};
  p.kernels = {kernel("gather", {1}, {in, {DType::I64, false}, out}, {0})};
  p.steps = {launch("gather", 0, {0, 1, 2})};
  addValue(m, true, 0);
  addValue(m, true, 1);
  addValue(m, false, 2);
  Loaded l(std::move(m));
  int64_t size = 3;
  REQUIRE(fusert_set_symbols(l.context, &size, 1) == FUSERT_OK);
  std::vector<float> table{1, 2, 3}, y(1);
  std::vector<int64_t> i{3};
  fusert_buffer inputs[] = {buffer(table), buffer(i)}, output = buffer(y);
  CHECK(fusert_run(l.context, inputs, 2, &output, 1) == FUSERT_OUT_OF_RANGE);
  CHECK(std::string(fusert_last_error()) ==
        "kernel 'gather' (node 'node_gather'): an index in the data is out of range");
  i[0] = 1;
  CHECK(fusert_run(l.context, inputs, 2, &output, 1) == FUSERT_OK);
  CHECK(y[0] == 2);
}

TEST_CASE("the floating point environment is ours during a run and the caller's after it") {
  Model m = emptyModel();
  m.symbols.clear();
  Program &p = m.programs[0];
  p.tensors = {tensor("y", TensorKind::Output, {})};
  p.kernels = {kernel("third", {1}, {out})};
  p.steps = {launch("third", 0, {0})};
  addValue(m, false, 0);
  Loaded l(std::move(m));
  std::vector<float> y(1);
  fusert_buffer output = buffer(y);
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(0xdf80); // flush to zero, round up
  const fusert_status status = fusert_run(l.context, nullptr, 0, &output, 1);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(saved);
  CHECK(status == FUSERT_OK);
  CHECK(after == 0xdf80);
  CHECK(y[0] == 0x1.555556p-2f);
}

TEST_CASE("misuse gives defined errors") {
  Loaded l(addModel());
  fusert_context dead = 0;
  REQUIRE(fusert_context_create(l.model, nullptr, &dead) == FUSERT_OK);
  REQUIRE(fusert_context_destroy(dead) == FUSERT_OK);
  CHECK(fusert_context_destroy(dead) == FUSERT_INVALID_HANDLE);
  CHECK(fusert_run(dead, nullptr, 0, nullptr, 0) == FUSERT_INVALID_HANDLE);
  CHECK(fusert_run(l.model, nullptr, 0, nullptr, 0) == FUSERT_INVALID_HANDLE);
  CHECK(fusert_unload(l.context) == FUSERT_INVALID_HANDLE);
  CHECK(fusert_unload(0) == FUSERT_INVALID_HANDLE);
  CHECK(fusert_load_file(nullptr, nullptr, &l.model) == FUSERT_INVALID_ARGUMENT);
  CHECK(fusert_load_file("/nonexistent", nullptr, nullptr) == FUSERT_INVALID_ARGUMENT);
  fusert_model none = 0;
  CHECK(fusert_load_file("/nonexistent", nullptr, &none) == FUSERT_IO_ERROR);
  CHECK(fusert_load_file("/", nullptr, &none) == FUSERT_IO_ERROR);
  CHECK(none == 0);
  CHECK(fusert_set_shapes(l.context, nullptr, 2) == FUSERT_INVALID_ARGUMENT);
  CHECK(fusert_set_symbols(l.context, nullptr, 1) == FUSERT_INVALID_ARGUMENT);
  CHECK(fusert_set_symbols(l.context, nullptr, SIZE_MAX) == FUSERT_INVALID_ARGUMENT);
  CHECK(l.setLength(-1) == FUSERT_INVALID_ARGUMENT);
  CHECK(l.setLength((1 << 20) + 1) == FUSERT_INVALID_ARGUMENT);
  CHECK(std::string(fusert_last_error()) ==
        "'n' is 1048577 (dimension 0 of input 'x'), allowed are 0 to 1048576");
  REQUIRE(l.setLength(4) == FUSERT_OK);
  CHECK(fusert_run(l.context, nullptr, 1, nullptr, 0) == FUSERT_INVALID_ARGUMENT);
  CHECK(std::string(fusert_last_error()) == "inputs is null, given with a count of 1 instead of 0");
  int64_t a = 4, b = 5;
  fusert_shape contradiction[2] = {{1, &a}, {1, &b}};
  CHECK(fusert_set_shapes(l.context, contradiction, 2) == FUSERT_INVALID_ARGUMENT);
  CHECK(std::string(fusert_last_error()) == "dimension 0 of input 'x' is 5 ('n'), given is 4");
  fusert_context_options options{};
  CHECK(fusert_context_create(l.model, &options, &dead) ==
        FUSERT_INVALID_ARGUMENT); // struct_size 0
  options.struct_size = sizeof options;
  options.threads = -1;
  CHECK(fusert_context_create(l.model, &options, &dead) == FUSERT_INVALID_ARGUMENT);

  std::vector<float> x(4), w(4), y(4), s(1), big(9);
  fusert_buffer inputs[] = {buffer(x), buffer(w)}, outputs[] = {buffer(y), buffer(s)};
  CHECK(fusert_run(l.context, inputs, 1, outputs, 2) == FUSERT_INVALID_ARGUMENT);
  CHECK(fusert_run(l.context, nullptr, 2, outputs, 2) == FUSERT_INVALID_ARGUMENT);
  auto withOutput = [&](void *data, size_t bytes) {
    fusert_buffer o[] = {{data, bytes}, outputs[1]};
    return fusert_run(l.context, inputs, 2, o, 2);
  };
  CHECK(withOutput(y.data(), 15) == FUSERT_INVALID_ARGUMENT);
  CHECK(withOutput(reinterpret_cast<char *>(big.data()) + 1, 16) == FUSERT_INVALID_ARGUMENT);
  CHECK(withOutput(x.data(), 16) == FUSERT_INVALID_ARGUMENT);
  CHECK(withOutput(y.data(), 16) == FUSERT_OK); // and after all that it still works
}

TEST_CASE("a model may be unloaded before its contexts") {
  Loaded l(addModel());
  REQUIRE(fusert_unload(l.model) == FUSERT_OK);
  runAdd(l, 10);
}

TEST_CASE("choice of the program") {
  std::vector<uint8_t> future = *writeBundle([] {
    Model m = addModel();
    m.programs[0].target = "x86-64-v9";
    return m;
  }());
  fusert_model model = 0;
  CHECK(fusert_load_memory(future.data(), future.size(), nullptr, &model) == FUSERT_UNSUPPORTED);
  fusert_load_options options{};
  options.struct_size = sizeof options;
  options.target = "sm_90";
  std::vector<uint8_t> plain = *writeBundle(addModel());
  CHECK(fusert_load_memory(plain.data(), plain.size(), &options, &model) == FUSERT_UNSUPPORTED);
  CHECK(std::string(fusert_last_error()).find("it has x86-64-v1") != std::string::npos);

  Model two = addModel();
  Program second = two.programs[0];
  second.target = "x86-64-v2";
  two.programs.push_back(second);
  std::vector<uint8_t> both = *writeBundle(two);
  REQUIRE(fusert_load_memory(both.data(), both.size(), nullptr, &model) == FUSERT_OK);
  fusert_model_info info{};
  info.struct_size = sizeof info;
  REQUIRE(fusert_get_model_info(model, &info) == FUSERT_OK);
  CHECK(std::string(info.target) == "x86-64-v2");
  CHECK(info.inputs == 2);
  fusert_value_info value{};
  value.struct_size = sizeof value;
  REQUIRE(fusert_get_input_info(model, 0, &value) == FUSERT_OK);
  CHECK(std::string(value.dims[0].text) == "n");
  CHECK(value.dims[0].max == 1 << 20);
  CHECK(fusert_get_input_info(model, 2, &value) == FUSERT_INVALID_ARGUMENT);
  fusert_unload(model);
}
