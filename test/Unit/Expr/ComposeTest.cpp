// Vertical composition: what is written into which reader, and that the maps compose in the right order.
#include "ProgramTools.h"

using namespace fusec;
using namespace fusec::test;

namespace {
ExprProgram composed(const std::string &text) {
  ExprProgram p = compose(parse(text));
  requireValid(p);
  return p;
}
} // namespace

TEST_CASE("a slice under a transpose composes in the right order (Souffle Fig. 4, corrected)") {
  auto p = composed(R"(expr fig4
tensor %b: f32[8,3] input
tensor %c: f32[4,3] temp
tensor %d: f32[3,4] output
inputs (%b)
outputs (%d)
map c [i:4, j:3]
  %c = %b[i*2, j]
map d [i:3, j:4]
  %d = max(%c[j, i], 0.0)
)");
  REQUIRE(p.items.size() == 1);
  CHECK(body(p, 0) == "%d = max(%b[j*2, i], 0.0)");
}

TEST_CASE("split heads, transpose, transpose back and merge is the identity") {
  auto p = composed(R"(expr heads
symbol n = 1..512 opt 128 divisor 1
tensor %x: f32[1,n,768] input
tensor %r: f32[1,n,12,64] temp
tensor %t: f32[1,12,n,64] temp
tensor %u: f32[1,n,12,64] temp
tensor %y: f32[1,n,768] output
inputs (%x)
outputs (%y)
map r [b:1, s:n, h:12, d:64]
  let t0 = b*dim(n*768) + s*768 + h*64 + d;
  %r = %x[floordiv(t0, dim(n*768)), floormod(floordiv(t0, 768), dim(n)), floormod(t0, 768)]
map t [b:1, h:12, s:n, d:64]
  %t = %r[b, s, h, d]
map u [b:1, s:n, h:12, d:64]
  %u = %t[b, h, s, d]
map y [b:1, s:n, k:768]
  %y = exp(%u[b, s, floordiv(k, 64), floormod(k, 64)])
)");
  REQUIRE(p.items.size() == 1);
  CHECK(body(p, 0) == "%y = exp(%x[b, s, k])");
}

TEST_CASE("concat, shuffle and split leave no intermediate tensor") {
  const char *text = R"(expr shuffle
tensor %a: f32[1,4,5] input
tensor %b: f32[1,4,5] input
tensor %cat: f32[1,8,5] temp
tensor %group: f32[1,2,4,5] temp
tensor %swap: f32[1,4,2,5] temp
tensor %flat: f32[1,8,5] temp
tensor %left: f32[1,4,5] output
tensor %right: f32[1,4,5] output
inputs (%a, %b)
outputs (%left, %right)
map cat [n:1, c:8, x:5]
  %cat = if(lt(c, 4), %a[n, c, x], if(lt(3, c), %b[n, c - 4, x], 0.0))
map group [n:1, g:2, c:4, x:5]
  %group = %cat[n, g*4 + c, x]
map swap [n:1, c:4, g:2, x:5]
  %swap = %group[n, g, c, x]
map flat [n:1, c:8, x:5]
  %flat = %swap[n, floordiv(c, 2), floormod(c, 2), x]
map left [n:1, c:4, x:5]
  %left = %flat[n, c, x]
map right [n:1, c:4, x:5]
  %right = %flat[n, c + 4, x]
)";
  auto p = composed(text);
  CHECK(p.items.size() == 2);
  CHECK(p.tensors.size() == 4);
  std::mt19937 random(1);
  auto inputs = randomInputs(p, {}, random);
  CHECK(sameBits(run(parse(text), inputs), run(p, inputs)));
}

