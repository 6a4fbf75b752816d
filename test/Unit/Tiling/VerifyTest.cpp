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
  row.breaks("combine e0", "", "e0 sums over lanes or units and has a combine");
  row.breaks("edge t register", "edge t global", "e0 has a store, or an edge level for its result");
  row.breaks("combine e0", "combine e0 combine e0", "e0 is combined and stored once");
  row.breaks("combine e0\n      compute e1", "compute e1\n      combine e0",
             "e1 reads what e0 makes after it is made");
  row.breaks("init e0", "", "e0 is initialised before it is computed");
  row.breaks("tree {", "operand a e0.r0 shared (k/2) tree {", "operand a is staged by whole axes");
  row.breaks("tree {", "operand a e0.r0 shared (k) tree {", "operand a is staged once");
  const std::string staged = "operand a e0.r0 shared (k) tree {";
  row.breaks("tree {\n    block i:1 {\n      init e0\n      seq k:64 { unroll k:16 { lane k:1 {",
             staged + " block i:1 { init e0 seq k:64 { unroll k:16 { lane k:1 { stage a",
             "operand a is staged by all units and lanes together");
  row.breaks(
      "init e0\n      seq k:64 { unroll k:16 { lane k:1 { compute e0 } } }\n      combine e0",
      "seq k:64 { init e0 unroll k:16 { lane k:1 { compute e0 } } combine e0 }",
      "the seq loop over k that sums e0 ends before other statements take its result");
  row.breaks("lane k:1 { compute e0 }", "lane k:1 { init e0 compute e0 }",
             "e0 is initialised once, before it is computed");
}

TEST_CASE("verify: an accumulator is a register of the loops around its statements") {
  const Case matrix(kProduct, kProductSchedule, "w");
  matrix.breaks("unroll", "seq",
                "the statements of e0 stand in one seq loop over m, as their register does");
  matrix.breaks("unroll n:16 { lane n:1 { compute e1", "seq n:16 { lane n:1 { compute e1",
                "e1 reads what e0 makes in a register; both stand in the same unroll, lane and "
                "unit loops, as their register does");
  matrix.breaks("{ compute e0 }", "{ compute e0 compute e1 }", "e1 is computed by one statement");
  matrix.breaks("unroll m:1 { unroll n:16 { lane n:1 { compute e1",
                "unroll m:1 { lane n:2 { unroll n:1 { compute e1",
                "e1 reads what e0 makes in a register; both stand in the same unroll, lane and "
                "unit loops, as their register does");
  matrix.breaks("{ unroll m:1 { unroll n:16 { lane n:1 { compute e0",
                "{ unroll m:1 { lane n:1 { unroll n:1 { compute e0",
                "the statements of e0 stand in the same unroll, lane and unit loops, as their "
                "register does");
  matrix.breaks("block m:3", "block k:6",
                "what blocks along k make of e0 no other block reads in the phase; e1 does");
}

TEST_CASE("verify: loops take every element") {
  const Case matrix(kProduct, kProductSchedule, "w");
  matrix.breaks("lane n:1", "lane n:16",
                "the loops around e0 take every element of n, the innermost has step 1");
}

TEST_CASE("verify: packed elements have places of their own") {
  const Case matrix(kProduct, kProductSchedule, "w");
  const std::string places = "operand w keeps every element along ";
  matrix.breaks("(n/16, k, n%16)", "(n/16, n%16)", places + "k at a place of its own");
  matrix.breaks("(n/16, k, n%16)", "(n/16, k)", places + "n at a place of its own");
  matrix.breaks("(n/16, k, n%16)", "(n/16, k, n%8)", places + "n at a place of its own");
  matrix.breaks("(n/16, k, n%16)", "(k, n%16)", places + "n at a place of its own");
}

TEST_CASE("verify: tiles have sizes that can be counted") {
  const Case row(kRow, kRowSchedule);
  row.breaks("seq k:64", "seq k:4611686018427387904",
             "seq loop over k has a step of at most 32768, or of what its axis has");
  row.breaks("tree {", "operand a e0.r0 shared (k) pad -3 tree {",
             "operand a is padded by 0 to 1024 elements");
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
                "the tile of b ends with n, and the loops inside of it touch no more: they divide "
                "it");
}

