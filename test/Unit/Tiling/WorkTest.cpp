// What schedules are counted as, where it decides which one is taken.
#include "Candidates.h"
#include "Cost/Cost.h"
#include "EditedSchedule.h"
#include "Gir/Passes.h"
#include "Gir/StatementPaths.h"
#include "Gir/Traffic.h"
#include "Gir/Walk.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/lower/Lower.h"
#include "Tiling/schedule/CutTiles.h"
#include "Tiling/search/ChooseReuse.h"
#include "Tiling/search/SizeVariants.h"

#include <catch2/catch_approx.hpp>

#include <algorithm>
#include <cmath>
#include <set>

using namespace fusec;
using namespace fusec::test;

namespace {

/// y[n] = sum over k of x[k] w[n, k].
ExprProgram gate(int64_t outputs, int64_t length) {
  const std::string N = std::to_string(outputs), K = std::to_string(length);
  return patternFrom("expr p\ntensor %x: f32[" + K + "] input\ntensor %w: f32[" + N + ", " + K +
                     "] input\ntensor %y: f32[" + N +
                     "] output\ninputs (%x, %w)\noutputs (%y)\nreduction y [n:" + N + "; k:" + K +
                     "] sum f32\n  %y = mul(%x[k], %w[n, k])\n");
}

} // namespace

TEST_CASE("work: sums that wait for themselves, one of a few registers, leave places empty") {
  for (const char *name : {"x86-64-v3", "x86-64-v4"}) {
    INFO(name);
    const Target target = targetNamed(name);
    const ExprProgram few = gate(target.lanes, 499);
    // In order: one register, 498 times four cycles. Along the sum: several registers, and eight steps each.
    std::vector<double> waits;
    for (const Schedule &candidate : valueOf(candidateSchedules(few, target))) {
      const cost::Counts counts = countWork({candidate, few}, target).front();
      waits.push_back(counts.stalls / counts.vectorOps);
    }
    CHECK(std::ranges::max(waits) > 2);
    CHECK(std::ranges::min(waits) == 0);
    const Schedule best = valueOf(bestSchedules(few, target)).back().schedule;
    CHECK(countWork({best, few}, target).front().stalls == 0);
    // With registers enough side by side nothing waits.
    const ExprProgram many = gate(target.lanes * 16, 499);
    const Schedule wide = valueOf(bestSchedules(many, target)).back().schedule;
    CHECK(countWork({wide, many}, target).front().stalls == 0);
  }
}

TEST_CASE("work: lanes that cross rows of a length that a run tells are gathered") {
  const Target target = targetNamed("x86-64-v3");
  const auto gathersOf = [&](const std::string &symbol, const std::string &rows,
                             const std::string &elements) {
    const ExprProgram pattern = patternFrom(
        ProgramText("rows", symbol)
            .input("x", "37,5")
            .input("w", "5," + rows)
            .reduction("y", "i:37, j:" + rows + "; k:5", "sum", "mul(%x[i, k], %w[k, j])"));
    const Schedule schedule = scheduleFrom("schedule column units 1 lanes 8 {\n"
                                           "  axis r reduction (2) of e0 # extent 5\n"
                                           "  axis x spatial (0, 1) of e0 # extent " +
                                               elements +
                                               "\n  tree { block x:64 { seq x:8 {\n"
                                               "    lane x:1 { init e0 }\n"
                                               "    seq r:1 { lane x:1 { compute e0 } }\n"
                                               "    lane x:1 { store e0 } } } }\n}\n",
                                           pattern);
    const cost::Counts counts = countWork({schedule, pattern}, target).front();
    return counts.gathers * counts.blocks;
  };
  // Of both operands, for each element in each of five steps.
  CHECK(std::round(gathersOf("symbol n = 1..9000 opt 496 divisor 1\n", "n", "n*37")) ==
        2 * 5 * 37 * 496);
  CHECK(gathersOf("", "496", "18352") == 0); // whole vectors of a row
}

