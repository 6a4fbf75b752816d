// Sizes to tune kernels for follow from what a graph does with its symbols.
#include "Graph/SymbolKinds.h"
#include "Support/OptValues.h"

#include <catch2/catch_all.hpp>

using namespace fusec;

namespace {

const std::string kOpen = "1..9223372036854775807";

std::vector<Symbol> symbolsOf(const std::vector<std::string> &symbols, const std::string &body) {
  std::string text = "graph m\n";
  for (const std::string &symbol : symbols)
    text += "symbol " + symbol + "\n";
  const Result<Graph> graph = parseGraph(text + body, "text", ConstantStore(""));
  if (!graph.ok())
    FAIL(format(graph.errors().front()));
  return withKinds(*graph);
}

using Sizes = std::vector<int64_t>;

/// What one symbol is tuned for, without repetitions.
Sizes sizesOf(const std::vector<Symbol> &symbols, size_t symbol) {
  return tunedSizesOfEach(symbols)[symbol];
}

const std::string kAttention = "input %x: f32[b,n,8]\n"
                               "%t: f32[b,8,n] = Transpose(%x) {perm = [0, 2, 1]} @t\n"
                               "%s: f32[b,n,n] = MatMul(%x, %t) @s\n"
                               "%p: f32[b,n,n] = Softmax(%s) {axis = 2} @p\n"
                               "%y: f32[b,n,8] = MatMul(%p, %x) @y\nreturn %y\n";

} // namespace

TEST_CASE("chosen sizes: a batch of texts, whatever their symbols are called") {
  for (const auto &[first, second] : {std::pair("b", "n"), std::pair("n", "b")}) {
    const std::vector<Symbol> chosen =
        symbolsOf({std::string(first) + " = " + kOpen + " opt any divisor 1",
                   std::string(second) + " = " + kOpen + " opt any divisor 1"},
                  kAttention);
    const size_t batch = first == std::string("b") ? 0 : 1;
    CHECK(sizesOf(chosen, batch) == Sizes{1, 8});
    CHECK(sizesOf(chosen, 1 - batch) == Sizes{1, 8, 128, 512});
    CHECK(tunedSizes(chosen).size() == 8);
    CHECK(optValues(chosen) == (batch == 0 ? Sizes{1, 128} : Sizes{128, 1}));
  }
  // What is reduced as a whole, as indices that a run tests, tells of no axis.
  const std::vector<Symbol> whole =
      symbolsOf({"b = " + kOpen + " opt any divisor 1", "n = " + kOpen + " opt any divisor 1"},
                kAttention.substr(0, kAttention.find("return")) +
                    "%m: f32[] = ReduceMax(%x) {axes = [0, 1, 2], keepdims = 0} @m\n"
                    "return %y, %m\n");
  CHECK(sizesOf(whole, 0) == Sizes{1, 8});
  // Steps first: what leads the inputs is what is attended to.
  const std::vector<Symbol> steps =
      symbolsOf({"n = " + kOpen + " opt any divisor 1", "b = " + kOpen + " opt any divisor 1"},
                "input %i: f32[n,b,8]\n%x: f32[b,n,8] = Transpose(%i) {perm = [1, 0, 2]} @i\n" +
                    kAttention.substr(kAttention.find('\n') + 1));
  CHECK(sizesOf(steps, 0) == Sizes{1, 8, 128, 512});
}

TEST_CASE("chosen sizes: rows alone, images, ranges and divisors") {
  const std::string rows = "constant %w = f32[2,2] {1.0, 2.0, 3.0, 4.0}\ninput %x: f32[n,2]\n"
                           "%y: f32[n,2] = MatMul(%x, %w) @y\nreturn %y\n";
  auto sizes = [&](const std::string &symbol) { return sizesOf(symbolsOf({symbol}, rows), 0); };
  CHECK(sizes("n = " + kOpen + " opt any divisor 1") == Sizes{1, 8, 64});
  CHECK(sizes("n = 1..4 opt any divisor 1") == Sizes{1, 4});
  CHECK(sizes("n = 3..1000 opt any divisor 1") == Sizes{3, 8, 64});
  CHECK(sizes("n = 1..256 opt any divisor 1") == Sizes{1, 8, 64, 256}); // what a range ends with
  CHECK(sizes("n = 6..600 opt any divisor 6") == Sizes{6, 12, 66});
  CHECK(sizes("n = 1..512 opt 32 divisor 1") == Sizes{32}); // favoured
  CHECK(optValues(symbolsOf({"n = 1..512 opt 32 divisor 1"}, rows)) == Sizes{32});
  const Symbol favoured = symbolsOf({"n = 1..512 opt 32 divisor 1"}, rows)[0];
  CHECK(isFavoured(favoured));
  CHECK(kindOf(favoured) == SymbolKind::Batch);
  CHECK(isOpen(favoured, SymbolKind::Batch));
  CHECK_FALSE(isOpen(favoured, SymbolKind::Length));
  CHECK_FALSE(isOpen(symbolsOf({"n = 7..7 opt any divisor 1"}, rows)[0], SymbolKind::Batch));
  CHECK(sizes("n = 7..7 opt any divisor 1") == Sizes{7});
  CHECK(optValues(symbolsOf({"n = 7..7 opt any divisor 1"}, rows)) == Sizes{7});

  const std::vector<Symbol> images = symbolsOf(
      {"h = 32..4096 opt any divisor 32", "w = 32..4096 opt any divisor 32",
       "b = " + kOpen + " opt any divisor 1"},
      "constant %k = f32[1,3,1,1] {1.0, 2.0, 3.0}\ninput %x: f32[b,3,h,w]\n%y: f32[b,1,h,w] = "
      "Conv(%x, "
      "%k) {dilations = [1, 1], group = 1, kernel_shape = [1, 1], pads = [0, 0, 0, 0], strides = "
      "[1, 1]} @y\nreturn %y\n");
  CHECK(tunedSizes(images) ==
        std::vector<Sizes>{
            {64, 64, 1}, {64, 64, 8}, {224, 224, 1}, {224, 224, 8}, {320, 320, 1}, {320, 320, 8}});
  CHECK(optValues(images) == Sizes{224, 224, 1});
}

TEST_CASE("chosen sizes: of several lengths one at a time is short too") {
  const std::vector<Symbol> chosen =
      symbolsOf({"past = " + kOpen + " opt any divisor 1", "n = " + kOpen + " opt any divisor 1"},
                "input %p: f32[1,past,8]\ninput %x: f32[1,n,8]\n"
                "%y: f32[1,n + past,8] = Concat(%p, %x) {axis = 1} @y\nreturn %y\n");
  const auto has = [&](const Sizes &wanted) {
    const std::vector<Sizes> all = tunedSizes(chosen);
    return std::find(all.begin(), all.end(), wanted) != all.end();
  };
  CHECK(has({128, 1}));
  CHECK(has({1, 128}));
  CHECK(has({128, 128}));
  CHECK(has({512, 512}));
  CHECK(optValues(chosen) == Sizes{128, 128});
}
