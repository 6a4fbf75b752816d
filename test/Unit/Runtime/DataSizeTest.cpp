// Sizes that a run computes: what waits for them, what is refused, whose memory holds what has them.
#include "Allocations.h"
#include "Bundle/Writer.h"
#include "TestModels.h"
#include "fusec/runtime.h"

#include <limits>
#include <numeric>

using namespace test;

namespace {

/// y[s] = (x + x) + x of the first s elements of x[n], z[t] = y + y of the first t of these, s <= n, t <= s, t <= 1000.
Model sizesModel() {
  Model m = emptyModel();
  m.symbols = {{"n", 0, 100, 1 << 20, 1}, {"s", 0, 100, 1 << 20, 1}, {"t", 0, 10, 1000, 1}};
  m.dataSizes = {{1, DimCode::symbol(0)}, {2, DimCode::symbol(1)}};
  Program &p = m.programs[0];
  const DimCode n = DimCode::symbol(0), s = DimCode::symbol(1), t = DimCode::symbol(2);
  p.tensors = {tensor("x", TensorKind::Input, {n}),
               tensor("many", TensorKind::Input, {}, DType::I64),
               tensor("few", TensorKind::Input, {}, DType::I64),
               tensor("twice", TensorKind::Temp, {s}),
               tensor("y", TensorKind::Output, {s}),
               tensor("z", TensorKind::Output, {t})};
  p.kernels = {kernel("add", {blocksOf(1)}, {in, in, out}, {1}),
               kernel("add_few", {blocksOf(2)}, {in, in, out}, {2})};
  Step many, few;
  many.kind = few.kind = StepKind::Size;
  many.name = "count of many";
  many.tripCount = 1;
  many.symbol = 1;
  few.name = "count of few";
  few.tripCount = 2;
  few.symbol = 2;
  p.steps = {many, launch("first", 0, {0, 0, 3}), launch("second", 0, {3, 0, 4}), few,
             launch("third", 1, {4, 4, 5})};
  for (int32_t id : {0, 1, 2})
    addValue(m, true, id);
  addValue(m, false, 4);
  addValue(m, false, 5);
  return m;
}

/// Host memory that counts itself.
struct Meter {
  int64_t live = 0, calls = 0;
  fusert_allocator allocator() {
    fusert_allocator a{};
    a.struct_size = sizeof a;
    a.user = this;
    a.allocate = [](void *user, size_t bytes, size_t alignment) -> void * {
      auto *self = static_cast<Meter *>(user);
      self->live += static_cast<int64_t>(bytes);
      ++self->calls;
      return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    };
    a.release = [](void *user, void *memory, size_t bytes) {
      static_cast<Meter *>(user)->live -= static_cast<int64_t>(bytes);
      std::free(memory);
    };
    return a;
  }
};

struct Loaded {
  fusert_model model = 0;
  fusert_context context = 0;
  std::vector<uint8_t> bytes;
  Meter meter;
  std::vector<float> x;
  explicit Loaded(Model m, int64_t n = 300) {
    Result<std::vector<uint8_t>> written = writeBundle(std::move(m));
    INFO((written.ok() ? "" : written.errors()[0].where + ": " + written.errors()[0].text));
    REQUIRE(written.ok());
    bytes = std::move(*written);
    const fusert_allocator memory = meter.allocator();
    fusert_context_options options{};
    options.struct_size = sizeof options;
    options.memory = &memory;
    REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), nullptr, &model) == FUSERT_OK);
    REQUIRE(fusert_context_create(model, &options, &context) == FUSERT_OK);
    setLength(n);
  }
  ~Loaded() {
    fusert_context_destroy(context);
    fusert_unload(model);
  }
  void setLength(int64_t n) {
    const fusert_shape shapes[] = {{1, &n}, {0, nullptr}, {0, nullptr}};
    REQUIRE(fusert_set_shapes(context, shapes, 3) == FUSERT_OK);
    x.resize(static_cast<size_t>(n));
    std::iota(x.begin(), x.end(), 1.f);
  }
  fusert_status run(int64_t many, int64_t few, const fusert_buffer *outputs = nullptr) {
    const fusert_buffer inputs[] = {
        {x.data(), x.size() * sizeof(float)}, {&many, sizeof many}, {&few, sizeof few}};
    return fusert_run(context, inputs, 3, outputs, outputs ? 2 : 0);
  }
  int64_t size(size_t output) {
    int64_t dim = -1;
    int32_t rank = 1;
    REQUIRE(fusert_get_output_shape(context, output, &dim, &rank) == FUSERT_OK);
    CHECK(rank == 1);
    return dim;
  }
  std::vector<float> own(size_t output) {
    void *data = nullptr;
    size_t count = 0;
    REQUIRE(fusert_output_buffer(context, output, &data, &count) == FUSERT_OK);
    const auto *floats = static_cast<const float *>(data);
    return {floats, floats + count / sizeof(float)};
  }
};

