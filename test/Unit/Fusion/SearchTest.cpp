// The searches for kernels: order among kernels, what can be one, parts side by side, keys of patterns.
#include "Expr/Rows.h"
#include "Fusion/AccurateCost.h"
#include "Fusion/PatternKeys.h"
#include "SearchFixture.h"

#include <cmath>
#include <functional>
#include <map>
#include <numeric>

using namespace fusec;
using test::Fixture;
using test::maps;
using test::parse;
using test::ProgramText;

TEST_CASE("search: a kernel must not wait for what needs it") {
  Fixture diamond(maps({{"a", {"x"}}, {"b", {"a"}}, {"c", {"a"}}, {"d", {"b", "c"}}}));
  CHECK(diamond.acyclic({}, {"a", "b"}));
  CHECK(diamond.acyclic({}, {"a", "b", "c", "d"}));
  CHECK(diamond.acyclic({}, {"b", "c"}));
  CHECK_FALSE(diamond.acyclic({}, {"a", "d"}));
  CHECK_FALSE(diamond.acyclic({}, {"a", "b", "d"}));
  // Each of two kernels is convex, and each needs the other: a -> f, e -> b.
  Fixture crossed(
      maps({{"a", {"x"}}, {"e", {"x"}}, {"b", {"e"}}, {"f", {"a"}}, {"y", {"b", "f"}}}));
  CHECK(crossed.acyclic({}, {"a", "b"}));
  CHECK(crossed.acyclic({}, {"e", "f"}));
  CHECK_FALSE(crossed.acyclic({crossed.vertices({"a", "b"})}, {"e", "f"}));
  CHECK_FALSE(crossed.acyclic({crossed.vertices({"e", "f"})}, {"a", "b"}));
  CHECK(crossed.acyclic({crossed.vertices({"a", "b"})}, {"f", "y"}));
}

TEST_CASE("search: a kernel that begins later leads back through one that began earlier") {
  // {p, r} is one kernel; q lies between; joining {s, t} would need r, and p needs s.
  Fixture f(maps({{"s", {"x"}}, {"p", {"s"}}, {"q", {"s"}}, {"r", {"q"}}, {"t", {"r", "p"}}}));
  CHECK_FALSE(f.acyclic({f.vertices({"p", "r"})}, {"s", "t"}));
}

TEST_CASE("search: kernels lead back through others, each a window before the last") {
  // s -> u, whose kernel holds p; p -> n, whose kernel holds o; o -> t.
  std::vector<std::pair<std::string, std::vector<std::string>>> list;
  auto add = [&](const std::string &name, const std::string &read, int behind) {
    list.push_back({name, {read}});
    for (int i = 0; i < behind; ++i)
      list.push_back({name + std::to_string(i), {"x"}});
  };
  add("o", "x", 100);
  add("p", "x", 20);
  add("n", "p", 70);
  add("s", "x", 0);
  add("u", "s", 0);
  add("t", "o", 0);
  Fixture f(maps(list));
  CHECK(f.acyclic({f.vertices({"o", "n"})}, {"s", "t"}));
  CHECK(f.acyclic({f.vertices({"p", "u"})}, {"s", "t"}));
  CHECK_FALSE(f.acyclic({f.vertices({"p", "u"}), f.vertices({"o", "n"})}, {"s", "t"}));
}

TEST_CASE("search: kernels lead back from behind the window of the new one") {
  // a -> d, whose kernel holds c, behind the new one's end; c -> f, whose kernel holds e; e -> b.
  std::vector<std::pair<std::string, std::vector<std::string>>> list = {{"a", {"x"}}, {"e", {"x"}}};
  list.push_back({"b", {"e"}});
  for (int i = 0; i < 80; ++i)
    list.push_back({"g" + std::to_string(i), {"x"}});
  list.push_back({"c", {"x"}});
  list.push_back({"f", {"c"}});
  for (int i = 0; i < 80; ++i)
    list.push_back({"h" + std::to_string(i), {"x"}});
  list.push_back({"d", {"a"}});
  Fixture f(maps(list));
  CHECK(f.acyclic({f.vertices({"c", "d"})}, {"a", "b"}));
  CHECK_FALSE(f.acyclic({f.vertices({"c", "d"}), f.vertices({"e", "f"})}, {"a", "b"}));
}