TEST_CASE("work: of a constant what is read counts, not all of it") {
  ExprProgram rows = patternFrom(ProgramText("rows", {})
                                     .input("table", "30000,128")
                                     .input("x", "16,128")
                                     .map("y", "i:16, j:128", "add(%table[i*7 + 3, j], %x[i, j])"));
  fix(rows, "table");
  for (const char *name : {"x86-64-v3", "sm_80"}) {
    const Target target = targetNamed(name);
    for (const Schedule &schedule : valueOf(candidateSchedules(rows, target))) {
      const cost::Counts counts = countWork({schedule, rows}, target).front();
      CHECK(counts.readBytes == 2 * 16 * 128 * 4);
      CHECK(counts.constantBytes == 16 * 128 * 4);
    }
  }
}

TEST_CASE("work: a padded window that a block copies closer is counted by what it covers, and its "
          "sums without their indices") {
  const int64_t rows = 56, columns = 56, channels = 96;
  const ExprProgram window = patternFrom(
      ProgramText("window", {})
          .input("x", "112,112,96")
          .input("w", "3,3,96")
          .reduction("y", "i:56, j:56, c:96; k:3, l:3", "sum",
                     "mul(if(and(le(0, i*2 + k - 1), le(0, j*2 + l - 1)), %x[i*2 + k - 1, j*2 + l "
                     "- 1, c], 0.0), %w[k, l, c])"));
  for (const char *name : {"x86-64-v3", "x86-64-v4"}) {
    const Target target = targetNamed(name);
    bool any = false;
    for (const Schedule &schedule : valueOf(candidateSchedules(window, target))) {
      const cost::Counts counts = countWork({schedule, window}, target).front();
      if (counts.stagedLoads == 0 || schedule.operands.size() > 1) // %x alone
        continue;
      any = true;
      INFO(print(schedule, window));
      const double vectors = double(rows * columns * channels) / target.lanes;
      CHECK(counts.stagedBytes == counts.readBytes - 9 * channels * 4); // all of %x
      // A multiply-add a tap; cut tiles compute up to half more.
      CHECK(counts.vectorOps * counts.blocks >= 9 * vectors);
      CHECK(counts.vectorOps * counts.blocks <= 13.5 * vectors);
      // The second cache holds a block's copy, and gets each row once or, where blocks meet, again.
      CHECK(counts.levelBytes[2] >= counts.readBytes + counts.writtenBytes);
      CHECK(counts.levelBytes[2] <= 2 * (counts.readBytes + counts.writtenBytes));
    }
    CHECK(any);
  }
}

TEST_CASE("work: a CPU's vectors of lanes at constant distances are a few loads, others a load a "
          "lane") {
  const auto counted = [](const ExprProgram &map, const char *name) {
    const Target target = targetNamed(name);
    const std::vector<Schedule> all = valueOf(candidateSchedules(map, target));
    const auto schedule =
        std::ranges::find_if(all, [](const Schedule &s) { return s.name == "map"; });
    REQUIRE(schedule != all.end());
    cost::Counts counts = countWork({*schedule, map}, target).front();
    counts.vectorLoads *= counts.blocks * double(target.lanes) / (64 * 64); // of a vector
    counts.gathers *= counts.blocks / (64 * 64);
    counts.vectorOps *= counts.blocks * double(target.lanes) / (64 * 64);
    return counts;
  };
  // Elements of x and z in turn: half a vector of each, and a shuffle of each; the indices are constants.
  const ExprProgram shuffle = patternFrom(
      ProgramText("shuffle", {})
          .input("x", "64,32")
          .input("z", "64,32")
          .map("y", "i:64, j:64",
               "if(lt(floormod(j, 2), 1), %x[i, floordiv(j, 2)], if(lt(0, floormod(j, 2)), "
               "%z[i, floordiv(j, 2)], 0.0))"));
  // Columns of a transposed matrix.
  const ExprProgram turned =
      patternFrom(ProgramText("turned", {}).input("x", "64,64").map("y", "i:64, j:64", "%x[j, i]"));
  for (const char *name : {"x86-64-v3", "x86-64-v4"}) {
    INFO(name);
    const cost::Counts few = counted(shuffle, name), many = counted(turned, name);
    CHECK(few.gathers == 0);
    CHECK(few.vectorLoads == 3); // a store counts as much
    CHECK(few.vectorOps == 2);
    CHECK(many.gathers == 1);
  }
}