std::vector<float> multiples(int64_t count, float factor) {
  std::vector<float> list(static_cast<size_t>(count));
  for (size_t i = 0; i < list.size(); ++i)
    list[i] = factor * static_cast<float>(i + 1);
  return list;
}

} // namespace

TEST_CASE("neither shapes nor sizes of the data take memory for plans when they change") {
  Loaded l(sizesModel());
  int bad = 0;
  auto changeShapes = [&] {
    for (int64_t n : {300, 20, 0, 64}) {
      const fusert_shape shapes[] = {{1, &n}, {0, nullptr}, {0, nullptr}};
      bad += fusert_set_shapes(l.context, shapes, 3) != FUSERT_OK;
    }
  };
  CHECK(allocationsOf(changeShapes) == 0);
  l.setLength(300);
  int64_t many = 0, few = 0;
  const fusert_buffer inputs[] = {{l.x.data(), 1200}, {&many, sizeof many}, {&few, sizeof few}};
  auto changeSizes = [&] {
    for (int64_t size : {300, 7, 0, 65}) {
      many = few = size;
      bad += fusert_run(l.context, inputs, 3, nullptr, 0) != FUSERT_OK;
    }
  };
  CHECK(allocationsOf(changeSizes) == 0);
  CHECK(bad == 0);
}

TEST_CASE("outputs have the sizes that the run has computed") {
  Loaded l(sizesModel());
  CHECK(l.size(0) == 300);
  CHECK(l.size(1) == 300);
  CHECK(l.own(0).empty());
  const int64_t sizes[][2] = {{7, 3}, {300, 300}, {0, 0}, {300, 1}, {65, 64}, {65, 64}, {1, 0}};
  for (const auto &[many, few] : sizes) {
    CAPTURE(many, few);
    REQUIRE(l.run(many, few) == FUSERT_OK);
    CHECK(l.size(0) == many);
    CHECK(l.size(1) == few);
    CHECK(l.own(0) == multiples(many, 3));
    CHECK(l.own(1) == multiples(few, 6));
  }
  l.setLength(20); // what was computed for other shapes is gone
  CHECK(l.size(0) == 20);
  CHECK(l.own(0).empty());
  REQUIRE(l.run(20, 5) == FUSERT_OK);
  CHECK(l.own(1) == multiples(5, 6));
}

