// What a block holds on chip: the estimate from the schedule beside what Gir's allocator gives.
#include "Candidates.h"
#include "Tiling/candidates/ScheduleBuilder.h"
#include "Tiling/counts/OnChipStorage.h"
#include "Tiling/lower/Lower.h"
#include "Tiling/schedule/Phases.h"
#include "Tiling/search/ChooseReuse.h"

using namespace fusec;
using namespace fusec::test;

namespace {

std::string product(int m, int n, int k) {
  const std::string M = std::to_string(m), N = std::to_string(n), K = std::to_string(k);
  return "expr p\ntensor %a: f32[" + M + ", " + K + "] input\ntensor %b: f32[" + K + ", " + N +
         "] input\ntensor %c: f32[" + M + ", " + N +
         "] output\ninputs (%a, %b)\noutputs (%c)\nreduction c [i:" + M + ", j:" + N + "; k:" + K +
         "] sum f32\n  %c = mul(%a[i, k], %b[k, j])\n";
}

std::string rows(int m, int n) {
  const std::string M = std::to_string(m), N = std::to_string(n), d = "[" + M + ", " + N + "]";
  return "expr p\ntensor %x: f32" + d + " input\ntensor %h: f32[" + M + "] temp\ntensor %e: f32" +
         d + " temp\ntensor %s: f32[" + M + "] temp\ntensor %y: f32" + d +
         " output\ninputs (%x)\noutputs (%y)\nreduction h [i:" + M + "; k:" + N +
         "] max f32\n  %h = %x[i, k]\nmap e [i:" + M + ", j:" + N +
         "]\n  %e = exp(sub(%x[i, j], %h[i]))\nreduction s [i:" + M + "; k:" + N +
         "] sum f32\n  %s = %e[i, k]\nmap y [i:" + M + ", j:" + N +
         "]\n  %y = div(%e[i, j], %s[i])\n";
}

/// The same of columns: memory lies across what is reduced.
std::string columns(int m, int n) {
  const std::string M = std::to_string(m), N = std::to_string(n);
  return ProgramText("p")
      .input("x", M + "," + N)
      .reduction("h", "a:1, j:" + N + "; k:" + M, "max", "%x[k, j]")
      .map("e", "i:" + M + ", j:" + N, "exp(sub(%x[i, j], %h[0, j]))")
      .reduction("s", "a:1, j:" + N + "; k:" + M, "sum", "%e[k, j]")
      .map("y", "i:" + M + ", j:" + N, "div(%e[i, j], %s[0, j])");
}

std::string convolution(int size, int in, int out) {
  const std::string S = std::to_string(size), I = std::to_string(in), O = std::to_string(out);
  return "expr p\ntensor %x: f32[" + I + ", " + S + ", " + S + "] input\ntensor %w: f32[" + O +
         ", " + I + ", 3, 3] input\ntensor %y: f32[" + O + ", " + S + ", " + S +
         "] output\ninputs (%x, %w)\noutputs (%y)\nreduction y [o:" + O + ", h:" + S + ", w:" + S +
         "; c:" + I + ", p:3, q:3] sum f32\n  %y = mul(if(and(and(le(1, h + p), le(h + p, " + S +
         ")), and(le(1, w + q), le(w + q, " + S +
         "))), %x[c, h + p - 1, w + q - 1], 0.0), %w[o, c, p, q])\n";
}

std::string turned(int m, int n) {
  const std::string M = std::to_string(m), N = std::to_string(n);
  return "expr p\ntensor %x: f32[" + M + ", " + N + "] input\ntensor %y: f32[" + N + ", " + M +
         "] output\ninputs (%x)\noutputs (%y)\nmap y [i:" + N + ", j:" + M +
         "]\n  %y = exp(%x[j, i])\n";
}

std::string places(int m, int n) {
  const std::string M = std::to_string(m), N = std::to_string(n);
  return "expr p\ntensor %x: f32[" + M + ", " + N + "] input\ntensor %y: f32[" + M +
         "] output\ntensor %w: i64[" + M +
         "] output\ninputs (%x)\noutputs (%y, %w)\nreduction r [i:" + M + "; k:" + N +
         "] argmax f32\n  %y = %x[i, k]\n  %w = k\n";
}

std::vector<std::string> patterns() {
  std::vector<std::string> list = {turned(192, 160), turned(33, 70), places(65, 100), rows(50, 70)};
  for (int size : {16, 48, 100, 512})
    for (int depth : {16, 100})
      list.push_back(product(size, 2 * size, depth));
  for (int width : {16, 100, 256, 1024})
    list.push_back(rows(64, width));
  list.push_back(columns(70, 50));
  list.push_back(columns(256, 64));
  list.push_back(convolution(14, 16, 32));
  list.push_back(convolution(28, 3, 16));
  return list;
}

} // namespace

