// Scans whose steps all blocks take together: right, counted as they run, and refused without their barriers.
#include "Candidates.h"
#include "Cost/Cost.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/counts/MemoryRequests.h"
#include "Tiling/schedule/Schedule.h"
#include "Tiling/verify/Verify.h"

#include <catch2/catch_approx.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <set>

using namespace fusec;
using namespace fusec::test;

namespace {

/// Two recurrent layers of width 40 over 7 steps, the first one's with two gates, the second one's projection between
/// them.
const std::string kLayers = R"(expr layers
tensor %x: f32[7,40] input
tensor %w: f32[40,40] input
tensor %q: f32[2,40,40] input
tensor %r: f32[40,40] input
tensor %zero: f32[40] input
tensor %h: f32[40] temp
tensor %hr: f32[2,40] temp
tensor %h.next: f32[40] temp
tensor %hs: f32[7,40] temp
tensor %p: f32[7,40] temp
tensor %g: f32[40] temp
tensor %gr: f32[40] temp
tensor %g.next: f32[40] temp
tensor %last: f32[40] output
tensor %gs: f32[7,40] temp
tensor %y: f32[7,40] output
inputs (%x, %w, %q, %r, %zero)
outputs (%last, %y)
scan hs steps(7)
  carry %h = %zero next %h.next
  stack %h.next -> %hs
  reduction hr [g:2, j:40; k:40] sum f32
    %hr = mul(%h[k], %q[g, k, j])
  map h.next [j:40]
    %h.next = tanh(mul(0.03125, add(sub(%hr[0, j], %hr[1, j]), %x[step, j])))
end
reduction p [t:7, j:40; k:40] sum f32
  %p = mul(%hs[t, k], %w[j, k])
scan gs steps(7)
  carry %g = %zero next %g.next final %last
  stack %g.next -> %gs
  reduction gr [j:40; k:40] sum f32
    %gr = mul(%g[k], %r[k, j])
  map g.next [j:40]
    %g.next = tanh(mul(0.03125, add(%gr[j], %p[step, j])))
end
map y [t:7, j:40]
  %y = mul(%gs[t, j], 2.0)
)";

std::vector<Schedule> roundsOfLayers(const ExprProgram &pattern,
                                     const std::string &target = "sim:sm_90") {
  std::vector<Schedule> found;
  for (Schedule &s : valueOf(candidateSchedules(pattern, targetNamed(target))))
    if (tiling::hasGridScan(s))
      found.push_back(std::move(s));
  REQUIRE(!found.empty());
  return found;
}

/// One of them in which sums come a phase before what is made of them.
Schedule twoPhases(const ExprProgram &pattern) {
  for (Schedule &schedule : roundsOfLayers(pattern))
    if (phasesOf(tiling::gridScanOf(phasesOf(schedule.tree)[1])->children).size() == 2)
      return std::move(schedule);
  FAIL("none has two phases");
  return {};
}

LoopNode &stepLoop(Schedule &schedule) {
  for (TreeNode &node : schedule.tree)
    if (LoopNode *loop = node.loop(); loop && loop->axis == kStepAxis)
      return *loop;
  FAIL("no step loop");
  return *schedule.tree[0].loop();
}

TensorId tensorIn(const Schedule &schedule, const ExprProgram &pattern, const std::string &name) {
  const tiling::ScheduledProgram scheduled(pattern, schedule.via);
  const std::vector<Tensor> &tensors = scheduled.expr.tensors;
  for (size_t t = 0; t < tensors.size(); ++t)
    if (tensors[t].name == name)
      return static_cast<TensorId>(t);
  FAIL("no tensor " << name);
  return -1;
}

MemLevel levelIn(const Schedule &schedule, const ExprProgram &pattern, const std::string &name) {
  return tiling::levelOf(schedule, tensorIn(schedule, pattern, name));
}

std::string problemsOf(const Schedule &schedule, const ExprProgram &pattern) {
  Status status = verify(schedule, pattern);
  REQUIRE(!status.ok());
  std::string all;
  for (const Diagnostic &d : status.errors())
    all += format(d) + "\n";
  return all;
}

} // namespace