TEST_CASE("work: a CPU stores lanes that lie apart one by one") {
  // A stack of two rows that the kernel computes: some schedules compute the element of each, then go along the stack.
  const ExprProgram stack =
      patternFrom(ProgramText("stack", {})
                      .input("x", "4096")
                      .map("a", "o:1, k:4096", "exp(%x[k])")
                      .map("b", "o:1, k:4096", "tanh(%x[k])")
                      .map("y", "l:2, k:4096", "select(lt(l, 1), %a[0, k], %b[0, k])"));
  const ExprProgram flat = patternFrom(
      ProgramText("flat", {}).input("x", "2,4096").map("y", "l:2, k:4096", "exp(%x[l, k])"));
  for (const char *name : {"x86-64-v3", "x86-64-v4"}) {
    INFO(name);
    const Target target = targetNamed(name);
    const auto opsOf = [&](const ExprProgram &program) {
      double most = 0;
      for (const Schedule &candidate : valueOf(candidateSchedules(program, target))) {
        const cost::Counts counts = countWork({candidate, program}, target).front();
        most = std::max(most, counts.vectorOps * counts.blocks);
      }
      return most;
    };
    const double aLane = 1.5 * target.core.fmaPorts;
    CHECK(opsOf(stack) > 4096 * aLane * double(target.lanes));
    CHECK(opsOf(flat) < 2 * 4096 * aLane);
  }
}

TEST_CASE("work: what is copied closer from places that no formula names is gathered") {
  const ExprProgram window = patternFrom(
      ProgramText("window", {})
          .input("x", "112,112,96")
          .input("w", "3,3,96")
          .reduction("y", "i:56, j:56, c:96; k:3, l:3", "sum",
                     "mul(%x[i*2 + k - 1, j*2 + l - 1, floordiv(c, 2) + floormod(c, 2)*48], "
                     "%w[k, l, c])"));
  for (const char *name : {"x86-64-v3", "x86-64-v4"}) {
    const Target target = targetNamed(name);
    bool any = false;
    for (const Schedule &schedule : valueOf(candidateSchedules(window, target)))
      if (const cost::Counts counts = countWork({schedule, window}, target).front();
          counts.stagedLoads > 0 && schedule.operands.size() == 1) { // %x alone
        any = true;
        CHECK(counts.gathers >= counts.stagedLoads / 2 * target.lanes);
      }
    CHECK(any);
  }
}

TEST_CASE(
    "work: a CPU's cache that cannot hold what a kernel touches gets each byte at least once") {
  // Rows of (b, h), which share a mask that lies along b alone; 4 MiB and 1 MiB read, a row of 128 KiB.
  const ExprProgram softmax = patternFrom(
      ProgramText("softmax", {})
          .input("x", "8,4,32768")
          .input("mask", "8,32768")
          .reduction("m", "b:8, h:4; k:32768", "max", "add(%x[b, h, k], %mask[b, k])")
          .map("e", "b:8, h:4, k:32768", "exp(sub(add(%x[b, h, k], %mask[b, k]), %m[b, h]))")
          .reduction("s", "b:8, h:4; k:32768", "sum", "%e[b, h, k]")
          .map("y", "b:8, h:4, k:32768", "div(%e[b, h, k], %s[b, h])"));
  const double row = 32768 * 4, rows = 8 * 4;
  const TensorId kept = 2 + 1; // %e, behind the inputs and %m
  for (const char *name : {"x86-64-v3", "x86-64-v4"}) {
    const Target target = targetNamed(name);
    bool any = false;
    for (const Schedule &schedule : valueOf(candidateSchedules(softmax, target))) {
      if (schedule.tree.size() > 1)
        continue;
      const cost::Counts counts = countWork({schedule, softmax}, target).front();
      INFO(print(schedule, softmax));
      CHECK(counts.levelBytes[2] >= 0.99 * (counts.readBytes + counts.writtenBytes));
      const bool shared = std::ranges::any_of(schedule.edges, [&](const EdgeLevel &edge) {
        return edge.tensor == kept && edge.level == MemLevel::Shared;
      });
      any = any || shared;
      // The row of %e is in no first cache when it is read again: x and mask twice, e twice, y.
      if (shared)
        CHECK(counts.levelBytes[1] >= 7 * rows * row);
    }
    CHECK(any);
  }
}

