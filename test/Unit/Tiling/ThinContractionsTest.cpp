// Products of a few rows with a large matrix on GPUs: their schedules, and sums of several accumulators a thread that
// units of a block share.
#include "EditedSchedule.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/counts/MemoryRequests.h"

#include <algorithm>

using namespace fusec;
using namespace fusec::test;

namespace {

struct Product {
  int64_t rows, columns, terms;
  std::string factor = "f32", sum = "f32";
  bool turned = false; // the terms of a column lie side by side
  std::string symbols = "";
  std::string rowsText = "", columnsText = "", termsText = ""; // in place of the numbers
};

/// y = relu(x w + b), the sum of integers without the map.
std::string textOf(const Product &p) {
  const auto either = [](const std::string &text, int64_t number) {
    return text.empty() ? std::to_string(number) : text;
  };
  const std::string m = either(p.rowsText, p.rows), n = either(p.columnsText, p.columns),
                    k = either(p.termsText, p.terms), domain = "i:" + m + ", j:" + n,
                    w = p.turned ? n + "," + k : k + "," + n, at = p.turned ? "j, k" : "k, j";
  const auto term = [&](const std::string &read) {
    return p.factor == p.sum ? read : "cast(" + p.sum + ", " + read + ")";
  };
  const std::string head = "expr thin\n" + p.symbols + "tensor %x: " + p.factor + "[" + m + "," +
                           k + "] input\ntensor %w: " + p.factor + "[" + w + "] input\n";
  const std::string reduction = "reduction c [" + domain + "; k:" + k + "] sum " + p.sum +
                                "\n  %c = mul(" + term("%x[i, k]") + ", " + term("%w[" + at + "]") +
                                ")\n";
  const std::string tensor = ": " + p.sum + "[" + m + "," + n + "] ";
  if (p.sum != "f32")
    return head + "tensor %c" + tensor + "output\ninputs (%x, %w)\noutputs (%c)\n" + reduction;
  return head + "tensor %b: f32[" + n + "] input\ntensor %c" + tensor + "temp\ntensor %y" + tensor +
         "output\ninputs (%x, %w, %b)\noutputs (%y)\n" + reduction + "map y [" + domain +
         "]\n  %y = max(add(%c[i, j], %b[j]), 0.0)\n";
}

std::vector<Schedule> thinSchedules(const ExprProgram &pattern, const std::string &target) {
  std::vector<Schedule> all = valueOf(candidateSchedules(pattern, targetNamed(target)));
  std::erase_if(all, [](const Schedule &s) { return !s.name.starts_with("thin"); });
  return all;
}

/// All thin schedules verify, survive their text and have the numbers of the equations.
void checkThin(const Product &product, const std::string &name,
               const std::vector<int64_t> &symbols = {}) {
  const std::string text = textOf(product);
  INFO(text);
  const ExprProgram pattern = patternFrom(text);
  const std::vector<TensorValue> inputs = randomInputs(pattern, symbols),
                                 expected = valueOf(evaluate(pattern, inputs));
  for (const char *target : {"sim:sm_80", "sim:sm_90", "sim:gfx90a"}) {
    const std::vector<Schedule> schedules = thinSchedules(pattern, target);
    CHECK(!schedules.empty());
    for (const Schedule &schedule : schedules) {
      const std::string written = print(schedule, pattern);
      INFO(target << "\n" << written);
      CHECK(schedule.name == name);
      require(verify(schedule, pattern, targetNamed(target)));
      CHECK(print(scheduleFrom(written, pattern), pattern) == written);
      CHECK(difference(runSchedule(pattern, schedule, inputs, symbols), expected, 0) == "");
    }
  }
}

} // namespace

TEST_CASE("thin: a few rows times a matrix, columns or terms of which lie side by side") {
  for (const bool turned : {false, true}) {
    const std::string name = turned ? "thin-rows" : "thin";
    checkThin({1, 512, 512, "f32", "f32", turned}, name);
    checkThin({3, 130, 515, "f32", "f32", turned}, name);
    checkThin({3, 132, 516, "f32", "f32", turned}, name);
    checkThin({8, 65, 130, "f32", "f32", turned}, name);
    checkThin({1, 257, 260, "f16", "f32", turned}, name);
    checkThin({3, 136, 520, "f16", "f32", turned}, name);
    checkThin({3, 144, 272, "i8", "i32", turned}, name);
    checkThin({2, 70, 130, "f64", "f64", turned}, name);
    checkThin({2, 0, 130, "f32", "f32", turned, kSymbols, "", "n", ""}, name, {77});
    checkThin({2, 70, 0, "f32", "f32", turned, kSymbols, "", "", "n"}, name, {130});
  }
}