TEST_CASE("rounds: a wavefront gives the numbers of the scans") {
  const ExprProgram pattern = patternFrom(kLayers);
  const std::vector<TensorValue> inputs = randomInputs(pattern, {});
  const std::vector<TensorValue> expected = valueOf(evaluate(pattern, inputs));
  const std::string target = GENERATE("sim:sm_90", "sim:gfx90a", "x86-64-v3", "x86-64-v4");
  std::set<size_t> phases;
  for (const Schedule &schedule : roundsOfLayers(pattern, target)) {
    const std::string text = print(schedule, pattern);
    INFO(text);
    CHECK(schedule.via == std::vector<Rewrite>{{"wavefront", 0}});
    TextReader in(text, "schedule");
    CHECK(print(valueOf(parseSchedule(in, pattern)), pattern) == text);
    const GirKernel kernel = kernelOf(pattern, schedule).kernel;
    REQUIRE(kernel.rounds);
    CHECK(kernel.rounds->count == DimExpr(8));
    phases.insert(kernel.rounds->last - kernel.rounds->first);
    const std::string gir = print(kernel);
    TextReader girIn(gir, "kernel");
    CHECK(print(valueOf(parseGirKernel(girIn, {}))) == gir);
    CHECK(difference(runSchedule(pattern, schedule, inputs, {}), expected, 1e-6) == "");
  }
  // Sums and what is made of them, in one phase or after each other.
  const bool cpu = targetNamed(target).kind == TargetKind::Cpu;
  CHECK(phases == (cpu ? std::set<size_t>{1} : std::set<size_t>{1, 2}));
}

TEST_CASE("rounds: a CPU's tile of sums takes rows of a batch, as many of them in each") {
  const ExprProgram pattern = patternFrom(R"(expr layer
tensor %x: f32[5,6,2,40] input
tensor %q: f32[2,40,40] input
tensor %zero: f32[6,40] input
tensor %h: f32[6,40] temp
tensor %hr: f32[6,2,40] temp
tensor %h.next: f32[6,40] temp
tensor %y: f32[5,6,40] output
inputs (%x, %q, %zero)
outputs (%y)
scan y steps(5)
  carry %h = %zero next %h.next
  stack %h.next -> %y
  reduction hr [b:6, g:2, j:40; k:40] sum f32
    %hr = mul(%h[b, k], %q[g, k, j])
  map h.next [b:6, j:40]
    %h.next = tanh(mul(0.03125, sub(add(%hr[b, 0, j], %x[step, b, 0, j]), add(%hr[b, 1, j], %x[step, b, 1, j]))))
end
)");
  const std::vector<TensorValue> inputs = randomInputs(pattern, {});
  const std::vector<TensorValue> expected = valueOf(evaluate(pattern, inputs));
  std::set<int64_t> rows;
  for (const Schedule &schedule : roundsOfLayers(pattern, "x86-64-v4")) {
    INFO(print(schedule, pattern));
    const std::span<const TreeNode> phase = phasesOf(schedule.tree)[1];
    const LoopNode *block = tiling::gridScanOf(phase)->children[0].loop();
    REQUIRE(block->kind == LoopKind::Block);
    rows.insert(block->step);
    CHECK(difference(runSchedule(pattern, schedule, inputs, {}), expected, 1e-6) == "");
  }
  CHECK(rows == std::set<int64_t>{1, 2, 3});
}

TEST_CASE("rounds: as many steps as a symbol says") {
  std::string text = kLayers;
  text.insert(text.find('\n') + 1, "symbol n = 1..64 opt 7 divisor 1\n");
  for (const std::string seven : {"f32[7,", "steps(7)", "[t:7,"})
    for (size_t at; (at = text.find(seven)) != std::string::npos;)
      text[at + seven.find('7')] = 'n';
  const ExprProgram pattern = patternFrom(text);
  for (const Schedule &schedule : roundsOfLayers(pattern))
    for (int64_t n : {1, 2, 5}) {
      const std::vector<TensorValue> inputs = randomInputs(pattern, {n});
      CHECK(difference(runSchedule(pattern, schedule, inputs, {n}),
                       valueOf(evaluate(pattern, inputs)), 1e-6) == "");
    }
}

TEST_CASE("rounds: a phase is counted once a step, with a barrier behind each") {
  const ExprProgram pattern = patternFrom(kLayers);
  const Target target = targetNamed("sm_80");
  const Schedule schedule = twoPhases(pattern);
  const std::vector<cost::Counts> phases = countWork({schedule, pattern}, target);
  REQUIRE(phases.size() == 3);
  CHECK(phases[0].rounds == 1);
  CHECK(phases[1].rounds == 8);
  CHECK(phases[1].readBytes == (4 * 40 * 40 + 2 * 40) * 4); // the matrices, both states
  double apart = 0;
  for (const cost::Counts &phase : phases)
    apart += phase.rounds * cost::latency(phase, target);
  CHECK(cost::latency(phases, target) ==
        Catch::Approx(apart - 16 * (target.launchSec - target.deviceBarrierSec)));
}