// What finishes a reduction keeps to the limit on which the test for cycles counts.
TEST_CASE("search: a map finishes a reduction within the window of the list alone") {
  const auto reasons = [](int between) {
    ProgramText text("window");
    text.input("a", "8,16").input("b", "16,4").input("z", "8,4");
    text.reduction("c", "i:8, j:4; k:16", "sum", "mul(%a[i, k], %b[k, j])");
    std::string before = "z";
    for (int i = 0; i < between; ++i) {
      const std::string own = "p" + std::to_string(i);
      text.map(own, "i:8, j:4", "exp(%" + before + "[i, j])");
      before = own;
    }
    text.map("y", "i:8, j:4", "mul(%c[i, j], %" + before + "[i, j])");
    const ScheduleOracle oracle = [](const Pattern &pattern) -> Result<KernelTime> {
      const auto isReduction = [](const Item &item) {
        return std::get<Equation>(item.value).kind == EquationKind::Reduction;
      };
      const std::vector<Item> &items = pattern.program.items;
      const bool finished = items.size() == 2 && isReduction(items[0]) && !isReduction(items[1]);
      return KernelTime{finished ? 1 : double(items.size() * items.size()), {}};
    };
    Result<Plan> plan = buildPlan(test::parse(text), *lookupTarget("x86-64-v3"), oracle);
    REQUIRE(plan.ok());
    std::vector<std::string> ofProduct;
    for (const CrossKernelValue &value : plan->crossKernelValues)
      if (value.producer == "c")
        ofProduct.push_back(value.reason);
    return ofProduct;
  };
  CHECK(reasons(127).empty());
  CHECK(reasons(128) == std::vector<std::string>{"they lie more than 128 equations apart"});
}

TEST_CASE("search: a kernel has a limit of equations, of operations and of tensors") {
  // A tree: parentheses nest only so deep.
  const std::function<std::string(int, int, const std::string &)> sum =
      [&](int from, int to, const std::string &leaf) -> std::string {
    if (to - from == 1)
      return "mul(" + leaf + ", " + std::to_string(from) + ".0)";
    const int middle = (from + to) / 2;
    return "add(" + sum(from, middle, leaf) + ", " + sum(middle, to, leaf) + ")";
  };
  const auto why = [](auto text) {
    Fixture f(std::move(text));
    std::vector<int> all(f.region.vertices.size());
    std::iota(all.begin(), all.end(), 0);
    return whyNotOneKernel(f.context, f.region, all);
  };
  const auto ofOperations = [&](int leaves) {
    return why(ProgramText("operations")
                   .input("x", "8")
                   .map("a", "i:8", sum(0, leaves, "%x[i]"))
                   .map("y", "i:8", sum(0, leaves, "%a[i]")));
  };
  CHECK(ofOperations(300) == "");
  CHECK(ofOperations(400) == "they have 2402 operations, and a kernel has 2048 at most");
  const auto ofEquations = [&](int count) {
    std::vector<std::pair<std::string, std::vector<std::string>>> list = {{"a0", {"x"}}};
    for (int i = 1; i < count; ++i)
      list.push_back({"a" + std::to_string(i), {"a" + std::to_string(i - 1)}});
    return why(maps(list));
  };
  CHECK(ofEquations(60) == "");
  CHECK(ofEquations(65) == "a kernel holds 64 equations at most");
  const auto ofTensors = [&](int count) {
    ProgramText text("tensors");
    std::string first = "1.0", second = "%a[i]";
    for (int i = 0; i < count; ++i) {
      const std::string name = "x" + std::to_string(i);
      text.input(name, "8");
      std::string &of = i % 2 == 0 ? first : second;
      of = "add(" + of + ", %" + name + "[i])";
    }
    return why(std::move(text.map("a", "i:8", first).map("y", "i:8", second)));
  };
  CHECK(ofTensors(62) == "");
  CHECK(ofTensors(63) == "a kernel takes 64 tensors at most");
}

