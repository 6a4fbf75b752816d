// Sizes that follow from the inputs' shapes by a program in the bundle.
#include "Allocations.h"
#include "FakeDriver.h"

#include "Support/DimProgram.h"

#include <bit>
#include <cstring>

using namespace test;

namespace {

using Op = DimProgram::Op;

/// y = x + w, of the first i64(f32(n) * 0.5) + 20 / n elements of x and w, which have n.
Model halfModel() {
  Model m = emptyModel();
  m.symbols[0].min = 0;
  auto program = std::make_shared<DimProgram>();
  program->node = "half";
  program->code = {{Op::Symbol, DType::I64, {-1, -1, -1}, 0},
                   {Op::Cast, DType::F32, {0, -1, -1}, 0},
                   {Op::Float, DType::F32, {-1, -1, -1}, std::bit_cast<int64_t>(0.5)},
                   {Op::Mul, DType::F32, {1, 2, -1}, 0},
                   {Op::Cast, DType::I64, {3, -1, -1}, 0},
                   {Op::Integer, DType::I64, {-1, -1, -1}, 20},
                   {Op::Div, DType::I64, {5, 0, -1}, 0},
                   {Op::Add, DType::I64, {4, 6, -1}, 0}};
  m.symbols.push_back({"part", 0, 50, 60, 1, program});
  Program &p = m.programs[0];
  const DimCode n = DimCode::symbol(0), part = DimCode::symbol(1);
  p.tensors = {tensor("x", TensorKind::Input, {n}), tensor("w", TensorKind::Input, {n}),
               tensor("y", TensorKind::Output, {part})};
  p.kernels = {kernel("add", {blocksOf(1)}, {in, in, out}, {1})};
  p.steps = {launch("add", 0, {0, 1, 2})};
  addValue(m, true, 0);
  addValue(m, true, 1);
  addValue(m, false, 2);
  return m;
}

} // namespace

TEST_CASE("sizes that the model computes follow from those that are set") {
  auto bytes = writeBundle(halfModel());
  REQUIRE(bytes.ok());
  fusert_model model = 0;
  fusert_context context = 0;
  REQUIRE(fusert_load_memory(bytes->data(), bytes->size(), nullptr, &model) == FUSERT_OK);
  fusert_model_info info{};
  info.struct_size = sizeof info;
  REQUIRE(fusert_get_model_info(model, &info) == FUSERT_OK);
  CHECK(info.symbols == 1);
  CHECK(info.computed == 1);
  fusert_symbol_info symbol{};
  symbol.struct_size = sizeof symbol;
  REQUIRE(fusert_get_symbol_info(model, 0, &symbol) == FUSERT_OK);
  CHECK(symbol.definition == nullptr);
  REQUIRE(fusert_get_symbol_info(model, 1, &symbol) == FUSERT_OK);
  CHECK(std::string(symbol.definition) == "i64(f32(n)*0.5) + div(20, n)");
  CHECK(std::string(symbol.node) == "half");
  CHECK(fusert_get_symbol_info(model, 2, &symbol) != FUSERT_OK);

  REQUIRE(fusert_context_create(model, nullptr, &context) == FUSERT_OK);
  auto set = [&](int64_t n) {
    fusert_shape shapes[] = {{1, &n}, {1, &n}};
    return fusert_set_shapes(context, shapes, 2);
  };
  auto outputSize = [&] {
    int64_t dim = -1;
    int32_t rank = 1;
    CHECK(fusert_get_output_shape(context, 0, &dim, &rank) == FUSERT_OK);
    return dim;
  };
  for (int64_t n : {100, 21, 100}) {
    REQUIRE(set(n) == FUSERT_OK);
    const int64_t part = n / 2 + 20 / n;
    CHECK(outputSize() == part);
    std::vector<float> x(static_cast<size_t>(n), 1), w(static_cast<size_t>(n), 2),
        y(static_cast<size_t>(part));
    const size_t size = x.size() * sizeof(float);
    fusert_buffer inputs[] = {{x.data(), size}, {w.data(), size}},
                  output{y.data(), y.size() * sizeof(float)};
    REQUIRE(fusert_run(context, inputs, 2, &output, 1) == FUSERT_OK);
    CHECK(y == std::vector<float>(y.size(), 3));
  }
  // The numbers between the shapes and the one size, for as long as it is computed.
  CHECK(allocationsOf([&] {
          set(21);
          set(100);
        }) <= 2);
  // What it cannot compute, or finds outside the range, it refuses, and keeps the shapes that it had.
  CHECK(set(0) == FUSERT_INVALID_ARGUMENT);
  CHECK(std::string(fusert_last_error()) ==
        "size 'part' (i64(f32(n)*0.5) + div(20, n)) of node 'half' cannot be computed for these "
        "shapes");
  CHECK(set(200) == FUSERT_INVALID_ARGUMENT);
  CHECK(std::string(fusert_last_error()) ==
        "size 'part' (i64(f32(n)*0.5) + div(20, n)) of node 'half' is 100, allowed are 0 to 60");
  CHECK(outputSize() == 50);
  int64_t n = 42;
  CHECK(fusert_set_symbols(context, &n, 2) == FUSERT_INVALID_ARGUMENT);
  CHECK(fusert_set_symbols(context, &n, 1) == FUSERT_OK);
  CHECK(outputSize() == 21);
  const int64_t two[] = {42, 21};
  fusert_memory_info memory{};
  memory.struct_size = sizeof(memory);
  CHECK(fusert_get_memory_info(model, 0, two, 0, &memory) == FUSERT_INVALID_ARGUMENT);
  CHECK(fusert_get_memory_info(model, 0, two, 2, &memory) == FUSERT_INVALID_ARGUMENT);
  CHECK(std::string(fusert_last_error()) == "the model has 1 symbols, given are 2");
  CHECK(fusert_get_memory_info(model, 0, two, 1, &memory) == FUSERT_OK);
  CHECK(memory.output_bytes == 21 * sizeof(float));
  fusert_context_destroy(context);
  fusert_unload(model);
}
