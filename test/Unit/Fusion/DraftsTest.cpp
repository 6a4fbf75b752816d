// Drafts of a plan: candidates combined, the beam, greedy merging, from the top down.
#include "SearchFixture.h"

using namespace fusec;
using test::Fixture;
using test::maps;
using test::ProgramText;

namespace {

const std::string kLayerNorm =
    ProgramText("normalise")
        .input("x", "4096,1024")
        .reduction("sum", "i:4096; k:1024", "sum", "%x[i, k]")
        .map("mean", "i:4096", "div(%sum[i], 1024.0)")
        .reduction("squares", "i:4096; k:1024", "sum", "mul(t0, t0)",
                   "let t0 = sub(%x[i, k], %mean[i]);")
        .map("inverse", "i:4096", "div(1.0, sqrt(%squares[i]))")
        .map("y", "i:4096, j:1024", "mul(sub(%x[i, j], %mean[i]), %inverse[i])");

} // namespace

TEST_CASE("drafts: LayerNorm's equations are one candidate, with one read and one write") {
  Fixture f(kLayerNorm);
  std::vector<std::vector<Candidate>> found =
      explorePatterns(f.context, f.region, *f.quick, FusionLimits{});
  REQUIRE(!found[0].empty());
  CHECK(found[0][0].vertices == std::vector<int>{0, 1, 2, 3, 4});
  CHECK(found[0].size() == 3);
  VertexSets sets;
  std::vector<PlanDraft> drafts = beamSearch(f.region, found, FusionLimits{}, sets);
  REQUIRE(drafts.size() == 3);
  CHECK(topologicalOrder(f.region, sets, drafts[0].partition) == VertexSets{{0, 1, 2, 3, 4}});
  PlanDraft greedy = greedyMerge(f.context, f.region, *f.quick, sets);
  CHECK(topologicalOrder(f.region, sets, greedy.partition) == VertexSets{{0, 1, 2, 3, 4}});
  PlanDraft down = f.fromTopDown(sets);
  CHECK(topologicalOrder(f.region, sets, down.partition) == VertexSets{{0, 1, 2, 3, 4}});
}

TEST_CASE("drafts: from the top down, a run that does not pay is cut behind its reductions") {
  // Softmax over rows, then over columns: only one block could do more than one of them.
  Fixture f(ProgramText("twice")
                .input("x", "4096,4096")
                .reduction("most", "i:4096; k:4096", "max", "%x[i, k]")
                .reduction("sum", "i:4096; k:4096", "sum", "exp(sub(%x[i, k], %most[i]))")
                .map("y", "i:4096, j:4096", "div(exp(sub(%x[i, j], %most[i])), %sum[i])")
                .reduction("most2", "j:4096; k:4096", "max", "%y[k, j]")
                .reduction("sum2", "j:4096; k:4096", "sum", "exp(sub(%y[k, j], %most2[j]))")
                .map("z", "i:4096, j:4096", "div(exp(sub(%y[i, j], %most2[j])), %sum2[j])"));
  CHECK(whyNotOneKernel(f.context, f.region, {0, 1, 2, 3, 4, 5}).empty());
  CHECK(f.quick->gain({0, 1, 2, 3, 4, 5}) < 0);
  VertexSets sets;
  const PlanDraft down = f.fromTopDown(sets);
  CHECK(topologicalOrder(f.region, sets, down.partition) == VertexSets{{0, 1, 2}, {3, 4}, {5}});
}

TEST_CASE("drafts: of the combinations of two consumers' three candidates three stay") {
  // a has two consumers, each the head of a chain with three candidates of its own.
  Fixture f(maps({{"a", {"x"}},
                  {"b0", {"a"}},
                  {"b1", {"b0"}},
                  {"b2", {"b1"}},
                  {"b3", {"b2"}},
                  {"c0", {"a"}},
                  {"c1", {"c0"}},
                  {"c2", {"c1"}},
                  {"c3", {"c2"}},
                  {"y", {"b3", "c3"}}}));
  std::vector<std::vector<Candidate>> found =
      explorePatterns(f.context, f.region, *f.quick, FusionLimits{});
  CHECK(found[f.vertex("b0")].size() == 3);
  CHECK(found[f.vertex("a")].size() == 3);
  CHECK(found[f.vertex("a")][0].vertices.size() == 10);
  FusionLimits one;
  one.topPatterns = 1;
  CHECK(explorePatterns(f.context, f.region, *f.quick, one)[0].size() == 1);
}