TEST_CASE("rounds: a step without its barrier is refused") {
  const ExprProgram pattern = patternFrom(kLayers);
  Schedule schedule = twoPhases(pattern);
  require(verify(schedule, pattern));
  SECTION("no barrier between sums and what reads them") {
    std::erase_if(stepLoop(schedule).children,
                  [](const TreeNode &n) { return n.leaf(LeafKind::Barrier); });
    CHECK(problemsOf(schedule, pattern).find("parts side by side do not read each other") !=
          std::string::npos);
  }
  SECTION("a barrier in a loop that blocks pass differently often") {
    stepLoop(schedule).children[0].loop()->children.push_back(LeafNode{LeafKind::Barrier});
    CHECK(problemsOf(schedule, pattern)
              .find("barrier stands at the root or in the step loop there, given inside block ") !=
          std::string::npos);
  }
  SECTION("states that are set in no step, and handed on twice") {
    std::erase_if(schedule.tree, [](const TreeNode &n) {
      return n.leaf(LeafKind::Carry) && n.leaf()->carry == 0;
    });
    stepLoop(schedule).children.push_back(LeafNode{.kind = LeafKind::Carry, .carry = 1});
    const std::string problems = problemsOf(schedule, pattern);
    CHECK(problems.find("one carry 0 sets a scan's states") != std::string::npos);
    CHECK(problems.find("hand their states on without a carry 1") != std::string::npos);
  }
  SECTION("a value of the step in one block's own memory") {
    const tiling::ScheduledProgram scheduled(pattern, schedule.via);
    schedule.edges.push_back({scheduled.equations[0]->outputs[0], MemLevel::Shared});
    CHECK(problemsOf(schedule, pattern).find("crosses a barrier from e0 to e1, given shared") !=
          std::string::npos);
  }
}

TEST_CASE("rounds: what a thread reads of its own sums and states of the step stays in registers") {
  const ExprProgram pattern = patternFrom(kLayers);
  const std::string target = GENERATE("sim:sm_90", "sim:gfx90a", "x86-64-v3", "x86-64-v4");
  for (const Schedule &schedule : roundsOfLayers(pattern, target)) {
    const size_t phases = phasesOf(tiling::gridScanOf(phasesOf(schedule.tree)[1])->children).size();
    INFO(print(schedule, pattern));
    // Sums of a phase before its maps are other threads'; who reads %g.next is a map beside its maker.
    for (const char *sum : {"hr", "gr", "p.step"})
      CHECK(levelIn(schedule, pattern, sum) ==
            (phases == 1 ? MemLevel::Register : MemLevel::Global));
    CHECK(levelIn(schedule, pattern, "g.next") == MemLevel::Register);
    CHECK(levelIn(schedule, pattern, "h.next") == MemLevel::Global); // nobody reads it in its step
    CHECK(levelIn(schedule, pattern, "h") == MemLevel::Global);
    for (const GirBuffer &buffer : kernelOf(pattern, schedule).kernel.buffers)
      CHECK((buffer.level != MemLevel::Global || phases > 1 || buffer.name.rfind("hr", 0) != 0));
  }
}

TEST_CASE(
    "rounds: a value of one block may lie in its own memory, with its state in the device's") {
  const ExprProgram pattern = patternFrom(kLayers);
  const std::vector<TensorValue> inputs = randomInputs(pattern, {});
  const std::vector<TensorValue> expected = valueOf(evaluate(pattern, inputs));
  const std::string target = GENERATE("sim:sm_90", "x86-64-v3");
  const Target machine = targetNamed(target);
  for (Schedule schedule : roundsOfLayers(pattern, target)) {
    if (levelIn(schedule, pattern, "hr") != MemLevel::Register)
      continue;
    const double before =
        movedBytes({schedule, pattern}, machine, tiling::Effort::Thorough).sharedBytes;
    for (const char *value : {"hr", "g.next"})
      tiling::setLevel(schedule, tensorIn(schedule, pattern, value), MemLevel::Shared);
    require(verify(schedule, pattern, machine));
    INFO(print(schedule, pattern));
    CHECK(difference(runSchedule(pattern, schedule, inputs, {}), expected, 1e-6) == "");
    CHECK(movedBytes({schedule, pattern}, machine, tiling::Effort::Thorough).sharedBytes > before);
  }
}

