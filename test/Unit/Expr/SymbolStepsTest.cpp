// Lengths are tuned in steps: in as many elements as stand for one row of the work.
#include "LowerFixture.h"

#include "Graph/SymbolKinds.h"
#include "Support/OptValues.h"
#include "Support/TypeText.h"

using namespace fusec;
using namespace fusec::test;

namespace {

using Sizes = std::vector<int64_t>;

/// A graph that convolves sound, [b, channels, n], again and again.
class Sound {
public:
  explicit Sound(const std::string &symbol, int channels = 1) : symbol(symbol) {
    channelsOf.push_back(channels);
  }

  /// [b, channels, frames] from what the last one made.
  Sound &conv(int channels, int window, int stride) {
    const std::string number = std::to_string(channelsOf.size());
    const std::string size = "[" + std::to_string(window) + "]";
    inputs += "input %w" + number + ": f32[" + std::to_string(channels) + "," +
              std::to_string(channelsOf.back()) + "," + std::to_string(window) + "]\n";
    frames = "floordiv(" + frames + " - " + std::to_string(window) + ", " + std::to_string(stride) +
             ") + 1";
    nodes += "%h" + number + ": f32[b," + std::to_string(channels) + "," + frames + "] = Conv(%" +
             made + ", %w" + number + ") {dilations = [1], group = 1, kernel_shape = " + size +
             ", pads = [0, 0], strides = [" + std::to_string(stride) + "]} @h" + number + "\n";
    made = "h" + number;
    channelsOf.push_back(channels);
    return *this;
  }

  /// Frames of all frames.
  Sound &attend() {
    const std::string columns = std::to_string(channelsOf.back());
    nodes += "%t: f32[b," + frames + "," + columns + "] = Transpose(%" + made +
             ") {perm = [0, 2, 1]} @t\n%s: f32[b," + frames + "," + frames + "] = MatMul(%t, %" +
             made + ") @s\n";
    made = "s";
    return *this;
  }

  /// The lowered program's symbols.
  std::vector<Symbol> symbols() const {
    const std::string text = "graph m\nsymbol b = 1..9223372036854775807 opt any divisor 1\n"
                             "symbol n = " +
                             symbol + "\ninput %x: f32[b," + std::to_string(channelsOf[0]) +
                             ",n]\n" + inputs + nodes + "return %" + made + "\n";
    INFO(text);
    const Result<Graph> graph = parseGraph(text, "text", ConstantStore(""));
    if (!graph.ok())
      FAIL(problems(graph.errors()));
    if (Status s = verify(*graph); !s.ok())
      FAIL(problems(s.errors()));
    Result<ExprProgram> program = lowerGraph(*graph);
    if (!program.ok())
      FAIL(problems(program.errors()));
    const std::vector<Symbol> symbols = program->symbols;
    // As a dump of any stage holds them.
    const Result<ExprProgram> again =
        parseExpr(print(*program, nullptr), "text", ConstantStore(""));
    REQUIRE(again.ok());
    CHECK(again->symbols[1].opt == symbols[1].opt);
    return symbols;
  }

private:
  const std::string symbol;
  std::string inputs, nodes, frames = "n", made = "x";
  std::vector<int> channelsOf;
};

/// What the last symbol is tuned for, without repetitions.
Sizes sizesOf(const std::vector<Symbol> &symbols) {
  Sizes out;
  for (const Sizes &values : tunedSizes(symbols))
    if (out.empty() || values.back() > out.back())
      out.push_back(values.back());
  return out;
}

const std::string kOpen = "..9223372036854775807 opt any divisor ";

} // namespace

TEST_CASE("steps of lengths: sound is tuned by its frames") {
  const std::vector<Symbol> symbols = Sound("425" + kOpen + "1")
                                          .conv(32, 10, 5)
                                          .conv(32, 8, 4)
                                          .conv(32, 4, 4)
                                          .conv(64, 5, 1)
                                          .attend()
                                          .symbols();
  CHECK(symbolText(symbols[1]) == "n = 425..9223372036854775807 opt length of 80 divisor 1");
  CHECK(sizesOf(symbols) == Sizes{425, 640, 10240, 40960});
  CHECK(optValues(symbols).back() == 10240);
  CHECK(tunedSizes(symbols).size() == 8); // as many as of texts
}

TEST_CASE("steps of lengths: what little of the work runs over is no step") {
  // Most of it on every element, or on every other one.
  CHECK(symbolText(Sound("16" + kOpen + "1").conv(64, 3, 1).conv(1, 8, 8).symbols()[1]) ==
        "n = 16..9223372036854775807 opt length divisor 1");
  CHECK(symbolText(Sound("64" + kOpen + "1").conv(64, 8, 2).conv(1, 8, 8).symbols()[1]) ==
        "n = 64..9223372036854775807 opt length of 2 divisor 1");
}

TEST_CASE("steps of lengths: blocks of elements are elements") {
  // Rows of more than 4096 elements are sorted in blocks of as many; what most of the work is there, few rows have.
  const std::string text =
      "graph m\nsymbol b = 1..9223372036854775807 opt any divisor 1\n"
      "symbol n = 1..9223372036854775807 opt any divisor 1\nconstant %i = i64[1] {1}\n"
      "input %x: f32[b,n]\n%s: i64[2] {b, n} = Shape(%x) {end = 2, start = 0} @s\n"
      "%k: i64[1] {n} = Gather(%s, %i) {axis = 0} @k\n"
      "%v: f32[b,n], %p: i64[b,n] = TopK(%x, %k) {axis = 1, largest = 1, sorted = 1} @v\n"
      "return %v, %p\n";
  const Result<Graph> graph = parseGraph(text, "text", ConstantStore(""));
  if (!graph.ok())
    FAIL(problems(graph.errors()));
  Result<ExprProgram> program = lowerGraph(*graph);
  if (!program.ok())
    FAIL(problems(program.errors()));
  CHECK(sizesOf(program->symbols) == Sizes{1, 8, 128, 512});
}

TEST_CASE("steps of lengths: ranges, divisors and sizes that the user favours") {
  const auto sizes = [](const std::string &symbol) {
    return sizesOf(Sound(symbol).conv(64, 20, 20).conv(64, 3, 1).symbols());
  };
  CHECK(sizes("60" + kOpen + "20") == Sizes{60, 160, 2560, 10240});
  CHECK(sizes("60" + kOpen + "48") == Sizes{96, 192, 2592, 10272});
  CHECK(sizes("60..5000 opt any divisor 1") == Sizes{60, 160, 2560, 5000});
  CHECK(sizes("60..60000 opt any divisor 1") == Sizes{60, 160, 2560, 10240, 60000});
  CHECK(sizes("60..60000 opt length divisor 1") == Sizes{60, 128, 512}); // as the graph says
  CHECK(sizes("60..60000 opt 1000 divisor 1") == Sizes{1000});
}

TEST_CASE("steps of lengths: texts") {
  const auto read = [](const std::string &symbol) {
    TextReader in(symbol, "text");
    return parseSymbol(in);
  };
  for (const std::string text :
       {"n = 1..9 opt length of 80 divisor 1", "n = 1..9 opt image divisor 1",
        "n = 1..9 opt any of 4294967296 divisor 1"})
    CHECK(symbolText(*read(text)) == text);
  CHECK(format(read("n = 1..9 opt length of 0 divisor 1").errors()[0]) ==
        "error[E3002] text:1: the step of a symbol is 1 to 4294967296, not 0");
  CHECK(format(read("n = 1..9 opt long divisor 1").errors()[0]) ==
        "error[E3002] text:1: 'long' is no size and no kind of symbol");
}