TEST_CASE("verify: what another block makes lies behind a barrier") {
  const Case turned(kTurned, kTurnedSchedule);
  turned.breaks("} }\n    barrier\n    block i:16 { lane", "} lane",
                "what blocks along i make of e0 no other block reads in the phase; e1 does");
  turned.breaks("block i:16 { lane i:1 { compute e0 } }\n    barrier\n    block i:16 { lane i:1 {",
                "seq i:16 { lane i:1 { compute e0 } lane i:1 {",
                "e1 reads what e0 makes in its own turn of the seq loop over i");
}

TEST_CASE("verify: what is written out is bounded") {
  const Case row(kRow, kRowSchedule);
  row.breaks("seq k:64", "seq k:32768", "unroll loops make at most 256 copies of a statement");
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
  const std::string turns = "points of e0 that may go to one element go there in turn; in the ";
  rows.breaks("{ seq i:2", "{ block i:2", turns + "block loop over i they do not");
  rows.breaks("unit j:16 { lane j:1 {", "unit k:1 { lane j:1 {",
              turns + "unit loop over k they do not");
  rows.breaks("seq k:1 { unit j:16 { lane j:1", "seq j:16 { unit j:1 { lane k:1",
              turns + "lane loop over k they do not");
  const std::string order = "points of e0 that may go to one element go there in their order";
  rows.breaks("seq i:1 { seq k:1", "seq k:1 { seq i:1", order);
  rows.breaks("seq i:2 { seq i:1 { seq k:1", "seq k:1 { seq i:2 { seq i:1", order);
}

TEST_CASE("schedules: numbers and nesting beyond all bounds do not parse") {
  const Case row(kRow, kRowSchedule);
  CHECK(row.error("units 1", "units 4294967297") == "the number 4294967297 is out of range");
  CHECK(row.error("spatial (0)", "spatial (4294967296)") ==
        "the number 4294967296 is out of range");
  std::string deep;
  for (int i = 0; i < 200000; ++i)
    deep += "seq k:64 {";
  CHECK(row.error("seq k:64 {", deep) == "loops are nested more than 64 deep");
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
              "e1 reads what e0 makes in a register; both stand in one seq loop over i, "
              "as their register does");
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
  sum.breaks("block i:1 {", "block k:48 {",
             "blocks do not share a reduction; block loop over k of e0 is reduced");
}

TEST_CASE("verify: blocks along an axis are counted by one loop") {
  const Case turned(kTurned, kTurnedSchedule);
  turned.breaks("lane i:1", "block i:1", "block loop over i is not inside another one of its kind");
}

TEST_CASE("verify: a value has one level, which is written down") {
  const Case row(kRow, kRowSchedule);
  CHECK(row.error("edge t register", "edge t register edge t register") ==
        "edge t has one level, here is another");
  CHECK(row.error("edge t register", "edge t global edge t shared") ==
        "edge t has one level, here is another");
  CHECK(row.error("edge t register", "") ==
        "no level is given for t: expected 'edge t' and register, shared or global");
  CHECK(row.error("edge t register", "edge x shared edge t register") ==
        "there is no value 'x' inside the kernel");
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
  const std::string set = "one carry 0 sets a scan's states, before its steps";
  const std::string next = "one carry 1 hands a scan's states on, at the end of a step";
  const std::string taken = "one carry 2 takes the last states of a scan, after its steps";
  sums.breaks("carry 0", "", set);
  sums.breaks("carry 0", "carry 0 carry 0", set);
  sums.breaks("carry 2", "carry 2 carry 0", set);
  sums.breaks("carry 1", "", next);
  sums.breaks("carry 1", "carry 1 carry 1", next);
  sums.breaks("{ seq j:16 { lane j:1 { compute e0 } } carry 1",
              "{ carry 1 seq j:16 { lane j:1 { compute e0 } }", next);
  sums.breaks("carry 2", "", taken);
  sums.breaks("carry 0", "carry 0 carry 2", taken);
  const std::string places = "carry 1 stands in the step loop itself, 0 and 2 outside of all loops";
  sums.breaks("carry 1", "seq j:32 { carry 1 }", places);
  sums.breaks("carry 2", "seq j:32 { carry 2 }", places);
  const std::string loop = "the statements of a scan stand in one step loop, at the root";
  sums.breaks("seq step:1 { seq j:16 { lane j:1 { compute e0 } }",
              "seq j:16 { lane j:1 { compute e0 } } seq step:1 {", loop);
  sums.breaks("seq j:16", "seq step:1", loop);
}
