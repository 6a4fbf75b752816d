// Schedules edited by hand that would be wrong code: each is refused with the rule that it breaks.
#include "EditedSchedule.h"

using namespace fusec;
using namespace fusec::test;

namespace {

constexpr const char *kProduct = R"(expr product
tensor %x: f32[6,24] input
tensor %w: f32[24,32] input
tensor %t: f32[6,32] temp
tensor %y: f32[6,32] output
inputs (%x, %w)
outputs (%y)
reduction t [i:6, j:32; k:24] sum f32
  %t = mul(%x[i, k], %w[k, j])
map y [i:6, j:32]
  %y = max(%t[i, j], 0.0)
)";
constexpr const char *kProductSchedule = R"(schedule s units 1 lanes 16 {
  axis m spatial (0) of e0, e1
  axis n spatial (1) of e0, e1
  axis k reduction (2) of e0
  operand w e0.r1 global (n/16, k, n%16)
  edge t register
  tree {
    block m:3 { block n:32 {
      unroll m:1 { unroll n:16 { lane n:1 { init e0 } } }
      seq k:1 { unroll m:1 { unroll n:16 { lane n:1 { compute e0 } } } }
      unroll m:1 { unroll n:16 { lane n:1 { compute e1 } } }
    } }
  }
})";

constexpr const char *kRow = R"(expr row
tensor %x: f32[40,96] input
tensor %t: f32[40] temp
tensor %y: f32[40] output
inputs (%x)
outputs (%y)
reduction t [i:40; k:96] sum f32
  %t = %x[i, k]
map y [i:40]
  %y = mul(%t[i], 2.0)
)";
constexpr const char *kRowSchedule = R"(schedule s units 1 lanes 16 {
  axis i spatial (0) of e0, e1
  axis k reduction (1) of e0
  edge t register
  tree {
    block i:1 {
      init e0
      seq k:64 { unroll k:16 { lane k:1 { compute e0 } } }
      combine e0
      compute e1
    }
  }
})";

/// Two maps of which the second one reads the first one's value from the other end, and by another block.
constexpr const char *kTurned = R"(expr turned
tensor %x: f32[64] input
tensor %t: f32[64] temp
tensor %y: f32[64] output
inputs (%x)
outputs (%y)
map t [i:64]
  %t = mul(%x[i], 2.0)
map y [i:64]
  %y = add(%t[sub(63, i)], %x[i])
)";
constexpr const char *kTurnedSchedule = R"(schedule s units 1 lanes 16 {
  axis i spatial (0) of e0, e1
  edge t global
  tree {
    block i:16 { lane i:1 { compute e0 } }
    barrier
    block i:16 { lane i:1 { compute e1 } }
  }
})";

} // namespace

TEST_CASE("verify: partial sums of lanes are combined, and the result leaves registers") {
  const Case row(kRow, kRowSchedule);
  row.breaks("combine e0", "", "e0, which lanes or units sum together, has a combine, given none");
  row.breaks("edge t register", "edge t global",
             "e0 has a store, or its result an edge in register or shared, given neither");
  row.breaks("combine e0", "combine e0 combine e0",
             "combine e0 stands once, given combine e0 in block i:1, combine e0 in block i:1");
  row.breaks("combine e0\n      compute e1", "compute e1\n      combine e0",
             "compute e1, which reads t, stands behind combine e0, given before it");
  row.breaks("init e0", "", "init e0 stands before compute e0, given none there");
  row.breaks("tree {", "operand a e0.r0 shared (k/2) tree {",
             "operand a is staged by whole axes or indices, given k/2");
  row.breaks("tree {", "operand a e0.r0 shared (k) tree {", "operand a is staged once, given none");
  const std::string staged = "operand a e0.r0 shared (k) tree {";
  row.breaks("tree {\n    block i:1 {\n      init e0\n      seq k:64 { unroll k:16 { lane k:1 {",
             staged + " block i:1 { init e0 seq k:64 { unroll k:16 { lane k:1 { stage a",
             "operand a is staged outside of unit and lane loops, by all of them together, given "
             "stage a in block i:1, seq k:64, unroll k:16, lane k:1");
  row.breaks(
      "init e0\n      seq k:64 { unroll k:16 { lane k:1 { compute e0 } } }\n      combine e0",
      "seq k:64 { init e0 unroll k:16 { lane k:1 { compute e0 } } combine e0 }",
      "seq k:64, which sums e0, ends before combine e0 or begins behind it, given around it");
  row.breaks("lane k:1 { compute e0 }", "lane k:1 { init e0 compute e0 }",
             "one init e0 stands before compute e0, given init e0 in block i:1, init e0 in block "
             "i:1, seq k:64, unroll k:16, lane k:1");
}

