#include "Support/Text.h"
#include "Support/DType.h"
#include "Support/Diag.h"
#include "Support/Diagnostic.h"
#include "Support/Pieces.h"

#include <catch2/catch_all.hpp>

#include <bit>
#include <cmath>
#include <random>

using namespace fusec;

TEST_CASE("tokens") {
  TextReader in("foo.bar$1 = -12 -> 1..64 # rest\n \"a\\x41\\n\" 0x1.8p3 1x128 1.5e3", "t.txt");
  CHECK(*in.identifier() == "foo.bar$1");
  CHECK(in.expect("=").ok());
  CHECK(*in.integer() == -12);
  CHECK(in.accept("->"));
  CHECK(*in.integer() == 1);
  CHECK(in.accept(".."));
  CHECK(*in.integer() == 64);
  CHECK(in.peek().line == 2);
  CHECK(*in.string() == "aA\n");
  CHECK(*in.floating() == 12.0);
  CHECK(*in.integer() == 1);
  CHECK(*in.identifier() == "x128");
  CHECK(*in.floating() == 1500.0);
  CHECK(in.atEnd());
  CHECK_FALSE(in.accept(""));
}

TEST_CASE("a string token never counts as punctuation") {
  TextReader in("\"(\" (", "t");
  CHECK_FALSE(in.accept("("));
  CHECK(*in.nameText() == "(");
  CHECK(in.accept("("));
}

TEST_CASE("errors name file and line") {
  TextReader in("a\n  ;", "dump.graph");
  in.next();
  auto r = in.integer();
  REQUIRE_FALSE(r.ok());
  CHECK(format(r.errors()[0]) == "error[E3002] dump.graph:2: expected an integer, found \";\"");
  CHECK_FALSE(TextReader("99999999999999999999", "f").integer().ok());
  CHECK_FALSE(TextReader("\"open", "f").string().ok());
  CHECK_FALSE(TextReader("\"\\q\"", "f").string().ok());
  CHECK(*TextReader("-9223372036854775808", "f").integer() == INT64_MIN);
}

TEST_CASE("raw text ends at a stop outside brackets") {
  TextReader in("floordiv(n, 2) + `a,b`, next", "f");
  CHECK(in.rawUntil(",]") == "floordiv(n, 2) + `a,b`");
  CHECK(in.accept(","));
  CHECK(*in.identifier() == "next");
}

TEST_CASE("names and strings survive printing") {
  for (std::string s : {"a", "a.b$c", "x:0", "", "1a", "q\"\\\n\t\x01", "a.", "a..b", "\xc3\xa4"}) {
    std::string text = nameToText(s) + "..";
    TextReader in(text, "f");
    auto r = in.nameText();
    REQUIRE(r.ok());
    CHECK(*r == s);
    CHECK(in.accept(".."));
  }
  CHECK(nameToText("conv1.weight") == "conv1.weight");
}

TEST_CASE("floats read back to the same bits") {
  CHECK(floatToText(1.0) == "1.0");
  CHECK(floatToText(-0.0) == "-0.0");
  CHECK(floatToText(0.1f) == "0.1");
  CHECK(floatToText(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(floatToText(-std::numeric_limits<float>::infinity()) == "-inf");
  CHECK(floatToText(std::nan("")) == "nan");
  std::mt19937_64 rng(7);
  for (int i = 0; i < 200000; ++i) {
    uint64_t bits = i < 64 ? uint64_t(1) << i : rng();
    double d = std::bit_cast<double>(bits);
    float f = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!std::isnan(d))
      REQUIRE(std::bit_cast<uint64_t>(*TextReader(floatToText(d), "f").floating()) == bits);
    if (!std::isnan(f)) {
      auto back = static_cast<float>(*TextReader(floatToText(f), "f").floating());
      REQUIRE(std::bit_cast<uint32_t>(back) == static_cast<uint32_t>(bits));
    }
  }
}

TEST_CASE("diagnostics are one line of valid text") {
  Diagnostic d{Diag::BadGraph, "m.onnx: node 'a\nb'", "bad \xff \"quote\" \xc3\xa4"};
  CHECK(format(d) == "error[E3103] m.onnx: node 'a\\x0ab': bad \\xff \"quote\" \xc3\xa4");
  CHECK(
      formatJson(d) ==
      R"({"level":"error","code":"E3103","id":"BadGraph","where":"m.onnx: node 'a\\x0ab'","text":)"
      "\"bad \\\\xff \\\"quote\\\" \xc3\xa4\"}");
  CHECK(exitCode(Diag::BadGraph) == ExitCode::BadInput);
  CHECK(exitCode(Diagnostics{}) == ExitCode::Done);
  CHECK(exitCode(Diagnostics{{Diag::UnsupportedOp, "", ""}, d}) == ExitCode::Unsupported);
}

TEST_CASE("type names") {
  for (int i = 0; i < kNumDTypes; ++i)
    CHECK(parseDType(name(static_cast<DType>(i))) == static_cast<DType>(i));
  CHECK_FALSE(parseDType("float").has_value());
}

TEST_CASE("hashes") {
  // XXH3_128bits of the empty input with seed 0, from the xxHash specification.
  CHECK(hash128("").hex() == "99aa06d3014798d86001c324468d497f");
  Hash128 h;
  CHECK(Hash128::fromHex("99aa06d3014798d86001c324468d497f", h));
  CHECK(h == hash128(""));
  PiecewiseHash pieces;
  CHECK(pieces.value() == hash128(""));
  std::vector<uint8_t> data(5000, 7);
  for (size_t at = 0; at < data.size(); at += 1000)
    pieces.add(data.data() + at, 1000);
  CHECK(pieces.value() == hash128(data.data(), data.size()));
  CHECK_FALSE(Hash128::fromHex("99AA06D3014798D86001C324468D497F", h));
  CHECK_FALSE(Hash128::fromHex("99", h));
}
