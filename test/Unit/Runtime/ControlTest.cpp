#include "Bundle/Writer.h"
#include "TestModels.h"
#include "fusec/runtime.h"

#include <atomic>
#include <thread>

using namespace test;

namespace {

/// A model whose tensors are all f32 scalars, except where said; kernel 0 is add, kernel 1 greater.
struct ScalarModel {
  Model model = emptyModel();
  Program &p = model.programs[0];
  ScalarModel() {
    model.symbols = {{"n", 1, 1, 1, 1}};
    p.kernels = {kernel("add", {1}, {in, in, out}, {0}),
                 kernel("greater", {1}, {in, in, {DType::Bool, true}})};
  }
  int32_t add(const std::string &name, TensorKind kind, DType type = DType::F32) {
    p.tensors.push_back(tensor(name, kind, {}, type));
    const auto id = static_cast<int32_t>(p.tensors.size() - 1);
    if (kind == TensorKind::Input || kind == TensorKind::Output)
      addValue(model, kind == TensorKind::Input, id);
    return id;
  }
  /// Runs with these f32 inputs, or i64 where the tensor is.
  std::vector<float> run(const std::vector<double> &values) {
    Result<std::vector<uint8_t>> bytes = writeBundle(model);
    INFO((bytes.ok() ? "" : bytes.errors()[0].where + bytes.errors()[0].text));
    REQUIRE(bytes.ok());
    fusert_model m = 0;
    fusert_context c = 0;
    REQUIRE(fusert_load_memory(bytes->data(), bytes->size(), nullptr, &m) == FUSERT_OK);
    REQUIRE(fusert_context_create(m, nullptr, &c) == FUSERT_OK);
    int64_t one = 1;
    REQUIRE(fusert_set_symbols(c, &one, 1) == FUSERT_OK);
    std::vector<fusert_buffer> inputs, outputs;
    std::vector<float> floats(values.begin(), values.end()), results(model.outputs.size(), -99);
    std::vector<int64_t> ints(values.begin(), values.end());
    for (size_t i = 0; i < values.size(); ++i)
      inputs.push_back(model.inputs[i].type == DType::I64 ? fusert_buffer{&ints[i], 8}
                                                          : fusert_buffer{&floats[i], 4});
    for (float &r : results)
      outputs.push_back({&r, 4});
    REQUIRE(fusert_run(c, inputs.data(), inputs.size(), outputs.data(), outputs.size()) ==
            FUSERT_OK);
    fusert_context_destroy(c);
    fusert_unload(m);
    return results;
  }
};

} // namespace

TEST_CASE("If takes the branch that the data says") {
  ScalarModel m;
  const int32_t a = m.add("a", TensorKind::Input), b = m.add("b", TensorKind::Input);
  const int32_t flag = m.add("flag", TensorKind::Temp, DType::Bool),
                y = m.add("y", TensorKind::Output);
  const int32_t t = m.add("t", TensorKind::Temp), twice = m.add("twice", TensorKind::Temp);
  Step branch;
  branch.kind = StepKind::If;
  branch.condition = flag;
  branch.thenSteps = {launch("sum", 0, {a, b, t})};
  branch.thenCopies = {{t, y}};
  branch.elseSteps = {launch("double", 0, {b, b, twice})};
  branch.elseCopies = {{twice, y}};
  m.p.steps = {launch("compare", 1, {a, b, flag}), branch};
  CHECK(m.run({5, 2}) == std::vector<float>{7});
  CHECK(m.run({1, 2}) == std::vector<float>{4});
}

