// Values that threads hold from phase to phase: right with all blocks resident and without, read once.
#include "Candidates.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/counts/MemoryRequests.h"
#include "Tiling/schedule/PersistentReads.h"
#include "Tiling/search/PhaseCandidates.h"
#include "Tiling/verify/Verify.h"

#include <algorithm>

using namespace fusec;
using namespace fusec::test;

namespace {

const Target &target() {
  static const Target machine = targetNamed("sim:sm_90");
  return machine;
}

/// Rows by their sums, which lie in device memory: `rows` of them, of `columns` elements.
std::string rowsText(const std::string &rows, const std::string &columns) {
  const std::string shape = "f32[" + rows + "," + columns + "]";
  return "expr rows\n"
         "symbol n = 1..64 opt 24 divisor 1\n"
         "tensor %x: " +
         shape + " input\ntensor %s: f32[" + rows + "] temp\ntensor %y: " + shape +
         " output\n"
         "inputs (%x)\noutputs (%y)\n"
         "reduction r [i:" +
         rows + "; p:" + columns +
         "] sum f32\n"
         "  %s = mul(%x[i, p], %x[i, p])\n"
         "map m [i:" +
         rows + ", p:" + columns +
         "]\n"
         "  %y = div(%x[i, p], add(%s[i], 1.0))\n";
}

/// Schedules with a phase for the sums and one for the map whose threads hold x.
std::vector<Schedule> holding(const ExprProgram &pattern, const Target &machine = target()) {
  std::vector<Schedule> found;
  for (tiling::PricedSchedule &candidate : valueOf(tiling::phasedCandidates(pattern, machine, {1})))
    if (tiling::hasPersistentReads(candidate.schedule))
      found.push_back(std::move(candidate.schedule));
  return found;
}

void checkNumbers(const ExprProgram &pattern, const Schedule &schedule,
                  const std::vector<int64_t> &symbols) {
  const std::string text = print(schedule, pattern);
  INFO(text);
  TextReader in(text, "schedule");
  CHECK(print(valueOf(parseSchedule(in, pattern)), pattern) == text);
  require(verify(schedule, pattern, target()));
  const GirKernel kernel = kernelOf(pattern, schedule).kernel;
  CHECK(kernel.resident >= 0);
  const std::string gir = print(kernel);
  TextReader girIn(gir, "kernel");
  CHECK(print(valueOf(parseGirKernel(girIn, pattern.symbols))) == gir);
  const std::vector<TensorValue> inputs = randomInputs(pattern, symbols);
  const std::vector<TensorValue> expected = valueOf(evaluate(pattern, inputs));
  for (const bool resident : {true, false}) {
    GirInterpreterOptions options;
    options.resident = resident;
    CHECK(difference(runSchedule(pattern, schedule, inputs, symbols, options), expected, 1e-5) ==
          "");
  }
}

} // namespace

TEST_CASE("held across: what the sums have read is not read again") {
  for (const char *columns : {"300", "512", "3"}) {
    const ExprProgram pattern = patternFrom(rowsText("40", columns));
    const std::vector<Schedule> all = holding(pattern);
    CHECK(all.size() >= (columns == std::string("3") ? 0 : 1));
    for (const Schedule &schedule : all) {
      checkNumbers(pattern, schedule, {24});
      const Schedule plain = tiling::withoutPersistentReads(schedule);
      CHECK(plain.kept.size() + 1 == schedule.kept.size());
      const MemoryRequests twice = movedBytes({plain, pattern}, target(), tiling::Effort::Thorough),
                           once =
                               movedBytes({schedule, pattern}, target(), tiling::Effort::Thorough);
      const double bytes = 40 * std::stod(columns) * 4;
      CHECK(twice.readBytes - once.readBytes == bytes);
      CHECK(twice.writtenBytes == once.writtenBytes);
      const std::vector<cost::Counts> anew = countWork({plain, pattern}, target()),
                                      held = countWork({schedule, pattern}, target());
      CHECK(anew[1].readBytes - held[1].readBytes == bytes);
      CHECK(anew[0].readBytes == held[0].readBytes);
      // In both phases.
      const double registers = held[0].registersPerThread - anew[0].registersPerThread;
      CHECK(registers > 0);
      CHECK(registers >= bytes / 4 / (held[0].blocks * schedule.units * schedule.lanes));
      CHECK(held[1].registersPerThread - anew[1].registersPerThread == registers);
    }
  }
}