TEST_CASE("work: a row that lies along the first of two fused axes is another one each time") {
  const ExprProgram sums =
      patternFrom(ProgramText("sums", {})
                      .input("w", "16,65536")
                      .input("c", "2")
                      .reduction("m", "b:16, h:2; k:65536", "max", "add(%w[b, k], %c[h])")
                      .map("e", "b:16, h:2, k:65536", "exp(sub(add(%w[b, k], %c[h]), %m[b, h]))")
                      .reduction("s", "b:16, h:2; k:65536", "sum", "%e[b, h, k]"));
  const Target target = targetNamed("x86-64-v3");
  bool any = false;
  for (const Schedule &schedule : valueOf(candidateSchedules(sums, target))) {
    const bool fused = std::ranges::any_of(schedule.axes, [](const ScheduleAxis &axis) {
      return std::ranges::any_of(
          axis.uses, [](const AxisUse &use) { return use.positions == std::vector<int>{0, 1}; });
    });
    if (!fused || schedule.tree.size() > 1)
      continue;
    any = true;
    INFO(print(schedule, sums));
    const cost::Counts counts = countWork({schedule, sums}, target).front();
    CHECK(counts.levelBytes[2] >= 16 * 65536 * 4); // two cores' caches hold half
  }
  CHECK(any);
}

TEST_CASE("work: a CPU's products wait for factors from a cache that cores share, maps do not") {
  const Target target = targetNamed("x86-64-v3");
  const auto waits = [&](const ExprProgram &pattern) {
    const Schedule best = valueOf(bestSchedules(pattern, target)).back().schedule;
    const cost::Counts counts = countWork({best, pattern}, target).front();
    const double seconds = counts.stalls * counts.unitsPerBlock * counts.blocks * 2 * target.lanes /
                           target.flopsPerSec;
    return std::pair(seconds, counts.levelBytes[2]);
  };
  const auto product = [](const std::string &j) {
    return patternFrom(
        ProgramText("product", {})
            .input("a", "128,768")
            .input("b", "768," + j)
            .reduction("c", "i:128, j:" + j + "; k:768", "sum", "mul(%a[i, k], %b[k, j])"));
  };
  const auto [seconds, bytes] = waits(product("3072"));
  CHECK(bytes > 768 * 3072 * 4);
  const double result = 128 * 3072 * 4; // is stored, and nothing waits for it
  const double rows = 128 * 768 * 4;    // a tile asks for them once for all of its columns
  CHECK(seconds == Catch::Approx((bytes - result - rows) / target.core.rereadBytesPerSec));
  CHECK(waits(product("64")) == std::pair(0.0, 0.0)); // fits a core's own caches
  const auto [ofMap, moved] = waits(patternFrom(
      ProgramText("map", {}).input("x", "4194304").map("y", "i:4194304", "neg(%x[i])")));
  CHECK(moved > 2 * 4194304);
  CHECK(ofMap == 0);
}

TEST_CASE("work: what a GPU's last cache does not hold comes from memory each time that blocks ask "
          "for it") {
  for (const char *name : {"sm_80", "gfx90a"}) {
    INFO(name);
    const Target target = targetNamed(name);
    auto fromMemory = [&](int64_t size) {
      const std::string n = std::to_string(size), square = "f32[" + n + ", " + n + "]";
      const ExprProgram product =
          patternFrom("expr p\ntensor %a: " + square + " input\ntensor %b: " + square +
                      " input\ntensor %c: " + square +
                      " output\ninputs (%a, %b)\noutputs (%c)\nreduction c [i:" + n + ", j:" + n +
                      "; k:" + n + "] sum f32\n  %c = mul(%a[i, k], %b[k, j])\n");
      ScheduleSearch inOnePhase;
      inOnePhase.thorough = false;
      const Schedule best = valueOf(bestSchedules(product, target, {}, inOnePhase)).back().schedule;
      const cost::Counts counts = countWork({best, product}, target).front();
      CHECK(counts.levelBytes[1] > 2 * (counts.readBytes + counts.writtenBytes));
      return counts.levelBytes[target.memory.size() - 1] / (counts.readBytes + counts.writtenBytes);
    };
    CHECK(fromMemory(512) == 0); // 3 MiB: all but the compulsory bytes
    CHECK(fromMemory(8192) > 2);
  }
}

