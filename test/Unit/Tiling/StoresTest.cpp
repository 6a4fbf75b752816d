// Values that leave registers: which thread and block stores them, and before whom.
#include "EditedSchedule.h"
#include "Tiling/verify/Verify.h"

using namespace fusec;
using namespace fusec::test;

/// A row's sum, made by all lanes of a unit and stored by one, and what each lane makes of it for itself.
TEST_CASE("verify: one thread stores an element") {
  const std::string program = R"(expr rows
tensor %x: f32[8,32] input
tensor %t: f32[8] temp
tensor %r: f32[8] temp
tensor %y: f32[8,32] output
inputs (%x)
outputs (%y)
reduction t [i:8; k:32] sum f32
  %t = %x[i, k]
map r [i:8]
  %r = mul(%t[i], 2.0)
map y [i:8, j:32]
  %y = mul(%r[i], %x[i, j])
)";
  const Case rows(program, R"(schedule s units 4 lanes 32 {
  axis i spatial (0) of e0, e1, e2
  axis k reduction (1) of e0
  axis j spatial (1) of e2
  edge t shared
  edge r register
  tree {
    block i:4 { unit i:1 {
      init e0
      lane k:1 { compute e0 }
      combine e0
      store e0
      lane j:1 { compute e1 compute e2 }
    } }
  }
})");
  const std::string several = ", given several at ",
                    where = " in lane j:1; store it outside of that loop";
  rows.breaks("edge r register", "edge r shared",
              "one thread stores an element of e1" + several + "compute e1" + where);
  rows.breaks("edge r register", "edge r global",
              "one thread stores an element of e1" + several + "compute e1" + where);
  rows.breaks("store e0", "lane j:1 { store e0 }",
              "one thread stores an element of e0" + several + "store e0" + where);
  // Without a store, the one that is made stands in the lanes that read first.
  rows.breaks("store e0", "",
              "one thread stores an element of e0" + several + "compute e1" + where);
  // Outside of loops over lanes all of them make a value, and one stores it.
  const std::string outside = rows.edited("lane j:1 { compute e1", "compute e1 lane j:1 {");
  const Case stored(program, outside.c_str());
  const std::string both = stored.edited("edge r register", "edge r shared");
  CHECK(verify(scheduleFrom(both, stored.pattern), stored.pattern).ok());
  const std::string made = stored.edited("store e0", "");
  CHECK(verify(scheduleFrom(made, stored.pattern), stored.pattern).ok());
}

/// Blocks along j that make a row's values each for itself.
TEST_CASE("verify: one block stores an element in device memory") {
  const Case rows(R"(expr rows
tensor %x: f32[8,64] input
tensor %t: f32[8] temp
tensor %s: f32[8] temp
tensor %z: f32[8,64] output
inputs (%x)
outputs (%z)
map t [i:8]
  %t = mul(%x[i, 0], 2.0)
reduction s [i:8; k:64] sum f32
  %s = %x[i, k]
map z [i:8, j:64]
  %z = add(add(%x[i, j], %t[i]), %s[i])
)",
                  R"(schedule s units 1 lanes 32 {
  axis i spatial (0) of e0, e1, e2
  axis k reduction (1) of e1
  axis j spatial (1) of e2
  edge t shared
  edge s shared
  tree {
    block i:1 { block j:32 {
      compute e0
      init e1
      seq k:32 { lane k:1 { compute e1 } }
      combine e1
      store e1
      lane j:1 { compute e2 }
    } }
  }
})");
  const std::string several = ", given several at ",
                    where = " in block j:32; store it outside of that loop";
  rows.breaks("edge t shared", "edge t global",
              "one thread stores an element of e0" + several + "compute e0" + where);
  rows.breaks("edge s shared", "edge s global",
              "one thread stores an element of e1" + several + "store e1" + where);
}

/// The store that an edge above registers asks for stands in front of whoever reads first, in the order of the tree.
TEST_CASE("a raised edge is stored in front of its first reader") {
  const Case rows(ProgramText("rows")
                      .input("x", "8,64")
                      .reduction("t", "i:8; k:64", "sum", "%x[i, k]")
                      .map("y", "i:8", "mul(%t[i], 2.0)")
                      .map("z", "i:8", "add(%t[i], 1.0)")
                      .map("w", "i:8, j:32", "add(%t[i], %x[i, j])"),
                  R"(schedule s units 2 lanes 32 {
  axis i spatial (0) of e0, e1, e2, e3
  axis k reduction (1) of e0
  axis j spatial (1) of e3
  edge t shared
  tree {
    block i:1 {
      init e0
      unit k:32 { lane k:1 { compute e0 } }
      combine e0
      compute e1
      compute e2
      lane j:1 { compute e3 }
    }
  }
})");
  const std::string turned = rows.edited("compute e1\n      compute e2", "compute e2 compute e1");
  const std::vector<TensorValue> inputs = randomInputs(rows.pattern, {});
  const std::vector<TensorValue> expected = valueOf(evaluate(rows.pattern, inputs));
  for (const std::string &text : {rows.text, turned}) {
    INFO(text);
    const Schedule schedule = scheduleFrom(text, rows.pattern);
    CHECK(difference(runSchedule(rows.pattern, schedule, inputs, {}), expected, 0) == "");
  }
  // Where the first reader stands on several lanes, so would the store.
  rows.breaks("compute e1\n      compute e2\n      lane j:1 { compute e3 }",
              "lane j:1 { compute e3 } compute e1 compute e2",
              "one thread stores an element of e0, given several at compute e3 in lane j:1; store "
              "it outside of that loop");
}
