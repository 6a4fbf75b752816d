// What a map makes of a tile in a block's memory takes the tile's place where nobody wants that any more.
#include "Tiling/schedule/SharedBuffers.h"
#include "Candidates.h"
#include "Tiling/counts/OnChipStorage.h"
#include "Tiling/space/Generate.h"

#include <algorithm>

using namespace fusec;
using namespace fusec::test;
using namespace fusec::tiling;

namespace {

/// Two products with a map between them, and what else stands there.
std::string chain(const std::string &type, const std::string &between, const std::string &tensors,
                  const std::string &outputs = "%y") {
  return "expr chain\ntensor %q: " + type + "[40,24] input\ntensor %k: " + type +
         "[72,24] input\ntensor %v: f32[72,16] input\ntensor %s: " + type + "[40,72] temp\n" +
         tensors + "tensor %y: f32[40,16] output\ninputs (%q, %k, %v)\noutputs (" + outputs +
         ")\nreduction s [m:40, n:72; d:24] sum " + type + "\n  %s = mul(%q[m, d], %k[n, d])\n" +
         between;
}

const std::string kProduct = "reduction y [m:40, e:16; n:72] sum f32\n"
                             "  %y = mul(%w[m, n], %v[n, e])\n";
const std::string kWeights = "tensor %w: f32[40,72] temp\n";

/// How many edges take another's place, at most, in the schedules of a CPU's trees.
int64_t takers(const std::string &text) {
  const ExprProgram pattern = patternFrom(text);
  const ScheduledProgram program(pattern);
  int64_t most = -1; // no schedule
  for (const Schedule &schedule : treeCandidates(program, targetNamed("x86-64-v3"))) {
    CHECK(verify(schedule, pattern).ok());
    most = std::max<int64_t>(
        most, std::ranges::count_if(schedule.edges, [](const EdgeLevel &e) { return e.in >= 0; }));
  }
  return most;
}

} // namespace

TEST_CASE("shared buffers: a map's result takes the place of what it is the last to read") {
  const std::string softmax = chain("f32",
                                    "reduction g [m:40; n:72] max f32\n  %g = %s[m, n]\n"
                                    "map w [m:40, n:72]\n  %w = exp(sub(%s[m, n], %g[m]))\n" +
                                        kProduct,
                                    kWeights + "tensor %g: f32[40] temp\n");
  CHECK(takers(softmax) == 1);
  check(softmax);
  const ExprProgram pattern = patternFrom(softmax);
  const ScheduledProgram program(pattern);
  for (Schedule schedule : treeCandidates(program, targetNamed("x86-64-v3"))) {
    const auto taker =
        std::ranges::find_if(schedule.edges, [](const EdgeLevel &edge) { return edge.in >= 0; });
    if (taker == schedule.edges.end())
      continue;
    const double shared = storageOf({schedule, program}).sharedBytes;
    taker->in = -1; // a place of its own, unless a copied operand's is free
    CHECK(storageOf({schedule, program}).sharedBytes >= shared);
    CHECK(verify(schedule, pattern).ok());
    const TensorId result = taker->tensor;
    for (EdgeLevel &edge : schedule.edges)
      edge.in = edge.level == MemLevel::Shared && edge.tensor != result ? result : -1;
    CHECK(!verify(schedule, pattern).ok()); // above it in the list, or no map of it
  }
}

TEST_CASE("shared buffers: but not what is wanted afterwards, elsewhere, or is of another type") {
  const std::string map = "map w [m:40, n:72]\n  %w = exp(%s[m, n])\n";
  // Another product reads the scores as well.
  const std::string later = chain("f32",
                                  map + kProduct +
                                      "reduction z [m:40, e:16; n:72] sum f32\n"
                                      "  %z = mul(%s[m, n], %v[n, e])\n",
                                  kWeights + "tensor %z: f32[40,16] output\n", "%y, %z");
  CHECK(takers(later) <= 0);
  check(later);
  const std::string elsewhere =
      chain("f32", "map w [m:40, n:72]\n  %w = sub(%s[m, n], %s[m, 0])\n" + kProduct, kWeights);
  CHECK(takers(elsewhere) <= 0);
  check(elsewhere);
  const std::string integers =
      chain("i32", "map w [m:40, n:72]\n  %w = exp(cast(f32, %s[m, n]))\n" + kProduct, kWeights);
  CHECK(takers(integers) <= 0);
  const std::string twoResults =
      chain("f32",
            "map w [m:40, n:72]\n  %w = exp(%s[m, n])\n  %u = mul(%s[m, n], %s[m, n])\n"
            "reduction y [m:40, e:16; n:72] sum f32\n"
            "  %y = mul(%w[m, n], mul(%u[m, n], %v[n, e]))\n",
            kWeights + "tensor %u: f32[40,72] temp\n");
  CHECK(takers(twoResults) <= 0);
  check(twoResults);
}
