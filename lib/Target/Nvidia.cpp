// NVIDIA architectures. Sources: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability"
// (registers, threads, shared memory); datasheets of A100 SXM4 40 GB, H100 SXM and H200 (SMs, bandwidth, fp32 rate).
#include "Target/Tables.h"

namespace fusec {

namespace {

Target nvidiaTarget(const char *name, int cores, double flops, double dramBytesPerSec,
                    double l2BytesPerSec, double launchSec) {
  Target t;
  t.name = name;
  t.kind = TargetKind::Nvidia;
  t.triple = "nvptx64-nvidia-cuda";
  t.cpu = name;
  t.lanes = 32;
  t.vectorRegisters = 255;
  t.maxUnits = 32;
  t.cores = cores;
  t.sharedBytesPerBlock = 48 << 10; // without opting in to more
  t.registersPerCore = 65536;
  t.maxThreadsPerCore = 2048;
  t.flopsPerSec = flops;
  t.launchSec = launchSec;
  t.blockBarrierSec = 2.0e-8;
  t.deviceBarrierSec = 1.3e-6;
  constexpr double kSharedBytesPerClock = 128, kHertz = 1.4e9;
  t.memory = {{"shared", 164 << 10, kSharedBytesPerClock * kHertz},
              {"l2", 40 << 20, l2BytesPerSec},
              {"dram", 0, dramBytesPerSec}};
  return t;
}

} // namespace

std::vector<Target> nvidiaTargets() {
  return {nvidiaTarget("sm_80", 108, 19.5e12, 1555e9, 4.5e12, 2.0e-6),
          nvidiaTarget("sm_90", 132, 60.0e12, 4800e9, 5.5e12, 1.3e-6)};
}

} // namespace fusec