TEST_CASE("search: what is the same for each of a batch is made apart from what is not") {
  const auto why = [](const std::string &batch, const std::string &rows, const std::string &at,
                      const std::vector<std::string> &names) {
    Fixture f(ProgramText("p", "symbol b = 1..64 opt " + batch +
                                   " divisor 1\nsymbol n = 1..512 opt length divisor 1\n")
                  .input("x", "b,n,8")
                  .input("w", "8")
                  .map("t", "i:" + rows + ", j:8", "exp(mul(%w[j], cast(f32, i)))")
                  .map("m", "h:b, i:n, j:8", "add(%x[h, i, j], %t[" + at + ", j])")
                  .reduction("s", "h:b, i:n; j:8", "max", "%m[h, i, j]"));
    return whyNotOneKernel(f.context, f.region, f.vertices(names));
  };
  CHECK(why("batch", "n", "i", {"t", "m"}) == "t is the same for each of b, and m is not");
  CHECK(why("batch", "n", "i", {"t", "m", "s"}) == "t is the same for each of b, and m is not");
  CHECK(why("batch", "n", "i", {"m", "s"}) == "");
  CHECK(why("batch", "4", "floormod(i, 4)", {"t", "m", "s"}) == ""); // short with any size
  // A size that the user favours is one that plans are made for.
  CHECK(why("8", "n", "i", {"t", "m", "s"}) == "");
}

TEST_CASE("search: equations without common rows are a kernel of one block, if that pays") {
  Fixture f(maps({{"a", {"x"}}, {"b", {"a"}}}));
  CHECK(whyNotOneKernel(f.context, f.region, {0, 1}).empty());
  Fixture turned(ProgramText("turned")
                     .input("x", "16,16")
                     .map("a", "i:16, j:16", "exp(%x[i, j])")
                     .map("y", "i:16, j:16", "add(%a[j, i], 1.0)"));
  CHECK(commonRows(equationsOf(turned.region, {0, 1})).empty());
  CHECK(whyNotOneKernel(turned.context, turned.region, {0, 1}).empty());
  CHECK(turned.quick->gain({0, 1}) > 0);
  Fixture large(ProgramText("large")
                    .input("x", "4096,4096")
                    .map("a", "i:4096, j:4096", "exp(%x[i, j])")
                    .map("y", "i:4096, j:4096", "add(%a[j, i], 1.0)"));
  CHECK(large.quick->gain({0, 1}) < 0);
}

TEST_CASE("search: parts that do not need each other are side by side, contractions too") {
  const std::string projections =
      ProgramText("projections")
          .input("x", "128,768")
          .input("wq", "768,768")
          .input("wk", "768,768")
          .input("b", "768")
          .reduction("q.acc", "i:128, j:768; r:768", "sum", "mul(%x[i, r], %wq[r, j])")
          .map("q", "i:128, j:768", "add(%q.acc[i, j], %b[j])")
          .reduction("k", "i:128, j:768; r:768", "sum", "mul(%x[i, r], %wk[r, j])")
          .reduction("s", "i:128; r:768", "sum", "%q[i, r]");
  Fixture f(projections);
  CHECK(connectedParts(f.region, {0, 1, 2}) == VertexSets{{0, 1}, {2}});
  CHECK(connectedParts(f.region, {0, 1, 2, 3}) == VertexSets{{0, 1, 3}, {2}});
  CHECK(connectedParts(f.region, {1, 2}) == VertexSets{{1}, {2}});
  CHECK(whyNotOneKernel(f.context, f.region, {0, 1, 2}).empty());
  CHECK(whyNotOneKernel(f.context, f.region, {2, 3}).empty());
  CHECK(f.quick->kernelSeconds({0, 1, 2}) <
        f.quick->kernelSeconds({0, 1}) + f.quick->kernelSeconds({2}));
  // A part must be a kernel by itself.
  CHECK(whyNotOneKernel(f.context, f.region, {0, 1, 2, 3}) ==
        "q.acc is a contraction, which only one map that finishes it joins");
  f.context.packs = false;
  CHECK(whyNotOneKernel(f.context, f.region, {2, 3}) ==
        "s is no map, and only a map finishes a reduction");
}