TEST_CASE("a size beyond its bound ends the run and nothing else") {
  Loaded l(sizesModel());
  CHECK(l.run(301, 0) == FUSERT_OUT_OF_RANGE);
  CHECK(std::string(fusert_last_error()) ==
        "size 's' is 301 with this data (step 'count of many'), allowed are 0 to 300 under the "
        "shapes set");
  CHECK(l.run(10, 11) == FUSERT_OUT_OF_RANGE); // the bound is what the first size has become
  CHECK(std::string(fusert_last_error()) ==
        "size 't' is 11 with this data (step 'count of few'), allowed are 0 to 10 under the shapes "
        "set");
  CHECK(l.size(0) == 300);
  CHECK(l.own(0).empty());
  for (int64_t wrong :
       {int64_t{-1}, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    CHECK(l.run(wrong, 0) == FUSERT_OUT_OF_RANGE);
    CHECK(l.run(5, wrong) == FUSERT_OUT_OF_RANGE);
  }
  REQUIRE(l.run(10, 10) == FUSERT_OK);
  CHECK(l.own(1) == multiples(10, 6));
  l.setLength(2000);
  CHECK(l.run(2000, 1001) == FUSERT_OUT_OF_RANGE); // the symbol's own range
  CHECK(l.run(2000, 1000) == FUSERT_OK);
}

TEST_CASE("a caller's buffer holds the largest size") {
  Loaded l(sizesModel());
  std::vector<float> y(300, -1), z(299, -1);
  fusert_buffer outputs[] = {{y.data(), y.size() * 4}, {z.data(), z.size() * 4}};
  CHECK(l.run(5, 2, outputs) == FUSERT_INVALID_ARGUMENT);
  CHECK(std::string(fusert_last_error()) ==
        "output 'z' has up to 1200 bytes, as the data decides, given are 1196");
  z.resize(400, -1);
  outputs[1] = {z.data(), z.size() * 4};
  REQUIRE(l.run(5, 2, outputs) == FUSERT_OK);
  CHECK(l.size(0) == 5);
  CHECK(std::vector<float>(y.begin(), y.begin() + 5) == multiples(5, 3));
  CHECK(y[5] == -1);
  CHECK(std::vector<float>(z.begin(), z.begin() + 2) == multiples(2, 6));
  CHECK(z[2] == -1);
  CHECK(l.own(0).empty()); // it is in the caller's
  outputs[0] = {z.data() + 100, 1200};
  outputs[1] = {z.data(), 1200};
  CHECK(l.run(5, 2, outputs) == FUSERT_INVALID_ARGUMENT); // they may overlap
  outputs[0] = {nullptr, 0};
  REQUIRE(l.run(6, 2, outputs) == FUSERT_OK);
  CHECK(l.own(0) == multiples(6, 3));
}

TEST_CASE("memory grows to the largest size seen, and no run allocates that needs no more") {
  Loaded l(sizesModel());
  REQUIRE(l.run(300, 300) == FUSERT_OK);
  const int64_t live = l.meter.live, calls = l.meter.calls;
  for (int64_t i = 0; i < 2000; ++i)
    REQUIRE(l.run(i * 7 % 301, std::min(i * 5 % 301, i * 7 % 301)) == FUSERT_OK);
  CHECK(l.meter.live == live);
  CHECK(l.meter.calls == calls);
  l.setLength(10);
  REQUIRE(l.run(10, 10) == FUSERT_OK);
  CHECK(l.meter.live <= live);
}

TEST_CASE("a size that a loop's body computes anew each time") {
  // for i in 0..trips: s = i + 1 by way of the iteration itself; total counts the elements by the last of them.
  Model m = emptyModel();
  m.symbols = {{"s", 0, 100, 1000, 1}};
  m.dataSizes = {{0, DimCode(1000)}};
  Program &p = m.programs[0];
  const DimCode s = DimCode::symbol(0);
  p.tensors = {tensor("x", TensorKind::Input, {1000}),
               tensor("trips", TensorKind::Input, {}, DType::I64),
               tensor("i", TensorKind::Temp, {}, DType::I64),
               tensor("twice", TensorKind::Temp, {s}), tensor("y", TensorKind::Output, {1000})};
  p.kernels = {kernel("add", {blocksOf(0)}, {in, in, out}, {0})};
  Step size, loop;
  size.kind = StepKind::Size;
  size.name = "s";
  size.tripCount = 2;
  size.symbol = 0;
  loop.kind = StepKind::Loop;
  loop.name = "l";
  loop.tripCount = 1;
  loop.iteration = 2;
  loop.thenSteps = {size, launch("first", 0, {0, 0, 3}), launch("second", 0, {3, 3, 4})};
  p.steps = {loop};
  for (int32_t id : {0, 1})
    addValue(m, true, id);
  addValue(m, false, 4);
  std::vector<uint8_t> bytes = *writeBundle(std::move(m));
  fusert_model model = 0;
  fusert_context context = 0;
  REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), nullptr, &model) == FUSERT_OK);
  REQUIRE(fusert_context_create(model, nullptr, &context) == FUSERT_OK); // no shapes to set
  std::vector<float> x(1000, 1), y(1000);
  for (int64_t trips : {5, 1001, 2, 1002}) {
    std::fill(y.begin(), y.end(), 0.f);
    const fusert_buffer inputs[] = {{x.data(), 4000}, {&trips, 8}}, output = {y.data(), 4000};
    const fusert_status status = fusert_run(context, inputs, 2, &output, 1);
    CHECK(status == (trips > 1001 ? FUSERT_OUT_OF_RANGE : FUSERT_OK));
    for (int64_t i = 0; i < 1000; ++i)
      REQUIRE(y[static_cast<size_t>(i)] == (i + 1 < trips ? 4.f : 0.f));
  }
  fusert_context_destroy(context);
  fusert_unload(model);
}

