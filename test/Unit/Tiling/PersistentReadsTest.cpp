// Weights that rounds hold on chip: right with all blocks resident and without, counted once, refused elsewhere.
#include "Tiling/schedule/PersistentReads.h"
#include "Candidates.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/counts/MemoryRequests.h"
#include "Tiling/verify/Verify.h"

#include <algorithm>

using namespace fusec;
using namespace fusec::test;

namespace {

constexpr int kSteps = 7, kWidth = 64, kGates = 2;

/// A recurrent layer of two gates, each of which multiplies the state by a matrix.
const std::string kLayer = R"(expr layer
tensor %x: f32[7,64] input
tensor %q: f32[2,64,64] input
tensor %zero: f32[64] input
tensor %h: f32[64] temp
tensor %hr: f32[2,64] temp
tensor %h.next: f32[64] temp
tensor %hs: f32[7,64] output
inputs (%x, %q, %zero)
outputs (%hs)
scan hs steps(7)
  carry %h = %zero next %h.next
  stack %h.next -> %hs
  reduction hr [g:2, j:64; k:64] sum f32
    %hr = mul(%h[k], %q[g, j, k])
  map h.next [j:64]
    %h.next = tanh(mul(0.03125, add(sub(%hr[0, j], %hr[1, j]), %x[step, j])))
end
)";

const Target &target() {
  static const Target machine = targetNamed("sim:sm_90");
  return machine;
}

std::vector<Schedule> holding(const ExprProgram &pattern) {
  std::vector<Schedule> found;
  for (Schedule &schedule : valueOf(candidateSchedules(pattern, target())))
    if (tiling::hasPersistentReads(schedule))
      found.push_back(std::move(schedule));
  REQUIRE(!found.empty());
  return found;
}

/// What breaks where the schedule's only read that is held is another one, or lies elsewhere.
std::string problemsWith(Schedule schedule, const ExprProgram &pattern, const ReadPlace &place) {
  schedule.kept = {{place, MemLevel::Register, place}};
  const Status status = verify(schedule, pattern);
  std::string all;
  for (size_t i = 0; !status.ok() && i < status.errors().size(); ++i)
    all += status.errors()[i].text + "\n";
  return all;
}

} // namespace

TEST_CASE(
    "held: threads that read their weights once give the numbers of those that do each step") {
  const ExprProgram pattern = patternFrom(kLayer);
  const std::vector<TensorValue> inputs = randomInputs(pattern, {});
  const std::vector<TensorValue> expected = valueOf(evaluate(pattern, inputs));
  for (Schedule schedule : holding(pattern)) {
    for (const MemLevel level : {MemLevel::Register, MemLevel::Shared}) {
      for (ReusedRead &kept : schedule.kept)
        kept.level = tiling::isPersistent(schedule, kept) ? level : kept.level;
      const std::string text = print(schedule, pattern);
      INFO(text);
      TextReader in(text, "schedule");
      CHECK(print(valueOf(parseSchedule(in, pattern)), pattern) == text);
      require(verify(schedule, pattern, target()));
      const GirKernel kernel = kernelOf(pattern, schedule).kernel;
      CHECK(kernel.resident >= 0);
      const std::string gir = print(kernel);
      TextReader girIn(gir, "kernel");
      CHECK(print(valueOf(parseGirKernel(girIn, {}))) == gir);
      for (const bool resident : {true, false}) {
        GirInterpreterOptions options;
        options.resident = resident;
        CHECK(difference(runSchedule(pattern, schedule, inputs, {}, options), expected, 1e-6) ==
              "");
      }
    }
  }
}