TEST_CASE("search: what runs as a kernel of its own is no part beside others") {
  Fixture f(R"(expr lone
tensor %x: f32[64] input
tensor %at: i64[64] input
tensor %y: f32[64] output
tensor %z: f32[64] output
inputs (%x, %at)
outputs (%y, %z)
map y [i:64]
  %y = exp(%x[i])
scatter z [i:64] add base %x
  %z[%at[i]] = 1.0
)");
  CHECK(whyNotOneKernel(f.context, f.region, {0, 1}) == "z is a scatter, a kernel of its own");
}

namespace {

/// Two chains of maps that share nothing: a -> b of x, c -> d of z.
const std::string kTwoChains = ProgramText("chains")
                                   .input("x", "64,256")
                                   .input("z", "64,256")
                                   .map("a", "i:64, j:256", "exp(%x[i, j])")
                                   .map("b", "i:64, j:256", "add(%a[i, j], 1.0)")
                                   .map("c", "i:64, j:256", "exp(%z[i, j])")
                                   .map("d", "i:64, j:256", "add(%c[i, j], 1.0)");

std::vector<std::vector<int>> remotePatternsOf(const Fixture &f, const VertexSets &sets,
                                               const FusionLimits &limits = {}) {
  Partition partition(f.region.vertices.size(), -1);
  for (size_t s = 0; s < sets.size(); ++s)
    for (int v : sets[s])
      partition[v] = static_cast<int>(s);
  std::vector<std::vector<int>> found;
  PatternKeys keys(f.program, f.context.uses);
  for (const Candidate &c :
       remotePatterns(f.context, f.region, *f.quick, limits, sets, partition,
                      [&](int v) { return keys.key(*f.region.vertices[v].equation); })) {
    CHECK(c.gain > 0);
    found.push_back(c.vertices);
  }
  return found;
}

} // namespace

TEST_CASE("search: kernels that share nothing are a remote pattern") {
  Fixture f(kTwoChains);
  const std::vector<int> ab = f.vertices({"a", "b"}), cd = f.vertices({"c", "d"});
  CHECK(remotePatternsOf(f, {ab, cd}) == VertexSets{{0, 1, 2, 3}});
  // Kernels are taken whole: %a and %b stay together.
  for (const std::vector<int> &pattern : remotePatternsOf(f, {ab}))
    CHECK(std::count(pattern.begin(), pattern.end(), 0) ==
          std::count(pattern.begin(), pattern.end(), 1));
  // What reads the same value is joined before what does not.
  Fixture shared(maps({{"p", {"x"}}, {"q", {"x"}}, {"r", {"p"}}, {"s", {"q"}}, {"y", {"r", "s"}}}));
  FusionLimits one;
  one.topPatterns = 1;
  one.consumersTogether = 2;
  const VertexSets found = remotePatternsOf(shared, {}, one);
  CHECK(std::count(found.begin(), found.end(), shared.vertices({"p", "q"})) == 1);
}

TEST_CASE("search: a remote pattern around a kernel that needs it and that it needs is refused") {
  Fixture f(maps({{"p", {"x"}}, {"q", {"p"}}, {"t", {"q", "p"}}}));
  for (const std::vector<int> &pattern : remotePatternsOf(f, {}))
    CHECK(pattern != f.vertices({"p", "t"}));
  // Each joins two chains; together they would wait for each other: a -> b, c -> d.
  Fixture chains(kTwoChains);
  const VertexSets ad = {chains.vertices({"a", "d"})};
  for (const std::vector<int> &pattern : remotePatternsOf(chains, ad))
    CHECK(pattern != chains.vertices({"b", "c"}));
}

