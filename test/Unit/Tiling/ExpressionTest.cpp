// Tiling expressions: how many there are, which are one candidate, where statements stand, and their text.
#include "Chains.h"
#include "Tiling/space/Place.h"
#include "Tiling/space/Trees.h"

#include <map>
#include <set>

using namespace fusec;
using namespace fusec::test;
using namespace fusec::tiling;

namespace {

std::set<std::string> texts(const std::vector<Expression> &all, const LoopSpace &space) {
  std::set<std::string> found;
  for (const Expression &one : all)
    found.insert(print(one, space));
  CHECK(found.size() == all.size());
  return found;
}

std::vector<Expression> mcfuserTrees(const LoopSpace &space) {
  std::vector<Expression> all = deepTrees(space);
  std::ranges::move(flatTrees(space), std::back_inserter(all));
  return all;
}

Expression parsed(const std::string &text, const LoopSpace &space) {
  Result<Expression> expression = parseExpression(text, space);
  if (!expression)
    FAIL(format(expression.errors().front()));
  return *expression;
}

/// The statements of a tree as it is written; `once`: loops that run once.
std::string placed(const ChainSpace &chain, const std::string &tree, const std::string &once = "",
                   const PlaceRules &rules = {}) {
  std::vector<double> trips(chain.space.loops.size(), 4);
  for (int loop : chain.loops(once))
    trips[static_cast<size_t>(loop)] = 1;
  const Placement placement = place(chain.operands, {{}, parsed(tree, chain.space)}, trips, rules);
  return placement.whyNot.empty() ? print(placement, chain.operands, chain.program)
                                  : placement.whyNot;
}

/// Three products, with a map between the first two: 5 loops.
ProgramText threeProducts() {
  return ProgramText("three")
      .input("A", "64,32")
      .input("B", "32,48")
      .input("D", "48,16")
      .input("F", "16,80")
      .reduction("C", "m:64, n:48; k:32", "sum", "mul(%A[m, k], %B[k, n])")
      .map("R", "m:64, n:48", "max(%C[m, n], 0.0)")
      .reduction("E", "m:64, h:16; n:48", "sum", "mul(%R[m, n], %D[n, h])")
      .reduction("G", "m:64, p:80; h:16", "sum", "mul(%E[m, h], %F[h, p])");
}

} // namespace

TEST_CASE("A chain of two products has 24 deep trees, not 720, and two flat ones") {
  const ChainSpace chain(mcfuserChain(1024, 1024, 512, 512));
  const std::set<std::string> deep = texts(deepTrees(chain.space), chain.space);
  CHECK(deep.size() == 24);
  CHECK(deep.contains("mhnk"));
  CHECK(texts(flatTrees(chain.space), chain.space) == std::set<std::string>{"mn(k,h)", "nm(k,h)"});
}

TEST_CASE("What is bound to blocks leaves 5 of 26 expressions, and 3 without partial sums of C") {
  const ChainSpace chain(mcfuserChain(1024, 1024, 512, 512));
  std::map<BoundExpression, int> classes;
  for (const Expression &one : mcfuserTrees(chain.space))
    ++classes[bindBlocks(one, chain.space)];
  std::map<std::string, int> inner;
  std::set<std::string> kept;
  for (const auto &[one, count] : classes) {
    inner[print(one.inner, chain.space)] = count;
    if (!holdsPartialSums(one, chain.space))
      kept.insert(print(one, chain.space));
  }
  CHECK(inner ==
        std::map<std::string, int>{{"nk", 8}, {"kn", 8}, {"nhk", 4}, {"khn", 4}, {"n(k,h)", 2}});
  CHECK(kept == std::set<std::string>{"mh(n(k,.))", "m(nh(k,.))", "m(n(k,h))"});
  // The paper's example of one candidate.
  CHECK(bindBlocks(parsed("mhnk", chain.space), chain.space) ==
        bindBlocks(parsed("mnkh", chain.space), chain.space));
}

TEST_CASE("Statements stand at the rightmost loop that they have") {
  const ChainSpace chain(mcfuserChain(1024, 1024, 512, 512));
  CHECK(placed(chain, "mhnk") == "mh(n(k(LA,LB,CC),LD,CE),SE)");
  CHECK(placed(chain, "mn(k,h)") == "mn(k(LA,LB,CC),h(LD,CE,SE))");
  CHECK(placed(chain, "mnhk") == "mnh(k(LA,LB,CC),LD,CE,SE)");
  // C's row stays on chip: each equation walks n on a path of its own.
  CHECK(placed(chain, "m(nk,hn)") == "m(nk(LA,LB,CC),h(n(LD,CE),SE))");
}

