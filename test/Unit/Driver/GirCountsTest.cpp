// What schedules are counted as on their trees, beside what their kernels are counted as on Gir.
#include "GirCounts.h"
#include "Cost/Cost.h"
#include "Driver/Pipeline.h"
#include "Driver/State.h"
#include "Gir/Passes.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/counts/MemoryRequests.h"
#include "Tiling/counts/OnChipStorage.h"
#include "Tiling/lower/Lower.h"

#include <catch2/catch_all.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>

using namespace fusec;
using namespace fusec::test;

namespace {

constexpr int kPoints =
    1024; // of a statement's loops: others than all move what is counted by up to some percent

double processorSeconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

enum Quantity {
  Barriers,
  Registers,
  SharedBytes,
  Ops,
  ReadBytes,
  WrittenBytes,
  ReadSectors,
  WrittenSectors,
  SharedMoved,
  Price, // seconds with barriers, registers and room of a block as counted here or there; kernels of one phase
  PriceOfOps, // with instructions too
  kQuantities
};
constexpr std::array<const char *, kQuantities> kNames = {
    "barriers",     "registers",       "shared_room",  "ops",   "read_bytes",  "written_bytes",
    "read_sectors", "written_sectors", "shared_bytes", "price", "price_of_ops"};
using Counted = std::array<double, kQuantities>;

struct Seconds {
  double tree = 0, addressesOfTree = 0, lower = 0, gir = 0, addressesOfGir = 0;
};

/// One chosen schedule, counted both ways.
struct Compared {
  Counted tree{}, gir{};
  double barriersApart = 0; // on Gir, as if all buffers had bytes of their own
  bool fromData = false;
  size_t phases = 1;
  Seconds seconds;
};

Compared compare(const ExprProgram &pattern, const ScheduleVariant &variant,
                 const std::vector<Symbol> &symbols, const Target &target, bool addresses) {
  Compared out;
  const Schedule &schedule = variant.schedule;
  out.phases = phasesOf(schedule.tree).size();
  double start = processorSeconds();
  const auto lap = [&](double &seconds) {
    const double now = processorSeconds();
    seconds += now - start;
    start = now;
  };
  const std::vector<cost::Counts> phases = countWork({schedule, pattern}, target);
  for (const cost::Counts &phase : phases) {
    out.tree[Barriers] += phase.rounds * phase.barriers;
    out.tree[Ops] += phase.rounds * phase.blocks * phase.vectorOps;
    out.tree[Registers] =
        std::max(out.tree[Registers], phase.registersPerThread - tiling::kRegistersForAddresses);
    out.tree[SharedBytes] = std::max(out.tree[SharedBytes], phase.sharedBytesPerBlock);
  }
  lap(out.seconds.tree);
  if (addresses) {
    const MemoryRequests moved = movedBytes({schedule, pattern}, target, tiling::Effort::Thorough);
    out.tree[ReadBytes] = moved.readBytes;
    out.tree[WrittenBytes] = moved.writtenBytes;
    out.tree[ReadSectors] = moved.readSectors;
    out.tree[WrittenSectors] = moved.writtenSectors;
    out.tree[SharedMoved] = moved.sharedBytes;
    out.fromData = moved.fromData;
    lap(out.seconds.addressesOfTree);
  }
  auto lowered = lowerAndRewrite(pattern, schedule, guardedSymbols(variant, symbols), target);
  REQUIRE(lowered.ok());
  GirKernel &kernel = lowered->kernel;
  dropUnusedScratch(kernel);
  if (target.kind == TargetKind::Cpu)
    delayStores(kernel);
  insertSyncs(kernel);
  lap(out.seconds.lower);
  out.barriersApart = countKernel(kernel, target, 0).barriers;
  start = processorSeconds();
  allocate(kernel);
  lap(out.seconds.lower);
  const GirCounts quick = countKernel(kernel, target, 0);
  out.gir[Registers] = double(registersPerLane(kernel));
  lap(out.seconds.gir);
  out.gir[Barriers] = quick.barriers;
  out.gir[SharedBytes] = double(kernel.sharedBytes);
  out.gir[Ops] = quick.ops;
  if (phases.size() == 1 && phases[0].rounds == 1) {
    cost::Counts counts = phases[0];
    out.tree[Price] = out.tree[PriceOfOps] = cost::latency(counts, target);
    counts.barriers = out.gir[Barriers];
    counts.sharedBytesPerBlock = out.gir[SharedBytes];
    counts.registersPerThread = out.gir[Registers] + tiling::kRegistersForAddresses;
    out.gir[Price] = cost::latency(counts, target);
    counts.vectorOps = out.gir[Ops] / counts.blocks;
    out.gir[PriceOfOps] = cost::latency(counts, target);
  }
  start = processorSeconds();
  if (addresses) {
    const GirCounts moved = countKernel(kernel, target, kPoints);
    lap(out.seconds.addressesOfGir);
    out.gir[ReadBytes] = moved.readBytes;
    out.gir[WrittenBytes] = moved.writtenBytes;
    out.gir[ReadSectors] = moved.readSectors;
    out.gir[WrittenSectors] = moved.writtenSectors;
    out.gir[SharedMoved] = moved.sharedBytes;
    out.fromData = out.fromData || moved.fromData;
  }
  return out;
}

CompileOptions optionsFor(const std::filesystem::path &model, const std::string &target,
                          Stage last) {
  CompileOptions options;
  options.inputPath = model.string();
  options.targets = {target};
  options.stopAfter = last;
  if (model.stem() == "bert-sym") {
    REQUIRE(parseDimOption("batch=1..8:2", options.import).ok());
    REQUIRE(parseDimOption("seq=1..64:12", options.import).ok());
  }
  return options;
}

/// Compares the schedules that are chosen for a network, guarded variants aside.
template <typename F>
void forEachChosen(const std::filesystem::path &model, const std::string &target, bool addresses,
                   F &&visit) {
  CompileOptions options = optionsFor(model, target, Stage::Schedule);
  options.inspect = [&](const CompileState &state) {
    const TargetState &made = state.targets[0];
    for (size_t p = 0; p < made.schedules.size(); ++p) {
      const ScheduleVariant &variant = made.schedules[p].back();
      const ExprProgram &pattern = made.plan.patterns[p].program;
      INFO(pattern.name << "\n" << print(variant.schedule, pattern));
      visit(made, pattern, variant,
            compare(pattern, variant, state.program.symbols, made.target, addresses));
    }
    return success();
  };
  const auto report = compile(options);
  INFO((report.ok() ? "" : format(report.errors()[0])));
  REQUIRE(report.ok());
}

/// Prints a line a kernel of every network, with both counts; then how far apart they are, and the processor's seconds.
void printCounts(const char *target) {
  std::vector<std::filesystem::path> models;
  for (const char *folder : {"/models", "/models/tiny"})
    for (const auto &entry :
         std::filesystem::directory_iterator(std::string(FUSEC_SOURCE_DIR) + folder))
      if (entry.path().extension() == ".onnx")
        models.push_back(entry.path());
  std::ranges::sort(models);
  std::array<std::vector<double>, kQuantities> ratios;
  std::array<int, kQuantities> oneSided{};
  double planning = 0, finalists = 0, finalistSeconds = 0, accurate = 0;
  int kernels = 0;
  Seconds all;
  for (const std::filesystem::path &model : models) {
    double start = processorSeconds(), inside = 0;
    REQUIRE(compile(optionsFor(model, target, Stage::Expr)).ok());
    planning -= processorSeconds() - start;
    start = processorSeconds();
    forEachChosen(model, target, true,
                  [&](const TargetState &made, const ExprProgram &pattern,
                      const ScheduleVariant &variant, const Compared &c) {
                    std::printf("{\"net\":\"%s\",\"target\":\"%s\",\"kernel\":\"%s\","
                                "\"phases\":%zu,\"from_data\":%d,\"barriers_apart\":%g",
                                model.stem().c_str(), target, pattern.name.c_str(), c.phases,
                                c.fromData, c.barriersApart);
                    for (int q = 0; q < kQuantities; ++q) {
                      std::printf(",\"%s\":[%.9g,%.9g]", kNames[q], c.tree[q], c.gir[q]);
                      if ((c.tree[q] == 0) != (c.gir[q] == 0))
                        ++oneSided[q];
                      else if (c.tree[q] > 0)
                        ratios[q].push_back(c.gir[q] / c.tree[q]);
                    }
                    const Seconds &s = c.seconds;
                    std::printf(",\"seconds\":[%g,%g,%g,%g,%g],\"finalists\":%zu}\n", s.tree,
                                s.addressesOfTree, s.lower, s.gir, s.addressesOfGir,
                                variant.ofUnits.size());
                    all.tree += s.tree;
                    all.addressesOfTree += s.addressesOfTree;
                    all.lower += s.lower;
                    all.gir += s.gir;
                    all.addressesOfGir += s.addressesOfGir;
                    inside += s.tree + s.addressesOfTree + s.lower + s.gir + s.addressesOfGir;
                    const auto count = double(std::max<size_t>(1, variant.ofUnits.size()));
                    finalists += count;
                    finalistSeconds += count * (s.lower + s.gir + s.addressesOfGir);
                    ++kernels;
                    if (&pattern == &made.plan.patterns.front().program)
                      accurate += double(made.plan.evaluations.accurate);
                  });
    planning += processorSeconds() - start - inside;
    std::fflush(stdout);
  }
  std::printf("%s: %d kernels, %.0f finalists; planning %.2f s, %.0f kernels priced\n", target,
              kernels, finalists, planning, accurate);
  std::printf("  chosen: tree %.2f s, its addresses %.2f s; lowering and rules %.2f s, Gir's "
              "counts %.2f s, its addresses %.2f s; all finalists %.2f s\n",
              all.tree, all.addressesOfTree, all.lower, all.gir, all.addressesOfGir,
              finalistSeconds);
  for (int q = 0; q < kQuantities; ++q) {
    std::vector<double> &list = ratios[q];
    if (list.empty())
      continue;
    std::ranges::sort(list);
    const auto near =
        std::ranges::count_if(list, [](double ratio) { return std::abs(ratio - 1) <= 0.05; });
    std::printf("  %-15s %4zu kernels, %4td within 5 %%; lowest %.3f median %.3f highest %.3f; %d "
                "one-sided\n",
                kNames[q], list.size(), near, list.front(), list[list.size() / 2], list.back(),
                oneSided[q]);
  }
}

} // namespace