namespace {

/// Barriers of a block in a schedule's code, without those between uses of buffers that share bytes, or with them.
double barriersInCode(const ExprProgram &pattern, const Schedule &schedule, const Target &target,
                      bool shared) {
  GirKernel kernel = valueOf(lowerAndRewrite(pattern, schedule, pattern.symbols, target)).kernel;
  insertSyncs(kernel);
  if (shared)
    allocate(kernel);
  double count = 0;
  for (Phase &phase : kernel.phases)
    for (const StatementPath &site : statementPathsOf(phase))
      if (site.stmt->kind == StmtKind::Sync && site.stmt->scope == SyncScope::Block)
        count += timesInBlock(kernel, site);
  return count;
}

} // namespace

TEST_CASE(
    "work: a block's barriers are those of its code, as far as buffers have bytes of their own") {
  const ExprProgram product =
      patternFrom(ProgramText("product", {})
                      .input("a", "128,96")
                      .input("b", "96,64")
                      .reduction("c", "i:128, j:64; k:96", "sum", "mul(%a[i, k], %b[k, j])"));
  const ExprProgram thin =
      patternFrom(ProgramText("thin", {})
                      .input("a", "3,96")
                      .input("b", "96,330")
                      .reduction("c", "i:3, j:330; k:96", "sum", "mul(%a[i, k], %b[k, j])"));
  const ExprProgram softmax = patternFrom(ProgramText("softmax", {})
                                              .input("x", "64,4096")
                                              .reduction("m", "i:64; k:4096", "max", "%x[i, k]")
                                              .map("e", "i:64, k:4096", "exp(sub(%x[i, k], %m[i]))")
                                              .reduction("s", "i:64; k:4096", "sum", "%e[i, k]")
                                              .map("y", "i:64, k:4096", "div(%e[i, k], %s[i])"));
  const ExprProgram columns =
      patternFrom(ProgramText("columns", {})
                      .input("x", "512,96")
                      .reduction("m", "a:1, j:96; k:512", "max", "%x[k, j]")
                      .map("e", "i:512, j:96", "exp(sub(%x[i, j], %m[0, j]))")
                      .reduction("s", "a:1, j:96; k:512", "sum", "%e[k, j]")
                      .map("y", "i:512, j:96", "div(%e[i, j], %s[0, j])"));
  // A step's rows do not begin with a thread of their own: 39 is odd.
  const ExprProgram gates = patternFrom(R"(expr gates
tensor %x: f32[5,39] input
tensor %r: f32[3,52,13] input
tensor %zero: f32[39] input
tensor %h: f32[39] temp
tensor %c: f32[39] temp
tensor %s: f32[3,52] temp
tensor %c.next: f32[39] temp
tensor %h.next: f32[39] temp
tensor %hs: f32[5,39] output
tensor %last: f32[39] output
inputs (%x, %r, %zero)
outputs (%hs, %last)
scan hs steps(5)
  carry %h = %zero next %h.next
  carry %c = %zero next %c.next final %last
  stack %h.next -> %hs
  reduction s [b:3, j:52; k:13] sum f32
    %s = mul(%h[b*13 + k], %r[b, j, k])
  map c.next [i:39]
    %c.next = add(mul(%c[i], %x[step, i]), %s[floordiv(i, 13), floormod(i, 13)])
  map h.next [i:39]
    %h.next = mul(%c.next[i], %s[floordiv(i, 13), floormod(i, 13) + 26])
end
)");
  const ExprProgram cumsum = patternFrom(R"(expr cumsum
tensor %x: f32[7,33] input
tensor %zero: f32[33] input
tensor %s: f32[33] temp
tensor %s.next: f32[33] temp
tensor %y: f32[7,33] output
inputs (%x, %zero)
outputs (%y)
scan y steps(7)
  carry %s = %zero next %s.next
  stack %s.next -> %y
  map s.next [i:33]
    %s.next = add(%s[i], %x[step, i])
end
)");
  // A channel's mean lies at distances that are no number of threads, and is read again at every point.
  const ExprProgram squeeze = patternFrom(ProgramText("squeeze", {})
                                              .input("x", "6,48")
                                              .map("e", "i:6, c:48", "exp(%x[i, c])")
                                              .reduction("m", "c:48; i:6", "sum", "%e[i, c]")
                                              .map("y", "i:6, c:48", "mul(%e[i, c], %m[c])"));
  for (const char *name : {"sm_90", "gfx90a"}) {
    const Target target = targetNamed(name);
    for (const ExprProgram *pattern :
         {&product, &thin, &softmax, &columns, &gates, &cumsum, &squeeze}) {
      bool any = false;
      for (Schedule &schedule : valueOf(candidateSchedules(*pattern, target))) {
        require(chooseReadReuse(schedule, *pattern, pattern->symbols, target));
        INFO(name << "\n" << print(schedule, *pattern));
        const std::vector<cost::Counts> phases = countWork({schedule, *pattern}, target);
        if (phases.size() >
            1) // barriers of all blocks are made of some of a block, and priced with them
          continue;
        CHECK(phases[0].barriers >= barriersInCode(*pattern, schedule, target, false));
        CHECK(phases[0].barriers <= barriersInCode(*pattern, schedule, target, true));
        any = any || phases[0].barriers > 0;
      }
      CHECK(any);
    }
  }
}