TEST_CASE(
    "a concatenation is written into a sum, not into windows that come by its elements again") {
  const auto equationsOf = [](const char *window) {
    return composed(std::string(R"(expr sums
tensor %a: f32[4,12] input
tensor %b: f32[4,12] input
tensor %cat: f32[8,12] temp
tensor %y: f32[8,4] output
inputs (%a, %b)
outputs (%y)
map cat [c:8, x:12]
  %cat = if(lt(c, 4), %a[c, x], if(lt(3, c), %b[c - 4, x], 0.0))
reduction y [c:8, i:4; )") +
                    window)
        .items.size();
  };
  CHECK(equationsOf("r:3] sum f32\n  %y = %cat[c, i*3 + r]\n") == 1);
  CHECK(equationsOf("r:9] sum f32\n  %y = %cat[c, i + r]\n") == 2);
}

TEST_CASE("a pad is written into a convolution, an activation is not") {
  auto p = composed(R"(expr conv
tensor %x: f32[1,3,8,8] input
tensor %w: f32[4,3,3,3] input
tensor %act: f32[1,3,8,8] temp
tensor %pad: f32[1,3,10,10] temp
tensor %y: f32[1,4,8,8] output
inputs (%x, %w)
outputs (%y)
map act [n:1, c:3, y:8, x:8]
  %act = max(%x[n, c, y, x], 0.0)
map pad [n:1, c:3, y:10, x:10]
  %pad = if(and(and(lt(0, y), lt(y, 9)), and(lt(0, x), lt(x, 9))), %act[n, c, y - 1, x - 1], 0.0)
reduction conv [n:1, o:4, y:8, x:8; c:3, r:3, s:3] sum f32
  %y = mul(%pad[n, c, y + r, x + s], %w[o, c, r, s])
)");
  REQUIRE(p.items.size() == 2);
  CHECK(body(p, 1) ==
        "%y = mul(if(and(and(and(lt(0, y + r), lt(y + r, 9)), lt(0, x + s)), lt(x + s, 9)), "
        "%act[n, c, y + r - 1, x + s - 1], 0.0), %w[o, c, r, s])");
}

TEST_CASE("a guard covers the reads of what is written in its place") {
  const char *text = R"(expr guard
tensor %ids: i64[4] input
tensor %x: f32[40] input
tensor %g: f32[4] temp
tensor %y: f32[8] output
inputs (%ids, %x)
outputs (%y)
map g [i:4]
  %g = neg(%x[%ids[i]])
map y [i:8]
  %y = if(lt(3, i), %g[i - 4], -1.0)
)";
  auto p = composed(text);
  REQUIRE(p.items.size() == 1);
  std::mt19937 random(2);
  auto inputs = randomInputs(p, {}, random);
  CHECK(sameBits(run(parse(text), inputs), run(p, inputs)));
}

TEST_CASE(
    "a residual sum with several readers is kept, a cheap one with broadcast operands is not") {
  auto p = composed(R"(expr residual
tensor %x: f32[64,64] input
tensor %r: f32[64,64] input
tensor %b: f32[64] input
tensor %sum: f32[64,64] temp
tensor %bias: f32[64,64] temp
tensor %m: f32[64] output
tensor %y: f32[64,64] output
tensor %z: f32[64] output
tensor %v: f32[64,64] output
inputs (%x, %r, %b)
outputs (%m, %y, %z, %v)
map sum [i:64, j:64]
  %sum = add(%x[i, j], %r[i, j])
map bias [i:64, j:64]
  %bias = add(%x[i, j], %b[j])
reduction m [i:64; j:64] max f32
  %m = %sum[i, j]
map y [i:64, j:64]
  %y = exp(%sum[i, j])
reduction z [i:64; j:64] max f32
  %z = %bias[i, j]
map v [i:64, j:64]
  %v = exp(%bias[i, j])
)");
  REQUIRE(p.items.size() == 5);
  CHECK(body(p, 0) == "%sum = add(%x[i, j], %r[i, j])");
  CHECK(body(p, 3) == "%z = add(%x[i, j], %b[j])");
}

