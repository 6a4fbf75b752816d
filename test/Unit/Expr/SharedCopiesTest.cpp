// What several equations read at places that lie apart, brought into order once for all of them.
#include "Expr/SharedCopies.h"
#include "ProgramTools.h"

using namespace fusec;
using namespace fusec::test;

namespace {

ExprProgram with(const ExprProgram &program, const std::vector<SharedCopy> &copies) {
  Result<ExprProgram> made = withSharedCopies(program, copies);
  if (!made)
    FAIL(format(made.errors().front()));
  requireValid(*made);
  return std::move(*made);
}

/// All copies that are possible, and bits that stay.
ExprProgram withAll(const ExprProgram &program, int64_t size = 3) {
  std::vector<SharedCopy> copies;
  for (const PossibleCopies::Copy &possible : possibleCopies(program).copies)
    copies.push_back(possible.copy);
  ExprProgram made = with(program, copies);
  std::mt19937 random(3);
  std::vector<int64_t> symbols(program.symbols.size(), size);
  const std::vector<TensorValue> inputs = randomInputs(program, symbols, random);
  CHECK(sameBits(run(made, inputs), run(program, inputs)));
  return made;
}

std::string names(const ExprProgram &program) {
  std::string all;
  for (const PossibleCopies::Copy &possible : possibleCopies(program).copies) {
    all += possible.copy.name + ":";
    for (const std::string &reader : possible.copy.readers)
      all += " " + reader;
    all += ";";
  }
  return all;
}

constexpr const char *kWindow =
    "if(and(and(le(1, i + r), lt(i + r, 6)), and(le(1, j + s), lt(j + s, 7))), %x[n, i + r - 1, "
    "j + s - 1, c], -100.0)";

} // namespace

TEST_CASE("a transpose that windows and maps read is one copy, whatever part they read") {
  // With padding, without, a part of the rows, and each element once; a symbolic batch.
  const ExprProgram program = parse(
      ProgramText("p", "symbol b = 1..64 opt 16 divisor 1\n")
          .input("x", "b,5,6,7")
          .reduction("y0", "n:b, c:7, i:5, j:6; r:3, s:3", "max", kWindow)
          .reduction("y1", "n:b, c:7, i:3, j:4; r:3, s:3", "sum", "%x[n, i + r, j + s, c]")
          .reduction("y2", "n:b, c:7, i:1, j:4; r:3, s:3", "sum", "%x[n, i + r + 2, j + s, c]")
          .map("y3", "n:b, c:7, i:5, j:6", "mul(%x[n, i, j, c], 2.0)"));
  CHECK(names(program) == "x.shared: y0 y1 y2 y3;");
  const ExprProgram made = withAll(program);
  REQUIRE(made.items.size() == 5);
  CHECK(body(made, 0) == "%x.shared = %x[i0, i2, i3, i1]");
  CHECK(body(made, 3) == "%y2 = %x.shared[n, c, i + r + 2, j + s]");
  CHECK(body(made, 4) == "%y3 = mul(%x.shared[n, c, i, j], 2.0)");
}

TEST_CASE("a copy for some of its readers stands in front of the first") {
  const ExprProgram program = parse(ProgramText("p")
                                        .input("x", "5,6,7")
                                        .map("y0", "c:7, i:5, j:6", "%x[i, j, c]")
                                        .map("y1", "c:7, i:5, j:6", "neg(%x[i, j, c])")
                                        .map("y2", "c:7, i:5, j:6", "abs(%x[i, j, c])"));
  const ExprProgram made = with(program, {{"x.shared", {"y1", "y2"}}});
  REQUIRE(made.items.size() == 4);
  CHECK(body(made, 0) == "%y0 = %x[i, j, c]");
  CHECK(equation(made, 1).name == "x.shared");
}

TEST_CASE("rows that a gather picks are picked once") {
  const auto products = [](const std::string &element) {
    std::string text = "expr p\ntensor %x: f32[40,16] input\ntensor %rows: i64[12] input\n";
    std::string equations;
    for (const std::string y : {"y0", "y1"}) {
      text += "tensor %" + y + ": f32[12,8] output\ntensor %w" + y + ": f32[16,8] input\n";
      equations += "reduction " + y + " [i:12, j:8; k:16] sum f32\n  %" + y + " = mul(" + element +
                   ", %w" + y + "[k, j])\n";
    }
    return parse(text + "inputs (%x, %rows, %wy0, %wy1)\noutputs (%y0, %y1)\n" + equations);
  };
  // What keeps an index in range is part of the index, or else of a guard that a copy would go without.
  CHECK(names(products("if(and(le(0, %rows[i]), lt(%rows[i], 40)), %x[%rows[i], k], 0.0)")) == "");
  const ExprProgram program = products("%x[min(max(0, %rows[i]), 39), k]");
  CHECK(names(program) == "x.shared: y0 y1;");
  const ExprProgram made = withAll(program);
  CHECK(body(made, 0) == "%x.shared = %x[min(max(0, %rows[i0]), 39), i1]");
  CHECK(body(made, 1) == "%y0 = mul(%x.shared[i, k], %wy0[k, j])");
}