TEST_CASE("work: the last block along an axis of symbolic extent counts what it has") {
  const ExprProgram rows =
      patternFrom(ProgramText("rows", "symbol n = 1..99999 opt 384 divisor 1\n")
                      .input("a", "n,64")
                      .input("b", "64,96")
                      .reduction("c", "i:n, j:96; k:64", "sum", "mul(%a[i, k], %b[k, j])"));
  for (const char *name : {"x86-64-v3", "x86-64-v4"}) {
    const Target target = targetNamed(name);
    bool any = false;
    for (const Schedule &schedule : valueOf(candidateSchedules(rows, target))) {
      const tiling::BoundSchedule bound(schedule, rows);
      int64_t block = 0, tile = 0; // rows of a block, and of its steps
      for (const tiling::Statement &statement : bound.statements())
        for (const LoopNode *loop : statement.loops)
          if (loop->axis >= 0 && schedule.axes[loop->axis].extent == DimExpr::symbol(0)) {
            block = loop->kind == LoopKind::Block ? loop->step : block;
            tile = loop->kind == LoopKind::Seq ? loop->step : tile;
          }
      if (tile == 0 || block % tile != 0 || block / tile < 3)
        continue;
      any = true;
      auto at = [&](int64_t n) { return countWork({schedule, tunedFor(rows, {n})}, target)[0]; };
      const cost::Counts whole = at(2 * block), cut = at(block + tile);
      INFO(name << "\n" << print(schedule, rows));
      CHECK(whole.longestBlock == 1);
      CHECK(cut.blocks == whole.blocks);
      const double steps = double(block) / double(tile);
      const double share = (steps + 1) / (2 * steps);
      CHECK(std::abs(cut.vectorOps / (whole.vectorOps * share) - 1) < 1e-9);
      CHECK(std::abs(cut.longestBlock * share - 1) < 1e-9);
      // Cores side by side wait for the longest; one core has no more than there is.
      CHECK(cost::latency(cut, target) <= cost::latency(whole, target));
    }
    CHECK(any);
  }
}

