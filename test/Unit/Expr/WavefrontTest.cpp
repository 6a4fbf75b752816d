// Scans one behind the other: the same bits, in as many steps as the distances between them need.
#include "Expr/Wavefront.h"
#include "Expr/Alternatives.h"
#include "ProgramTools.h"

using namespace fusec;
using namespace fusec::test;

namespace {

std::string number(int i) { return std::to_string(i); }

/// Layers of h = tanh(W x + R h) with a counter of cells each, which are outputs as the last layer's states are.
std::string layers(int count, const std::string &steps, int width,
                   const std::string &symbols = "") {
  const std::string n = number(width), of = "f32[" + steps + ",1," + n + "]",
                    state = "f32[1," + n + "]";
  std::string tensors = "expr layers\n" + symbols + "tensor %x: " + of +
                        " input\ntensor %zero: " + state + " input\n",
              equations, inputs = "%x, %zero", outputs = "%y", before = "x";
  for (int l = 0; l < count; ++l) {
    const std::string i = number(l);
    auto add = [&](const std::string &name, const std::string &type) {
      tensors += "tensor %" + name + i + ": " + type + "\n";
    };
    add("w", "f32[" + n + "," + n + "] input");
    add("r", "f32[" + n + "," + n + "] input");
    add("p", of + " temp");
    add("in", of + " temp");
    add("hs", of + " temp");
    add("cells", state + " output");
    for (const char *name : {"q", "h", "next", "c", "cnext"})
      add(name, state + " temp");
    inputs += ", %w" + i + ", %r" + i;
    outputs += ", %cells" + i;
    equations +=
        "reduction p" + i + " [t:" + steps + ", b:1, j:" + n + "; k:" + n + "] sum f32\n  %p" + i +
        " = mul(%" + before + "[t, 0, k], %w" + i + "[j, k])\nmap in" + i + " [t:" + steps +
        ", b:1, j:" + n + "]\n  %in" + i + " = add(%p" + i + "[t, 0, j], 0.25)\nscan hs" + i +
        " steps(" + steps + ")\n  carry %h" + i + " = %zero next %next" + i + "\n  carry %c" + i +
        " = %zero next %cnext" + i + " final %cells" + i + "\n  stack %next" + i + " -> %hs" + i +
        "\n  reduction q" + i + " [b:1, j:" + n + "; k:" + n + "] sum f32\n    %q" + i +
        " = mul(%h" + i + "[0, k], %r" + i + "[j, k])\n  map cnext" + i + " [b:1, j:" + n +
        "]\n    %cnext" + i + " = add(%c" + i + "[0, j], 1.0)\n  map next" + i + " [b:1, j:" + n +
        "]\n    %next" + i + " = tanh(add(%in" + i + "[step, 0, j], %q" + i + "[0, j]))\nend\n";
    before = "hs" + i;
  }
  tensors += "tensor %y: " + of + " output\n";
  equations += "map y [t:" + steps + ", b:1, j:" + n + "]\n  %y = %" + before + "[t, 0, j]\n";
  return tensors + "inputs (" + inputs + ")\noutputs (" + outputs + ")\n" + equations;
}

std::vector<const Equation *> equationsOf(const ExprProgram &p) {
  std::vector<const Equation *> out;
  for (const Item &item : p.items)
    out.push_back(&std::get<Equation>(item.value));
  return out;
}

WavefrontShifts shiftsOf(const ExprProgram &p) {
  return wavefrontShifts(p, equationsOf(p),
                         [&](TensorId t) { return p.tensors[t].kind != TensorKind::Temp; });
}

ExprProgram skewed(const ExprProgram &pattern) {
  std::optional<ExprProgram> made = rewritten(pattern, {{"wavefront", 0}});
  if (!made)
    FAIL(shiftsOf(pattern).why << "\n" << print(pattern, nullptr));
  requireValid(*made);
  REQUIRE(made->items.size() == 1);
  CHECK(made->inputs.size() == pattern.inputs.size());
  CHECK(made->outputs.size() == pattern.outputs.size());
  return std::move(*made);
}

} // namespace

TEST_CASE("ten layers of a hundred steps: 109 steps, 1000 cells") {
  const ExprProgram pattern = parse(layers(10, "100", 2));
  const WavefrontShifts shifts = shiftsOf(pattern);
  REQUIRE(shifts.why.empty());
  CHECK(shifts.steps == DimExpr(109));
  CHECK(shifts.cells(equationsOf(pattern)) == DimExpr(1000));
  const ExprProgram made = skewed(pattern);
  CHECK(equation(made, 0).steps == DimExpr(109));

  // What the cells themselves counted.
  std::mt19937 random(1);
  std::vector<TensorValue> inputs = randomInputs(pattern, {}, random);
  for (int64_t i = 0; i < inputs[1].numElements(); ++i)
    inputs[1].setNumber(i, 0); // what the counters begin with
  const std::vector<TensorValue> outputs = run(made, inputs);
  double cells = 0;
  for (size_t o = 1; o < outputs.size(); ++o)
    cells += outputs[o].number(0);
  CHECK(cells == 1000);
}

