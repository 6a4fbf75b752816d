// Floats that integers cannot hold, or barely: compiled kernels give the interpreter's bits.
#include "Graph/Constant.h"
#include "Harness.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <cstring>

using namespace fusec;
using namespace fusec::test;

TEST_CASE("conversions where the integers end", "[codegen]") {
  std::vector<double> values = {0, 0.5, 1.5, 2.5, 255, NAN, INFINITY};
  for (int bits : {7, 8, 15, 16, 31, 32, 63, 64})
    for (double factor : {1 - 0x1p-11, 1 - 0x1p-24, 1 - 0x1p-53, 1.0, 1 + 0x1p-8, 1.5})
      values.push_back(std::ldexp(factor, bits));
  for (size_t i = values.size(); i-- > 0;)
    values.push_back(-values[i]);
  values.resize(128); // lanes are a power of two
  const auto n = static_cast<int64_t>(values.size());
  const std::string from = GENERATE("f16", "bf16", "f32", "f64");
  const DType type = *parseDType(from);
  Bytes x;
  for (double v : values)
    appendElement(x, type, v);
  const ConstantRef rounded = makeConstant(type, {n}, x);
  for (const char *to : {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"})
    for (const char *op : {"cast", "castsat"}) {
      INFO(op << " " << from << " -> " << to);
      const std::string count = std::to_string(n);
      GirKernel kernel =
          kernelFrom("kernel @e units 1 lanes " + count + " {\nparam %x " + from + "[" + count +
                     "]\nparam out %y " + to + "[" + count + "]\nphase () {\nlane l in " + count +
                     " {\n%y[l] = " + op + "(" + to + ", %x[l])\n}\n}\n}\n");
      auto result = requireSameBits(kernel, {x, Bytes(n * sizeInBytes(*parseDType(to)))});
      if (std::string(to) != "u64" || std::string(op) != "cast")
        continue;
      for (int64_t i = 0; i < n; ++i) {
        const double v = rounded->floatAt(i);
        uint64_t y;
        std::memcpy(&y, result[1].data() + 8 * i, 8);
        if (v >= 0x1p63 && v < 0x1p64)
          CHECK(y == static_cast<uint64_t>(v));
      }
    }
}
