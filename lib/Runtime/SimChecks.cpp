// The rules of accesses, and the words for broken ones.
#include "Runtime/SimBlock.h"

#include <algorithm>

namespace fusec::rt {

namespace {

std::string verb(int32_t flags) { return flags & FUSEC_SIM_WRITE ? "write" : "read"; }

} // namespace

bool SimBlockRunner::broken(const std::string &what) {
  failed = Failure::BrokenRule;
  text = "kernel '" + kernel->symbol + "'";
  if (!kernel->onnxNodes.empty())
    text += " (node '" + kernel->onnxNodes.front() + "')";
  text += ", phase " + std::to_string(phase) + ": " + what;
  return false;
}

bool SimBlockRunner::broken(const Thread &t, int32_t site, const std::string &what) {
  return broken("block " + std::to_string(t.visible.block) + ", thread " +
                std::to_string(t.visible.thread) + ", site " + std::to_string(site) + ": " + what);
}

bool SimBlockRunner::checkAccess(Thread &t, uint64_t address, int32_t bytes, int32_t flags,
                                 int32_t param, int32_t site) {
  if (bytes <= 0 || bytes > 64 || (flags & (FUSEC_SIM_READ | FUSEC_SIM_WRITE)) == 0)
    return broken(t, site, "malformed access");
  if ((bytes & (bytes - 1)) == 0 && address % static_cast<uint64_t>(bytes) != 0)
    return broken(t, site, verb(flags) + " of " + std::to_string(bytes) + " bytes is not aligned");
  if (param < 0)
    return checkShared(t, address, bytes, flags, site);
  if (param >= static_cast<int32_t>(parameters.size()))
    return broken(t, site,
                  "access to parameter " + std::to_string(param) + ", which does not exist");
  Parameter &p = parameters[static_cast<size_t>(param)];
  return checkGlobal(t, p, address - p.begin, bytes, flags, param, site);
}

bool SimBlockRunner::checkGlobal(Thread &t, Parameter &p, uint64_t offset, int32_t bytes,
                                 int32_t flags, int32_t param, int32_t site) {
  const auto name = [&] { return "parameter " + std::to_string(param); };
  const uint64_t size = p.end - p.begin, last = offset + static_cast<uint64_t>(bytes) - 1;
  if (offset > size || size - offset < static_cast<uint64_t>(bytes))
    return broken(t, site,
                  verb(flags) + " of " + std::to_string(bytes) + " bytes at offset " +
                      std::to_string(static_cast<int64_t>(offset)) + " of " + name() +
                      ", which has " + std::to_string(size) + " bytes");
  if ((flags & FUSEC_SIM_WRITE) && !p.written)
    return broken(t, site, "write to " + name() + ", which is read-only");
  if (p.written) {
    SimAccess &a = t.who;
    a.write = (flags & FUSEC_SIM_WRITE) != 0;
    const auto element = static_cast<uint64_t>(p.elementBytes);
    for (uint64_t g = offset / element; grid && g <= last / element; ++g)
      if (const std::optional<SimGrid::Name> other = grid->access(param, g, inGrid(t), a.write)) {
        const SimGrid::Name own = grid->nameOf(t.run);
        return broken(t, site,
                      "race on element " + std::to_string(g) + " of " + name() + " between this " +
                          verb(flags) + " by block " + std::to_string(own.block) + " of phase " +
                          std::to_string(own.phase) + " and block " + std::to_string(other->block) +
                          " of phase " + std::to_string(other->phase) +
                          ", with no counter between them");
      }
    for (uint64_t g = offset / element; g <= last / element; ++g)
      if (p.shadow.access(g, a, phaseSerial, false) == SimShadow::Found::Race)
        return broken(t, site,
                      "race on element " + std::to_string(g) + " of " + name() + " between this " +
                          verb(flags) + " and thread " + std::to_string(p.shadow.otherThread()) +
                          " of the same or another block, with no barrier between them");
  }
  if (counting)
    for (uint64_t s = offset / 32; s <= last / 32; ++s)
      if (p.sectorBlock[s] != serial) {
        p.sectorBlock[s] = serial;
        ++counts.tileSectors;
      }
  return true;
}

bool SimBlockRunner::checkShared(Thread &t, uint64_t address, int32_t bytes, int32_t flags,
                                 int32_t site) {
  const uint64_t offset = address - reinterpret_cast<uint64_t>(shared);
  const uint64_t size = sharedBytes;
  if (offset > size || size - offset < static_cast<uint64_t>(bytes))
    return broken(t, site,
                  verb(flags) + " of " + std::to_string(bytes) + " bytes at offset " +
                      std::to_string(static_cast<int64_t>(offset)) +
                      " of shared memory, which has " + std::to_string(size) + " bytes");
  // A granule is a byte. A read looks at one byte of each 4-byte word, a write marks all.
  const bool write = (flags & FUSEC_SIM_WRITE) != 0;
  const uint64_t step = write ? 1 : bytes % 4 == 0 ? 4 : 1;
  SimAccess a = t.who;
  a.block = sharedSerial;
  a.write = write;
  for (uint64_t g = offset; g < offset + static_cast<uint64_t>(bytes); g += step) {
    if ((flags & FUSEC_SIM_READ) && write) { // an update reads first
      SimAccess read = a;
      read.write = false;
      if (sharedShadow.access(g, read, sharedSerial, true) == SimShadow::Found::Uninitialised)
        return broken(t, site,
                      "update of shared memory that this block has not written yet, offset " +
                          std::to_string(g));
    }
    switch (sharedShadow.access(g, a, sharedSerial, true)) {
    case SimShadow::Found::Nothing: break;
    case SimShadow::Found::Uninitialised:
      return broken(t, site,
                    "read of shared memory that this block has not written yet, offset " +
                        std::to_string(g));
    case SimShadow::Found::Race:
      return broken(t, site,
                    "race on shared memory, offset " + std::to_string(g) + ", between this " +
                        verb(flags) + " and thread " + std::to_string(sharedShadow.otherThread()) +
                        ", with no barrier between them");
    }
  }
  return true;
}

bool SimBlockRunner::independentOf(const SimBlockRunner &other) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].written)
      continue;
    const std::optional<SimShadow::Conflict> found = SimShadow::conflict(
        parameters[i].shadow, phaseSerial, other.parameters[i].shadow, other.phaseSerial);
    if (!found)
      continue;
    const int64_t mine = phaseBlocks[found->block - phaseSerial],
                  others = other.phaseBlocks[found->otherBlock - other.phaseSerial];
    return broken("race on element " + std::to_string(found->granule) + " of parameter " +
                  std::to_string(i) + " between blocks " + std::to_string(std::min(mine, others)) +
                  " and " + std::to_string(std::max(mine, others)) +
                  ", which may run in any order");
  }
  return true;
}

} // namespace fusec::rt
