// Compulsory traffic of small patterns, against what follows by counting elements.
#include "Tiling/counts/CompulsoryTraffic.h"
#include "Candidates.h"

using namespace fusec;
using namespace fusec::test;

namespace {

struct Elements {
  double read, written;
  bool operator==(const Elements &) const = default;
};
std::ostream &operator<<(std::ostream &out, const Elements &e) {
  return out << e.read << " read, " << e.written << " written";
}

/// Four bytes an element.
Elements trafficOf(const std::string &text) {
  const Traffic traffic = compulsoryTraffic(patternFrom("expr p\n" + text));
  return {traffic.readBytes / 4, traffic.writtenBytes / 4};
}

/// A map from x[shape] to y[n].
Elements mapOf(const std::string &shape, int n, const std::string &body) {
  return trafficOf("tensor %x: f32[" + shape + "] input\ntensor %y: f32[" + std::to_string(n) +
                   "] output\ninputs (%x)\noutputs (%y)\nmap y [i:" + std::to_string(n) +
                   "]\n  %y = " + body + "\n");
}

} // namespace

TEST_CASE("A map reads the part of a tensor that its indices reach") {
  CHECK(mapOf("100", 100, "exp(%x[i])") == Elements{100, 100});
  CHECK(mapOf("100", 8, "exp(%x[i + 4])") == Elements{8, 8});
  CHECK(mapOf("100", 8, "exp(%x[i*3 + 4])") == Elements{8, 8});
  CHECK(mapOf("100", 100, "exp(%x[i*-1 + 99])") == Elements{100, 100});
  CHECK(mapOf("1", 50, "exp(%x[0])") == Elements{1, 50});
  CHECK(mapOf("12, 12", 12, "exp(%x[i, i])") == Elements{12, 12});
  CHECK(mapOf("12, 64", 768, "exp(%x[floordiv(i, 64), floormod(i, 64)])") == Elements{768, 768});
  CHECK(mapOf("12, 64", 100, "exp(%x[floordiv(i, 10), floormod(i, 10)])") == Elements{100, 100});
  CHECK(mapOf("100", 60, "exp(%x[floordiv(i, 3)])") == Elements{20, 60});
}

TEST_CASE("What two reads share is read once, padding never") {
  CHECK(mapOf("100", 50, "add(%x[i], %x[i])") == Elements{50, 50});
  CHECK(mapOf("100", 50, "add(%x[i], %x[i + 1])") == Elements{51, 50});
  CHECK(mapOf("100", 50, "add(%x[i*2], %x[i*2 + 1])") == Elements{100, 50});
  CHECK(mapOf("100", 30, "add(%x[i], %x[i + 60])") == Elements{60, 30});
  CHECK(mapOf("100", 110, "if(and(le(5, i), le(i, 104)), %x[i - 5], 0.0)") == Elements{100, 110});
}

TEST_CASE("A choice between tensors reads the chosen part of each") {
  // A concatenation, split in two channels and shuffled: traffic = inputs + outputs.
  CHECK(trafficOf("tensor %a: f32[16] input\ntensor %b: f32[16] input\ntensor %y: f32[32] output\n"
                  "inputs (%a, %b)\noutputs (%y)\nmap y [i:32]\n"
                  "  let t0 = floordiv(i, 2) + floormod(i, 2)*16;\n"
                  "  %y = if(lt(t0, 16), %a[t0], if(lt(15, t0), %b[t0 - 16], 0.0))\n") ==
        Elements{32, 32});
  // Its second half alone.
  CHECK(trafficOf("tensor %a: f32[64] input\ntensor %y: f32[32] output\n"
                  "inputs (%a)\noutputs (%y)\nmap y [i:32]\n"
                  "  %y = if(and(lt(15, i), lt(i, 24)), %a[i], 0.0)\n") == Elements{8, 32});
}

TEST_CASE("A window reads its halo once, and a product each operand once") {
  CHECK(trafficOf("tensor %x: f32[57] input\ntensor %w: f32[3] input\ntensor %y: f32[28] output\n"
                  "inputs (%x, %w)\noutputs (%y)\nreduction y [o:28; k:3] sum f32\n"
                  "  %y = mul(%x[o*2 + k], %w[k])\n") == Elements{57 + 3, 28});
  CHECK(trafficOf("tensor %x: f32[200] input\ntensor %y: f32[28] output\n"
                  "inputs (%x)\noutputs (%y)\nreduction y [o:28; k:3] sum f32\n"
                  "  %y = %x[o*5 + k]\n") == Elements{28 * 3, 28});
  CHECK(trafficOf("tensor %a: f32[8, 16] input\ntensor %b: f32[16, 4] input\n"
                  "tensor %c: f32[8, 4] output\ninputs (%a, %b)\noutputs (%c)\n"
                  "reduction c [i:8, j:4; k:16] sum f32\n  %c = mul(%a[i, k], %b[k, j])\n") ==
        Elements{8 * 16 + 16 * 4, 8 * 4});
}

TEST_CASE("A gather reads its indices and no more rows than there are indices") {
  const std::string text = "tensor %w: f32[30000, 64] input\ntensor %at: i32[N] input\n"
                           "tensor %y: f32[N, 64] output\ninputs (%w, %at)\noutputs (%y)\n"
                           "map y [i:N, j:64]\n  %y = %w[cast(i64, %at[i]), j]\n";
  auto with = [&](const std::string &n) {
    std::string copy = text;
    for (size_t at; (at = copy.find('N')) != std::string::npos;)
      copy.replace(at, 1, n);
    return trafficOf(copy);
  };
  CHECK(with("7") == Elements{7 + 7 * 64, 7 * 64});
  CHECK(with("60000") == Elements{60000 + 30000 * 64, 60000 * 64});
}

TEST_CASE("What stays inside a pattern moves nothing") {
  CHECK(trafficOf("tensor %a: f32[8, 16] input\ntensor %b: f32[16, 4] input\n"
                  "tensor %c: f32[8, 4] temp\ntensor %y: f32[8, 4] output\n"
                  "inputs (%a, %b)\noutputs (%y)\n"
                  "reduction c [i:8, j:4; k:16] sum f32\n  %c = mul(%a[i, k], %b[k, j])\n"
                  "map y [i:8, j:4]\n  %y = max(%c[i, j], 0.0)\n") ==
        Elements{8 * 16 + 16 * 4, 8 * 4});
}

TEST_CASE("Symbols count at their opt values") {
  CHECK(trafficOf(
            "symbol n = 1..64 opt 8 divisor 1\ntensor %x: f32[n] input\ntensor %y: f32[n] output\n"
            "inputs (%x)\noutputs (%y)\nmap y [i:n]\n  %y = exp(%x[i])\n") == Elements{8, 8});
}