TEST_CASE("search: a virtual vertex has patterns wherever kernels lie side by side") {
  // Sixteen pairs along a chain: a few for the whole list would leave most of them out.
  std::vector<std::pair<std::string, std::vector<std::string>>> equations;
  std::string before = "x";
  for (int i = 0; i < 16; ++i) {
    const std::string n = std::to_string(i);
    equations.push_back({"a" + n, {before}});
    equations.push_back({"b" + n, {before}});
    equations.push_back({"c" + n, {"a" + n, "b" + n}});
    before = "c" + n;
  }
  Fixture f(maps(equations));
  const VertexSets found = remotePatternsOf(f, {});
  for (int i = 0; i < 16; ++i) {
    const std::string n = std::to_string(i);
    INFO(i);
    CHECK(std::count(found.begin(), found.end(), f.vertices({"a" + n, "b" + n})) == 1);
  }
}

TEST_CASE("search: what takes equally long is told apart by what it computes, not by its order") {
  // Seconds that do not add up to the same in another order.
  const std::map<double, double> rounded = {{1, 0.1e-6}, {2, 0.2e-6}, {3, 0.3e-6}};
  const ScheduleOracle oracle = [&](const Pattern &pattern) -> Result<KernelTime> {
    return KernelTime{rounded.at(double(1 + pattern.signature.low % 3)), {}, 0};
  };
  Fixture one(maps({{"a", {"x"}}, {"b", {"x", "x"}}, {"y", {"a", "b"}}})),
      other(maps({{"b", {"x", "x"}}, {"a", {"x"}}, {"y", {"a", "b"}}}));
  AccurateCost accurate(one.context, one.region, one.target, oracle, 8, 8),
      reordered(other.context, other.region, other.target, oracle, 8, 8);
  auto seconds = [](AccurateCost &j, int v) { return *j.kernelSeconds({v}); };
  CHECK(seconds(accurate, 0) + (seconds(accurate, 1) + seconds(accurate, 2)) ==
        (seconds(accurate, 0) + seconds(accurate, 1)) + seconds(accurate, 2));
  const double sum = 0.1e-6 + 0.2e-6 + 0.3e-6;
  auto exact = [&](double s) { return std::ldexp(s, 50) == std::round(std::ldexp(s, 50)); };
  CHECK(!exact(sum));
  for (int v : {0, 1, 2})
    CHECK(exact(seconds(accurate, v)));
  const uint64_t tie = accurate.tieOf({{{0}}, {{1}}, {{2}}});
  CHECK(tie == accurate.tieOf({{{1}}, {{0}}, {{2}}}));
  CHECK(tie == reordered.tieOf({{{0}}, {{1}}, {{2}}}));
  CHECK(tie != accurate.tieOf({{{0, 1}}, {{2}}}));
}

TEST_CASE("search: a sum of rows and the contraction that needs it are one kernel, a tree") {
  auto rms = [](const std::string &normalised) {
    return ProgramText("rms")
        .input("x", "64,256")
        .input("w", "256,128")
        .reduction("s", "i:64; k:256", "sum", "mul(%x[i, k], %x[i, k])")
        .map("n", "i:64, k:256", normalised)
        .reduction("y", "i:64, j:128; k:256", "sum", "mul(%n[i, k], %w[k, j])");
  };
  auto why = [](Fixture &f) {
    f.context.packs = false;
    return whyNotOneKernel(f.context, f.region, f.vertices({"s", "n", "y"}));
  };
  for (const char *normalised : {"div(%x[i, k], sqrt(%s[i]))", "sub(%x[i, k], sqrt(%s[i]))"}) {
    Fixture f(rms(normalised));
    CHECK(why(f) == "y is a contraction, which only one map that finishes it joins");
    f.context.trees = true;
    CHECK(why(f) == "");
  }
}