TEST_CASE("held: weights are read in front of the first round alone") {
  const ExprProgram pattern = patternFrom(kLayer);
  constexpr double kSectors = kGates * kWidth * kWidth * 4 / 32;
  for (Schedule schedule : holding(pattern)) {
    INFO(print(schedule, pattern));
    const Schedule plain = tiling::withoutPersistentReads(schedule);
    for (ReusedRead &kept : schedule.kept)
      kept.level = tiling::isPersistent(schedule, kept) ? MemLevel::Shared : kept.level;
    const MemoryRequests anew = movedBytes({plain, pattern}, target(), tiling::Effort::Thorough),
                         once = movedBytes({schedule, pattern}, target(), tiling::Effort::Thorough);
    CHECK(anew.readSectors - once.readSectors == (kSteps - 1) * kSectors);
    CHECK(anew.writtenSectors == once.writtenSectors);
    // Written once and read in each step.
    CHECK(once.sharedBytes - anew.sharedBytes == (1 + kSteps) * kSectors * 32);
    const double spared = cost::latency(countWork({plain, pattern}, target()), target()) -
                          cost::latency(countWork({schedule, pattern}, target()), target());
    CHECK(spared >= -1e-6);
  }
}

TEST_CASE("held: elements take registers or shared memory in every phase") {
  const ExprProgram pattern = patternFrom(kLayer);
  for (Schedule schedule : holding(pattern)) {
    const auto of = [&](const Schedule &s) { // the phase of the sums
      const std::vector<cost::Counts> phases = countWork({s, pattern}, target());
      return *std::max_element(phases.begin(), phases.end(),
                               [](const auto &a, const auto &b) { return a.blocks < b.blocks; });
    };
    const cost::Counts plain = of(tiling::withoutPersistentReads(schedule));
    const double all = kGates * kWidth * kWidth, threads = plain.blocks * 256;
    for (const MemLevel level : {MemLevel::Register, MemLevel::Shared}) {
      for (ReusedRead &kept : schedule.kept)
        kept.level = tiling::isPersistent(schedule, kept) ? level : kept.level;
      const cost::Counts held = of(schedule);
      const bool registers = level == MemLevel::Register;
      CHECK(held.registersPerThread - plain.registersPerThread == (registers ? all / threads : 0));
      CHECK(held.sharedBytesPerBlock - plain.sharedBytesPerBlock ==
            (registers ? 0 : all * 4 / plain.blocks));
    }
  }
}

TEST_CASE("held: a device that does not hold all blocks at once is none for it") {
  const ExprProgram pattern = patternFrom(kLayer);
  const Schedule schedule = holding(pattern)[0];
  Target small = target();
  small.cores = small.maxBlocksPerCore = 1;
  const Status status = verify(schedule, pattern, small);
  REQUIRE(!status.ok());
  CHECK(status.errors()[0].text.find("holds all blocks at once") != std::string::npos);
  for (const Schedule &other : valueOf(candidateSchedules(pattern, small)))
    if (tiling::hasPersistentReads(other))
      CHECK(tiling::isResident({other, pattern}, small));
  // Where it is asked for all the same, each step reads all.
  CHECK(
      cost::latency(countWork({schedule, pattern}, small), small) ==
      cost::latency(countWork({tiling::withoutPersistentReads(schedule), pattern}, small), small));
}

TEST_CASE("held: only what is the same in each step, and read in rounds") {
  const ExprProgram pattern = patternFrom(kLayer);
  const Schedule schedule = holding(pattern)[0];
  const tiling::BoundSchedule bound(schedule, pattern);
  int seen = 0;
  for (int e = 0; e < static_cast<int>(bound.program.equations.size()); ++e) {
    for (int r = 0; r < static_cast<int>(bound.facts(e).reads.size()); ++r) {
      const ReadPlace place{e, 0, r};
      const std::string name = bound.program.tensor(bound.program.tensorOf(place)).name;
      const std::string problems = problemsWith(schedule, pattern, place);
      INFO(name << ": " << problems);
      const std::string rule = name == "q"   ? ""
                               : name == "x" ? "finds the same in each step"
                                             : "finds what no step writes";
      CHECK((rule.empty() ? problems.empty() : problems.find(rule) != std::string::npos));
      ++seen;
    }
  }
  CHECK(seen >= 4);
  for (const Schedule &own : valueOf(candidateSchedules(pattern, target())))
    if (!tiling::hasGridScan(own))
      CHECK(problemsWith(own, pattern, schedule.kept[0].read).find("stands in rounds") !=
            std::string::npos);
}
