// What threads keep is said by the schedule, done by the kernel, and counted.
#include "Candidates.h"
#include "Gir/Traffic.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/counts/MemoryRequests.h"
#include "Tiling/counts/OnChipStorage.h"
#include "Tiling/counts/Prediction.h"
#include "Tiling/lower/Lower.h"
#include "Tiling/search/ChooseReuse.h"
#include "Tiling/verify/Verify.h"

using namespace fusec;
using namespace fusec::test;

namespace {

/// Rows of 256 elements, each divided by its sum.
ExprProgram shares() {
  return patternFrom("expr p\ntensor %x: f32[64, 256] input\ntensor %s: f32[64] temp\n"
                     "tensor %y: f32[64, 256] output\ninputs (%x)\noutputs (%y)\n"
                     "reduction s [i:64; k:256] sum f32\n  %s = %x[i, k]\n"
                     "map y [i:64, j:256]\n  %y = div(%x[i, j], %s[i])\n");
}

/// A row a unit, eight vectors long; `kept`: lines of the list. `turn`: elements of the second nest's loop in order.
Schedule rows(const ExprProgram &pattern, const std::string &kept, const std::string &turn = "128",
              const std::string &level = "register") {
  const std::string text =
      "schedule s units 4 lanes 32 {\n  axis m spatial (0) of e0, e1\n"
      "  axis v reduction (1) of e0\n  axis w spatial (1) of e1\n  edge s " +
      level + "\n" + kept +
      "  tree { block m:4 { unit m:1 {\n"
      "    init e0 seq v:128 { unroll v:32 { lane v:1 { compute e0 } } } combine e0\n" +
      (level == "shared" ? "    store e0\n" : "") + "    seq w:" + turn +
      " { unroll w:32 { lane w:1 { compute e1 } } } } } }\n}\n";
  TextReader in(text, "schedule");
  Schedule schedule = valueOf(parseSchedule(in, pattern));
  require(verify(schedule, pattern));
  return schedule;
}

Schedule decided(const ExprProgram &pattern, Schedule schedule, const Target &target) {
  require(chooseReadReuse(schedule, pattern, pattern.symbols, target));
  return schedule;
}

GirKernel kernelFor(const ExprProgram &pattern, const Schedule &schedule, const Target &target) {
  return valueOf(lowerAndRewrite(pattern, schedule, pattern.symbols, target)).kernel;
}

std::string keptText(const ExprProgram &pattern, const Schedule &schedule) {
  const std::string text = print(schedule, pattern);
  TextReader in(text, "schedule");
  CHECK(print(valueOf(parseSchedule(in, pattern)), pattern) == text);
  std::string lines;
  for (size_t at = text.find("  keep"); at != std::string::npos; at = text.find("  keep", at + 1))
    lines += text.substr(at, text.find('\n', at) + 1 - at);
  return lines;
}

constexpr double kRow = 64 * 256 * 4; // bytes of x

} // namespace

TEST_CASE("a row that two nests go through is kept, counted once and held in registers") {
  const ExprProgram pattern = shares();
  const Target target = targetNamed("sm_90");
  const Schedule plain = rows(pattern, "");
  const Schedule kept = decided(pattern, plain, target);
  CHECK(keptText(pattern, kept) == "  keep e1.r0 register from e0.r0\n");
  auto read = [&](const Schedule &schedule) {
    const MemoryRequests moved = movedBytes({schedule, pattern}, target, tiling::Effort::Thorough);
    CHECK(moved.readBytes == 4 * globalTraffic(kernelFor(pattern, schedule, target)).read);
    CHECK(moved.readSectors * 32 == moved.readBytes);
    CHECK(moved.sharedBytes == 0);
    return moved.readBytes;
  };
  // Without the line nothing is kept, whatever room there is.
  CHECK(read(plain) == 2 * kRow);
  CHECK(read(kept) == kRow);
  CHECK(tiling::storageOf({kept, pattern}).registersPerThread ==
        tiling::storageOf({plain, pattern}).registersPerThread + 256 / 32);
  CHECK(countWork({kept, pattern}, target)[0].vectorLoads <
        countWork({plain, pattern}, target)[0].vectorLoads);
  // A core finds the row in its cache.
  CHECK(decided(pattern, plain, targetNamed("x86-64-v3")).kept.empty());
}

