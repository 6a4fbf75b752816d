// Shapes that a node of the model cannot take are refused by its name.
#include "Bundle/Writer.h"
#include "TestModels.h"
#include "fusec/runtime.h"

#include <catch2/catch_all.hpp>

using namespace test;
using Kind = fusec::SizeRule::Kind;

namespace {

/// x + w of n and k elements, which a node needs to be equal.
class Sums {
public:
  explicit Sums(std::vector<DimRule> rules, int64_t min = 0) {
    Model m = addModel();
    m.symbols[0].min = min;
    m.inferred = {{"k", DimCode::symbol(0), {{1, 0}}}};
    m.rules = std::move(rules);
    m.programs[0].outputs.pop_back(); // the sum, which has an element of no addends too
    m.outputs.pop_back();
    m.programs[0].steps.pop_back();
    m.programs[0].tensors.resize(4);
    m.programs[0].kernels.pop_back();
    bytes = *writeBundle(m);
    REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), nullptr, &model) == FUSERT_OK);
    REQUIRE(fusert_context_create(model, nullptr, &context) == FUSERT_OK);
  }
  ~Sums() {
    fusert_context_destroy(context);
    fusert_unload(model);
  }
  /// What is said of these sizes; "": they are taken.
  std::string said(int64_t x, int64_t w) {
    fusert_shape shapes[2] = {{1, &x}, {1, &w}};
    return fusert_set_shapes(context, shapes, 2) == FUSERT_OK ? "" : fusert_last_error();
  }

  std::vector<uint8_t> bytes;
  fusert_model model = 0;
  fusert_context context = 0;
};

DimRule rule(Kind kind, DimCode left, DimCode right, bool tested) {
  return {kind, std::move(left), std::move(right), "add", "Add", "so it must be", tested};
}
const DimCode n = DimCode::symbol(0), k = DimCode::symbol(1);

} // namespace

TEST_CASE("shapes that do not fit are told by the rule that they break") {
  Sums sums({rule(Kind::Equal, n, k, false)});
  CHECK(sums.said(5, 5) == "");
  CHECK(sums.said(5, 6) == "node 'add' (Add): so it must be: 'n' is 5 (dimension 0 of input 'x') "
                           "and 'k' is 6 (dimension 0 of input 'w')");
  CHECK(sums.said(7, 7) == "");
}

TEST_CASE("tests hold for shapes that fit, however they are given") {
  Sums sums(
      {rule(Kind::Multiple, n, DimCode(4), true), rule(Kind::Broadcast, k, DimCode(8), true)});
  CHECK(sums.said(8, 8) == "");
  CHECK(sums.said(6, 6) ==
        "node 'add' (Add): so it must be: 'n' is 6 (dimension 0 of input 'x') and 4");
  CHECK(sums.said(12, 12) ==
        "node 'add' (Add): so it must be: 'k' is 12 (dimension 0 of input 'w') and 8");
  const int64_t value = 12;
  CHECK(fusert_set_symbols(sums.context, &value, 1) == FUSERT_INVALID_ARGUMENT);
  DimCode half = n;
  half.code.push_back({DimCode::Op::Const, 2});
  half.code.push_back({DimCode::Op::FloorDiv, 0});
  Sums halves({rule(Kind::AtLeast, half, DimCode(3), true)});
  CHECK(halves.said(6, 6) == "");
  CHECK(halves.said(5, 5) == "node 'add' (Add): so it must be: 'floordiv(n, 2)' is 2 ('n' is 5, "
                             "dimension 0 of input 'x') and 3");
}

TEST_CASE("a range that a node needs is told with the node") {
  Sums sums({rule(Kind::AtLeast, n, DimCode(3), false)}, 3);
  CHECK(sums.said(3, 3) == "");
  CHECK(sums.said(2, 2) ==
        "node 'add' (Add): so it must be: 'n' is 2 (dimension 0 of input 'x') and 3");
}