TEST_CASE("a wavefront keeps every bit") {
  std::mt19937 random(2);
  for (int count : {1, 2, 5})
    for (const char *steps : {"1", "2", "7"}) {
      INFO(count << " layers of " << steps << " steps");
      const ExprProgram pattern = parse(layers(count, steps, 3));
      const ExprProgram made = skewed(pattern);
      CHECK(equation(made, 0).steps == DimExpr(std::stoi(steps) + count - 1));
      const std::vector<TensorValue> inputs = randomInputs(pattern, {}, random);
      CHECK(sameBits(run(made, inputs), run(pattern, inputs)));
    }
}

TEST_CASE("the number of steps may be a symbol") {
  const ExprProgram pattern = parse(layers(3, "n", 3, "symbol n = 1..9 opt 4 divisor 1\n"));
  const ExprProgram made = skewed(pattern);
  CHECK(equation(made, 0).steps == DimExpr::symbol(0) + DimExpr(2));
  std::mt19937 random(3);
  for (int64_t n : {1, 2, 6}) {
    const std::vector<TensorValue> inputs = randomInputs(pattern, {n}, random);
    CHECK(sameBits(run(made, inputs), run(pattern, inputs)));
  }
  CHECK(shiftsOf(parse(layers(3, "n", 3, "symbol n = 0..9 opt 4 divisor 1\n"))).why ==
        "p0 may have no steps");
}

TEST_CASE("shifts follow from the distances") {
  // The second sum reads `index` of the first, for as many steps as there are.
  auto program = [](const std::string &between, const std::string &scan = "",
                    const std::string &steps = "6", const std::string &tensors = "") {
    return parse(R"(expr sums
tensor %x: f32[8] input
tensor %zero: f32[] input
tensor %a: f32[] temp
tensor %a.next: f32[] temp
tensor %twice: f32[] temp
tensor %as: f32[8] temp
tensor %at: f32[8] temp
tensor %m: f32[)" +
                 steps + R"(] temp
tensor %b: f32[] temp
tensor %b.next: f32[] temp
tensor %bs: f32[)" +
                 steps + "] output\n" + tensors + R"(inputs (%x, %zero)
outputs (%bs)
scan as steps(8))" +
                 scan + R"(
  carry %a = %zero next %a.next
  stack %a.next -> %as
  stack %twice -> %at
  map a.next []
    %a.next = add(%a[], %x[step])
  map twice []
    %twice = mul(%a.next[], 2.0)
end
)" + between + R"(scan bs steps()" +
                 steps + R"()
  carry %b = %zero next %b.next
  stack %b.next -> %bs
  map b.next []
    %b.next = add(mul(%b[], 0.5), %m[step])
end
)");
  };
  struct {
    const char *between;
    int64_t shift; // of the second sum
  } distances[] = {
      {"map m [i:6]\n  %m = %as[i]\n", 1},
      {"map m [i:6]\n  %m = %as[i + 2]\n", 3}, // later steps: they are waited for
      {"map m [i:6]\n  %m = if(le(1, i), %as[i - 1], 0.0)\n", 0},
      {"map m [i:6]\n  %m = if(le(3, i), %as[i - 3], 0.0)\n", -2}, // the first sum is late
  };
  std::mt19937 random(4);
  for (const auto &d : distances) {
    INFO(d.between);
    const ExprProgram pattern = program(d.between);
    const WavefrontShifts shifts = shiftsOf(pattern);
    REQUIRE(shifts.why.empty());
    CHECK(shifts.parts[2].shift - shifts.parts[0].shift == d.shift);
    CHECK(std::min(shifts.parts[0].shift, shifts.parts[2].shift) == 0);
    const std::vector<TensorValue> inputs = randomInputs(pattern, {}, random);
    CHECK(sameBits(run(skewed(pattern), inputs), run(pattern, inputs)));
  }

  struct {
    ExprProgram pattern;
    const char *why;
  } refused[] = {
      {program("map m [i:6]\n  %m = %as[i*-1 + 7]\n"),
       "m reads %as at steps that lie at no constant distance"},
      {program("map m [i:6]\n  %m = %as[i]\n", " reversed"), "as runs backwards"},
      {program("map m [i:6]\n  %m = add(%as[i], %as[i + 1])\n"),
       "m needs steps of as at different distances"},
      {program("map m [i:6]\n  %m = %at[i]\n"), "%at is no state of as"},
      {program("map m [i:6]\n  %m = add(%as[i], %as[5])\n"),
       "m reads %as at steps that lie at no constant distance"},
      {program("reduction m [i:6; k:8] sum f32\n  %m = %as[k]\n"), "m reduces over the steps"},
      // %sum has no dimension that m could read as it reads the steps of %as.
      {program("reduction sum [; k:8] sum f32\n  %sum = %as[k]\nmap m [i:6]\n  %m = %sum[]\n", "",
               "6", "tensor %sum: f32[] temp\n"),
       "sum reduces over the steps"},
  };
  for (const auto &r : refused) {
    CHECK(shiftsOf(r.pattern).why == r.why);
    CHECK(!rewritten(r.pattern, {{"wavefront", 0}}));
  }
}
