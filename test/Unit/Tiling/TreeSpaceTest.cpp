// The loops that trees are made of, and what a block reads of an operand.
#include "../ParseProgram.h"
#include "../ProgramText.h"
#include "Tiling/space/ReadBox.h"

#include <algorithm>

using namespace fusec;
using namespace fusec::test;
using namespace fusec::tiling;

namespace {

using Extents = std::vector<int64_t>;

struct Trees {
  explicit Trees(const std::string &text) : expr(parse(text)), program(expr) {}
  Trees(const Trees &) = delete;

  const ExprProgram expr;
  const ScheduledProgram program;
};

/// What a block touches of a tensor that the first equation reads; empty where that is not known.
Extents boxOfTensor(const Trees &trees, const TreeRoles &roles, const std::string &name,
                    const BlockPoints &block) {
  const TreeSpace tree(trees.program, roles);
  const EquationFacts &facts = tree.facts(0);
  for (size_t r = 0; r < facts.reads.size(); ++r)
    if (tree.program.tensor(facts.tensors[r]).name == name) {
      const auto box = boxOf(tree, 0, r, block);
      return box ? box->extents : Extents{};
    }
  FAIL("no read of " << name);
  return {};
}

/// y[o, i] = sum over c and r of x[c, `place`] w[o, c, r]: a convolution of three taps.
std::string convolution(const std::string &place, const std::string &channels = "6",
                        const std::string &symbols = "") {
  return ProgramText("p", symbols)
      .input("x", channels + ",99")
      .input("w", "32," + channels + ",3")
      .reduction("y", "o:32, i:48; c:" + channels + ", r:3", "sum",
                 "mul(%x[c, " + place + "], %w[o, c, r])");
}

const TreeRoles kConvolution{{}, {0}, {1}, {{2}, {3}}};

} // namespace

TEST_CASE("tree space: rows that every address walks without a gap are one axis") {
  auto product = [](const std::string &weights, const std::string &read) {
    return ProgramText("p")
        .input("a", "5,7,16")
        .input("w", weights)
        .reduction("c", "b:5, m:7, n:24; k:16", "sum", "mul(%a[b, m, k], " + read + ")")
        .reduction("e", "b:5, m:7, h:8; n:24", "sum", "mul(%c[b, m, n], %v[n, h])")
        .input("v", "24,8");
  };
  const Trees shared(product("16,24", "%w[k, n]"));
  const TreeSpace one(shared.program, false);
  REQUIRE(one.rowAxes.size() == 1);
  CHECK(one.rowAxes[0].size() == 2);
  const int rows = one.rowAxes[0].back();
  CHECK(one.axisOf(rows) == one.rowAxes[0]);
  CHECK(one.extent(rows) == DimExpr(35));
  CHECK(one.opt(rows) == 35);
  CHECK(one.mostOf(rows) == 35);
  CHECK(one.nests.size() == 2);
  CHECK(one.hasRows);

  const Trees batched(product("5,16,24", "%w[b, k, n]"));
  const TreeSpace two(batched.program, false);
  CHECK(two.rowAxes.size() == 2);
}

TEST_CASE("tree space: what blocks stage needs no common distance to be one axis") {
  // A convolution over rows i and j of an image, and a product of what it makes.
  auto chain = [](const std::string &weights, const std::string &read) {
    return ProgramText("p")
        .input("x", "6,12,22")
        .input("w", "6,3,3,16")
        .input("v", weights)
        .reduction("c", "i:10, j:20, n:16; k:6, r:3, s:3", "sum",
                   "mul(%x[k, i + r, j + s], %w[k, r, s, n])")
        .reduction("e", "i:10, j:20, h:8; n:16", "sum", "mul(%c[i, j, n], " + read + ")");
  };
  const Trees trees(chain("16,8", "%v[n, h]"));
  const TreeSpace apart(trees.program, false), staged(trees.program, true);
  CHECK(apart.rowAxes.size() == 2);
  CHECK(apart.nests[0].reduced.size() == 3);
  REQUIRE(staged.rowAxes.size() == 1);
  CHECK(staged.countOf(staged.rowAxes[0]) == 200);
  REQUIRE(staged.nests[0].reduced.size() == 1);
  CHECK(staged.opt(staged.nests[0].reduced[0]) == 54);
  CHECK(staged.nests[1].reduced.size() == 1);

  // Lines with weights of their own stay outside.
  const Trees lines(chain("10,16,8", "%v[i, n, h]"));
  CHECK(TreeSpace(lines.program, true).rowAxes.size() == 2);
}