TEST_CASE("Where takes the steps that the shapes say, one within each side of another") {
  ScalarModel m;
  m.model.symbols.push_back({"rows", 1, 1, 1 << 20, 1});
  m.model.symbols.push_back({"columns", 1, 1, 1 << 20, 1});
  const int32_t a = m.add("a", TensorKind::Input), b = m.add("b", TensorKind::Input),
                y = m.add("y", TensorKind::Output), t = m.add("t", TensorKind::Temp),
                u = m.add("u", TensorKind::Temp), v = m.add("v", TensorKind::Temp);
  auto where = [](const char *name, SymbolId symbol, std::vector<Step> ones,
                  std::vector<Step> others) {
    Step step;
    step.kind = StepKind::Where;
    step.name = name;
    step.guards = {{DimCode(DimExpr(1) - DimExpr::symbol(symbol))}};
    step.thenSteps = std::move(ones);
    step.elseSteps = std::move(others);
    return step;
  };
  // What one list leaves in memory is no other one's: each makes what it reads.
  m.p.steps = {
      launch("first", 0, {a, b, t}),
      where("rows = 1", 1,
            {where("columns = 1", 2, {launch("1x1", 0, {t, a, y})},
                   {launch("1xn", 0, {t, b, u}), launch("1xn end", 0, {u, u, y})})},
            {launch("n", 0, {t, t, u}),
             where("one column", 2, {launch("nx1", 0, {u, a, v}), launch("nx1 end", 0, {v, b, y})},
                   {launch("nxn", 0, {u, u, y})})})};
  Result<std::vector<uint8_t>> bytes = writeBundle(m.model);
  INFO((bytes.ok() ? "" : bytes.errors()[0].where + bytes.errors()[0].text));
  REQUIRE(bytes.ok());
  fusert_model model = 0;
  fusert_context context = 0;
  REQUIRE(fusert_load_memory(bytes->data(), bytes->size(), nullptr, &model) == FUSERT_OK);
  REQUIRE(fusert_context_create(model, nullptr, &context) == FUSERT_OK);
  const struct {
    int64_t rows, columns;
    float wanted; // a = 2, b = 5, so t = 7
  } cases[] = {{1, 1, 9}, {1, 6, 24}, {3, 1, 21}, {3, 6, 28}};
  for (size_t from = 0; from < 4; ++from)
    for (size_t to = 0; to < 4; ++to)
      for (const auto &[rows, columns, wanted] : {cases[from], cases[to]}) {
        CAPTURE(rows, columns);
        const int64_t sizes[] = {1, rows, columns};
        REQUIRE(fusert_set_symbols(context, sizes, 3) == FUSERT_OK);
        float two = 2, five = 5, result = -99;
        const fusert_buffer inputs[] = {{&two, 4}, {&five, 4}}, output = {&result, 4};
        REQUIRE(fusert_run(context, inputs, 2, &output, 1) == FUSERT_OK);
        CHECK(result == wanted);
      }
  fusert_context_destroy(context);
  fusert_unload(model);
}

TEST_CASE("Loop: carried values move as if all at once") {
  // (a, b) <- (b, a + b), trips times: Fibonacci. The body's yields swap through the carried tensors themselves.
  ScalarModel m;
  const int32_t trips = m.add("trips", TensorKind::Input, DType::I64);
  const int32_t a0 = m.add("a0", TensorKind::Input), b0 = m.add("b0", TensorKind::Input);
  const int32_t a = m.add("a", TensorKind::Temp), b = m.add("b", TensorKind::Temp),
                sum = m.add("sum", TensorKind::Temp);
  const int32_t i = m.add("i", TensorKind::Temp, DType::I64);
  const int32_t ya = m.add("ya", TensorKind::Output), yb = m.add("yb", TensorKind::Output);
  Step loop;
  loop.kind = StepKind::Loop;
  loop.tripCount = trips;
  loop.iteration = i;
  loop.before = {{a0, a}, {b0, b}};
  loop.thenSteps = {launch("sum", 0, {a, b, sum})};
  loop.thenCopies = {{sum, b}, {b, a}}; // b is overwritten before it is read
  loop.after = {{a, ya}, {b, yb}};
  m.p.steps = {loop};
  CHECK(m.run({10, 0, 1}) == std::vector<float>{55, 89});
  CHECK(m.run({0, 3, 4}) == std::vector<float>{3, 4});
  CHECK(m.run({-5, 3, 4}) == std::vector<float>{3, 4});
}

TEST_CASE("Loop ends when its condition says so, nested in another one") {
  // outer: twice { x doubles while limit > x }, then x += x
  ScalarModel m;
  const int32_t outerTrips = m.add("trips", TensorKind::Input, DType::I64);
  const int32_t x0 = m.add("x0", TensorKind::Input), limit = m.add("limit", TensorKind::Input);
  const int32_t x = m.add("x", TensorKind::Temp), next = m.add("next", TensorKind::Temp);
  const int32_t more = m.add("more", TensorKind::Temp, DType::Bool),
                y = m.add("y", TensorKind::Output);
  Step inner;
  inner.kind = StepKind::Loop;
  inner.condition = more;
  inner.nextCondition = more;
  inner.thenSteps = {launch("double", 0, {x, x, next}), launch("compare", 1, {limit, next, more})};
  inner.thenCopies = {{next, x}};
  Step outer;
  outer.kind = StepKind::Loop;
  outer.tripCount = outerTrips;
  outer.before = {{x0, x}};
  outer.thenSteps = {launch("first", 1, {limit, x, more}), inner, launch("again", 0, {x, x, next})};
  outer.thenCopies = {{next, x}};
  outer.after = {{x, y}};
  m.p.steps = {outer};
  CHECK(m.run({1, 1, 10}) == std::vector<float>{32}); // 1 2 4 8 16, then 32
  CHECK(m.run({2, 1, 10}) == std::vector<float>{64}); // 32 is not below 10: doubled once more
}