TEST_CASE("Statements rise past loops that run once") {
  const ChainSpace chain(mcfuserChain(1024, 1024, 512, 512));
  CHECK(placed(chain, "mhnk", "k") == "m(LA,h(n(LB,CC,LD,CE),SE))");
  CHECK(placed(chain, "mhnk", "kh") == "m(LA,n(LB,CC,LD,CE),SE)");
  CHECK(placed(chain, "mhnk", "mnkh") == "LA,LB,CC,LD,CE,SE");
  CHECK(placed(chain, "mhnk", "k", {.dropLoopsThatRunOnce = false}) ==
        "mh(n(k(LA,LB,CC),LD,CE),SE)");
  // With n, k and h the loads of B and D leave all loops; those of a block stay in it.
  CHECK(placed(chain, "mhnk", "nkh") == "LB,LD,m(LA,CC,CE,SE)");
  const Placement own = place(chain.operands, bindBlocks(parsed("mhnk", chain.space), chain.space),
                              chain.byLoop("mnkh", {4, 1, 1, 1}), {.stayInBlocks = true});
  CHECK(print(own, chain.operands, chain.program) == "m(LA,LB,CC,LD,CE,SE)");
}

TEST_CASE("A result may be held until its sum is complete") {
  const ChainSpace chain(mcfuserChain(1024, 1024, 512, 512));
  CHECK(placed(chain, "mn(k,h)", "", {.holdSums = true}) == "m(n(k(LA,LB,CC),h(LD,CE)),SE)");
  CHECK(placed(chain, "mnhk", "", {.holdSums = true}) == "m(nh(k(LA,LB,CC),LD,CE),SE)");
}

TEST_CASE("A tree in which a value is used before it is complete says so") {
  const ChainSpace chain(mcfuserChain(1024, 1024, 512, 512));
  CHECK(placed(chain, "mhkn") == "E would use C before its sum along k is complete");
  CHECK(placed(chain, "mhkn", "k") ==
        "m(LA,h(n(LB,CC,LD,CE),SE))"); // there is nothing left to wait for
}

TEST_CASE("A block order means loops around those equations alone that have them") {
  const ChainSpace chain(mcfuserChain(1024, 1024, 512, 512));
  auto meant = [&](const std::string &order) {
    return print(canonical(blockOrder(chain.loops(order), chain.space), chain.space), chain.space);
  };
  // Both orders of the private loops: the flat tree of MCFuser.
  CHECK(meant("mnkh") == "mn(k,h)");
  CHECK(meant("mnhk") == "mn(k,h)");
  CHECK(meant("mknh") == "m(kn,nh)");
  CHECK(meant("mhnk") == "m(nk,hn)");
  CHECK(meant("hmnk") == "mnk,hmn");
}

TEST_CASE("An expression's text reads back, in either form") {
  const ChainSpace chain(mcfuserChain(1024, 1024, 512, 512));
  for (const Expression &one : mcfuserTrees(chain.space)) {
    CHECK(parsed(print(one, chain.space), chain.space) == one);
    const BoundExpression bound = bindBlocks(one, chain.space);
    CHECK(parsed(print(bound, chain.space), chain.space) == bound.whole());
  }
  CHECK(print(parsed("m ( n ( k , . , h ) )", chain.space), chain.space) == "mn(k,h)");
  CHECK(print(parsed("m(n(h,k))", chain.space), chain.space) == "mn(k,h)"); // canonical
  auto error = [&](const std::string &text) {
    const Result<Expression> read = parseExpression(text, chain.space);
    return read.ok() ? "" : read.errors().front().text;
  };
  CHECK(error("mhn") == "expected the loop k, given mhn");
  CHECK(error("mhnx") == "expected a loop in place of mhnx, given mhnx");
  CHECK(error("mhn(k") == "expected ), given mhn(k");
  CHECK(error("mhn(k,k)h") == "expected a loop or the end, given mhn(k,k)h");
  CHECK(error("mhnkm") == "expected m once on a path, given mhnkm");
  CHECK(error("m,n,k,h") == "expected a path with all loops of C, given m,n,k,h");
  CHECK(error("((((((((((mhnk))))))))))") ==
        "expected fewer parentheses, given ((((((((((mhnk))))))))))");
}

TEST_CASE("Loops with longer names stand apart, and equal names are numbered") {
  const ChainSpace chain(
      ProgramText("names")
          .input("a", "8,16")
          .input("b", "16,32")
          .input("d", "32,64")
          .reduction("c", "row:8, col:32; k:16", "sum", "mul(%a[row, k], %b[k, col])")
          .reduction("e", "i:8, k:64; j:32", "sum", "mul(%c[i, j], %d[j, k])"));
  CHECK(loopNames(chain.space) == std::vector<std::string>{"row", "col", "k", "k2"});
  const Expression tree = parsed("row k2(col(k))", chain.space);
  CHECK(print(tree, chain.space) == "row k2 col k");
  CHECK(print(bindBlocks(tree, chain.space), chain.space) == "row k2(col(k,.))");
  CHECK(parsed(print(bindBlocks(tree, chain.space), chain.space), chain.space) ==
        bindBlocks(tree, chain.space).whole());
}

