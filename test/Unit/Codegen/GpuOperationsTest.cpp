// Every scalar operation of every type is accepted by every GPU back end (and by ptxas where there is one).
#include "Harness.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <filesystem>

using namespace fusec;
using namespace fusec::test;

namespace {

/// One statement an operation: y<i>[l] = op(x[l], z[l]).
std::string everyOperation(const std::string &type, int lanes) {
  const bool isF = isFloat(*parseDType(type));
  std::vector<std::pair<std::string, std::string>> statements; // result type, value
  const std::string x = "%x[l]", z = "%z[l]";
  auto unary = [&](const char *op, const std::string &result) {
    statements.emplace_back(result, std::string(op) + "(" + x + ")");
  };
  auto binary = [&](const char *op, const std::string &result) {
    statements.emplace_back(result, std::string(op) + "(" + x + ", " + z + ")");
  };
  for (const char *op : {"add", "sub", "mul", "div", "rem", "min", "max"})
    binary(op, type);
  for (const char *op : {"eq", "ne", "lt", "le"})
    binary(op, "bool");
  for (const char *op : {"neg", "abs"})
    unary(op, type);
  if (isF) {
    for (const char *op :
         {"sqrt",  "floor", "ceil", "trunc",   "roundeven", "exp",   "log",  "log1p",
          "expm1", "tanh",  "erf",  "sigmoid", "sin",       "cos",   "tan",  "asin",
          "acos",  "atan",  "sinh", "cosh",    "asinh",     "acosh", "atanh"})
      unary(op, type);
    unary("isnan", "bool");
    unary("isinf", "bool");
    binary("pow", type);
    statements.emplace_back(type, "fma(" + x + ", " + z + ", " + x + ")");
    for (const char *to : {"i8", "u8", "i32", "i64"})
      statements.emplace_back(to, std::string("castsat(") + to + ", " + x + ")");
  } else {
    for (const char *op : {"floordiv", "floormod", "and", "or", "xor", "shl", "shr"})
      binary(op, type);
    unary("not", type);
  }
  for (const char *to :
       {"bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"})
    if (to != type)
      statements.emplace_back(to, std::string("cast(") + to + ", " + x + ")");
  const std::string l = std::to_string(lanes);
  std::string params, body;
  for (size_t i = 0; i < statements.size(); ++i) {
    params += "param out %y" + std::to_string(i) + " " + statements[i].first + "[" + l + "]\n";
    body += "%y" + std::to_string(i) + "[l] = " + statements[i].second + "\n";
  }
  return "kernel @all units 1 lanes " + l + " {\nparam %x " + type + "[" + l + "]\nparam %z " +
         type + "[" + l + "]\n" + params + "phase () {\nlane l in " + l + " {\n" + body +
         "}\n}\n}\n";
}

} // namespace

TEST_CASE("all operations on all GPUs", "[codegen][gpu]") {
  CodegenOptions options;
  for (const char *path : {"/usr/local/cuda/bin/ptxas", "/usr/local/bin/ptxas", "/usr/bin/ptxas"})
    if (options.ptxasPath.empty() && std::filesystem::exists(path))
      options.ptxasPath = path;
  const std::string target = GENERATE("sm_80", "sm_90", "gfx90a", "gfx1100");
  Target t = targetNamed(target);
  for (const char *type : {"f16", "bf16", "f32", "f64", "i8", "i32", "i64", "u8", "u64"}) {
    INFO(target << " " << type);
    GirKernel kernel = kernelFrom(everyOperation(type, t.lanes));
    auto images = compileKernels({kernel}, t, options);
    if (!images.ok())
      FAIL(format(images.errors().front()));
    CHECK(images->front().bytes.size() > 100);
  }
}