TEST_CASE("symbols that depend on data are told and not asked for") {
  Loaded l(sizesModel());
  fusert_symbol_info info{};
  info.struct_size = sizeof info;
  for (size_t s = 0; s < 3; ++s) {
    REQUIRE(fusert_get_symbol_info(l.model, s, &info) == FUSERT_OK);
    CHECK(std::string(info.bound ? info.bound : "none") == (s == 0 ? "none" : s == 1 ? "n" : "s"));
  }
  fusert_model_info counts{};
  counts.struct_size = sizeof counts;
  REQUIRE(fusert_get_model_info(l.model, &counts) == FUSERT_OK);
  CHECK(counts.symbols == 1);
  CHECK(counts.computed == 2);
  const int64_t values[] = {50, 7, 7};
  CHECK(fusert_set_symbols(l.context, values, 3) == FUSERT_INVALID_ARGUMENT);
  REQUIRE(fusert_set_symbols(l.context, values, 1) == FUSERT_OK);
  l.x.resize(50);
  REQUIRE(l.run(50, 1) == FUSERT_OK);
  CHECK(l.own(0) == multiples(50, 3));
}

/// sizesModel() with plans for n up to 20 and beyond, each of which tells `t`, that nothing has.
Model toldInBothLists(const DataSize &t) {
  Model m = sizesModel();
  m.dataSizes[1] = t;
  Program &p = m.programs[0];
  p.tensors[5].shape = m.outputs[1].shape = {DimCode::symbol(1)};
  p.steps[4] = launch("third", 0, {4, 4, 5});
  Step where;
  where.kind = StepKind::Where;
  where.name = "n <= 20";
  where.guards = {{DimCode(DimExpr(20) - DimExpr::symbol(0))}};
  where.thenSteps = where.elseSteps = {p.steps[3]};
  p.steps[3] = where;
  return m;
}

TEST_CASE("each plan of a where tests indices") {
  Loaded l(toldInBothLists({2, 0, TestOfData{DataTest::Indices, "gather"}}));
  for (int64_t n : {300, 20, 21, 1}) {
    CAPTURE(n);
    l.setLength(n);
    REQUIRE(l.run(1, 0) == FUSERT_OK);
    CHECK(l.own(1) == multiples(1, 6));
    CHECK(l.run(1, 2) == FUSERT_OUT_OF_RANGE);
    CHECK(std::string(fusert_last_error()) ==
          "node 'gather': an index in the data is 2 elements outside the axis that it goes along; "
          "give indices from -size to size - 1");
    CHECK(l.run(1, -1) == FUSERT_OUT_OF_RANGE);
  }
  fusert_symbol_info info{};
  info.struct_size = sizeof info;
  REQUIRE(fusert_get_symbol_info(l.model, 2, &info) == FUSERT_OK);
  CHECK(std::string(info.test) == "indices");
  CHECK(std::string(info.test_of) == "gather");
  REQUIRE(fusert_get_symbol_info(l.model, 1, &info) == FUSERT_OK);
  CHECK(info.test_of == nullptr);
}

/// The same where the plan for longer ones is two, for n up to 40 and beyond.
Model toldInNestedLists(const DataSize &t) {
  Model m = toldInBothLists(t);
  Step &outer = m.programs[0].steps[3];
  Step inner = outer;
  inner.name = "n <= 40";
  inner.guards = {{DimCode(DimExpr(40) - DimExpr::symbol(0))}};
  outer.elseSteps = {inner};
  return m;
}

