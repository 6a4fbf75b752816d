// Values that threads hold from phase to phase: right with all blocks resident and without, read once.
#include "Candidates.h"
#include "Tiling/Held.h"
#include "Tiling/MovedBytes.h"
#include "Tiling/Phases.h"

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
  for (tiling::WeighedSchedule &candidate :
       valueOf(tiling::phasedCandidates(pattern, machine, {1})))
    if (tiling::holdsValues(candidate.schedule))
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
      const Schedule plain = tiling::withoutHeld(schedule);
      CHECK(plain.kept.size() + 1 == schedule.kept.size());
      const Moved twice = movedBytes(plain, pattern, target(), tiling::Effort::Thorough),
                  once = movedBytes(schedule, pattern, target(), tiling::Effort::Thorough);
      const double bytes = 40 * std::stod(columns) * 4;
      CHECK(twice.readBytes - once.readBytes == bytes);
      CHECK(twice.writtenBytes == once.writtenBytes);
      const std::vector<cost::Counts> anew = countWork(plain, pattern, target()),
                                      held = countWork(schedule, pattern, target());
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
  CHECK(cost::latency(countWork(all[0], pattern, small), small) ==
        cost::latency(countWork(tiling::withoutHeld(all[0]), pattern, small), small));
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
