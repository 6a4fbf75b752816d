// x86-64 levels. Numbers are of a generic 3 GHz server core with two fma ports, of two; they rank schedules, and no
// test depends on them. Launches and what comes from beyond L1 are between what `fusert calibrate` measured on two
// kinds of cloud machine (AVX2, 1 MiB of L2; AVX-512, 2 MiB).
#include "Target/Tables.h"

namespace fusec {

namespace {

/// Ports and latencies: Intel 64 and IA-32 Architectures Optimization Reference Manual, Skylake to Golden Cove; AMD's
/// Zen 2 to 4 have the same. Measured: on the machines named above.
CpuCore core(int lanes) {
  CpuCore c;
  c.fmaPorts = c.loadPorts = 2;
  // In products with 768 x 768 matrices and the like, a step of 14 x 2 vectors of 16 takes 18.2 cycles, of 13 x 2 17.0,
  // of 9 x 3 15.6, of 8 x 3 13.7, of 6 x 4 13.5, of 5 x 5 13.8 (Intel Xeon); a step of 6 x 2 vectors of 8 takes 6.1.
  c.tileLoads = lanes == 16 ? 1 : 2;
  c.fmaCycles = 4;
  c.instructionsAhead = 512; // Golden Cove's reorder buffer; 224 in Skylake, 320 in Zen 4
  c.panelBytesPerCycle = 20; // measured beside the arithmetic of products; a copy reaches 26
  // 128 rows times two matrices of 9.4 MB, in blocks of 8 to 128 rows that take both in turn: each MB that another
  // block brings in again adds 50 us to a core's arithmetic (AMD EPYC, Zen 3); a copy from L3 takes 25 to 35.
  c.rereadBytesPerSec = 20e9;
  c.lineBytes = 64;
  c.pageBytes = 4096;
  // An element-wise chain over 512 MiB, one row and four rows of a page: 28 ms and 24 (a copy: 23) on an Intel Xeon, 26
  // and 27 on an AMD EPYC (Zen 4).
  c.rowsToFill = 4;
  c.oneRowShare = 0.85;
  // Over 8 MiB: 0.12 ms and 0.19 on that EPYC, whose L1 has eight ways, the same on the Xeon, which has twelve.
  c.severalRowsShare = 0.8;
  // Rows of 122 KB, of which a core takes the sum of e^x while it asks for the next one: 17.5 ms asking in order, 15.5
  // for four parts in turn, 14.8 for eight, as for sixteen (Intel Xeon).
  c.pagesAsked = 8;
  c.elementsPerBlock = 8192; // 512 to 1024 vectors; launchSec is 2,400 cycles
  return c;
}

Target cpuTarget(const char *name, int lanes, int registers) {
  constexpr double kHertz = 3.0e9;
  Target t;
  t.name = name;
  t.kind = TargetKind::Cpu;
  t.triple = "x86_64-unknown-linux-gnu";
  t.cpu = name;
  t.lanes = lanes;
  t.vectorRegisters = registers;
  t.maxUnits = 1;
  t.vectorLanes = t.nearestIsCache = true;
  t.cores = 2;
  t.sharedBytesPerBlock = 512 << 10; // half of a 1 MiB L2
  t.registersPerCore = 0;
  t.maxThreadsPerCore = 1;
  t.core = core(lanes);
  t.flopsPerSec = kHertz * lanes * 2 * t.core.fmaPorts; // two flop an fma
  t.launchSec = 0.8e-6;                                 // handing blocks to a thread pool
  t.ownLaunchSec = 1.0e-7; // 6 ns, and code that has not run since the last inference
  t.blockBarrierSec = 0;
  t.deviceBarrierSec = 2.0e-6;
  t.loadShare = double(t.core.loadPorts) / t.core.fmaPorts;
  // Two loads a cycle from L1. From L2 26 bytes a cycle (75 and 78 GB/s), from L3 28 and 41 GB/s a core, copies in
  // memory 24 GB/s for both.
  constexpr double kL3BytesPerSec = 35e9;
  constexpr int kFirstWays = 8, kSecondWays = 16; // Zen's second cache has 8
  t.memory = {{"l1", 32 << 10, kHertz * lanes * 4 * t.core.loadPorts, false, kFirstWays},
              {"l2", 1 << 20, kHertz * 26, false, kSecondWays},
              {"l3", 32 << 20, kL3BytesPerSec * t.cores, true},
              {"dram", 0, 24e9, true}};
  return t;
}

} // namespace

std::vector<Target> cpuTargets() {
  return {cpuTarget("x86-64-v3", 8, 16), cpuTarget("x86-64-v4", 16, 32)};
}

} // namespace fusec
