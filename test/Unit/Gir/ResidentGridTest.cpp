// What a block keeps from phase to phase where all blocks are resident.
#include "Kernels.h"

#include "Gir/ResidentGrid.h"
#include "Reference/GirInterpreter.h"

using namespace fusec;
using namespace fusec::test;

namespace {

/// Each thread reads its weights once, one in a register and one in shared memory, or anew in each round.
const std::string kHolding = R"(kernel @holding units 1 lanes 4 {
  param %w f32[16]
  param out %y f32[8]
  register %held f32[1]
  shared %beside f32[4]
  shared %t f32[4]
  resident (r)
  phase (b: 2) {
    if eq(r, 1) {
      lane l in 4 {
        %held[0] = %w[b*4 + l]
        %beside[l] = %w[b*4 + l + 8]
      }
    }
  }
  rounds (round: 3) {
    phase (b: 2) {
      lane l in 4 {
        %t[l] = cast(f32, round)
      }
      if eq(r, 1) {
        lane l in 4 {
          %y[b*4 + l] = add(mul(%held[0], %beside[l]), %t[l])
        }
      } else {
        lane l in 4 {
          %y[b*4 + l] = add(mul(%w[b*4 + l], %w[b*4 + l + 8]), %t[l])
        }
      }
    }
  }
}
)";

template <typename T> GirArgument argument(std::vector<T> &v) {
  return {reinterpret_cast<uint8_t *>(v.data()), static_cast<int64_t>(v.size() * sizeof(T))};
}

Status runWith(const GirKernel &kernel, bool resident, std::vector<float> &y) {
  std::vector<float> w(16);
  for (size_t i = 0; i < w.size(); ++i)
    w[i] = float(i + 1);
  y.assign(8, 0);
  GirInterpreterOptions options;
  options.resident = resident;
  return run(kernel, {argument(w), argument(y)}, {100}, options);
}

std::string edited(const std::string &from, const std::string &to) {
  std::string text = kHolding;
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

} // namespace

TEST_CASE("resident: a block finds what it has left in an earlier phase, and does without") {
  GirKernel kernel = kernelFrom(kHolding);
  CHECK(heldBuffers(kernel) == std::vector<bool>{false, false, true, true, false});
  insertSyncs(kernel);
  allocate(kernel);
  for (const bool resident : {true, false}) {
    std::vector<float> y;
    REQUIRE(runWith(kernel, resident, y).ok());
    for (size_t i = 0; i < 8; ++i)
      CHECK(y[i] == float((i + 1) * (i + 9)) + 2);
  }
}

TEST_CASE("resident: what is held takes its place through all phases") {
  GirKernel kernel = kernelFrom(kHolding);
  CHECK(registersPerLane(kernel) == 1);
  allocate(kernel);
  CHECK(kernel.sharedBytes == 128 + 16); // beside %t, not in its bytes
}

TEST_CASE("resident: values that nobody left are reported, and blocks of other numbers refused") {
  std::vector<float> y;
  const std::string filled = "%held[0] = %w[b*4 + l]";
  const Status status =
      runWith(kernelFrom(edited(filled, "if lt(l, 2) { " + filled + " }")), true, y);
  REQUIRE(!status.ok());
  CHECK(status.errors().front().text.find("before it is written") != std::string::npos);

  const std::string fewer = edited("phase (b: 2)", "phase (b: 1)");
  TextReader in(fewer, "kernel");
  const Result<GirKernel> refused = parseGirKernel(in, oneSymbol());
  REQUIRE(!refused.ok());
  CHECK(format(refused.errors().front()) ==
        "error[E3003] kernel @holding: phases that share a block's own buffer have as many blocks; "
        "%held is touched by different numbers of them");
}

TEST_CASE("resident: values that outlive their phase are touched under the test alone") {
  const std::string loose = edited("add(mul(%w[b*4 + l], %w[b*4 + l + 8]), %t[l])",
                                   "add(mul(%held[0], %w[b*4 + l + 8]), %t[l])");
  TextReader in(loose, "kernel");
  const Result<GirKernel> refused = parseGirKernel(in, oneSymbol());
  REQUIRE(!refused.ok());
  CHECK(format(refused.errors().front()) ==
        "error[E3003] kernel @holding: what outlives its phase is touched where all blocks are "
        "resident; %held is touched elsewhere too");
}