TEST_CASE("each of several plans tests indices") {
  Loaded l(toldInNestedLists({2, 0, TestOfData{DataTest::Indices, "gather"}}));
  for (int64_t n : {300, 20, 21, 40, 41, 1}) {
    CAPTURE(n);
    l.setLength(n);
    REQUIRE(l.run(1, 0) == FUSERT_OK);
    CHECK(l.own(1) == multiples(1, 6));
    CHECK(l.run(1, 1) == FUSERT_OUT_OF_RANGE);
  }
}

TEST_CASE("bundles whose tests of indices are something else") {
  auto refusal = [](Model m) {
    Result<std::vector<uint8_t>> written = writeBundle(std::move(m));
    REQUIRE(!written.ok());
    return written.errors()[0].where + ": " + written.errors()[0].text;
  };
  auto changed = [&](auto edit) {
    Model m = toldInBothLists({2, 0, TestOfData{DataTest::Indices, "gather"}});
    edit(m);
    return refusal(std::move(m));
  };
  // What tensors may have is told in one order alone, as runs work out what hangs on it.
  const std::string program = "program 'x86-64-v1'";
  for (const DimCode &bound : {DimCode(0), DimCode::symbol(1)})
    for (Model m : {toldInBothLists({2, bound}), toldInNestedLists({2, bound})})
      CHECK(refusal(std::move(m)) ==
            program +
                ", step 'count of few': gives a value to a size that has one from another step");
  // Two steps of one list, and one behind a where that has told it.
  for (const DataSize &d :
       {DataSize{2, 0, TestOfData{DataTest::Indices, "gather"}}, DataSize{2, DimCode::symbol(1)}}) {
    Model m = toldInNestedLists(d);
    Step &outer = m.programs[0].steps[3];
    outer.elseSteps[0].elseSteps.push_back(outer.thenSteps[0]);
    CHECK(refusal(std::move(m)).find("has one from another step") != std::string::npos);
  }
  {
    Model m = toldInNestedLists({2, 0, TestOfData{DataTest::Indices, "gather"}});
    m.programs[0].steps.push_back(m.programs[0].steps[3].thenSteps[0]);
    CHECK(refusal(std::move(m)).find("has one from another step") != std::string::npos);
  }
  // What one list tells is not known behind the where, nor in the other list.
  for (const bool behind : {true, false}) {
    Model m = toldInNestedLists({2, DimCode::symbol(1)});
    std::vector<Step> &steps = m.programs[0].steps;
    Step &inner = steps[3].elseSteps[0];
    steps[3].thenSteps.clear();
    inner.elseSteps.clear();
    m.programs[0].tensors.push_back(tensor("w", TensorKind::Temp, {DimCode::symbol(2)}));
    const Step use = launch("use", 0, {4, 4, 6});
    (behind ? steps : inner.elseSteps).push_back(use);
    CHECK(refusal(std::move(m)) ==
          program + ", step 'use': uses the size 't' where no step has given it a value");
  }
  CHECK(
      refusal(toldInBothLists({2, DimCode::symbol(1), TestOfData{DataTest::Indices, "gather"}})) ==
      "size 't': tests the data, and may be more than 0");
  CHECK(refusal(toldInBothLists({2, 0, TestOfData{static_cast<DataTest>(200), "gather"}})) ==
        "size 't': tests what no version knows");
  CHECK(refusal(toldInBothLists({2, 0, TestOfData{DataTest::Indices, std::string("a\0b", 3)}})) ==
        "size 't': the name of the node that it tests the data for is no usable one");
  const DimCode t = DimCode::symbol(2);
  CHECK(changed([&](Model &m) { m.inferred = {{"u", t, {}}}; }) ==
        "size 't': tests the data, and another size or a rule uses it");
  CHECK(changed([&](Model &m) {
          m.rules = {{fusec::SizeRule::Kind::Equal, t, 0, "node", "Op", "text", true}};
        }) == "size 't': tests the data, and another size or a rule uses it");
  CHECK(changed([&](Model &m) {
          m.symbols.push_back({"u", 0, 0, 10, 1});
          m.dataSizes.push_back({3, t});
        }) == "size 't': tests the data, and another size or a rule uses it");
  CHECK(changed([&](Model &m) { m.programs[0].tensors[5].shape = m.outputs[1].shape = {t}; }) ==
        program + ", step 'third': uses the size 't' where no step has given it a value");
  CHECK(changed([&](Model &m) { m.programs[0].kernels[0].dims.push_back(2); }) ==
        program + ", step 'first': uses the size 't' where no step has given it a value");
}