TEST_CASE("an input, a constant and one tensor twice as outputs") {
  static const float seven = 7;
  ScalarModel m;
  const int32_t x = m.add("x", TensorKind::Input), y = m.add("y", TensorKind::Output);
  m.p.tensors.push_back(tensor("c", TensorKind::Constant, {}));
  m.p.tensors.back().weight = 0;
  m.model.weights.push_back({DType::F32, reinterpret_cast<const uint8_t *>(&seven), 4});
  m.p.steps = {launch("double", 0, {x, x, y})};
  auto also = [&](const std::string &name, int32_t t) {
    m.model.outputs.push_back({name, DType::F32, {}});
    m.p.outputs.push_back(t);
  };
  also("same", y);
  also("input", x);
  also("constant", 2);
  CHECK(m.run({4}) == std::vector<float>{8, 8, 4, 7});
}

TEST_CASE("a model without kernels") {
  ScalarModel m;
  m.p.kernels.clear();
  m.p.images.clear();
  const int32_t trips = m.add("trips", TensorKind::Input, DType::I64),
                x = m.add("x", TensorKind::Input);
  const int32_t t = m.add("t", TensorKind::Temp), y = m.add("y", TensorKind::Output);
  Step loop;
  loop.kind = StepKind::Loop;
  loop.tripCount = trips;
  loop.before = {{x, t}};
  loop.after = {{t, y}};
  m.p.steps = {loop};
  CHECK(m.run({3, 8}) == std::vector<float>{8});
}

TEST_CASE("many threads, each with contexts of its own, and one that is shared") {
  std::vector<uint8_t> bytes = *writeBundle(addModel());
  fusert_model model = 0;
  REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), nullptr, &model) == FUSERT_OK);
  fusert_context shared = 0;
  REQUIRE(fusert_context_create(model, nullptr, &shared) == FUSERT_OK);
  int64_t n = 2000;
  REQUIRE(fusert_set_symbols(shared, &n, 1) == FUSERT_OK);
  std::atomic<int> wrong{0}, busy{0}, done{0};
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id)
    threads.emplace_back([&, id] {
      fusert_context_options options{};
      options.struct_size = sizeof options;
      options.threads = 1 + id % 3;
      for (int round = 0; round < 20; ++round) {
        fusert_context c = 0;
        wrong += fusert_context_create(model, &options, &c) != FUSERT_OK;
        int64_t size = 1000 + 700 * id + round;
        wrong += fusert_set_symbols(c, &size, 1) != FUSERT_OK;
        std::vector<float> x(size, 1), w(size, float(id)), y(size), s(1);
        fusert_buffer inputs[] = {{x.data(), x.size() * 4}, {w.data(), w.size() * 4}};
        fusert_buffer outputs[] = {{y.data(), y.size() * 4}, {s.data(), 4}};
        for (int run = 0; run < 10; ++run) {
          s[0] = -1;
          wrong += fusert_run(c, inputs, 2, outputs, 2) != FUSERT_OK;
          wrong += s[0] != float(size) * float(2 + id);
          const fusert_status status = fusert_run(shared, nullptr, 0, nullptr, 0);
          wrong += status != FUSERT_OK && status != FUSERT_BUSY;
          busy += status == FUSERT_BUSY;
          done += status == FUSERT_OK;
        }
        wrong += fusert_context_destroy(c) != FUSERT_OK;
      }
    });
  for (std::thread &t : threads)
    t.join();
  CHECK(wrong == 0);
  CHECK(done + busy == 800);
  CHECK(fusert_context_destroy(shared) == FUSERT_OK);
  CHECK(fusert_unload(model) == FUSERT_OK);
}
