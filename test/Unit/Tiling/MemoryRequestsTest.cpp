// Bytes and sectors that written schedules move, against what follows by hand.
#include "Tiling/counts/MemoryRequests.h"
#include "Candidates.h"

#include <catch2/catch_approx.hpp>

using namespace fusec;
using namespace fusec::test;

namespace {

/// The equation's one schedule: `axes` and the tree's loops, outermost first, around its Compute.
MemoryRequests moved(const std::string &equation, const std::string &axes,
                     const std::vector<std::string> &loops, const std::string &target = "sm_90") {
  const ExprProgram pattern = patternFrom("expr p\n" + equation);
  const bool cpu = targetNamed(target).kind == TargetKind::Cpu;
  std::string text =
      "schedule s units " + std::string(cpu ? "1" : "4") + " lanes 32 {\n" + axes + "  tree {\n";
  for (const std::string &loop : loops)
    text += loop + " {\n";
  text += "compute e0\n" + std::string(loops.size(), '}') + "\n  }\n}\n";
  TextReader in(text, "schedule");
  const Schedule schedule = valueOf(parseSchedule(in, pattern));
  const MemoryRequests quick =
      movedBytes({schedule, pattern}, targetNamed(target), tiling::Effort::Quick);
  const MemoryRequests thorough =
      movedBytes({schedule, pattern}, targetNamed(target), tiling::Effort::Thorough);
  CHECK(quick.readBytes == Catch::Approx(thorough.readBytes).epsilon(0.2));
  CHECK(quick.readSectors == Catch::Approx(thorough.readSectors).epsilon(0.2));
  return thorough;
}

std::string map(const std::string &x, const std::string &y, const std::string &axes,
                const std::string &value) {
  return "tensor %x: f32[" + x + "] input\ntensor %y: f32[" + y +
         "] output\ninputs (%x)\noutputs (%y)\nmap y [" + axes + "]\n  %y = " + value + "\n";
}

const std::string kFlat = "  axis i spatial (0) of e0\n";
const std::vector<std::string> kBlocks = {"block i:128", "unit i:32", "lane i:1"};

} // namespace

TEST_CASE("Lanes side by side share sectors, and stop at the extent") {
  MemoryRequests m = moved(map("1000", "1000", "i:1000", "exp(%x[i])"), kFlat, kBlocks);
  CHECK(m.readBytes == 4000);
  CHECK(m.writtenBytes == 4000);
  CHECK(m.readSectors == 125);
  CHECK(m.writtenSectors == 125);
  CHECK(m.sharedBytes == 0);
  // One element further on, each unit's 32 elements lie in one sector more; but for the last eight.
  m = moved(map("1001", "1000", "i:1000", "exp(%x[i + 1])"), kFlat, kBlocks);
  CHECK(m.readSectors == 31 * 5 + 2);
  m = moved(map("2000", "1000", "i:1000", "exp(%x[i*2])"), kFlat, kBlocks);
  CHECK(m.readBytes == 4000);
  CHECK(m.readSectors == 250);
  m = moved(map("32000", "1000", "i:1000", "exp(%x[i*32])"), kFlat, kBlocks);
  CHECK(m.readSectors == 1000);
  m = moved(map("1000", "1000", "i:1000", "exp(%x[i*-1 + 999])"), kFlat, kBlocks);
  CHECK(m.readSectors == 125);
}

TEST_CASE("What all lanes read is one sector, whoever asks") {
  const MemoryRequests m = moved(map("1", "1024", "i:1024", "exp(%x[0])"), kFlat, kBlocks);
  CHECK(m.readBytes == 4096);
  CHECK(m.readSectors == 32);
  // Without lanes every thread reads, and one a unit writes.
  const MemoryRequests scalar =
      moved(map("8", "8", "i:8", "exp(%x[i])"), kFlat, {"block i:4", "unit i:1"});
  CHECK(scalar.readBytes == 8 * 32 * 4);
  CHECK(scalar.readSectors == 8);
  CHECK(scalar.writtenBytes == 32);
  CHECK(scalar.writtenSectors == 8);
  // Without units all of them read, and the first one writes.
  const MemoryRequests alone = moved(map("8", "8", "i:8", "exp(%x[i])"), kFlat, {"seq i:1"});
  CHECK(alone.readSectors == 32);
  CHECK(alone.writtenSectors == 8);
}

TEST_CASE("Fused axes, predicates and gathers go to the sectors that their maps name") {
  // [24, 40] transposed: lanes run along the columns of 24, and go round after that.
  const std::string fused = "  axis i spatial (0, 1) of e0\n";
  MemoryRequests m = moved(map("24, 40", "40, 24", "i:40, j:24", "exp(%x[j, i])"), fused, kBlocks);
  CHECK(m.readBytes == 3840);
  // 24 different columns a unit, whose 32 elements lie in two rows of y that never part at a sector's end.
  CHECK(m.readSectors == 30 * 24);
  CHECK(m.writtenSectors == 120);
  // Half of the elements are padding.
  m = moved(map("512", "1024", "i:1024", "if(lt(i, 512), %x[i], 0.0)"), kFlat, kBlocks);
  CHECK(m.readBytes == 2048);
  CHECK(m.readSectors == 64);
  CHECK(m.writtenBytes == 4096);
  CHECK_FALSE(m.fromData);
  // Rows of a table: the row's number is read once for the whole row, whose place lanes know.
  const std::string gather =
      "tensor %t: f32[100, 32] input\ntensor %n: i64[16] input\ntensor %y: f32[16, 32] output\n"
      "inputs (%t, %n)\noutputs (%y)\nmap y [i:16, j:32]\n  %y = %t[%n[i], j]\n";
  m = moved(gather, fused, kBlocks);
  CHECK(m.readBytes == 16 * 32 * (4 + 8));
  CHECK(m.readSectors == 16 * (4 + 1));
}

TEST_CASE("On a CPU a vector loads what its lanes differ in") {
  const MemoryRequests m = moved(map("1", "1024", "i:1024", "exp(%x[0])"), kFlat,
                                 {"block i:1024", "seq i:32", "lane i:1"}, "x86-64-v3");
  CHECK(m.readBytes == 1024 / 32 * 4);
  CHECK(m.writtenBytes == 4096);
  CHECK(m.readSectors == 0);
}

TEST_CASE("A fused axis without elements moves nothing") {
  const std::string gather =
      "tensor %t: f32[100, 0] input\ntensor %n: i64[16] input\ntensor %y: f32[16, 0] output\n"
      "inputs (%t, %n)\noutputs (%y)\nmap y [i:16, j:0]\n  %y = %t[%n[i], j]\n";
  const MemoryRequests m = moved(gather, "  axis i spatial (0, 1) of e0\n", kBlocks);
  CHECK(m.readBytes == 0);
  CHECK(m.writtenBytes == 0);
}