TEST_CASE("bundles whose steps use sizes that they do not know") {
  auto refusal = [](auto edit) {
    Model m = sizesModel();
    edit(m, m.programs[0]);
    Result<std::vector<uint8_t>> written = writeBundle(std::move(m));
    REQUIRE(!written.ok());
    return written.errors()[0].where + ": " + written.errors()[0].text;
  };
  const std::string program = "program 'x86-64-v1'";
  CHECK(refusal([](Model &, Program &p) { std::swap(p.steps[0], p.steps[1]); }) ==
        program + ", step 'first': uses the size 's' where no step has given it a value");
  CHECK(refusal([](Model &, Program &p) { p.steps.erase(p.steps.begin() + 3); }) ==
        program + ", step 'third': uses the size 't' where no step has given it a value");
  CHECK(refusal([](Model &, Program &p) { p.steps[3].symbol = 1; }) ==
        program + ", step 'count of few': gives a value to a size that has one from another step");
  CHECK(refusal([](Model &, Program &p) { p.steps[3].symbol = 0; }) ==
        program + ", step 'count of few': gives a value to what is no size of the data");
  CHECK(refusal([](Model &, Program &p) { p.steps[3].symbol = 99; }) ==
        program + ", step 'count of few': gives a value to what is no size of the data");
  CHECK(refusal([](Model &, Program &p) { p.steps[0].tripCount = 0; }) ==
        program + ", step 'count of many': 'x' must hold one element of type i64");
  CHECK(refusal([](Model &m, Program &) { m.dataSizes[0].bound = DimCode::symbol(2); }) ==
        "size 's': the bound is malformed or uses a symbol that is not in front of it");
  for (SymbolId symbol : {-1, 1, 3, 99})
    CHECK(refusal([&](Model &m, Program &) { m.dataSizes[1].symbol = symbol; }) ==
          "data sizes: must be ascending symbols of the model that have no definition");
  CHECK(refusal([](Model &m, Program &) { m.dataSizes.insert(m.dataSizes.begin(), {0, 5}); }) ==
        "input 'x': a dimension is malformed");
  // Which list of a where runs is known before the first step has run, whatever told the size in front of it.
  Step where;
  where.kind = StepKind::Where;
  where.name = "w";
  auto guarded = [&](const DimExpr &guard, bool inside) {
    return refusal([&](Model &, Program &p) {
      where.guards = {{DimCode(guard)}};
      where.thenSteps = where.elseSteps = {p.steps[4]};
      p.steps[4] = where;
      if (inside) {
        Step outer = where;
        outer.name = "outer";
        outer.guards = {{DimCode(DimExpr(1) - DimExpr::symbol(0))}};
        outer.elseSteps = {where};
        p.steps[4] = outer;
      }
    });
  };
  const std::string asks = program + ", step 'w': asks for a size of the data when shapes are set";
  for (bool inside : {false, true}) {
    CHECK(guarded(DimExpr(1) - DimExpr::symbol(1), inside) == asks);
    CHECK(guarded(DimExpr(1) - DimExpr::symbol(2), inside) == asks);
    CHECK(guarded(DimExpr::symbol(0) - DimExpr::symbol(2), inside) == asks);
  }
  CHECK(refusal([](Model &, Program &p) {
          Step branch;
          branch.kind = StepKind::Loop;
          branch.name = "l";
          branch.tripCount = 1;
          branch.thenSteps = {p.steps[3]};
          p.steps[3] = branch;
        }) == program + ", step 'third': uses the size 't' where no step has given it a value");
}
