// Phases that wait for counters: a block needs those blocks alone that make what it reads, and everything that could go
// wrong with it is found.
#include "Tiling/schedule/PhaseSignals.h"
#include "Candidates.h"
#include "Gir/Walk.h"
#include "Tiling/schedule/Message.h"
#include "Tiling/search/PhaseCandidates.h"

#include <algorithm>

using namespace fusec;
using namespace fusec::test;
using tiling::PhaseSignals;
using tiling::PricedSchedules;

namespace {

/// A product, and sums over its rows.
const std::string kRows = R"(expr rows
tensor %a: f32[96,40] input
tensor %b: f32[40,80] input
tensor %c: f32[96,80] temp
tensor %s: f32[96] output
inputs (%a, %b)
outputs (%s)
reduction c [i:96, j:80; k:40] sum f32
  %c = mul(%a[i, k], %b[k, j])
reduction s [i:96; j:80] sum f32
  %s = mul(%c[i, j], %c[i, j])
)";

/// Neighbours to both sides, and what stands there in another order.
const std::string kHalo = R"(expr halo
tensor %x: f32[9000] input
tensor %p: f32[9000] temp
tensor %q: f32[8996] temp
tensor %y: f32[4498] output
inputs (%x)
outputs (%y)
map p [i:9000]
  %p = mul(%x[i], %x[i])
map q [i:8996]
  %q = add(%p[i], %p[i + 4])
map y [i:4498]
  %y = add(add(%q[i*2], %q[i*2 + 1]), %p[i + 1])
)";

const std::string kGather = R"(expr gather
tensor %x: f32[6000] input
tensor %n: i64[6000] input
tensor %p: f32[6000] temp
tensor %y: f32[6000] output
inputs (%x, %n)
outputs (%y)
map p [i:6000]
  %p = mul(%x[i], 2.0)
map y [i:6000]
  %y = %p[floormod(%n[i], 6000)]
)";

/// Two parts side by side before a third.
const std::string kPack = R"(expr pack
tensor %x: f32[60,300] input
tensor %z: f32[60,500] input
tensor %a: f32[60] temp
tensor %b: f32[60] temp
tensor %y: f32[60] output
inputs (%x, %z)
outputs (%y)
reduction a [i:60; k:300] sum f32
  %a = %x[i, k]
reduction b [i:60; k:500] max f32
  %b = %z[i, k]
map y [i:60]
  %y = add(%a[i], %b[i*-1 + 59])
)";

const std::string kSymbolic = R"(expr symbolic
symbol n = 1..300 opt 40 divisor 1
tensor %x: f32[n,50] input
tensor %s: f32[n] temp
tensor %y: f32[n,50] output
inputs (%x)
outputs (%y)
reduction s [i:n; k:50] sum f32
  %s = %x[i, k]
map y [i:n, k:50]
  %y = mul(%x[i, k], %s[i])
)";

Schedule withCounters(Schedule schedule) {
  for (TreeNode &node : schedule.tree)
    if (node.isBorder())
      node.leaf()->kind = LeafKind::Counters;
  return schedule;
}

std::vector<Schedule> countedSchedules(const ExprProgram &pattern, const std::vector<int> &starts) {
  std::vector<Schedule> schedules;
  for (const char *name : {"x86-64-v3", "sim:sm_90", "sim:gfx90a"})
    for (const auto &candidate :
         valueOf(tiling::phasedCandidates(pattern, targetNamed(name), starts)))
      schedules.push_back(withCounters(candidate.schedule));
  REQUIRE(!schedules.empty());
  return schedules;
}

int statements(const GirKernel &kernel, StmtKind kind) {
  int count = 0;
  forEachStmtOf(kernel, [&](const Stmt &s) { count += s.kind == kind; });
  return count;
}

/// Takes the first statement of this kind that `which` is true of out of the kernel.
bool takeOut(std::vector<Stmt> &list, const std::function<bool(const Stmt &)> &which) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (which(list[i])) {
      list.erase(list.begin() + static_cast<long>(i));
      return true;
    }
    if (takeOut(list[i].body, which) || takeOut(list[i].elseBody, which))
      return true;
  }
  return false;
}

std::string firstError(const Status &status) {
  return status.ok() ? "" : format(status.errors().front());
}

std::string faultOf(const GirKernel &kernel) {
  std::vector<std::vector<uint8_t>> memory;
  for (int b = 0; b < kernel.numParams(); ++b)
    memory.emplace_back(static_cast<size_t>(numElements(kernel.buffers[b].shape).constValue() *
                                            sizeInBytes(kernel.buffers[b].type)));
  std::vector<GirArgument> arguments;
  for (std::vector<uint8_t> &m : memory)
    arguments.push_back({m.data(), static_cast<int64_t>(m.size())});
  return firstError(run(kernel, arguments, {}));
}

} // namespace