TEST_CASE("an expensive value is not computed again for every use") {
  auto p = composed(R"(expr broadcast
tensor %x: f32[64] input
tensor %e: f32[64] temp
tensor %y: f32[32,64] output
inputs (%x)
outputs (%y)
map e [j:64]
  %e = exp(%x[j])
map y [i:32, j:64]
  %y = neg(%e[j])
)");
  CHECK(p.items.size() == 2);
}

TEST_CASE("what stands before a scan, a loop or a branch is not made again inside") {
  const std::string head = R"(expr scopes
tensor %x: f32[4] input
tensor %zero: f32[4] input
tensor %go: bool[] input
tensor %e: f32[4] temp
tensor %h: f32[4] temp
tensor %next: f32[4] temp
tensor %other: f32[4] temp
tensor %more: bool[] temp
tensor %y: f32[4] output
inputs (%x, %zero, %go)
outputs (%y)
map e [j:4]
  %e = exp(%x[j])
)";
  const std::string step = "  map step [j:4]\n    %next = add(%h[j], %e[j])\n";
  const std::string carry = "  carry %h = %zero next %next final %y\n";
  for (const std::string &inside : std::vector<std::string>{
           "scan y steps(9)\n" + carry + step + "end\n",
           "loop y condition %go next %more\n" + carry + step +
               "  map more []\n    %more = lt(%next[0], 1.0)\nend\n",
           "if y %go\n  map next [j:4]\n    %next = neg(%e[j])\n  yield (%next)\nelse\n"
           "  map other [j:4]\n    %other = neg(%x[j])\n  yield (%other)\nend -> (%y)\n"}) {
    INFO(inside);
    const ExprProgram p = composed(head + inside);
    REQUIRE(p.items.size() == 2);
    CHECK(body(p, 0) == "%e = exp(%x[j])");
  }
}

TEST_CASE("equal equations are computed once") {
  auto p = parse(R"(expr twins
tensor %x: f32[4] input
tensor %a: f32[] temp
tensor %b: f32[] temp
tensor %y: f32[4] output
inputs (%x)
outputs (%y)
reduction a [; i:4] sum f32
  %a = %x[i]
reduction b [; i:4] sum f32
  %b = %x[i]
map y [i:4]
  %y = add(%a[], mul(%b[], %x[i]))
)");
  p = eliminateCommonEquations(std::move(p));
  requireValid(p);
  CHECK(p.items.size() == 2);
  CHECK(body(p, 1) == "%y = add(%a[], mul(%a[], %x[i]))");
}

TEST_CASE("convolutions keep their images with the channel innermost") {
  const char *text = R"(expr cnn
tensor %x: f32[1,3,8,8] input
tensor %w: f32[4,3,3,3] input
tensor %v: f32[5,4] input
tensor %c: f32[1,4,6,6] temp
tensor %p: f32[1,4,3,3] temp
tensor %y: f32[1,5,3,3] output
inputs (%x, %w, %v)
outputs (%y)
reduction c [n:1, o:4, y:6, x:6; c:3, r:3, s:3] sum f32
  %c = mul(%x[n, c, y + r, x + s], %w[o, c, r, s])
reduction p [n:1, c:4, y:3, x:3; r:2, s:2] max f32
  %p = max(%c[n, c, y*2 + r, x*2 + s], 0.0)
reduction d [n:1, o:5, y:3, x:3; c:4] sum f32
  %y = mul(%p[n, c, y, x], %v[o, c])
)";
  auto before = parse(text);
  auto p = channelsLast(parse(text));
  requireValid(p);
  CHECK(print(p, nullptr) == R"(expr cnn
tensor %x: f32[1,3,8,8] input
tensor %w: f32[4,3,3,3] input
tensor %v: f32[5,4] input
tensor %c: f32[1,6,6,4] temp
tensor %p: f32[1,3,3,4] temp
tensor %y: f32[1,5,3,3] output
inputs (%x, %w, %v)
outputs (%y)
reduction c [n:1, y:6, x:6, o:4; c:3, r:3, s:3] sum f32
  %c = mul(%x[n, c, y + r, x + s], %w[o, c, r, s])
reduction p [n:1, y:3, x:3, c:4; r:2, s:2] max f32
  %p = max(%c[n, y*2 + r, x*2 + s, c], 0.0)
reduction d [n:1, o:5, y:3, x:3; c:4] sum f32
  %y = mul(%p[n, y, x, c], %v[o, c])
)");
  std::mt19937 random(3);
  auto inputs = randomInputs(p, {}, random);
  CHECK(sameBits(run(before, inputs), run(p, inputs)));
}