TEST_CASE("Shared memory of candidates is estimated within a fifth of the allocator's") {
  int all = 0, close = 0;
  for (const std::string &text : patterns()) {
    const ExprProgram pattern = patternFrom(text);
    for (const char *name : {"sm_80", "gfx90a"}) {
      const Target target = targetNamed(name);
      auto handedOut = [&](double bytes) {
        return double(tiling::roundUp(static_cast<int64_t>(bytes), target.sharedGranuleBytes));
      };
      for (const Schedule &schedule : valueOf(candidateSchedules(pattern, target))) {
        double estimate = 0; // phases follow each other
        for (const tiling::PhaseSchedule &part : tiling::schedulesOfPhases({schedule, pattern})) {
          const tiling::ScheduledProgram program(part.pattern);
          estimate = std::max(estimate, tiling::storageOf({part.schedule, program}).sharedBytes);
        }
        LoweredKernel lowered = valueOf(lowerSchedule(pattern, schedule, pattern.symbols));
        simplify(lowered.kernel);
        insertSyncs(lowered.kernel);
        allocate(lowered.kernel);
        const double exact = handedOut(static_cast<double>(lowered.kernel.sharedBytes));
        estimate = handedOut(estimate);
        const bool near = std::abs(estimate - exact) <= 0.2 * exact;
        ++all;
        close += near;
        if (!near)
          UNSCOPED_INFO(name << " " << schedule.name << ": " << estimate << " B, allocated "
                             << exact << "\n"
                             << text);
      }
    }
  }
  INFO(close << " of " << all);
  CHECK(all >= 100);
  CHECK(close >= 0.9 * all);
}

TEST_CASE("Registers of candidates are estimated as the kernel has them, those that hold kept "
          "values too") {
  int all = 0, exactly = 0, keeping = 0;
  for (const std::string &text : patterns()) {
    const ExprProgram pattern = patternFrom(text);
    for (const char *name : {"sm_80", "gfx90a"}) {
      const Target target = targetNamed(name);
      for (Schedule &schedule : valueOf(candidateSchedules(pattern, target))) {
        require(chooseReadReuse(schedule, pattern, pattern.symbols, target));
        const double estimate = tiling::storageOf({schedule, pattern}).registersPerThread -
                                tiling::kRegistersForAddresses;
        const LoweredKernel lowered =
            valueOf(lowerAndRewrite(pattern, schedule, pattern.symbols, target));
        const double exact = double(registersPerLane(lowered.kernel));
        ++all;
        exactly += estimate == exact;
        keeping += !schedule.kept.empty();
        INFO(name << "\n" << print(schedule, pattern) << print(lowered.kernel));
        CHECK(estimate >= exact); // no kernel needs more than the model thinks
        CHECK(estimate <= 2 * exact + 2);
      }
    }
  }
  INFO(exactly << " of " << all << ", " << keeping << " keep values");
  CHECK(keeping >= 10);
  CHECK(exactly >= 0.9 * all);
}