TEST_CASE("verify: an accumulator is a register of the loops around its statements") {
  const Case matrix(kProduct, kProductSchedule, "w");
  const std::string same = " has a register of compute e0 and stands in the same unroll, lane and "
                           "unit loops, given inside ";
  const std::string inTile = "block m:3, block n:32, ";
  matrix.breaks("unroll", "seq",
                "init e0 has a register of compute e0 and stands in the same seq m:1, given inside "
                "block m:3, block n:32, seq m:1, seq n:16, lane n:1");
  matrix.breaks("unroll n:16 { lane n:1 { compute e1", "seq n:16 { lane n:1 { compute e1",
                "compute e1" + same + inTile +
                    "unroll m:1, seq n:16, lane n:1, and compute inside " + inTile +
                    "seq k:1, unroll m:1, unroll n:16, lane n:1");
  matrix.breaks("{ compute e0 }", "{ compute e0 compute e1 }",
                "e1 is computed by one statement, given 2");
  matrix.breaks("unroll m:1 { unroll n:16 { lane n:1 { compute e1",
                "unroll m:1 { lane n:2 { unroll n:1 { compute e1",
                "compute e1" + same + inTile +
                    "unroll m:1, lane n:2, unroll n:1, and compute inside " + inTile +
                    "seq k:1, unroll m:1, unroll n:16, lane n:1");
  matrix.breaks("{ unroll m:1 { unroll n:16 { lane n:1 { compute e0",
                "{ unroll m:1 { lane n:1 { unroll n:1 { compute e0",
                "init e0" + same + inTile +
                    "unroll m:1, unroll n:16, lane n:1, and compute inside " + inTile +
                    "seq k:1, unroll m:1, lane n:1, unroll n:1");
  matrix.breaks("block m:3", "block k:6",
                "of e0 a block reads in the same phase only what it makes itself, given e1, which "
                "reads what other blocks make along block k:6; put a barrier between them");
}

TEST_CASE("verify: loops take every element") {
  const Case matrix(kProduct, kProductSchedule, "w");
  matrix.breaks("lane n:1", "lane n:16",
                "the loops around compute e0 take every element of axis n, the innermost with step "
                "1, given lane n:16");
}

TEST_CASE("verify: packed elements have places of their own") {
  const Case matrix(kProduct, kProductSchedule, "w");
  const std::string places = "operand w keeps every element along ";
  const std::string own = " at a place of its own, as n/16 and n%16 do, given ";
  matrix.breaks("(n/16, k, n%16)", "(n/16, n%16)", places + "k" + own + "none");
  matrix.breaks("(n/16, k, n%16)", "(n/16, k)", places + "n" + own + "n/16");
  matrix.breaks("(n/16, k, n%16)", "(n/16, k, n%8)", places + "n" + own + "n/16, n%8");
  matrix.breaks("(n/16, k, n%16)", "(k, n%16)", places + "n" + own + "n%16");
}

TEST_CASE("verify: tiles have sizes that can be counted") {
  const Case row(kRow, kRowSchedule);
  row.breaks("seq k:64", "seq k:4611686018427387904",
             "seq k:4611686018427387904 has a step of at most 32768, or its axis' extent, given "
             "4611686018427387904");
  row.breaks("tree {", "operand a e0.r0 shared (k) pad -3 tree {",
             "operand a is padded by 0 to 1024 elements, given pad -3");
}

TEST_CASE("verify: what is summed stays in the tile that is staged") {
  const std::string body = "unroll n:16 { lane n:1 { init e0 } } seq k:8 { stage a stage b "
                           "seq k:1 { unroll n:16 { lane n:1 { compute e0 } } } } "
                           "unroll n:16 { lane n:1 { store e0 } }";
  const std::string tiles = "block n:32 { " + body + " }";
  const Case matrix(ProgramText("matrix")
                        .input("x", "6,24")
                        .input("w", "24,20")
                        .reduction("y", "i:6, j:20; k:24", "sum", "mul(%x[i, k], %w[k, j])"),
                    ("schedule s units 1 lanes 16 { axis m spatial (0) of e0 "
                     "axis n spatial (1) of e0 axis k reduction (2) of e0 "
                     "operand a e0.r0 shared (k) operand b e0.r1 shared (k, n) "
                     "tree { block m:1 { " +
                     tiles + " } } }")
                        .c_str());
  matrix.breaks(tiles, body,
                "loops inside the tile of operand b have steps that divide the extent of axis n, "
                "20, given unroll n:16 around compute e0; or put a loop over it around stage b");
}