TEST_CASE("counters: schedules print, parse and give the numbers of the equations") {
  struct Example {
    const std::string &text;
    std::vector<int> starts;
    std::vector<int64_t> symbols;
  };
  const std::vector<Example> examples = {
      {kRows, {1}, {}},      {kHalo, {1, 2}, {}},    {kGather, {1}, {}},     {kPack, {2}, {}},
      {kSymbolic, {1}, {1}}, {kSymbolic, {1}, {37}}, {kSymbolic, {1}, {300}}};
  for (const Example &example : examples) {
    const ExprProgram pattern = patternFrom(example.text);
    const std::vector<TensorValue> inputs = randomInputs(pattern, example.symbols);
    const std::vector<TensorValue> expected = valueOf(evaluate(pattern, inputs));
    for (const Schedule &schedule : countedSchedules(pattern, example.starts)) {
      const std::string text = print(schedule, pattern);
      INFO(text);
      TextReader in(text, "schedule");
      CHECK(print(valueOf(parseSchedule(in, pattern)), pattern) == text);
      const GirKernel kernel = kernelOf(pattern, schedule).kernel;
      CHECK(statements(kernel, StmtKind::Wait) > 0);
      CHECK(std::none_of(kernel.phases.begin() + 1, kernel.phases.end(),
                         [](const Phase &p) { return !p.waiting; }));
      CHECK(difference(runSchedule(pattern, schedule, inputs, example.symbols), expected, 1e-5) ==
            "");
    }
  }
}

TEST_CASE("counters: a block waits for the tiles that it reads, and no others") {
  const ExprProgram pattern = patternFrom(kRows);
  for (const Schedule &schedule : countedSchedules(pattern, {1})) {
    INFO(print(schedule, pattern));
    const PhaseSignals counters = tiling::phaseSignals({schedule, pattern});
    REQUIRE(counters.problems.empty());
    REQUIRE(counters.sets.size() == 1);
    REQUIRE(counters.waits.size() == 1);
    // Rows have counters where the product's blocks have rows of their own; its columns are counted together.
    const std::vector<std::span<const TreeNode>> phases = phasesOf(schedule.tree);
    DimExpr rows(1), blocks(1);
    for (const LoopNode *block = phases[0][0].loop(LoopKind::Block); block;
         block = block->children[0].loop(LoopKind::Block)) {
      const ScheduleAxis &axis = schedule.axes[block->axis];
      const DimExpr trip = ceilDiv(axis.extent, DimExpr(block->step));
      blocks = blocks * trip;
      if (axis.in(0)->positions == std::vector<int>{0})
        rows = trip;
    }
    const bool readerHasRows = phases[1][0].loop(LoopKind::Block);
    CHECK(counters.sets[0].count == (readerHasRows ? rows : DimExpr(1)));
    CHECK(counters.sets[0].count * counters.sets[0].signals == blocks);
  }
  // A gather may read anything.
  for (const Schedule &schedule : countedSchedules(patternFrom(kGather), {1}))
    CHECK(tiling::phaseSignals({schedule, patternFrom(kGather)}).sets.at(0).count.isConst(1));
  // The third phase reads what the first has made: it waits for both.
  for (const Schedule &schedule : countedSchedules(patternFrom(kHalo), {1, 2}))
    CHECK(tiling::phaseSignals({schedule, patternFrom(kHalo)}).waits.size() == 3);
}

TEST_CASE("counters: behind a barrier nobody waits for what came before it") {
  const ExprProgram pattern = patternFrom(kHalo);
  Schedule schedule = countedSchedules(pattern, {1, 2}).front();
  size_t borders = 0;
  for (TreeNode &node : schedule.tree)
    if (node.isBorder() && borders++ == 0)
      node.leaf()->kind = LeafKind::Barrier;
  const PhaseSignals counters = tiling::phaseSignals({schedule, pattern});
  REQUIRE(counters.waits.size() == 1);
  CHECK(counters.sets[counters.waits[0].set].phase == 1);
  CHECK(counters.waits[0].phase == 2);
}

TEST_CASE("counters: the model decides where they stand") {
  // One turn of all blocks: a counter costs less than a barrier. On AMD phases are launches.
  const ExprProgram pattern = patternFrom(kRows);
  auto countersIn = [&](const char *target) {
    const Schedule schedule =
        valueOf(bestSchedules(pattern, targetNamed(target), {1})).back().schedule;
    return std::count_if(schedule.tree.begin(), schedule.tree.end(),
                         [](const TreeNode &node) { return node.leaf(LeafKind::Counters); });
  };
  CHECK(countersIn("sm_80") ==
        0); // a single border does not pay for the blocks' counting themselves out
  CHECK(countersIn("gfx90a") == 0);
  CHECK(countersIn("x86-64-v3") == 0);
  const Target target = targetNamed("sm_80");
  cost::Counts few, many;
  few.blocks = 60;
  few.unitsPerBlock = many.unitsPerBlock = 8;
  many.blocks = 6000;
  CHECK(cost::countersPay(few, few, target));
  CHECK_FALSE(cost::countersPay(few, many, target));
  CHECK_FALSE(cost::countersPay(many, few, target));
  CHECK_FALSE(cost::countersPay(few, few, targetNamed("gfx90a")));
}

