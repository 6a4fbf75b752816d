// Lanes that lie apart, stored as columns of what several turns of a loop compute: every element where it belongs.
#include "Harness.h"

#include <catch2/catch_test_macros.hpp>

using namespace fusec;
using namespace fusec::test;

namespace {

std::string number(int64_t n) { return std::to_string(n); }

/// y[c, x] = f(x[x, c]) of `turns` columns x and `vectors` times `lanes` rows c, which lie `distance` apart.
std::string turns(const std::string &type, int64_t lanes, int64_t trip, int64_t vectors,
                  const std::string &distance, int64_t most) {
  const int64_t rows = vectors * lanes;
  const std::string lane = "v*" + number(lanes) + " + l";
  return "kernel @turns units 1 lanes " + number(lanes) +
         " {\n  symbol n = 1..4096 opt 8 divisor 1\n  param %x " + type + "[" +
         number(3 * trip * rows) + "]\n  param out %y " + type + "[" + number(3 * most * rows) +
         "]\n  phase (b: 3) {\n    unroll i in " + number(trip) + " {\n      unroll v in " +
         number(vectors) + " {\n        lane l in " + number(lanes) + " {\n          %y[b*" +
         number(most * rows) + " + (" + lane + ")*" + distance + " + i] = %x[b*" +
         number(trip * rows) + " + i*" + number(rows) + " + " + lane +
         "]\n        }\n      }\n    }\n  }\n}\n";
}

} // namespace

TEST_CASE("turns of any type and number are stored where they belong", "[codegen]") {
  struct Form {
    int64_t vectors, gap;
    bool symbolic;
  };
  for (const DType type : {DType::F32, DType::F16, DType::U8, DType::Bool, DType::I64})
    for (const int64_t trip : {2, 3, 7, 8, 16, 19})
      for (const Form &form : {Form{1, 0, false}, Form{3, 5, true}})
        for (const char *named : {"x86-64-v3", "x86-64-v4"}) {
          INFO(name(type) << ' ' << trip << " turns of " << form.vectors << " for " << named);
          const Target target = targetNamed(named);
          const int64_t distance = trip + form.gap, rows = form.vectors * target.lanes;
          const GirKernel kernel =
              kernelFrom(turns(std::string(name(type)), target.lanes, trip, form.vectors,
                               form.symbolic ? "dim(n)" : number(distance), distance),
                         {Symbol{"n", 1, 8, 4096, 1}});
          auto text = emitLlvmText({kernel}, target, false);
          REQUIRE(text.ok());
          CHECK(text->find("scatter") == std::string::npos);
          CHECK(text->find("gather") == std::string::npos);
          if (!canRun(target))
            continue;
          std::vector<Bytes> expected = {randomBytes(type, 3 * trip * rows, 1),
                                         randomBytes(type, 3 * distance * rows, 2)},
                             actual = expected;
          runInterpreted(kernel, expected, {distance});
          runCompiled(kernel, target, actual, {distance});
          const bool same = actual == expected;
          CHECK(same);
        }
}

TEST_CASE("a square of vectors takes a load, a store and log2(n) shuffles each", "[codegen]") {
  for (const char *named : {"x86-64-v3", "x86-64-v4"}) {
    INFO(named);
    const Target target = targetNamed(named);
    const int64_t lanes = target.lanes;
    const GirKernel kernel = kernelFrom(turns("f32", lanes, lanes, 1, number(lanes), lanes),
                                        {Symbol{"n", 1, 8, 4096, 1}});
    auto compiled = compileKernels({kernel}, target, {});
    REQUIRE(compiled.ok());
    const int64_t shuffles = lanes * (lanes == 8 ? 3 : 4);
    int64_t vectors = 0, all = 0;
    for (const Instruction &instruction : disassembled(compiled->front().bytes)) {
      ++all;
      vectors += instruction.text.find(lanes == 8 ? "ymm" : "zmm") != std::string::npos;
    }
    CHECK(vectors <= 2 * lanes + shuffles);
    CHECK(all <= 2 * lanes + shuffles + 60); // entry points, addresses
  }
}
