// Dimensions of temps that a reshape has folded into one, with a size that runs alone know.
#include "ProgramTools.h"

using namespace fusec;
using namespace fusec::test;

namespace {

const std::string kSymbols = "expr p\nsymbol b = 1..64 opt 2 divisor 1\nsymbol n = 1..64 opt 5 "
                             "divisor 1\nsymbol h = 1..16 opt 2 divisor 1\n";

struct Splitting {
  ExprProgram program; // behind the pass

  /// The bits of all outputs stay, at several sizes.
  explicit Splitting(const std::string &text) : program(splitDimensions(parse(kSymbols + text))) {
    requireValid(program);
    const ExprProgram before = parse(kSymbols + text);
    std::mt19937 random(7);
    for (const std::vector<int64_t> &sizes :
         {std::vector<int64_t>{1, 1, 1}, {1, 5, 3}, {3, 4, 2}}) {
      const std::vector<TensorValue> inputs = randomInputs(before, sizes, random);
      CHECK(sameBits(run(before, inputs), run(program, inputs)));
    }
  }

  std::string text() const { return print(program, nullptr); }
  bool changes(const std::string &before) const {
    return text() != print(parse(kSymbols + before), nullptr);
  }
};

/// Scores of heads, what reads them at their place, and what puts them together as the model's dimensions are.
std::string heads(const std::string &batch, const std::string &count) {
  const std::string rows = batch + "*" + count;
  const std::string number = isdigit(count[0]) ? count : "dim(" + count + ")"; // in a body
  const auto of = [&](const std::string &row) {
    return "floordiv(d0, " + number + "), " + row + ", floormod(d0, " + number + "), k";
  };
  return "tensor %q: f32[" + batch + ",n," + count + ",8] input\ntensor %s: f32[" + rows +
         ",n,n] temp\ntensor %e: f32[" + rows + ",n,n] temp\ntensor %y: f32[" + batch + "," +
         count + ",n,n] output\ninputs (%q)\noutputs (%y)\n" + "reduction s [d0:" + rows +
         ", i:n, j:n; k:8] sum f32\n  %s = mul(%q[" + of("i") + "], %q[" + of("j") +
         "])\nmap e [d0:" + rows + ", i:n, j:n]\n  %e = max(%s[d0, i, j], 0.0)\nmap y [b:" + batch +
         ", h:" + count + ", i:n, j:n]\n  %y = add(%e[b*" + number + " + h, i, j], 1.0)\n";
}

} // namespace

TEST_CASE("split dimensions: a batch of heads, and what reads them at their place") {
  const Splitting made(heads("b", "4"));
  CHECK(made.program.tensors[1].shape.size() == 4);
  CHECK(made.program.tensors[2].shape.size() == 4);
  CHECK(body(made.program, 0) == "%s = mul(%q[d0.0, i, d0.1, k], %q[d0.0, j, d0.1, k])");
  CHECK(body(made.program, 1) == "%e = max(%s[d0.0, d0.1, i, j], 0.0)");
  CHECK(body(made.program, 2) == "%y = add(%e[b, h, i, j], 1.0)");
}

TEST_CASE("split dimensions: what stays whole") {
  // Dimensions of fixed size, and products of sizes that runs know.
  CHECK(!Splitting(heads("2", "4")).changes(heads("2", "4")));
  CHECK(!Splitting(heads("b", "h")).changes(heads("b", "h")));
  // An output keeps its shape, and what it reads at its own place would be divided there instead.
  std::string output = heads("b", "4");
  output.replace(output.find("%e: f32[b*4,n,n] temp"), 21, "%e: f32[b*4,n,n] output");
  output.replace(output.find("outputs (%y)"), 12, "outputs (%y, %e)");
  CHECK(!Splitting(output).changes(output));
  // One reader takes heads apart by 4, the other one by 2 of a batch twice as long: one division for another.
  const std::string other = "tensor %x: f32[b,4] input\ntensor %t: f32[b*4] temp\n"
                            "tensor %y: f32[b*2,2] output\ninputs (%x)\noutputs (%y)\n"
                            "map t [d0:b*4]\n  %t = exp(%x[floordiv(d0, 4), floormod(d0, 4)])\n"
                            "map y [i:b*2, j:2]\n  %y = add(%t[i*2 + j], %t[i*2 + j])\n";
  CHECK(!Splitting(other).changes(other));
}

TEST_CASE("split dimensions: a sum over heads is split behind it") {
  const std::string sum =
      "tensor %x: f32[n,b,4] input\ntensor %w: f32[b*4,7] input\n"
      "tensor %t: f32[n,b*4] temp\ntensor %y: f32[n,7] output\n"
      "inputs (%x, %w)\noutputs (%y)\n"
      "map t [i:n, d0:b*4]\n  %t = exp(%x[i, floordiv(d0, 4), floormod(d0, 4)])\n"
      "reduction y [i:n, j:7; k:b*4] sum f32\n  %y = mul(%t[i, k], %w[k, j])\n";
  const Splitting made(sum);
  const ExprProgram behind = splitAxes(made.program);
  CHECK(print(behind, nullptr).find("floordiv") == std::string::npos);
}