TEST_CASE("work: a cut register tile of a symbolic extent is done in halves, and counted so") {
  const std::string text = ProgramText("rows", "symbol n = 1..99999 opt 120 divisor 1\n")
                               .input("a", "n,24")
                               .input("b", "24,40")
                               .reduction("c", "i:n, j:40; k:24", "sum", "mul(%a[i, k], %b[k, j])");
  const ExprProgram rows = patternFrom(text);
  const Target target = targetNamed("x86-64-v4");
  bool any = false;
  for (const Schedule &schedule : valueOf(candidateSchedules(rows, target))) {
    const tiling::BoundSchedule bound(schedule, rows);
    const LoopNode *tile = nullptr;
    int64_t piece = 0;
    for (const tiling::Statement &statement : bound.statements())
      for (const LoopNode *loop : statement.loops)
        if (const int64_t here = tiling::pieceOfCutTile(bound, *loop)) {
          tile = loop;
          piece = here;
        }
    if (!tile)
      continue;
    any = true;
    INFO(print(schedule, rows));
    CHECK(piece == (tile->step + 1) / 2);
    for (int64_t n :
         {int64_t{1}, piece, piece + 1, tile->step, tile->step + 1, 2 * tile->step + piece})
      CHECK(difference(runSchedule(rows, schedule, randomInputs(rows, {n}), {n}),
                       valueOf(evaluate(rows, randomInputs(rows, {n}))), 0) == "");
    auto opsAt = [&](int64_t n) {
      const cost::Counts counts = countWork({schedule, tunedFor(rows, {n})}, target)[0];
      return counts.vectorOps * counts.blocks;
    };
    const double whole = opsAt(tile->step), half = opsAt(piece);
    CHECK(std::abs(half / whole - double(piece) / double(tile->step)) < 1e-9);
    CHECK(opsAt(tile->step + 1) < whole + 1.001 * half);
    // The code for a cut tile: rows of a half.
    std::set<int64_t> trips;
    const GirKernel kernel = kernelOf(rows, schedule).kernel;
    forEachStmt(kernel.phases[0].body, [&](const Stmt &s) {
      if (s.kind == StmtKind::Loop && s.loop == LoopKind::Unroll)
        trips.insert(kernel.body[s.trip].imm);
    });
    CHECK(trips.count(piece) == 1);
    CHECK(trips.count(tile->step) == 1);
  }
  CHECK(any);
}

TEST_CASE("work: of a window's sums in lanes a cut tile is done a vector at a time") {
  const std::string text =
      ProgramText("window", "symbol n = 1..99999 opt 120 divisor 1\n")
          .input("x", "40,n")
          .reduction(
              "y", "i:40, j:n; r:3, q:3", "max",
              "if(and(and(and(lt(0, i + r), lt(i + r, 41)), lt(0, j + q)), lt(j + q, dim(n + "
              "1))), %x[i + r - 1, j + q - 1], -inf)");
  const ExprProgram window = patternFrom(text);
  const Target target = targetNamed("x86-64-v4");
  bool any = false;
  for (const Schedule &schedule : valueOf(candidateSchedules(window, target))) {
    const tiling::BoundSchedule bound(schedule, window);
    int64_t piece = 0, tile = 0;
    for (const tiling::Statement &statement : bound.statements())
      for (const LoopNode *loop : statement.loops)
        if (const int64_t here = tiling::pieceOfCutTile(bound, *loop)) {
          piece = here;
          tile = loop->step;
        }
    if (piece == 0)
      continue;
    any = true;
    INFO(print(schedule, window));
    CHECK(piece == schedule.lanes);
    for (int64_t n : {int64_t{1}, piece - 1, piece + 1, tile - 1, tile, tile + piece + 3})
      CHECK(difference(runSchedule(window, schedule, randomInputs(window, {n}), {n}),
                       valueOf(evaluate(window, randomInputs(window, {n}))), 0) == "");
    const auto opsAt = [&](int64_t n) {
      const cost::Counts counts = countWork({schedule, tunedFor(window, {n})}, target)[0];
      return counts.vectorOps * counts.blocks;
    };
    CHECK(std::abs(opsAt(piece) / opsAt(tile) - double(piece) / double(tile)) < 1e-9);
  }
  CHECK(any);
}