TEST_CASE("verify: what another block makes lies behind a barrier") {
  const Case turned(kTurned, kTurnedSchedule);
  turned.breaks("} }\n    barrier\n    block i:16 { lane", "} lane",
                "of e0 a block reads in the same phase only what it makes itself, given e1, which "
                "reads what other blocks make along block i:16; put a barrier between them");
  turned.breaks("block i:16 { lane i:1 { compute e0 } }\n    barrier\n    block i:16 { lane i:1 {",
                "seq i:16 { lane i:1 { compute e0 } lane i:1 {",
                "e1 reads of e0 inside seq i:16 what the same turn makes, given what other turns "
                "make along its index 0; "
                "end that loop between them");
}

TEST_CASE("verify: what is written out is bounded") {
  const Case row(kRow, kRowSchedule);
  row.breaks("seq k:64", "seq k:32768",
             "unroll loops make at most 256 copies of a statement, given more of compute e0 in "
             "block i:1, seq k:32768, unroll k:16, lane k:1");
}

TEST_CASE("verify: points of a scatter that may meet go to their element in order") {
  const Case rows(R"(expr rows
tensor %ids: i64[6,5] input
tensor %x: f32[6,5,40] input
tensor %b: f32[9,40] input
tensor %y: f32[9,40] output
inputs (%ids, %x, %b)
outputs (%y)
scatter y [i:6, k:5, j:40] assign base %b
  %y[%ids[i, k], j] = %x[i, k, j]
)",
                  R"(schedule s units 2 lanes 16 {
  axis j spatial (2) of e0
  axis i spatial (0) of e0
  axis k spatial (1) of e0
  tree { block j:32 { seq i:2 { seq i:1 { seq k:1 { unit j:16 { lane j:1 { compute e0 } } } } } } }
})");
  const std::string turns =
      "points of e0 that may go to one element go there in turn, in seq and unroll loops, given ";
  rows.breaks("{ seq i:2", "{ block i:2", turns + "block i:2");
  rows.breaks("unit j:16 { lane j:1 {", "unit k:1 { lane j:1 {", turns + "unit k:1");
  rows.breaks("seq k:1 { unit j:16 { lane j:1", "seq j:16 { unit j:1 { lane k:1",
              turns + "lane k:1");
  const std::string order = "points of e0 that may go to one element go there in the order of its "
                            "axes, given compute e0 in block j:32, ";
  rows.breaks("seq i:1 { seq k:1", "seq k:1 { seq i:1",
              order + "seq i:2, seq k:1, seq i:1, unit j:16, lane j:1");
  rows.breaks("seq i:2 { seq i:1 { seq k:1", "seq k:1 { seq i:2 { seq i:1",
              order + "seq k:1, seq i:2, seq i:1, unit j:16, lane j:1");
}

TEST_CASE("schedules: numbers and nesting beyond all bounds do not parse") {
  const Case row(kRow, kRowSchedule);
  CHECK(row.error("units 1", "units 4294967297") ==
        "expected a number of 32 bits, found 4294967297");
  CHECK(row.error("spatial (0)", "spatial (4294967296)") ==
        "expected a number of 32 bits, found 4294967296");
  std::string deep;
  for (int i = 0; i < 200000; ++i)
    deep += "seq k:64 {";
  CHECK(row.error("seq k:64 {", deep) == "expected loops at most 64 deep, found more");
}

/// A row's sum that a map along rows reads in loops of its own: from shared memory, once it is stored there.
TEST_CASE("verify: a raised edge is stored where its register is") {
  const Case rows(R"(expr rows
tensor %x: f32[8,32] input
tensor %t: f32[8] temp
tensor %y: f32[8] output
inputs (%x)
outputs (%y)
reduction t [i:8; k:32] sum f32
  %t = %x[i, k]
map y [i:8]
  %y = mul(%t[i], 2.0)
)",
                  R"(schedule s units 4 lanes 32 {
  axis i spatial (0) of e0
  axis k reduction (1) of e0
  axis j spatial (0) of e1
  edge t shared
  tree {
    seq i:4 { unit i:1 { init e0 lane k:1 { compute e0 } combine e0 store e0 } }
    lane j:1 { compute e1 }
  }
})");
  rows.breaks("store e0", "",
              "compute e1 has a register of compute e0 and stands in the same seq i:4, given "
              "inside lane j:1");
}