TEST_CASE("rounds: registers and states where the rules do not allow them are refused") {
  const ExprProgram pattern = patternFrom(kLayers);
  Schedule schedule = roundsOfLayers(pattern)[0];
  REQUIRE(levelIn(schedule, pattern, "hr") == MemLevel::Register);
  const TensorId h = tensorIn(schedule, pattern, "h");
  SECTION("gates that lie in no register together") {
    std::function<void(LoopNode &)> inTurn = [&](LoopNode &loop) {
      if (loop.axis >= 0 && schedule.axes[loop.axis].name == "g00")
        loop.kind = LoopKind::Seq;
      for (TreeNode &child : loop.children)
        if (LoopNode *inner = child.loop())
          inTurn(*inner);
    };
    inTurn(stepLoop(schedule));
    CHECK(problemsOf(schedule, pattern)
              .find("in a register, at its own point, given another one at index ") !=
          std::string::npos);
  }
  SECTION("a state in one block's own memory") {
    tiling::setLevel(schedule, h, MemLevel::Shared);
    CHECK(problemsOf(schedule, pattern)
              .find("edge h, which blocks share from step to step, is global, given shared") !=
          std::string::npos);
  }
  SECTION("a state of a block that takes all steps, in a register") {
    for (Schedule &own : valueOf(candidateSchedules(pattern, targetNamed("sim:sm_90")))) {
      if (own.name != "scan")
        continue;
      tiling::setLevel(own, tensorIn(own, pattern, "h.next"), MemLevel::Register);
      CHECK(problemsOf(own, pattern)
                .find("edge h.next, which a step hands to the next one, is shared or global, given "
                      "register") != std::string::npos);
    }
  }
}

TEST_CASE("rounds: sums that other blocks make are refused in the same phase") {
  const std::string target = GENERATE("sim:sm_90", "x86-64-v3");
  std::string text = kLayers;
  const std::string own = "%hr[1, j]";
  text.replace(text.find(own), own.size(), "%hr[1, j*-1 + 39]");
  const ExprProgram pattern = patternFrom(kLayers), other = patternFrom(text);
  for (const Schedule &schedule : roundsOfLayers(pattern, target)) {
    if (phasesOf(tiling::gridScanOf(phasesOf(schedule.tree)[1])->children).size() > 1)
      continue;
    require(verify(schedule, pattern));
    CHECK(problemsOf(schedule, other)
              .find("a block reads in the same phase only what it makes itself") !=
          std::string::npos);
  }
  for (const Schedule &schedule : roundsOfLayers(other, target)) {
    const std::vector<TensorValue> inputs = randomInputs(other, {});
    CHECK(difference(runSchedule(other, schedule, inputs, {}), valueOf(evaluate(other, inputs)),
                     1e-6) == "");
  }
}

TEST_CASE("rounds: one value that is two states of the next step is refused") {
  auto layer = [](const std::string &second) {
    return patternFrom(R"(expr twice
tensor %x: f32[7,40] input
tensor %r: f32[40,40] input
tensor %zero: f32[40] input
tensor %half: f32[40] input
tensor %h: f32[40] temp
tensor %g: f32[40] temp
tensor %hr: f32[40] temp
tensor %h.next: f32[40] temp
tensor %g.next: f32[40] temp
tensor %y: f32[7,40] output
inputs (%x, %r, %zero, %half)
outputs (%y)
scan y steps(7)
  carry %h = %zero next %h.next
  carry %g = %half next )" +
                       second +
                       R"(
  stack %h.next -> %y
  reduction hr [j:40; k:40] sum f32
    %hr = mul(%h[k], %r[k, j])
  map h.next [j:40]
    %h.next = tanh(mul(0.03125, add(add(%hr[j], %g[j]), %x[step, j])))
  map g.next [j:40]
    %g.next = mul(%g[j], 0.5)
end
)");
  };
  const std::string target = GENERATE("sim:sm_90", "x86-64-v3");
  const ExprProgram apart = layer("%g.next"), pattern = layer("%h.next");
  for (const Schedule &schedule : roundsOfLayers(apart, target)) {
    require(verify(schedule, apart));
    CHECK(problemsOf(schedule, pattern)
              .find("give each state a value of its own, given h.next for two") !=
          std::string::npos);
  }
  // A block's own steps copy it to both.
  const std::vector<TensorValue> inputs = randomInputs(pattern, {});
  for (const Schedule &schedule : valueOf(candidateSchedules(pattern, targetNamed(target)))) {
    CHECK(!tiling::hasGridScan(schedule));
    CHECK(difference(runSchedule(pattern, schedule, inputs, {}), valueOf(evaluate(pattern, inputs)),
                     1e-6) == "");
  }
}