TEST_CASE("rows of other indices are other copies") {
  // Equal but for the tensor that holds the indices, or for a size that is added to them.
  const auto products = [](const std::vector<std::string> &rows) {
    std::string text = "expr p\nsymbol a = 1..9 opt 2 divisor 1\nsymbol b = 1..9 opt 2 divisor 1\n"
                       "tensor %x: f32[40,16] input\ntensor %first: i64[12] input\n"
                       "tensor %second: i64[12] input\ntensor %sizes: f32[a,b] input\n";
    std::string equations, inputs = "%x, %first, %second, %sizes", outputs;
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::string y = "y" + std::to_string(i);
      text += "tensor %" + y + ": f32[12,8] output\ntensor %w" + y + ": f32[16,8] input\n";
      equations += "reduction " + y + " [i:12, j:8; k:16] sum f32\n  %" + y +
                   " = mul(%x[min(max(0, " + rows[i] + "), 39), k], %w" + y + "[k, j])\n";
      inputs += ", %w" + y;
      outputs += (i ? ", %" : "%") + y;
    }
    return parse(text + "inputs (" + inputs + ")\noutputs (" + outputs + ")\n" + equations);
  };
  CHECK(names(products({"%first[i]", "%second[i]"})) == "");
  CHECK(names(products({"%first[i] + dim(a)", "%first[i] + dim(b)"})) == "");
  for (const auto &[one, other] : {std::pair("%first[i]", "%second[i]"),
                                   std::pair("%first[i] + dim(a)", "%first[i] + dim(b)")}) {
    const ExprProgram program = products({one, other, one, other});
    CHECK(names(program) == "x.shared: y0 y2;x.shared2: y1 y3;");
    withAll(program);
  }
}

TEST_CASE("nothing is shared that lies in order, is read once, or by one equation") {
  const auto two = [](const std::string &axes, const std::string &first,
                      const std::string &second) {
    return names(parse(ProgramText("p")
                           .input("x", "6,13,6")
                           .reduction("y0", axes, "sum", first)
                           .reduction("y1", axes, "sum", second)));
  };
  const std::string window = "c:6, i:4; r:3";
  CHECK(two(window, "%x[i, r, c]", "%x[i + 2, r, c]") == "");         // not twice each
  CHECK(two(window, "%x[c, 0, i + r]", "%x[c, 1, i + r]") == "");     // in order
  CHECK(two(window, "%x[0, i*2 + r, c]", "%x[1, i*2 + r, c]") == ""); // lanes step
  CHECK(names(parse(ProgramText("p")
                        .input("x", "6,6")
                        .reduction("y", "c:6, i:4; r:3", "sum", "mul(%x[i, c], %x[i + r, c])"))) ==
        "");
}

TEST_CASE("a copy that the program cannot have is refused") {
  const ExprProgram program = parse(ProgramText("p")
                                        .input("x", "5,7")
                                        .map("y0", "c:7, i:5", "%x[i, c]")
                                        .map("y1", "c:7, i:5", "neg(%x[i, c])"));
  const auto refusal = [&](const std::vector<SharedCopy> &copies) {
    const Result<ExprProgram> made = withSharedCopies(program, copies);
    REQUIRE(!made.ok());
    return made.errors().front().where + ": " + made.errors().front().text;
  };
  CHECK(refusal({{"z", {"y0"}}}) ==
        "plan: copy z: no equations of the program could share such a copy, or it is made twice");
  CHECK(refusal({{"x.shared", {"y0"}}, {"x.shared", {"y1"}}}) ==
        "plan: copy x.shared: no equations of the program could share such a copy, or it is made "
        "twice");
  CHECK(refusal({{"x.shared", {}}}) == "plan: copy x.shared: no equation reads it");
  CHECK(refusal({{"x.shared", {"y0", "y9"}}}) ==
        "plan: copy x.shared: equation y9 reads nothing that it holds");
}
