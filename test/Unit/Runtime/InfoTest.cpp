// What a bundle says about itself without a device: programs, images, values.
#include "Bundle/Writer.h"
#include "TestModels.h"
#include "fusec/runtime.h"

#include <catch2/catch_all.hpp>

using namespace test;

namespace {

/// A model with programs for two GPUs whose images no driver here could load.
std::vector<uint8_t> gpuBundle() {
  fusec::bundle::Model m = addModel();
  Program sm = m.programs[0];
  setTarget(sm, "sm_90");
  sm.images = {{ImageKind::Cubin, {1, 2, 3}, 13000}, {ImageKind::Ptx, {4, 5}, 11080}};
  Program gfx = m.programs[0];
  setTarget(gfx, "gfx942");
  gfx.images = {{ImageKind::CodeObject, {6}, 0}};
  m.programs = {sm, gfx};
  Result<std::vector<uint8_t>> bytes = writeBundle(m);
  REQUIRE(bytes.ok());
  return *bytes;
}

fusert_load_options infoOnly(const char *target = nullptr) {
  fusert_load_options options{};
  options.struct_size = sizeof options;
  options.info_only = 1;
  options.target = target;
  return options;
}

} // namespace

TEST_CASE("A bundle for GPUs alone is described where none of them is") {
  std::vector<uint8_t> bytes = gpuBundle();
  fusert_load_options options = infoOnly();
  fusert_model model = 0;
  REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), &options, &model) == FUSERT_OK);
  fusert_model_info info{};
  info.struct_size = sizeof info;
  REQUIRE(fusert_get_model_info(model, &info) == FUSERT_OK);
  CHECK(info.programs == 2);
  CHECK(std::string(info.target).empty());
  CHECK(info.kernels == 0);
  CHECK(info.inputs == 2);
  CHECK(info.symbols == 1);
  fusert_program_info program{};
  program.struct_size = sizeof program;
  REQUIRE(fusert_get_program_info(model, 0, &program) == FUSERT_OK);
  CHECK(std::string(program.target) == "sm_90");
  CHECK(program.kernels == 2);
  CHECK(program.steps == 3);
  CHECK(program.images == 2);
  CHECK(program.code_bytes == 5);
  fusert_image_info image{};
  image.struct_size = sizeof image;
  REQUIRE(fusert_get_image_info(model, 0, 0, &image) == FUSERT_OK);
  CHECK(std::string(image.format) == "cubin");
  CHECK(image.bytes == 3);
  CHECK(image.min_driver == 13000);
  REQUIRE(fusert_get_image_info(model, 1, 0, &image) == FUSERT_OK);
  CHECK(std::string(image.format) == "code object");
  CHECK(image.min_driver == 0);
  CHECK(fusert_get_program_info(model, 2, &program) == FUSERT_INVALID_ARGUMENT);
  CHECK(fusert_get_image_info(model, 2, 0, &image) == FUSERT_INVALID_ARGUMENT);
  CHECK(fusert_get_image_info(model, 1, 1, &image) == FUSERT_INVALID_ARGUMENT);
  CHECK(fusert_get_image_info(model, 0, 0, nullptr) == FUSERT_INVALID_ARGUMENT);

  fusert_context context = 0;
  CHECK(fusert_context_create(model, nullptr, &context) == FUSERT_INVALID_ARGUMENT);
  CHECK(std::string(fusert_last_error()) == "the model was loaded with info_only");
  fusert_unload(model);
  CHECK(fusert_get_program_info(model, 0, &program) == FUSERT_INVALID_HANDLE);
}

TEST_CASE(
    "Information about one program; a target that is not there and unknown options are refused") {
  std::vector<uint8_t> bytes = gpuBundle();
  fusert_load_options options = infoOnly("gfx942");
  fusert_model model = 0;
  REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), &options, &model) == FUSERT_OK);
  fusert_model_info info{};
  info.struct_size = sizeof info;
  REQUIRE(fusert_get_model_info(model, &info) == FUSERT_OK);
  CHECK(std::string(info.target) == "gfx942");
  CHECK(info.kernels == 2);
  CHECK(info.code_bytes == 1);
  CHECK(info.programs == 2);
  fusert_unload(model);
  options.target = "sm_80";
  CHECK(fusert_load_memory(bytes.data(), bytes.size(), &options, &model) == FUSERT_UNSUPPORTED);
  options.target = nullptr;
  options.info_only = 2;
  CHECK(fusert_load_memory(bytes.data(), bytes.size(), &options, &model) ==
        FUSERT_INVALID_ARGUMENT);
  // A changed byte of the code is found all the same.
  options.info_only = 1;
  bytes[bytes.size() - 1] ^= 1;
  CHECK(fusert_load_memory(bytes.data(), bytes.size(), &options, &model) == FUSERT_BAD_BUNDLE);
}

TEST_CASE("guards of a bundle in words are those of the compiler") {
  const std::vector<Symbol> symbols = {{"n"}, {"m"}};
  const DimExpr n = DimExpr::symbol(0), m = DimExpr::symbol(1);
  for (const fusec::Guard &g : {fusec::Guard{n * m - DimExpr(16)},
                                {DimExpr(5) - n - m * DimExpr(3)},
                                {n - m, 0},
                                {DimExpr(3) - max(n, m), 0},
                                {n * DimExpr(2) + DimExpr(1), 16},
                                {DimExpr(-1), 0}}) {
    const std::string words = guardWords(std::vector{g}, symbols);
    CHECK(guardWords(std::vector<bundle::Guard>{{DimCode(g.value), g.modulus}}, symbols) == words);
    CHECK(DimCode(g.value).str(symbols) == g.value.str(symbols));
  }
  // Code of another compiler, which need not be in normal form.
  DimCode odd = DimCode::symbol(0);
  using Op = DimCode::Op;
  for (const DimCode::Instr &i : {DimCode::Instr{Op::Const, -3},
                                  {Op::Add, 0},
                                  {Op::Const, 2},
                                  {Op::Mul, 0},
                                  {Op::Const, -4},
                                  {Op::Mul, 0}})
    odd.code.push_back(i);
  CHECK(odd.str(symbols) == "(n - 3)*2*-4");
}