TEST_CASE("counters: what is missing in a kernel's text is found") {
  const ExprProgram pattern = patternFrom(kRows);
  GirKernel kernel;
  for (const auto &candidate :
       valueOf(tiling::phasedCandidates(pattern, targetNamed("sim:sm_90"), {1})))
    if (kernel.counters.empty() || kernel.counters[0].count.isConst(1))
      kernel = kernelOf(pattern, withCounters(candidate.schedule)).kernel;
  INFO(print(kernel));
  REQUIRE(!kernel.counters[0].count.isConst(1));
  CHECK(faultOf(kernel) == "");
  auto isA = [](StmtKind kind) { return [kind](const Stmt &s) { return s.kind == kind; }; };
  SECTION("the signal") {
    REQUIRE(takeOut(kernel.phases[0].body, isA(StmtKind::Signal)));
    CHECK(firstError(verify(kernel))
              .find("a wait for %done0 stands in a phase behind its "
                    "signals") != std::string::npos);
  }
  SECTION("the wait") {
    REQUIRE(takeOut(kernel.phases[1].body, isA(StmtKind::Wait)));
    CHECK(firstError(verify(kernel)) == "");
    CHECK(faultOf(kernel).find("whose counter it does not wait for") != std::string::npos);
  }
  SECTION("some of the signals that are waited for") {
    forEachStmtOf(kernel, [&](Stmt &s) {
      if (s.kind == StmtKind::Wait)
        s.value = kernel.body.index(1000);
    });
    CHECK(firstError(verify(kernel)).find("a wait is for all signals of its counter") !=
          std::string::npos);
    CHECK(faultOf(kernel).find("waits for 1000 signals of counter 0, which gets") !=
          std::string::npos);
  }
  SECTION("counters that are waited for") {
    forEachStmtOf(kernel, [&](Stmt &s) {
      if (s.kind == StmtKind::Wait)
        s.indices[0] = s.indices[1] = kernel.body.index(0);
    });
    CHECK(firstError(verify(kernel)) == "");
    CHECK(faultOf(kernel).find("whose counter it does not wait for") != std::string::npos);
  }
  SECTION("counters that exist") {
    kernel.counters[0].count = DimExpr(1);
    CHECK(firstError(verify(kernel)).find("signals rise counters that exist") != std::string::npos);
  }
  SECTION("the barrier of the block in front of the signal") {
    std::vector<Stmt> &body = kernel.phases[0].body;
    const auto signal = std::find_if(body.begin(), body.end(), isA(StmtKind::Signal));
    REQUIRE(signal != body.begin());
    REQUIRE((signal - 1)->kind == StmtKind::Sync);
    body.erase(signal - 1);
    CHECK(faultOf(kernel).find("whose counter it does not wait for") != std::string::npos);
  }
  SECTION("the barrier of the block behind the wait") {
    REQUIRE(takeOut(kernel.phases[1].body, isA(StmtKind::Sync)));
    CHECK(faultOf(kernel).find("whose counter it does not wait for") != std::string::npos);
  }
  SECTION("the phase that is waited for") {
    std::swap(kernel.phases[0].body, kernel.phases[1].body);
    std::swap(kernel.phases[0].blocks, kernel.phases[1].blocks);
    CHECK(firstError(verify(kernel)).find("stands in a phase behind its signals") !=
          std::string::npos);
  }
}

TEST_CASE("counters: blocks that share sums have no tile to wait for") {
  // Half of k each: partial sums that two blocks would store to one place.
  const ExprProgram pattern = patternFrom(kRows);
  for (Schedule schedule : countedSchedules(pattern, {1})) {
    auto phases = phasesOf(schedule.tree);
    if (!phases[0][0].loop(LoopKind::Block))
      continue;
    for (size_t a = 0; a < schedule.axes.size(); ++a)
      if (const AxisUse *use = schedule.axes[a].in(0); use && use->reduction)
        schedule.tree[0].loop()->axis = AxisId(a);
    CHECK(tiling::phaseSignals({schedule, pattern}).problems ==
          std::vector<std::string>{
              "counters are raised by blocks with tiles of e0 of their own, given " +
              print(schedule, *schedule.tree[0].loop()) + ", which sums over it"});
  }
}

TEST_CASE("counters: more blocks than are counted one by one need barriers") {
  const ExprProgram pattern =
      patternFrom(ProgramText("many", {})
                      .input("x", "100000000,50")
                      .reduction("s", "i:100000000; k:50", "sum", "%x[i, k]")
                      .map("y", "i:100000000", "exp(%s[i])"));
  std::vector<std::string> given;
  for (const Schedule &schedule : countedSchedules(pattern, {1}))
    for (const std::string &problem : tiling::phaseSignals({schedule, pattern}).problems)
      given.push_back(problem);
  std::vector<std::string> wanted;
  for (const char *steps : {"1562500", "25000000", "50000000"})
    wanted.push_back("counters stand where at most 1048576 steps prove that each gets what is "
                     "waited for, given " +
                     std::string(steps) + "; put a barrier in their place");
  CHECK(given == wanted);
}