TEST_CASE("tree space: the roles of a contraction name its axes") {
  const Trees trees(convolution("2*i + r"));
  const TreeSpace tree(trees.program, kConvolution);
  REQUIRE(tree.nests.size() == 1);
  CHECK(tree.nests[0].spatial.size() == 1);
  CHECK(tree.nests[0].reduced.size() == 2);
  CHECK(tree.opt(tree.nests[0].spatial[0]) == 48);
  const int rows = tree.rowAxes[0][0], taps = tree.nests[0].reduced[1];
  CHECK(tree.opt(rows) == 32);
  CHECK(tree.opt(taps) == 3);
  CHECK_FALSE(tree.depends(0, 0, rows)); // the image does not, the weights do
  CHECK(tree.depends(0, 1, rows));
  CHECK(tree.depends(0, 0, taps));
}

TEST_CASE("boxes: what a block of a convolution touches") {
  const BlockPoints block{4, 1, 8};
  const Trees strided(convolution("2*i + r"));
  CHECK(boxOfTensor(strided, kConvolution, "x", block) == Extents{6, 2 * 7 + 2 + 1});
  CHECK(boxOfTensor(strided, kConvolution, "w", block) == Extents{4, 6, 3});
  const Trees dilated(convolution("i + 5*r"));
  CHECK(boxOfTensor(dilated, kConvolution, "x", block) == Extents{6, 7 + 5 * 2 + 1});
  const Trees mirrored(convolution("i*-1 + r*-1 + 50"));
  CHECK(boxOfTensor(mirrored, kConvolution, "x", block) == Extents{6, 7 + 2 + 1});

  // Channels around the rows, of which a block has three.
  const Trees trees(ProgramText("p")
                        .input("x", "6,40,99")
                        .input("w", "32,6,3")
                        .reduction("y", "o:32, j:40, i:48; c:6, r:3", "sum",
                                   "mul(%x[c, j, 2*i + r], %w[o, c, r])"));
  const TreeRoles outside{{{0}}, {1}, {2}, {{3}, {4}}};
  CHECK(boxOfTensor(trees, outside, "x", {4, 3, 8}) == Extents{6, 4, 17});
  CHECK(boxOfTensor(trees, outside, "w", {4, 3, 8}) == Extents{3, 6, 3});
  CHECK(ReadBox{{6, 17}, 4}.elements() == 102);
}

TEST_CASE("boxes: none where an index is no sum of axes, and where an extent has no bound") {
  const BlockPoints block{4, 1, 8};
  const Trees folded(convolution("floormod(2*i + r, 9)"));
  CHECK(boxOfTensor(folded, kConvolution, "x", block).empty());
  CHECK(boxOfTensor(folded, kConvolution, "w", block) == Extents{4, 6, 3});
  const Trees bounded(convolution("2*i + r", "q", "symbol q = 1..12 opt 4 divisor 1\n"));
  CHECK(boxOfTensor(bounded, kConvolution, "x", block) == Extents{12, 17});
  const Trees open(
      convolution("2*i + r", "q", "symbol q = 1..9223372036854775807 opt 4 divisor 1\n"));
  CHECK(boxOfTensor(open, kConvolution, "x", block).empty());
}

TEST_CASE("boxes: axes that move an index together slide") {
  const Trees trees(convolution("2*i + r"));
  const TreeSpace tree(trees.program, kConvolution);
  const EquationFacts &facts = tree.facts(0);
  CHECK(slidingAxes(facts.equation, facts.reads[0]) == (1u << 1 | 1u << 3));
  CHECK(slidingAxes(facts.equation, facts.reads[1]) == 0);
}