TEST_CASE("verify: a cascade's statements are of one tile") {
  const Case rows(R"(expr rows
tensor %x: f32[4,64] input
tensor %a: f32[4] output
tensor %b: f32[4] output
inputs (%x)
outputs (%a, %b)
reduction c [i:4; k:64] cascade f32
  %a = max %x[i, k]
  %b = sum exp(sub(%x[i, k], state(0)))
  correct 1 = mul(part(1), exp(sub(part(0), state(0))))
)",
                  R"(schedule s units 1 lanes 16 {
  axis i spatial (0) of e0
  axis k reduction (1) of e0
  tree {
    block i:1 {
      init e0
      seq k:32 {
        unroll k:16 { lane k:1 { compute e0 } }
        correct e0 rank 1
        unroll k:16 { lane k:1 { compute e0 rank 1 } }
        correct e0 rank 2
      }
      combine e0
      store e0
    }
  }
})");
  const std::string tile =
      "e0 has its corrects side by side, each behind unroll or lane loops with "
      "the compute before it, given ";
  const std::string last = ", and correct e0 rank 2 in block i:1, seq k:32";
  rows.breaks("correct e0 rank 1", "unroll k:16 { correct e0 rank 1 }",
              tile + "correct e0 rank 1 in block i:1, seq k:32, unroll k:16" + last);
  rows.breaks("unroll k:16 { lane k:1 { compute e0 rank 1",
              "seq k:16 { lane k:1 { compute e0 rank 1",
              tile + "compute e0 rank 1 in block i:1, seq k:32, seq k:16, lane k:1" + last);
}

TEST_CASE("lowering: what registers and a block's memory hold has a size with a bound") {
  const Case rows(R"(expr rows
symbol n = 1..9000000000 opt 16 divisor 1
tensor %x: f32[n,24] input
tensor %t: f32[n,24] temp
tensor %y: f32[n] output
inputs (%x)
outputs (%y)
map t [i:n, k:24]
  %t = mul(%x[i, k], 2.0)
reduction y [i:n; k:24] sum f32
  %y = mul(%t[i, k], %x[i, k])
)",
                  R"(schedule s units 1 lanes 16 {
  axis i spatial (0) of e0, e1
  axis k spatial (1) of e0 and reduction (1) of e1
  operand a e1.r1 shared (i, k)
  edge t shared
  tree {
    seq i:4 { stage a seq i:1 {
      seq k:16 { lane k:1 { compute e0 } }
      init e1 seq k:16 { lane k:1 { compute e1 } } combine e1 store e1
    } }
  }
})");
  CHECK(rows.unlowered("seq i:4 { stage a seq i:1 {", "stage a seq i:4 { seq i:1 {") ==
        "operand a has a tile of a size with a bound, given one without along i; put a loop over "
        "it around its stage");
  CHECK(rows.unlowered("seq i:4 { stage a", "unroll i:4 { stage a") ==
        "unroll i:4 has a constant trip, given floordiv(n + 3, 4); tile a loop around it");
  const std::string map = "seq i:1 {\n      seq k:16 { lane k:1 { compute e0 } }";
  CHECK(rows.unlowered("seq i:4 { stage a " + map,
                       "seq i:4 { " + map + " } } seq i:4 { stage a seq i:1 {") ==
        "edge t shared has a tile of a size with a bound, given one without along axis i; tile the "
        "loops around maker and readers");
}

TEST_CASE("verify: alternatives apply to the pattern") {
  const Case row(kRow, kRowSchedule);
  Schedule schedule = scheduleFrom(row.text, row.pattern);
  schedule.via = {{"defer-division"}, {"wavefront"}};
  CHECK(verify(schedule, row.pattern).errors().front().text ==
        "broken rule: via names alternatives that apply to the pattern, given defer-division, "
        "wavefront");
}

TEST_CASE("verify: blocks do not share a sum") {
  const Case sum(R"(expr sum
tensor %x: f32[40,96] input
tensor %y: f32[40] output
inputs (%x)
outputs (%y)
reduction y [i:40; k:96] sum f32
  %y = %x[i, k]
)",
                 R"(schedule s units 1 lanes 16 {
  axis i spatial (0) of e0
  axis k reduction (1) of e0
  tree {
    block i:1 { init e0 seq k:16 { lane k:1 { compute e0 } } combine e0 store e0 }
  }
})");
  sum.breaks(
      "block i:1 {", "block k:48 {",
      "blocks share no sum, given block k:48 around compute e0, which sums over it; make it seq");
}

