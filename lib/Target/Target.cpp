#include "Target/Target.h"

#include "Support/Diag.h"
#include "Target/Tables.h"

#include <algorithm>
#include <cpuid.h>
#include <utility>

namespace fusec {

namespace {

constexpr std::pair<std::string_view, std::string_view> kProducts[] = {
    {"a100", "sm_80"},   {"h100", "sm_90"},    {"h200", "sm_90"},
    {"mi250", "gfx90a"}, {"mi300x", "gfx942"}, {"rx7900", "gfx1100"},
};

std::vector<Target> allTargets() {
  std::vector<Target> all = cpuTargets();
  for (auto table : {nvidiaTargets, amdTargets})
    for (Target &t : table())
      all.push_back(std::move(t));
  return all;
}

/// x86-64-v4 needs AVX-512 F, BW, CD, DQ and VL (System V psABI), and an operating system that saves its state.
std::string hostLevel() {
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
    return "x86-64-v3";
  constexpr unsigned kAvx512 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned kSavedState = 0xe6; // xmm, ymm, opmask, zmm
  return (b & kAvx512) == kAvx512 && (low & kSavedState) == kSavedState ? "x86-64-v4" : "x86-64-v3";
}

} // namespace

const MicroKernel *Target::kernel(std::string_view wanted) const {
  const auto found = std::ranges::find(kernels, wanted, &MicroKernel::name);
  return found == kernels.end() ? nullptr : &*found;
}

Result<Target> lookupTarget(std::string_view name) {
  std::string wanted(name);
  bool sim = wanted.rfind("sim:", 0) == 0;
  if (sim)
    wanted = wanted.substr(4);
  if (wanted == "host" && !sim)
    wanted = hostLevel();
  for (const auto &[product, architecture] : kProducts)
    if (wanted == product)
      wanted = architecture;
  for (Target &t : allTargets()) {
    if (t.name != wanted || (sim && t.kind == TargetKind::Cpu))
      continue;
    t.kernels = microKernels(t);
    t.sim = sim;
    if (sim)
      t.name = "sim:" + t.name;
    return std::move(t);
  }
  std::string known = "host";
  for (const std::string &n : targetNames())
    known += ", " + n;
  return Diagnostic{Diag::UnsupportedTarget, "target '" + std::string(name) + "'",
                    "unknown; known are " + known + " and sim: before a GPU's name"};
}

std::vector<std::string> targetNames() {
  std::vector<std::string> names;
  for (const Target &t : allTargets())
    names.push_back(t.name);
  return names;
}

} // namespace fusec