TEST_CASE("between convolutions in groups, groups and their channels go behind the image") {
  const char *text = R"(expr groups
tensor %x: f32[1,6,5,7] input
tensor %u: f32[4,6] input
tensor %w: f32[6,2,3,3] input
tensor %v: f32[5,6] input
tensor %a: f32[1,4,5,7] temp
tensor %g: f32[1,2,3,3,5] temp
tensor %b: f32[1,6,3,5] temp
tensor %y: f32[1,5,3,5] output
inputs (%x, %u, %w, %v)
outputs (%y)
reduction a [n:1, o:4, y:5, x:7; c:6] sum f32
  %a = mul(%x[n, c, y, x], %u[o, c])
reduction g [n:1, g:2, o:3, y:3, x:5; c:2, r:3, s:3] sum f32
  %g = mul(%a[n, g*2 + c, y + r, x + s], %w[g*3 + o, c, r, s])
map b [n:1, c:6, y:3, x:5]
  %b = max(%g[n, floordiv(c, 3), floormod(c, 3), y, x], 0.0)
reduction d [n:1, o:5, y:3, x:5; c:6] sum f32
  %y = mul(%b[n, c, y, x], %v[o, c])
)";
  auto before = parse(text);
  auto p = channelsLast(parse(text));
  requireValid(p);
  CHECK(print(p, nullptr) == R"(expr groups
tensor %x: f32[1,6,5,7] input
tensor %u: f32[4,6] input
tensor %w: f32[6,2,3,3] input
tensor %v: f32[5,6] input
tensor %a: f32[1,5,7,4] temp
tensor %g: f32[1,3,5,2,3] temp
tensor %b: f32[1,3,5,6] temp
tensor %y: f32[1,5,3,5] output
inputs (%x, %u, %w, %v)
outputs (%y)
reduction a [n:1, y:5, x:7, o:4; c:6] sum f32
  %a = mul(%x[n, c, y, x], %u[o, c])
reduction g [n:1, y:3, x:5, g:2, o:3; c:2, r:3, s:3] sum f32
  %g = mul(%a[n, y + r, x + s, g*2 + c], %w[g*3 + o, c, r, s])
map b [n:1, y:3, x:5, c:6]
  %b = max(%g[n, y, x, floordiv(c, 3), floormod(c, 3)], 0.0)
reduction d [n:1, o:5, y:3, x:5; c:6] sum f32
  %y = mul(%b[n, y, x, c], %v[o, c])
)");
  std::mt19937 random(5);
  auto inputs = randomInputs(p, {}, random);
  CHECK(sameBits(run(before, inputs), run(p, inputs)));
}

TEST_CASE("a reduction over merged heads is affine again") {
  const char *text = R"(expr merge
tensor %ctx: f32[4,5,6] input
tensor %w: f32[24,7] input
tensor %y: f32[5,7] output
inputs (%ctx, %w)
outputs (%y)
reduction o [s:5, j:7; r:24] sum f32
  %y = mul(%ctx[floordiv(r, 6), s, floormod(r, 6)], %w[r, j])
)";
  auto p = splitAxes(parse(text));
  requireValid(p);
  CHECK(body(p, 0) == "%y = mul(%ctx[r.0, s, r.1], %w[r.0*6 + r.1, j])");
  CHECK(equation(p, 0).axes.size() == 4);
  std::mt19937 random(4);
  auto inputs = randomInputs(p, {}, random);
  CHECK(sameBits(run(parse(text), inputs), run(p, inputs)));
}