TEST_CASE("a size of 0 is served where the range has it") {
  Sums sums({}, 0);
  CHECK(sums.said(0, 0) == "");
  REQUIRE(fusert_run(sums.context, nullptr, 0, nullptr, 0) == FUSERT_OK);
  int64_t dim = 1;
  int32_t rank = 1;
  REQUIRE(fusert_get_output_shape(sums.context, 0, &dim, &rank) == FUSERT_OK);
  CHECK(dim == 0);
  CHECK(sums.said(2, 2) == "");
  CHECK(Sums({}, 1).said(0, 0) == "'n' is 0 (dimension 0 of input 'x'), allowed are 1 to 1048576");
}

TEST_CASE("shapes that turn out not to fit leave those that are set") {
  Model m = addModel();
  DimCode few = blocksOf(0); // none that can be launched beyond 100 elements
  for (const DimCode::Instr &i : DimCode::symbol(0).code)
    few.code.push_back(i);
  for (const DimCode::Instr &i : {DimCode::Instr{DimCode::Op::Const, -1},
                                  {DimCode::Op::Mul, 0},
                                  {DimCode::Op::Const, 100},
                                  {DimCode::Op::Add, 0},
                                  {DimCode::Op::Const, 0},
                                  {DimCode::Op::Min, 0},
                                  {DimCode::Op::Add, 0}})
    few.code.push_back(i);
  m.programs[0].kernels[0].grids = {few};
  const std::vector<uint8_t> bytes = *writeBundle(m);
  fusert_model model = 0;
  fusert_context context = 0;
  REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), nullptr, &model) == FUSERT_OK);
  REQUIRE(fusert_context_create(model, nullptr, &context) == FUSERT_OK);
  auto set = [&](int64_t n) { return fusert_set_symbols(context, &n, 1); };
  for (int64_t n : {70, 100}) {
    REQUIRE(set(n) == FUSERT_OK);
    CHECK(set(200) == FUSERT_INVALID_ARGUMENT);
    CHECK(std::string(fusert_last_error()) == "under these shapes kernel 'add' has no grid");
    std::vector<float> x(static_cast<size_t>(n), 1), y(x.size());
    float s = 0;
    const fusert_buffer inputs[] = {{x.data(), x.size() * 4}, {x.data(), x.size() * 4}},
                        outputs[] = {{y.data(), y.size() * 4}, {&s, sizeof s}};
    REQUIRE(fusert_run(context, inputs, 2, outputs, 2) == FUSERT_OK);
    CHECK(y == std::vector<float>(x.size(), 3));
    CHECK(s == 3.f * static_cast<float>(n));
  }
  fusert_context_destroy(context);
  fusert_unload(model);
}

TEST_CASE("a bundle says what it knows of sizes") {
  Sums sums({rule(Kind::Equal, n, k, false), rule(Kind::Multiple, n, DimCode(4), true)});
  fusert_model_info info{};
  info.struct_size = sizeof info;
  REQUIRE(fusert_get_model_info(sums.model, &info) == FUSERT_OK);
  CHECK(info.inferred == 1);
  CHECK(info.size_rules == 2);
  fusert_inferred_info inferred{};
  inferred.struct_size = sizeof inferred;
  REQUIRE(fusert_get_inferred_info(sums.model, 0, &inferred) == FUSERT_OK);
  CHECK(std::string(inferred.name) + inferred.value == "kn");
  CHECK(fusert_get_inferred_info(sums.model, 1, &inferred) == FUSERT_INVALID_ARGUMENT);
  fusert_size_rule_info found{};
  found.struct_size = sizeof found;
  REQUIRE(fusert_get_size_rule_info(sums.model, 1, &found) == FUSERT_OK);
  CHECK(std::string(found.rule) == "n is a multiple of 4");
  CHECK(std::string(found.node) + found.op + found.reason == "addAddso it must be");
  CHECK(found.tested == 1);
  CHECK(fusert_get_size_rule_info(sums.model, 2, &found) == FUSERT_INVALID_ARGUMENT);
}
