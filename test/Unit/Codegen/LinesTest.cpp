// Stores past the caches put every element where it belongs, wherever a line begins, and touch no other.
#include "Harness.h"

#include <catch2/catch_test_macros.hpp>

using namespace fusec;
using namespace fusec::test;

namespace {

/// Rows of `columns` elements behind `offset` others, by a loop over them with `unroll` vectors an iteration. It leaves
/// iterations out of which `every` is a divisor; 0: none.
GirKernel rowsKernel(int64_t rows, int64_t columns, int64_t offset, int unroll, int64_t every) {
  const int64_t step = 16 * unroll, trips = (columns + step - 1) / step;
  auto number = [](int64_t n) { return std::to_string(n); };
  const std::string all = number(offset + rows * columns + 16),
                    column = "v*" + number(step) + " + u*16 + l",
                    place = "b*" + number(columns) + " + " + column + " + " + number(offset);
  const std::string body = "unroll u in " + number(unroll) + " {\nlane l in 16 {\nif lt(" + column +
                           ", " + number(columns) + ") {\n%y[" + place + "] = mul(%x[" + place +
                           "], 2.0)\n}\n}\n}\n";
  const std::string some =
      every == 0 ? body : "if lt(0, floormod(v, " + number(every) + ")) {\n" + body + "}\n";
  return kernelFrom("kernel @rows units 1 lanes 16 {\nparam %x f32[" + all +
                    "]\nparam out %y f32[" + all + "]\nphase (b: " + number(rows) +
                    ") {\nseq v in " + number(trips) + " {\n" + some + "}\n}\n}\n");
}

size_t count(const std::string &text, const std::string &word) {
  size_t found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++found;
  return found;
}

} // namespace

TEST_CASE("rows of any length and place are stored past the caches in whole lines", "[codegen]") {
  Target target = targetNamed("x86-64-v4");
  target.memory.end()[-2].capacityBytes = 64; // the tensors are larger
  const int64_t rows = 3;
  for (int64_t columns : {592, 1024, 1031})
    for (int64_t offset : {0, 1, 15, 30})
      for (int unroll : {1, 2, 4})
        for (int64_t every : {0, 3}) {
          INFO(columns << " columns from " << offset << ", " << unroll << " vectors, " << every);
          GirKernel kernel = rowsKernel(rows, columns, offset, unroll, every);
          const int64_t all = offset + rows * columns + 16;
          std::vector<Bytes> actual = {randomBytes(DType::F32, all, 1),
                                       randomBytes(DType::F32, all, 2)},
                             expected = actual;
          auto text = emitLlvmText({kernel}, target, false);
          REQUIRE(text.ok());
          // One store in order for each vector of an iteration, none that asks whether it begins a line.
          CHECK(count(*text, "!nontemporal") == static_cast<size_t>(unroll));
          CHECK(count(*text, "split:") == 0);
          if (!canRun(target))
            continue;
          runInterpreted(kernel, expected);
          runCompiled(kernel, target, actual);
          const bool same = actual == expected;
          CHECK(same);
        }
}