TEST_CASE("an index that takes a maths function is made once, not by every reader") {
  // Buckets of relative positions: all heads and both layers look up the same ones.
  const auto program = [](const std::string &bucket) {
    return composed("expr buckets\nsymbol n = 1..64 opt 16 divisor 1\ntensor %w: f32[32,4] input\n"
                    "tensor %a: f32[4,n,n] input\ntensor %b: f32[4,n,n] input\n"
                    "tensor %i: i64[n,n] temp\ntensor %g: f32[n,n,4] temp\n"
                    "tensor %y: f32[4,n,n] output\ntensor %z: f32[4,n,n] output\n"
                    "inputs (%w, %a, %b)\noutputs (%y, %z)\nmap i [i:n, j:n]\n  %i = " +
                    bucket +
                    "\nmap g [i:n, j:n, h:4]\n  %g = %w[min(max(0, %i[i, j]), 31), h]\n"
                    "map y [h:4, i:n, j:n]\n  %y = add(%a[h, i, j], %g[i, j, h])\n"
                    "map z [h:4, i:n, j:n]\n  %z = add(%b[h, i, j], %g[i, j, h])\n");
  };
  const ExprProgram dear = program("cast(i64, mul(log(cast(f32, abs(i + j*-1) + 1)), 4.0))");
  REQUIRE(dear.items.size() == 3);
  CHECK(body(dear, 1).find("%w[min(max(0, %i[i, j]), 31), h]") != std::string::npos);
  // What is as cheap as other indices is written into the readers.
  CHECK(program("floordiv(abs(i + j*-1), 2)").items.size() == 2);
}

TEST_CASE("a table that follows from sizes is looked up once, in the order of its readers") {
  // The model lays a bias of each head by rows and columns first, and gives it to both layers.
  const auto program = [](const std::string &n, const std::string &weights, int layers) {
    std::string text =
        "expr table\nsymbol n = 1..64 opt 16 divisor 1\ntensor %w: f32[4,2] " + weights +
        "\ntensor %a: f32[3,2," + n + "," + n + "] input\ntensor %g: f32[" + n + "," + n +
        ",2] temp\ntensor %t: f32[2," + n + "," + n + "] temp\ntensor %y: f32[3,2," + n + "," + n +
        "] output\ntensor %z: f32[3,2," + n + "," + n + "] output\ninputs (" +
        (weights == "input" ? "%w, " : "") + "%a)\noutputs (%y, %z)\nmap g [i:" + n + ", j:" + n +
        ", h:2]\n  %g = %w[min(abs(i + j*-1), 3), h]\nmap t [h:2, i:" + n + ", j:" + n +
        "]\n  %t = %g[i, j, h]\n";
    for (const char *out : {"y", "z"})
      text += "map " + std::string(out) + " [b:3, h:2, i:" + n + ", j:" + n + "]\n  %" + out +
              " = add(%a[b, h, i, j], " + (layers == 2 || *out == 'y' ? "%t[h, i, j]" : "1.0") +
              ")\n";
    return composed(text);
  };
  const std::string fixed = "constant {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}";
  for (int layers : {1, 2}) { // the batch alone repeats it too
    const ExprProgram table = program("n", fixed, layers);
    REQUIRE(table.items.size() == 3);
    CHECK(body(table, 0) == "%t = %w[min(abs(i + j*-1), 3), h]");
    CHECK(body(table, 1) == "%y = add(%a[b, h, i, j], %t[h, i, j])");
  }
  // Of an input it may be a row of many that a run needs; with known sizes folding has its say.
  CHECK(program("n", "input", 2).items.size() == 2);
  CHECK(program("16", fixed, 2).items.size() == 2);
}