TEST_CASE("thin: not for many rows, as many as a run says, or windows that share no factor") {
  const auto none = [](const Product &product) {
    return thinSchedules(patternFrom(textOf(product)), "sm_90").empty();
  };
  CHECK_FALSE(none({8, 512, 512}));
  CHECK(none({9, 512, 512}));
  CHECK(none({0, 512, 512, "f32", "f32", false, kSymbols, "n", "", ""}));
  CHECK(thinSchedules(patternFrom(R"(expr depthwise
tensor %x: f32[16,16,64] input
tensor %w: f32[9,9,64] input
tensor %y: f32[8,8,64] output
inputs (%x, %w)
outputs (%y)
reduction y [i:8, j:8, c:64; r:9, q:9] sum f32
  %y = mul(%x[i + r, j + q, c], %w[r, q, c])
)"),
                      "sm_90")
            .empty());
}

TEST_CASE("thin: a thread reads 16 bytes, and all of a block's units share its columns") {
  const Product half{2, 8192, 4096, "f16", "f32"};
  const ExprProgram pattern = patternFrom(textOf(half));
  const std::string text = print(thinSchedules(pattern, "sm_90").front(), pattern);
  INFO(text);
  CHECK(text.find("units 32 lanes 32") != std::string::npos);
  CHECK(text.find("lane n:8 {") != std::string::npos);
  // Not where every second row begins between two accesses.
  const auto atOnce = [](const Product &product) {
    const Schedule schedule = thinSchedules(patternFrom(textOf(product)), "sm_90").front();
    int64_t most = 1;
    const auto isWider = [&](const TreeNode &node) {
      if (const LoopNode *lane = node.loop(LoopKind::Lane))
        most = std::max(most, lane->step);
      return false;
    };
    anyNode(schedule.tree, isWider);
    return most;
  };
  CHECK(atOnce({1, 8196, 512}) == 4);
  CHECK(atOnce({1, 8198, 512}) == 2);
  CHECK(atOnce({1, 8197, 512}) == 1);
  CHECK(atOnce({1, 512, 515, "f32", "f32", true}) == 1);
  // Columns for all cores, where there are fewer.
  const std::vector<Schedule> few = thinSchedules(patternFrom(textOf({1, 768, 768})), "sm_90");
  CHECK(std::ranges::any_of(
      few, [&](const Schedule &s) { return s.tree[0].loop(LoopKind::Block)->step == 32; }));
}

TEST_CASE("thin: what is chosen for one row spreads over the device") {
  const Target target = targetNamed("sm_90");
  struct Spread {
    double blocks, seconds;
  };
  for (const bool turned : {false, true}) {
    INFO((turned ? "terms" : "columns") << " side by side");
    const auto chosen = [&](int64_t columns, int64_t terms) {
      const ExprProgram pattern = patternFrom(textOf({1, columns, terms, "f32", "f32", turned}));
      const ScheduleVariant best = valueOf(bestSchedules(pattern, target)).back();
      return Spread{countWork({best.schedule, pattern}, target).at(0).blocks, best.seconds};
    };
    // The lanes of a unit read 32 columns, a line of memory: 4096 are 128 blocks on 132 cores, which read the matrix
    // nearly as fast as memory gives it.
    const Spread large = chosen(4096, 4096);
    CHECK(large.blocks >= 0.95 * target.cores);
    CHECK(large.seconds <= 1.3 * 4 * 4096 * 4096 / target.memory.back().bytesPerSec);
    // Layers of GPT-2 for one token: a block for each line at least, since with wider ones more cores have none.
    CHECK(chosen(768, 768).blocks >= 24);
    CHECK(chosen(3072, 768).blocks >= 96);
    CHECK(chosen(768, 3072).blocks >= 24);
  }
}