TEST_CASE("the search weighs schedules with what their threads keep") {
  const ExprProgram pattern = shares();
  for (const char *name : {"sm_90", "gfx90a"}) {
    const Target target = targetNamed(name);
    const ScheduleVariant best = valueOf(bestSchedules(pattern, target)).back();
    CHECK(best.schedule.kept == decided(pattern, best.schedule, target).kept);
    CHECK(!best.schedule.kept.empty());
    CHECK(best.seconds == predict({best.schedule, pattern}, target).seconds);
    CHECK(best.ofUnits.at(best.schedule.units).seconds == best.seconds);
    Schedule forgetful = best.schedule;
    forgetful.kept.clear();
    CHECK(best.seconds < predict({forgetful, pattern}, target).seconds);
  }
}

TEST_CASE("a search that is not thorough decides nothing that is kept") {
  const ExprProgram pattern = shares();
  ScheduleSearch quick;
  quick.thorough = false;
  for (const char *name : {"sm_90", "x86-64-v3"}) {
    const Target target = targetNamed(name);
    const ScheduleVariant best = valueOf(bestSchedules(pattern, target)).back(),
                          found = valueOf(bestSchedules(pattern, target, {}, quick)).back();
    CHECK(found.schedule.kept.empty());
    CHECK(found.seconds == predict({found.schedule, pattern}, target).seconds);
    CHECK(found.seconds >= best.seconds);
  }
}

TEST_CASE("a search that is not thorough does without alternatives") {
  const ExprProgram pattern =
      patternFrom(ProgramText("deferred", {})
                      .input("a", "6,70")
                      .reduction("y", "i:6; k:70", "sum", "div(%a[i, k], %a[i, 3])"));
  ScheduleSearch quick;
  quick.thorough = false;
  auto alternatives = [&](const ScheduleSearch &how) {
    const ScheduleVariant best =
        valueOf(bestSchedules(pattern, targetNamed("x86-64-v3"), {}, how)).back();
    return std::count_if(best.consideredVia.begin(), best.consideredVia.end(),
                         [](const std::vector<Rewrite> &via) { return !via.empty(); });
  };
  CHECK(alternatives({}) > 0);
  CHECK(alternatives(quick) == 0);
}