TEST_CASE("verify: blocks along an axis are counted by one loop") {
  const Case turned(kTurned, kTurnedSchedule);
  turned.breaks("lane i:1", "block i:1",
                "block i:1 is not inside another one of its kind, given block i:16 around it");
}

TEST_CASE("verify: a value has one level, which is written down") {
  const Case row(kRow, kRowSchedule);
  CHECK(row.error("edge t register", "edge t register edge t register") ==
        "expected one level of edge t, found register behind another");
  CHECK(row.error("edge t register", "edge t global edge t shared") ==
        "expected one level of edge t, found shared behind another");
  CHECK(row.error("edge t register", "") ==
        "expected 'edge t' and its level, register, shared or global; found no line for it");
  CHECK(row.error("edge t register", "edge x shared edge t register") ==
        "expected a value inside the kernel (t), found 'x'");
  Schedule twice = scheduleFrom(row.text, row.pattern);
  twice.edges.push_back(twice.edges[0]);
  CHECK_FALSE(verify(twice, row.pattern).ok());
}

TEST_CASE("schedules: a value that lies in device memory is written and read so") {
  const Case row(kRow, kRowSchedule);
  const std::string text = row.edited("combine e0", "combine e0 store e0");
  Schedule schedule = scheduleFrom(text, row.pattern);
  schedule.edges.clear();
  const std::string printed = print(schedule, row.pattern);
  CHECK(printed.find("  edge t global\n") != std::string::npos);
  const Schedule again = scheduleFrom(printed, row.pattern);
  CHECK(again.edges.empty()); // as the search says it
  CHECK(print(again, row.pattern) == printed);
}

TEST_CASE("verify: a scan's states are set, handed on and taken") {
  const Case sums(R"(expr sums
tensor %x: f32[7,32] input
tensor %zero: f32[32] input
tensor %h: f32[32] temp
tensor %n: f32[32] temp
tensor %last: f32[32] output
inputs (%x, %zero)
outputs (%last)
scan h steps(7)
  carry %h = %zero next %n final %last
  map n [j:32]
    %n = add(%h[j], %x[step, j])
end
)",
                  R"(schedule s units 1 lanes 16 {
  axis j spatial (0) of e0
  edge h global
  edge n global
  tree {
    carry 0
    seq step:1 { seq j:16 { lane j:1 { compute e0 } } carry 1 }
    carry 2
  }
})");
  const std::string set = "one carry 0 sets a scan's states, before its steps, given ";
  const std::string at = " outside of all loops", steps = " in seq step:1";
  const std::string next = "one carry 1 hands a scan's states on, at the end of a step, given ";
  const std::string taken = "one carry 2 takes the last states of a scan, after its steps, given ";
  sums.breaks("carry 0", "", set + "none");
  sums.breaks("carry 0", "carry 0 carry 0", set + "carry 0" + at + ", carry 0" + at);
  sums.breaks("carry 2", "carry 2 carry 0", set + "carry 0" + at + ", carry 0" + at);
  sums.breaks("carry 1", "", next + "none");
  sums.breaks("carry 1", "carry 1 carry 1", next + "carry 1" + steps + ", carry 1" + steps);
  sums.breaks("{ seq j:16 { lane j:1 { compute e0 } } carry 1",
              "{ carry 1 seq j:16 { lane j:1 { compute e0 } }", next + "carry 1" + steps);
  sums.breaks("carry 2", "", taken + "none");
  sums.breaks("carry 0", "carry 0 carry 2", taken + "carry 2" + at + ", carry 2" + at);
  const std::string places =
      "carry 1 stands in the step loop itself, 0 and 2 outside of all loops, given ";
  sums.breaks("carry 1", "seq j:32 { carry 1 }", places + "carry 1" + steps + ", seq j:32");
  sums.breaks("carry 2", "seq j:32 { carry 2 }", places + "carry 2 in seq j:32");
  const std::string loop =
      "the statements of a scan stand in one step loop, at the root, given compute e0 in ";
  sums.breaks("seq step:1 { seq j:16 { lane j:1 { compute e0 } }",
              "seq j:16 { lane j:1 { compute e0 } } seq step:1 {", loop + "seq j:16, lane j:1");
  sums.breaks("seq j:16", "seq step:1", loop + "seq step:1, seq step:1, lane j:1");
}