namespace {

constexpr const char *kRows = R"(expr rows
tensor %x: f32[3,70] input
tensor %w: f32[70,100] input
tensor %y: f32[3,100] output
inputs (%x, %w)
outputs (%y)
reduction y [i:3, j:100; k:70] sum f32
  %y = mul(%x[i, k], %w[k, j])
)";
constexpr const char *kShared = R"(schedule s units 4 lanes 32 {
  axis m spatial (0) of e0
  axis n spatial (1) of e0
  axis k reduction (2) of e0
  tree {
    block n:64 {
      unroll m:1 { lane n:2 { unroll n:1 { init e0 } } }
      seq k:8 { unit k:2 { unroll k:1 { unroll m:1 { lane n:2 { unroll n:1 { compute e0 } } } } } }
      unroll m:1 { lane n:2 { unroll n:1 { combine e0 } } }
      unroll m:1 { lane n:2 { unroll n:1 { store e0 } } }
    }
  }
})";

} // namespace

TEST_CASE("units that share sums combine each accumulator of a thread in turn") {
  const Case given(kRows, kShared);
  const std::vector<TensorValue> inputs = randomInputs(given.pattern, {}),
                                 expected = valueOf(evaluate(given.pattern, inputs));
  const std::string combine = "unroll m:1 { lane n:2 { unroll n:1 { combine e0 } } }";
  for (const std::string &order :
       {combine, std::string("lane n:2 { unroll m:1 { unroll n:1 { combine e0 } } }")}) {
    const Schedule schedule = scheduleFrom(given.edited(combine, order), given.pattern);
    CHECK(difference(runSchedule(given.pattern, schedule, inputs, {}), expected, 0) == "");
    // Six accumulators in each of two blocks: all lanes of a unit write theirs, all threads read those of all units.
    const MemoryRequests moved =
        movedBytes({schedule, given.pattern}, targetNamed("sm_90"), tiling::Effort::Thorough);
    CHECK(moved.sharedBytes == 2 * 6 * 4 * 4 * (32 + 4 * 32));
  }
  given.breaks(
      combine, "combine e0",
      "combine e0 has a register of compute e0 and stands in the same unroll, lane and unit "
      "loops, given inside block n:64, and compute inside block n:64, seq k:8, unit k:2, "
      "unroll k:1, unroll m:1, lane n:2, unroll n:1");
  given.breaks("combine e0 } } }\n      unroll m:1 { lane n:2 { unroll n:1 { store e0",
               "combine e0 store e0",
               "combine e0 stands alone in lanes around it, given store e0 there too");
}

TEST_CASE("units that share extremes or cascades combine each accumulator in turn") {
  const Case extremes(R"(expr extremes
tensor %x: f32[70,100] input
tensor %y: f32[100] output
tensor %at: i64[100] output
inputs (%x)
outputs (%y, %at)
reduction y [j:100; k:70] argmax f32
  %y = %x[k, j]
  %at = k
)",
                      R"(schedule s units 4 lanes 32 {
  axis j spatial (0) of e0
  axis k reduction (1) of e0
  tree {
    block j:64 {
      lane j:2 { unroll j:1 { init e0 } }
      seq k:4 { unit k:1 { lane j:2 { unroll j:1 { compute e0 } } } }
      lane j:2 { unroll j:1 { combine e0 } }
      lane j:2 { unroll j:1 { store e0 } }
    }
  }
})");
  const Case cascade(R"(expr cascade
tensor %x: f32[7,300] input
tensor %a: f32[7] output
tensor %b: f32[7] output
inputs (%x)
outputs (%a, %b)
reduction c [i:7; k:300] cascade f32
  %a = max %x[i, k]
  %b = sum exp(sub(%x[i, k], state(0)))
  correct 1 = mul(part(1), exp(sub(part(0), state(0))))
)",
                     R"(schedule s units 4 lanes 32 {
  axis i spatial (0) of e0
  axis k reduction (1) of e0
  tree {
    block i:3 {
      unroll i:1 { init e0 }
      seq k:256 {
        unit k:64 {
          unroll i:1 {
            unroll k:32 { lane k:1 { compute e0 } }
            correct e0 rank 1
            unroll k:32 { lane k:1 { compute e0 rank 1 } }
            correct e0 rank 2
          }
        }
      }
      unroll i:1 { combine e0 }
      unroll i:1 { store e0 }
    }
  }
})");
  for (const Case *given : {&extremes, &cascade}) {
    const Schedule schedule = scheduleFrom(given->text, given->pattern);
    const std::vector<TensorValue> inputs = randomInputs(given->pattern, {});
    CHECK(difference(runSchedule(given->pattern, schedule, inputs, {}),
                     valueOf(evaluate(given->pattern, inputs)),
                     given == &cascade ? 1e-5 : 0) == "");
  }
}