TEST_CASE("Equal trees are equal, with equal hashes, and no two others share one") {
  const ChainSpace chain(threeProducts());
  std::map<std::string, std::string> byHash;
  for (const Expression &one : mcfuserTrees(chain.space)) {
    CHECK(canonical(one, chain.space) == one);
    CHECK(byHash.emplace(hash(one).hex(), print(one, chain.space)).second);
  }
  CHECK(hash(parsed("mn(k,hp)", chain.space)) == hash(parsed("m(n(hp,k))", chain.space)));
}

TEST_CASE("Three products have trees of the same kinds, and maps stand where their values are") {
  const ChainSpace chain(threeProducts());
  CHECK(deepTrees(chain.space).size() == 120);
  const std::set<std::string> flat = texts(flatTrees(chain.space), chain.space);
  CHECK(flat.contains("mn(k,hp)"));
  CHECK(flat.contains("mh(nk,p)"));
  CHECK(flat.contains("mnh(k,p)"));
  CHECK(flat.contains("mh(kn,p)"));
  CHECK(!flat.contains("m(k,n(h,p))")); // C has both k and n
  CHECK(placed(chain, "mh(nk,p)") == "mh(n(k(LA,LB,CC),CR,LD,CE),p(LF,CG,SG))");
  CHECK(placed(chain, "mnh(k,p)") == "G would use E before its sum along n is complete");
  CHECK(print(bindBlocks(parsed("mh(nk,p)", chain.space), chain.space), chain.space) ==
        "m(h(n(k,.),p))");
  CHECK(deepTrees(chain.space, chain.space.rows).size() == 24);
}

TEST_CASE("Four products have 720 deep trees") {
  const ChainSpace chain(ProgramText("four")
                             .input("A", "64,32")
                             .input("B", "32,48")
                             .input("D", "48,16")
                             .input("F", "16,80")
                             .input("H", "80,24")
                             .reduction("C", "m:64, n:48; k:32", "sum", "mul(%A[m, k], %B[k, n])")
                             .reduction("E", "m:64, h:16; n:48", "sum", "mul(%C[m, n], %D[n, h])")
                             .reduction("G", "m:64, p:80; h:16", "sum", "mul(%E[m, h], %F[h, p])")
                             .reduction("I", "m:64, q:24; p:80", "sum", "mul(%G[m, p], %H[p, q])"));
  CHECK(deepTrees(chain.space).size() == 720);
  CHECK(placed(chain, "mn(k,h(.,p(.,q)))") == "G would use E before its sum along n is complete");
  CHECK(placed(chain, "m(h(nk,.),p(h,q))") == "m(hn(k(LA,LB,CC),LD,CE),p(h(LF,CG),q(LH,CI,SI)))");
}

TEST_CASE("A map of inputs stands at its reader, a map of sums behind them") {
  const ChainSpace chain(ProgramText("maps")
                             .input("A", "64,32")
                             .input("B", "32,48")
                             .input("D", "48,16")
                             .map("X", "m:64, k:32", "exp(%A[m, k])")
                             .map("W", "n:48, h:16", "exp(%D[n, h])")
                             .reduction("C", "m:64, n:48; k:32", "sum", "mul(%X[m, k], %B[k, n])")
                             .reduction("E", "m:64, h:16; n:48", "sum", "mul(%C[m, n], %W[n, h])")
                             .map("R", "m:64, h:16", "max(%E[m, h], 0.0)"));
  CHECK(placed(chain, "m(nk,hn)") == "m(nk(LA,CX,LB,CC),h(n(LD,CW,CE),CR,SR))");
  CHECK(placed(chain, "mhnk") == "mh(n(k(LA,CX,LB,CC),LD,CW,CE),CR,SR)");
}

TEST_CASE("A map of sums runs as often as they are made") {
  const ChainSpace chain(ProgramText("between")
                             .input("A", "64,32")
                             .input("B", "32,48")
                             .input("D", "48,16")
                             .reduction("C", "m:64, n:48; k:32", "sum", "mul(%A[m, k], %B[k, n])")
                             .map("R", "m:64, n:48", "max(%C[m, n], 0.0)")
                             .reduction("E", "m:64, h:16; n:48", "sum", "mul(%R[m, n], %D[n, h])"));
  CHECK(placed(chain, "mhnk") == "mh(n(k(LA,LB,CC),CR,LD,CE),SE)");
  CHECK(placed(chain, "mnhk") == "mnh(k(LA,LB,CC),CR,LD,CE,SE)"); // C for each h anew
}