TEST_CASE("what a list says is done or refused") {
  const ExprProgram pattern = shares();
  const Target target = targetNamed("sm_90");
  const Schedule shared = rows(pattern, "  keep e1.r0 shared from e0.r0\n");
  GirKernel kernel = kernelFor(pattern, shared, target);
  CHECK(print(kernel).find("shared %x.kept f32[1024]") != std::string::npos);
  const MemoryRequests moved = movedBytes({shared, pattern}, target, tiling::Effort::Thorough);
  CHECK(moved.readBytes == kRow);
  CHECK(moved.sharedBytes == 3 * kRow); // written once, read for each of both
  CHECK(tiling::storageOf({shared, pattern}).sharedBytes == 4 * 256 * 4);

  auto refusal = [&](const Schedule &schedule, const Target &on) {
    auto lowered = lowerAndRewrite(pattern, schedule, pattern.symbols, on);
    return lowered.ok() ? "" : lowered.errors().front().text;
  };
  auto no = [](const std::string &from, const std::string &given) {
    return "keep e1.r0 register from " + from +
           " is of a value that its threads have had and that register memory has room for, "
           "given " +
           given + "; without this line they read it";
  };
  const std::string line = "  keep e1.r0 register from e0.r0\n";
  CHECK(refusal(rows(pattern, line), target) == "");
  CHECK(refusal(rows(pattern, line, "64"), target) == no("e0.r0", "another one")); // other loops
  CHECK(refusal(rows(pattern, "  keep e1.r0 register from store\n"), target) ==
        no("store", "another one"));
  CHECK(refusal(rows(pattern, line), targetNamed("x86-64-v3")) == no("e0.r0", "no room"));
  auto broken = [&](const std::string &list) {
    Schedule schedule = rows(pattern, "");
    const std::string text = print(schedule, pattern);
    std::string edited = text;
    edited.insert(edited.find("  tree"), list);
    TextReader in(edited, "schedule");
    return format(verify(valueOf(parseSchedule(in, pattern)), pattern).errors().front());
  };
  CHECK(broken("  keep e1.r7 register from store\n")
            .find("names reads that equations have, given e1.r7, which none has") !=
        std::string::npos);
  CHECK(broken("  keep e1.r0 global from store\n").find("is in register or shared, given global") !=
        std::string::npos);
  CHECK(
      broken("  keep e1.r0 register from e1.r0\n").find("stands in rounds, given none around it") !=
      std::string::npos);
  CHECK(broken(line + line).find("stands once, given 2 times") != std::string::npos);
}

TEST_CASE("a raised edge stays where the schedule puts it, unless it is kept") {
  const ExprProgram pattern = shares();
  const Target target = targetNamed("gfx90a");
  const Schedule raised = rows(pattern, "", "128", "shared");
  CHECK(print(kernelFor(pattern, raised, target)).find("shared %s") != std::string::npos);
  const Schedule kept = decided(pattern, raised, target);
  CHECK(keptText(pattern, kept).find("from store") != std::string::npos);
  CHECK(print(kernelFor(pattern, kept, target)).find("shared %") == std::string::npos);
  CHECK(movedBytes({kept, pattern}, target, tiling::Effort::Thorough).sharedBytes == 0);
  CHECK(movedBytes({raised, pattern}, target, tiling::Effort::Thorough).sharedBytes > 0);
}

TEST_CASE("a staged tile that each thread reads as it has put it there is not stored") {
  const ExprProgram pattern = shares();
  const Target target = targetNamed("sm_90");
  const std::string text = R"(schedule s units 4 lanes 32 {
  axis m spatial (0) of e0, e1
  axis v reduction (1) of e0
  axis w spatial (1) of e1
  operand a e1.r0 shared (w)
  edge s register
  tree { block m:1 {
    init e0 seq v:128 { unit v:32 { lane v:1 { compute e0 } } } combine e0
    seq w:128 { stage a unit w:32 { lane w:1 { compute e1 } } } } }
}
)";
  TextReader in(text, "schedule");
  const Schedule plain = valueOf(parseSchedule(in, pattern));
  require(verify(plain, pattern, target));
  const Schedule kept = decided(pattern, plain, target);
  CHECK(keptText(pattern, kept) == "  keep e1.r0 register from store\n");
  auto kernel = [&](const Schedule &s) { return print(kernelFor(pattern, s, target)); };
  CHECK(kernel(plain).find("shared %a f32[128]") != std::string::npos);
  CHECK(kernel(kept).find("shared %a") == std::string::npos);
  auto moved = [&](const Schedule &s) {
    return movedBytes({s, pattern}, target, tiling::Effort::Thorough);
  };
  CHECK(moved(plain).sharedBytes - moved(kept).sharedBytes == 2 * kRow); // written, and read
  CHECK(moved(plain).readBytes == moved(kept).readBytes);
  // The tile lies where each unit's part of the sum has lain.
  CHECK(tiling::storageOf({plain, pattern}).sharedBytes == 128 * 4);
  CHECK(tiling::storageOf({kept, pattern}).sharedBytes == plain.units * 4);
}