TEST_CASE("chosen schedules hold, wait for and move what their kernels do") {
  int kernels = 0, same = 0, synchronised = 0, exact = 0;
  for (const char *model : {"digits-cnn", "tiny/controlflow", "tiny/mmoe"})
    for (const char *target : {"x86-64-v3", "sm_80", "gfx90a"})
      forEachChosen(std::string(FUSEC_SOURCE_DIR) + "/models/" + model + ".onnx", target, true,
                    [&](const TargetState &made, const ExprProgram &, const ScheduleVariant &,
                        const Compared &c) {
                      INFO(model << " " << target);
                      ++kernels;
                      CHECK(c.gir[Registers] <= c.tree[Registers]);
                      CHECK(c.gir[Registers] >= 0.25 * c.tree[Registers]);
                      same += c.gir[Registers] == c.tree[Registers];
                      CHECK_THAT(c.gir[SharedBytes],
                                 Catch::Matchers::WithinAbs(c.tree[SharedBytes], kSharedAlignment));
                      if (made.target.kind == TargetKind::Cpu)
                        return;
                      // Barriers of all blocks take some of a block, which are priced with them.
                      if (c.phases == 1)
                        CHECK(c.tree[Barriers] >= c.barriersApart);
                      CHECK(c.tree[Barriers] <= c.gir[Barriers]);
                      synchronised += c.tree[Barriers] > 0;
                      if (c.fromData)
                        return;
                      ++exact;
                      for (int q = ReadBytes; q <= SharedMoved; ++q) {
                        INFO(kNames[q]);
                        CHECK_THAT(c.gir[q], Catch::Matchers::WithinRel(c.tree[q], 0.05));
                      }
                    });
  CHECK(kernels > 20);
  CHECK(same > 0.9 * kernels);
  CHECK(synchronised > 5);
  CHECK(exact > 5);
}

TEST_CASE("the counts of all networks on tree and Gir: x86-64-v3", "[.][spike]") {
  printCounts("x86-64-v3");
}
TEST_CASE("the counts of all networks on tree and Gir: sm_80", "[.][spike]") {
  printCounts("sm_80");
}
TEST_CASE("the counts of all networks on tree and Gir: gfx90a", "[.][spike]") {
  printCounts("gfx90a");
}
