// Images whose channels the model itself has put innermost: results of what reads them lie so too.
#include "ProgramTools.h"

using namespace fusec;
using namespace fusec::test;

namespace {

/// The shape of %c, which `reader` makes from %x, after the pass; %y reads it.
std::string shapeOf(const std::string &tensors, const std::string &inputs,
                    const std::string &reader, const std::string &map) {
  const std::string text =
      "expr p\n" + tensors + "inputs (" + inputs + ")\noutputs (%y)\n" + reader + "\n" + map + "\n";
  INFO(text);
  ExprProgram program = channelsLast(parse(text));
  requireValid(program);
  for (const Tensor &t : program.tensors)
    if (t.name == "c") {
      std::string shape;
      for (const DimExpr &d : t.shape)
        shape += (shape.empty() ? "" : ",") + std::to_string(d.constValue());
      return shape;
    }
  return "";
}

const std::string kMap2 = "map y [n:2, c:20, i:9, j:11]\n  %y = max(%c[n, c, i, j], 0.0)";

} // namespace

TEST_CASE("windows over images with the channel innermost leave their results so") {
  const std::string image = "tensor %x: f32[2,11,13,20] input\ntensor %c: f32[2,20,9,11] temp\n"
                            "tensor %y: f32[2,20,9,11] output\n";
  // Of each channel by itself, of all, in groups, and without weights.
  CHECK(shapeOf(image + "tensor %w: f32[20,3,3] input\n", "%x, %w",
                "reduction c [n:2, c:20, i:9, j:11; r:3, s:3] sum f32\n  %c = mul(%x[n, i + r, j + "
                "s, c], %w[c, r, s])",
                kMap2) == "2,9,11,20");
  CHECK(shapeOf(image + "tensor %w: f32[20,20,3,3] input\n", "%x, %w",
                "reduction c [n:2, o:20, i:9, j:11; k:20, r:3, s:3] sum f32\n  %c = mul(%x[n, i + "
                "r, j + s, k], %w[o, k, r, s])",
                kMap2) == "2,9,11,20");
  CHECK(shapeOf(image, "%x",
                "reduction c [n:2, c:20, i:9, j:11; r:3, s:3] max f32\n  %c = %x[n, i + r, j + s, "
                "c]",
                kMap2) == "2,9,11,20");
  CHECK(shapeOf("tensor %x: f32[2,11,13,20] input\ntensor %w: f32[4,5,5,3,3] input\ntensor %c: "
                "f32[2,4,5,9,11] temp\ntensor %y: f32[2,4,5,9,11] output\n",
                "%x, %w",
                "reduction c [n:2, g:4, o:5, i:9, j:11; k:5, r:3, s:3] sum f32\n  %c = mul(%x[n, i "
                "+ r, j + s, g*5 + k], %w[g, o, k, r, s])",
                "map y [n:2, g:4, o:5, i:9, j:11]\n  %y = max(%c[n, g, o, i, j], 0.0)") ==
        "2,9,11,4,5");
}

TEST_CASE("an image's axes may be one dimension, or one or three axes") {
  CHECK(shapeOf("tensor %x: f32[2,143,20] input\ntensor %w: f32[20,3,3] input\ntensor %c: "
                "f32[2,20,9,11] temp\ntensor %y: f32[2,20,9,11] output\n",
                "%x, %w",
                "reduction c [n:2, c:20, i:9, j:11; r:3, s:3] sum f32\n  %c = mul(%x[n, (i + r)*13 "
                "+ j + s, c], %w[c, r, s])",
                kMap2) == "2,9,11,20");
  CHECK(shapeOf("tensor %x: f32[2,11,20] input\ntensor %w: f32[20,3] input\ntensor %c: f32[2,20,9] "
                "temp\ntensor %y: f32[2,20,9] output\n",
                "%x, %w",
                "reduction c [n:2, c:20, i:9; r:3] sum f32\n  %c = mul(%x[n, i + r, c], %w[c, r])",
                "map y [n:2, c:20, i:9]\n  %y = max(%c[n, c, i], 0.0)") == "2,9,20");
  CHECK(shapeOf("tensor %x: f32[2,5,6,7,20] input\ntensor %w: f32[20,2,2,2] input\ntensor %c: "
                "f32[2,20,4,5,6] temp\ntensor %y: f32[2,20,4,5,6] output\n",
                "%x, %w",
                "reduction c [n:2, c:20, h:4, i:5, j:6; q:2, r:2, s:2] sum f32\n  %c = mul(%x[n, h "
                "+ q, i + r, j + s, c], %w[c, q, r, s])",
                "map y [n:2, c:20, h:4, i:5, j:6]\n  %y = max(%c[n, c, h, i, j], 0.0)") ==
        "2,4,5,6,20");
}

TEST_CASE("products of matrices are no images") {
  // Keys with their heads innermost: a sum for each query, head and key.
  CHECK(shapeOf("tensor %x: f32[1,16,32] input\ntensor %q: f32[1,9,32] input\ntensor %c: "
                "f32[1,2,9,16] temp\ntensor %y: f32[1,2,9,16] output\n",
                "%x, %q",
                "reduction c [b:1, h:2, i:9, j:16; k:16] sum f32\n  %c = mul(%q[0, i, h*16 + k], "
                "%x[0, j, h*16 + k])",
                "map y [b:1, h:2, i:9, j:16]\n  %y = exp(%c[b, h, i, j])") == "1,2,9,16");
  CHECK(shapeOf("tensor %x: f32[2,9,32] input\ntensor %w: f32[20,32] input\ntensor %c: f32[2,20,9] "
                "temp\ntensor %y: f32[2,20,9] output\n",
                "%x, %w",
                "reduction c [n:2, o:20, i:9; k:32] sum f32\n  %c = mul(%x[n, i, k], %w[o, k])",
                "map y [n:2, o:20, i:9]\n  %y = max(%c[n, o, i], 0.0)") == "2,20,9");
}
