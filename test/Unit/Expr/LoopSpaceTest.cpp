// Which axes of a group of equations are one loop, and which of the loops are rows of all.
#include "Expr/LoopSpace.h"
#include "ProgramTools.h"

using namespace fusec;
using namespace fusec::test;

namespace {

struct Space {
  explicit Space(const ProgramText &text) : program(parse(text)) {
    std::vector<const Equation *> equations;
    for (const Item &item : program.items)
      equations.push_back(&std::get<Equation>(item.value));
    space = loopSpace(equations);
  }

  std::vector<std::string> loops() const {
    std::vector<std::string> names;
    for (const SpaceLoop &loop : space.loops)
      names.push_back(loop.name);
    return names;
  }
  std::vector<std::string> rows() const {
    std::vector<std::string> names;
    for (int loop : space.rows)
      names.push_back(space.loops[loop].name);
    return names;
  }

  const ExprProgram program;
  LoopSpace space;
};

using Names = std::vector<std::string>;

/// e = (a b) d with what is read of c given.
ProgramText chain(const std::string &readOfC) {
  return ProgramText("chain")
      .input("a", "32,8")
      .input("b", "8,32")
      .input("d", "32,16")
      .reduction("c", "m:32, n:32; k:8", "sum", "mul(%a[m, k], %b[k, n])")
      .reduction("e", "m:32, h:16; n:32", "sum", "mul(" + readOfC + ", %d[n, h])");
}

} // namespace

TEST_CASE("a chain of two matrix products has four loops, not six") {
  const Space s(chain("%c[m, n]"));
  CHECK(s.loops() == Names{"m", "n", "k", "h"});
  CHECK(s.rows() == Names{"m"});
  CHECK(s.space.loops[0].positions == std::vector<int>{0, 0});
  CHECK(s.space.loops[1].positions == std::vector<int>{1, 2});
  CHECK(s.space.loops[2].positions == std::vector<int>{2, -1});
  CHECK(s.space.loops[3].positions == std::vector<int>{-1, 1});
  CHECK(!s.space.reduces(1, 0));
  CHECK(s.space.reduces(1, 1));
  CHECK(whyNoTree(s.space).empty());
}

TEST_CASE("a transposed read makes the maker's column the rows of the chain") {
  const Space s(chain("%c[n, m]"));
  CHECK(s.space.loops[0].positions == std::vector<int>{0, 2});
  CHECK(s.space.loops[1].positions == std::vector<int>{1, 0});
  CHECK(s.rows() == Names{"n"});
}

TEST_CASE("a read at other points than its own leaves no rows along that axis") {
  const Space s(chain("%c[floordiv(m, 2), n]"));
  CHECK(s.space.reads[0].own == std::vector<bool>{false, true});
  CHECK(s.rows().empty());
  CHECK(whyNoTree(s.space) == "e reads c at other points than its own along m, and all of them "
                              "have no other loop in common");
}

TEST_CASE("no tree holds a sum of windows of what is made inside; those of an input leave rows") {
  const Space inside(chain("if(lt(0, m), %c[m - 1, n], 0.0)"));
  CHECK(inside.rows().empty());
  CHECK(whyNoTree(inside.space) == "e sums windows of what another equation makes");
  const Space outside(ProgramText("sliding")
                          .input("a", "34,8")
                          .input("w", "3,8")
                          .reduction("y", "m:32, n:8; k:3", "sum", "mul(%a[m + k, n], %w[k, n])"));
  CHECK(outside.rows() == Names{"m", "n"});
  CHECK(whyNoTree(outside.space).empty());
}

TEST_CASE("sums whose terms lie beside each other's are no windows") {
  const auto isWindow = [](const std::string &sum, const std::string &steps) {
    const Space s(ProgramText("steps")
                      .input("x", "999,8")
                      .input("w", "99,8")
                      .map("a", "i:999, n:8", "exp(%x[i, n])")
                      .reduction("y", sum, "sum", "mul(%a[" + steps + ", n], %w[k, n])"));
    return whyNoTree(s.space) == "y sums windows of what another equation makes";
  };
  CHECK(!isWindow("m:32, n:8; k:2", "m * 2 + k"));
  CHECK(isWindow("m:32, n:8; k:3", "m * 2 + k"));
  CHECK(!isWindow("m:16, n:8; k:20", "k * 16 + m"));
  CHECK(isWindow("m:17, n:8; k:20", "k * 16 + m"));
  CHECK(isWindow("m:6, j:6, n:8; k:3", "m * 3 + j * 5 + k")); // at 6: of m = 2 and of j = 1, k = 1
}

TEST_CASE("two axes of one equation are no loop, whatever it reads") {
  const Space s(ProgramText("gram")
                    .input("a", "32,8")
                    .map("x", "i:32, k:8", "exp(%a[i, k])")
                    .reduction("s", "i:32, j:32; k:8", "sum", "mul(%x[i, k], %x[j, k])"));
  CHECK(s.loops() == Names{"i", "k", "j"});
  CHECK(s.space.reads[0].own == std::vector<bool>{true, true});
  CHECK(s.space.reads[1].own == std::vector<bool>{false, true});
  CHECK(s.rows().empty());
}

TEST_CASE("axes of extent 1 have no loop, and batches are rows") {
  const Space s(
      ProgramText("batched")
          .input("a", "4,1,32,8")
          .input("b", "4,8,64")
          .input("d", "64,16")
          .reduction("c", "b:4, o:1, m:32, n:64; k:8", "sum", "mul(%a[b, o, m, k], %b[b, k, n])")
          .map("r", "b:4, o:1, m:32, n:64", "max(%c[b, o, m, n], 0.0)")
          .reduction("e", "b:4, m:32, h:16; n:64", "sum", "mul(%r[b, 0, m, n], %d[n, h])"));
  CHECK(s.loops() == Names{"b", "m", "n", "k", "h"});
  CHECK(s.rows() == Names{"b", "m"});
}
