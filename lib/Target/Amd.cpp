// AMD architectures. Sources: CDNA2, CDNA3 and RDNA3 instruction set manuals (wave size, registers, LDS), data
// sheets of MI250X (one GCD), MI300X and RX 7900 XTX (compute units, bandwidth, fp32 rate).
#include "Target/Tables.h"

namespace fusec {

namespace {

Target amdTarget(const char *name, int lanes, int cores, double flops, double dramBytesPerSec) {
  Target t;
  t.name = name;
  t.kind = TargetKind::Amd;
  t.triple = "amdgcn-amd-amdhsa";
  t.cpu = name;
  t.lanes = lanes;
  t.vectorRegisters = 256;
  t.maxUnits = 1024 / lanes;
  t.cores = cores;
  t.sharedBytesPerBlock = 64 << 10;
  t.registersPerCore = 131072;
  t.maxThreadsPerCore = 2048;
  t.flopsPerSec = flops;
  t.launchSec = 3.0e-6;
  t.blockBarrierSec = 3.0e-8;
  t.deviceBarrierSec = 5.0e-6;
  constexpr double kLdsBytesPerClock = 128, kHertz = 1.7e9;
  t.memory = {{"shared", 64 << 10, kLdsBytesPerClock * kHertz}, {"dram", 0, dramBytesPerSec}};
  return t;
}

} // namespace

std::vector<Target> amdTargets() {
  return {amdTarget("gfx90a", 64, 110, 23.9e12, 1600e9),
          amdTarget("gfx942", 64, 304, 81.7e12, 5300e9),
          amdTarget("gfx1100", 32, 96, 61.0e12, 960e9)};
}

} // namespace fusec