TEST_CASE("held across: as many rows as a symbol says, but rows of a constant length") {
  const ExprProgram rows = patternFrom(rowsText("n", "300"));
  const std::vector<Schedule> all = holding(rows);
  REQUIRE(!all.empty());
  for (const Schedule &schedule : all)
    for (int64_t n : {1, 7, 64})
      checkNumbers(rows, schedule, {n});
  CHECK(holding(patternFrom(rowsText("300", "n"))).empty());
}

TEST_CASE("held across: a device that does not hold all blocks at once, or has no barrier") {
  const ExprProgram pattern = patternFrom(rowsText("400", "300"));
  const std::vector<Schedule> all = holding(pattern);
  REQUIRE(!all.empty());
  Target small = target();
  small.cores = small.maxBlocksPerCore = 1;
  CHECK(holding(pattern, small).empty());
  CHECK(holding(pattern, targetNamed("sim:gfx90a")).empty());
  CHECK(holding(pattern, targetNamed("x86-64-v3")).empty());
  const Status status = verify(all[0], pattern, small);
  REQUIRE(!status.ok());
  CHECK(status.errors()[0].text.find("holds all blocks at once") != std::string::npos);
  // Where it is asked for all the same, the second phase reads all.
  CHECK(cost::latency(countWork({all[0], pattern}, small), small) ==
        cost::latency(countWork({tiling::withoutPersistentReads(all[0]), pattern}, small), small));
}

TEST_CASE("held across: another tensor, other elements and other places are not the same") {
  const std::string text = rowsText("40", "300");
  const ExprProgram pattern = patternFrom(text);
  const std::vector<Schedule> all = holding(pattern);
  REQUIRE(!all.empty());
  for (const auto &[old, changed] : {std::pair{"div(%x[i, p],", "div(%x[i, sub(299, p)],"},
                                     {"div(%x[i, p],", "div(%x[sub(39, i), p],"},
                                     {"mul(%x[i, p], %x[i, p])", "%x[i, 0]"}}) {
    std::string other = text;
    other.replace(other.find(old), std::string(old).size(), changed);
    const ExprProgram differs = patternFrom(other);
    INFO(other);
    CHECK(holding(differs).empty());
    const Status status = verify(all[0], differs);
    REQUIRE(!status.ok());
    CHECK(status.errors()[0].text.find("from phase to phase") != std::string::npos);
  }
}

TEST_CASE("held across: of several reads those by the loops of the one before") {
  std::string text = rowsText("64", "64");
  const std::string read = "div(%x[i, p],";
  text.replace(text.find(read), read.size(), "div(add(%x[i, p], %x[p, i]),");
  const ExprProgram pattern = patternFrom(text);
  const std::vector<Schedule> all = holding(pattern);
  REQUIRE(!all.empty());
  for (const Schedule &schedule : all) {
    checkNumbers(pattern, schedule, {24});
    CHECK(std::count_if(schedule.kept.begin(), schedule.kept.end(), [&](const ReusedRead &kept) {
            return tiling::isPersistent(schedule, kept);
          }) == 1);
  }
}

TEST_CASE("held across: of two maps that an alternative makes one") {
  std::string text = rowsText("40", "300");
  const std::string kind = "] temp\n", map = "map m ", read = "add(%s[i], 1.0)";
  text.replace(text.find(kind), kind.size(), "] temp\ntensor %g: f32[40] temp\n");
  text.replace(text.find(read), read.size(), "add(%g[i], 1.0)");
  text.insert(text.find(map), "map g [i:40]\n  %g = mul(%s[i], 0.5)\n");
  const ExprProgram pattern = patternFrom(text);
  const std::vector<Schedule> all = holding(pattern);
  REQUIRE(!all.empty());
  for (const Schedule &schedule : all) {
    CHECK(!schedule.via.empty());
    checkNumbers(pattern, schedule, {24});
  }
}

