// Chains of an unrolled loop take turns where none sees what another one stores, and keep their order otherwise.
#include "Harness.h"

#include <catch2/catch_test_macros.hpp>
#include <regex>

using namespace fusec;
using namespace fusec::test;

namespace {

/// Four vectors an iteration: y of each is `value`, with PLACE for where x of the same element lies.
GirKernel fourVectors(const std::string &value, int lanes) {
  std::string text = R"(kernel @four units 1 lanes LANES {
  param %x f32[4096]
  param out %y f32[4096]
  phase () {
    seq v in 15 {
      unroll u in 4 {
        lane l in LANES {
          %y[PLACE + LANES] = VALUE
        }
      }
    }
  }
}
)";
  for (const auto &[word, by] : {std::pair<std::string, std::string>{"VALUE", value},
                                 {"PLACE", "v*WIDTH + u*LANES + l"},
                                 {"WIDTH", std::to_string(4 * lanes)},
                                 {"LANES", std::to_string(lanes)}})
    text = std::regex_replace(text, std::regex(word), by);
  return kernelFrom(text);
}

/// Of the instructions that multiply and add, the share in front of the first result that is stored.
double shareBeforeStore(const std::vector<Instruction> &code) {
  const std::regex store(R"(vmov[au]ps\s+%[yz]mm\d+, [^,]*\((?!%rsp).*)");
  double before = 0, all = 0;
  bool stored = false;
  for (const Instruction &i : code) {
    stored |= std::regex_match(i.text, store);
    if (i.text.starts_with("vfm") || i.text.starts_with("vfnm"))
      ++all, before += !stored;
  }
  REQUIRE(stored);
  REQUIRE(all > 0);
  return before / all;
}

/// Weighted neighbours, added up one behind the other: an instruction an access, as in a product of long rows.
std::string neighbours(int count) {
  std::string sum = "%x[PLACE]";
  for (int i = 1; i < count; ++i)
    sum = "fma(%x[PLACE + " + std::to_string(i) + "], 2.0, " + sum + ")";
  return sum;
}

struct Case {
  std::string value;
  bool takesTurns;
};

} // namespace

TEST_CASE("chains of vector instructions take turns", "[codegen]") {
  const Case cases[] = {
      {"exp(%x[PLACE])", true},
      {"erf(%x[PLACE])", true},
      {"exp(%y[PLACE])", false}, // the vector before stored it
      {"exp(%y[floormod(v*4 + u, 59)*LANES + l])",
       false}, // so does this one, which no pass can tell
      {"fma(fma(%x[PLACE], 2.0, 1.0), 3.0, 1.0)", false}, // short
      {neighbours(16), false},                            // waits for memory
  };
  for (const Case &c : cases)
    for (auto [name, lanes] : {std::pair{"x86-64-v3", 8}, {"x86-64-v4", 16}}) {
      INFO(c.value << " for " << name);
      const GirKernel kernel = fourVectors(c.value, lanes);
      auto images = compileKernels({kernel}, targetNamed(name), {});
      REQUIRE(images.ok());
      const double share = shareBeforeStore(disassembled(images->front().bytes));
      INFO("share " << share);
      CHECK((c.takesTurns ? share > 0.7 : share < 0.4));
      if (canRun(targetNamed(name)))
        requireSameBits(kernel,
                        {randomBytes(DType::F32, 4096, 1), randomBytes(DType::F32, 4096, 2)});
    }
}
