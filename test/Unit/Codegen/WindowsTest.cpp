// Windows over a padded image, whose lanes lie side by side or at a stride: vectors of it and of padding, no gather.
#include "Harness.h"

#include <catch2/catch_test_macros.hpp>

using namespace fusec;
using namespace fusec::test;

namespace {

std::string number(int64_t n) { return std::to_string(n); }

constexpr int64_t kRows = 3, kTaps = 3;

/// y[tap, row, x] of 3 x 3 taps: x[row*stride + r - 1, x*stride + q - 1], `padding` where that lies outside of an image
/// of `high` x `wide` elements.
std::string window(const std::string &type, const std::string &padding, int64_t lanes,
                   int64_t stride, int64_t vectors, int64_t high, int64_t wide) {
  const std::string row = "(b*" + number(stride) + " + r)",
                    x = "((v*" + number(lanes) + " + l)*" + number(stride) + " + q)";
  const auto inside = [](const std::string &at, int64_t extent) {
    return "and(lt(0, " + at + "), lt(" + at + ", " + number(extent + 1) + "))";
  };
  const int64_t columns = vectors * lanes;
  return "kernel @window units 1 lanes " + number(lanes) + " {\n  param %x " + type + "[" +
         number(high * wide) + "]\n  param out %y " + type + "[" +
         number(kTaps * kTaps * kRows * columns) + "]\n  phase (b: " + number(kRows) +
         ") {\n    seq r in " + number(kTaps) + " {\n      seq q in " + number(kTaps) +
         " {\n        unroll v in " + number(vectors) + " {\n          lane l in " + number(lanes) +
         " {\n            %y[((r*" + number(kTaps) + " + q)*" + number(kRows) + " + b)*" +
         number(columns) + " + v*" + number(lanes) + " + l] = if(and(" + inside(row, high) + ", " +
         inside(x, wide) + "), %x[(" + row + " - 1)*" + number(wide) + " + " + x + " - 1], " +
         padding + ")\n          }\n        }\n      }\n    }\n  }\n}\n";
}

} // namespace

TEST_CASE("windows read padding and images as vectors, in any type", "[codegen]") {
  for (const DType type : {DType::F32, DType::F16, DType::F64, DType::U8, DType::Bool})
    for (const int64_t stride : {1, 2, 3})
      for (const int64_t vectors : {1, 2})
        for (const int64_t missing : {0, 1, 5})
          for (const char *named : {"x86-64-v3", "x86-64-v4"}) {
            INFO(name(type) << " stride " << stride << ", " << vectors << " vectors, " << missing
                            << " columns less, for " << named);
            const Target target = targetNamed(named);
            const int64_t wide = vectors * target.lanes * stride - missing,
                          high = (kRows - 1) * stride + 1;
            const GirKernel kernel = kernelFrom(window(std::string(name(type)),
                                                       type == DType::Bool ? "true"
                                                       : isFloat(type)     ? "-inf"
                                                                           : "7",
                                                       target.lanes, stride, vectors, high, wide));
            auto text = emitLlvmText({kernel}, target, false);
            REQUIRE(text.ok());
            CHECK(text->find("gather") == std::string::npos);
            if (!canRun(target))
              continue;
            const int64_t outputs = kTaps * kTaps * kRows * vectors * target.lanes;
            std::vector<Bytes> expected = {randomBytes(type, high * wide, 1),
                                           randomBytes(type, outputs, 2)},
                               actual = expected;
            runInterpreted(kernel, expected);
            runCompiled(kernel, target, actual);
            const bool same = actual == expected;
            CHECK(same);
          }
}