TEST_CASE("held across: what a phase makes itself it does not hold for others") {
  const ExprProgram pattern = patternFrom("expr rows\n"
                                          "tensor %x: f32[40,300] input\n"
                                          "tensor %t: f32[40,300] temp\n"
                                          "tensor %s: f32[40] temp\n"
                                          "tensor %y: f32[40,300] output\n"
                                          "inputs (%x)\noutputs (%y)\n"
                                          "map a [i:40, p:300]\n"
                                          "  %t = exp(%x[i, p])\n"
                                          "reduction r [i:40; p:300] sum f32\n"
                                          "  %s = mul(%t[i, p], %t[i, p])\n"
                                          "map m [i:40, p:300]\n"
                                          "  %y = div(%t[i, p], add(%s[i], 1.0))\n");
  const tiling::PricedSchedules all = valueOf(tiling::phasedCandidates(pattern, target(), {2}));
  REQUIRE(!all.empty());
  for (const tiling::PricedSchedule &candidate : all)
    require(verify(candidate.schedule, pattern, target()));
}

namespace {

Schedule rowsBy(const ExprProgram &pattern, int units, const std::string &tree) {
  const std::string text = "schedule \"rows\" units " + std::to_string(units) +
                           " lanes 32 {\n"
                           "axis i spatial (0) of e0\naxis p reduction (1) of e0\n"
                           "axis j spatial (0) of e1\naxis q spatial (1) of e1\n"
                           "edge s global\nkeep e1.r0 register from e0.r0\n"
                           "tree { " +
                           tree + " } }";
  TextReader in(text, "schedule");
  return valueOf(parseSchedule(in, pattern));
}

} // namespace

TEST_CASE("held across: units past the end of an axis have no constant number of rows") {
  for (const char *rows : {"16", "12"}) {
    const ExprProgram pattern = patternFrom(rowsText(rows, "96"));
    const Schedule schedule =
        rowsBy(pattern, 4,
               "block i:8 { unit i:2 { seq i:1 { init e0 seq p:32 { lane p:1 { compute e0 } } "
               "combine e0 store e0 } } } barrier "
               "block j:8 { unit j:2 { seq j:1 { seq q:32 { lane q:1 { compute e1 } } } } }");
    if (rows == std::string("16")) {
      checkNumbers(pattern, schedule, {24});
      continue;
    }
    const Status status = verify(schedule, pattern);
    REQUIRE(!status.ok());
    CHECK(status.errors()[0].text.find("as often as a constant says") != std::string::npos);
  }
}

TEST_CASE("held across: no thread holds more than it has registers for") {
  for (const char *columns : {"4096", "8192"}) {
    const ExprProgram pattern = patternFrom(rowsText("4", columns));
    const Schedule schedule =
        rowsBy(pattern, 1,
               "block i:1 { init e0 seq p:32 { lane p:1 { compute e0 } } combine e0 store e0 } "
               "barrier block j:1 { seq q:32 { lane q:1 { compute e1 } } }");
    CHECK(verify(schedule, pattern, target()).ok() == (columns == std::string("4096")));
  }
}

TEST_CASE("held across: where that is wanted, what a phase reads twice is still kept in it") {
  const ExprProgram pattern =
      patternFrom("expr rows\n"
                  "tensor %x: f32[16,576] input\n"
                  "tensor %m: f32[16] temp\ntensor %s: f32[16] temp\ntensor %g: f32[16] temp\n"
                  "tensor %y: f32[16,576] output\n"
                  "inputs (%x)\noutputs (%y)\n"
                  "reduction a [i:16; p:576] sum f32\n"
                  "  %m = %x[i, p]\n"
                  "reduction r [i:16; p:576] sum f32\n"
                  "  %s = mul(%x[i, p], %m[i])\n"
                  "reduction z [i:16; p:16] sum f32\n"
                  "  %g = mul(%s[p], 0.5)\n"
                  "map m [i:16, p:576]\n"
                  "  %y = div(%x[i, p], add(%g[i], 40000.0))\n");
  const Schedule schedule =
      valueOf(bestSchedules(pattern, target(), {2, 3}, {nullptr, true, true, true}))
          .back()
          .schedule;
  CHECK(tiling::hasPersistentReads(schedule));
  CHECK(schedule.kept.size() == 2);
  checkNumbers(pattern, schedule, {24});
}
