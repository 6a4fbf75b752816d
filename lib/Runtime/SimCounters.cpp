#include "Runtime/SimCounters.h"

#include "Runtime/Profile.h"

#include <algorithm>

namespace fusec::rt {

namespace {
constexpr uint64_t kSectorBytes = 32, kBankBytes = 4, kBanks = 32;

constexpr std::pair<const char *, uint64_t SimCounts::*> kFields[] = {
    {"launches", &SimCounts::launches},
    {"blocks", &SimCounts::blocks},
    {"threads", &SimCounts::threads},
    {"flops", &SimCounts::flops},
    {"read_bytes", &SimCounts::readBytes},
    {"write_bytes", &SimCounts::writeBytes},
    {"read_sectors", &SimCounts::readSectors},
    {"write_sectors", &SimCounts::writeSectors},
    {"tile_sectors", &SimCounts::tileSectors},
    {"shared_bytes", &SimCounts::sharedBytes},
    {"shared_conflicts", &SimCounts::sharedConflicts},
    {"barriers", &SimCounts::barriers},
    {"unit_syncs", &SimCounts::unitSyncs},
    {"shuffles", &SimCounts::shuffles}};
static_assert(sizeof(SimCounts) == std::size(kFields) * sizeof(uint64_t));
} // namespace

void SimCounts::add(const SimCounts &more) {
  for (const auto &[name, member] : kFields)
    this->*member += more.*member;
}

void SimLog::start(int32_t n) {
  lanes = n;
  if (logs.size() < static_cast<size_t>(n))
    logs.resize(static_cast<size_t>(n));
  for (auto &log : logs) {
    log.clear();
    log.reserve(kCapacity);
  }
}

/// Accesses of one place in the program and in the course of its loops are one transaction.
static std::pair<int32_t, int64_t> placeOf(const SimLog::Entry &e) { return {e.site, e.iteration}; }

/// True when all lanes made the same accesses in the same order.
bool SimLog::lockstep() const {
  for (int32_t l = 1; l < lanes; ++l) {
    if (logs[l].size() != logs[0].size())
      return false;
    for (size_t i = 0; i < logs[l].size(); ++i)
      if (placeOf(logs[l][i]) != placeOf(logs[0][i]))
        return false;
  }
  return true;
}

void SimLog::flush(SimCounts &counts) {
  if (lockstep()) {
    for (size_t i = 0; i < logs[0].size(); ++i) {
      transaction.clear();
      for (int32_t l = 0; l < lanes; ++l)
        transaction.push_back(logs[l][i]);
      count(transaction, counts);
    }
  } else {
    // Lanes went different ways.
    std::map<std::pair<int32_t, int64_t>, std::vector<Entry>> groups;
    for (int32_t l = 0; l < lanes; ++l)
      for (const Entry &e : logs[l])
        groups[placeOf(e)].push_back(e);
    for (const auto &[place, entries] : groups)
      count(entries, counts);
  }
  for (auto &log : logs)
    log.clear();
}

void SimLog::count(const std::vector<Entry> &entries, SimCounts &counts) {
  const Entry &first = entries.front();
  const uint64_t grain = first.shared ? kBankBytes : kSectorBytes;
  units.clear();
  uint64_t bytes = 0;
  for (const Entry &e : entries) {
    bytes += e.bytes;
    for (uint64_t u = e.address / grain; u <= (e.address + e.bytes - 1) / grain; ++u)
      units.push_back(u);
  }
  if (!std::is_sorted(units.begin(), units.end())) // side by side or all the same: the usual cases
    std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  if (!first.shared) {
    if (first.flags & FUSEC_SIM_READ) {
      counts.readBytes += bytes;
      counts.readSectors += units.size();
    }
    if (first.flags & FUSEC_SIM_WRITE) {
      counts.writeBytes += bytes;
      counts.writeSectors += units.size();
    }
    return;
  }
  counts.sharedBytes += bytes;
  uint64_t perBank[kBanks] = {}, passes = 0;
  for (uint64_t word : units)
    passes = std::max(passes, ++perBank[word % kBanks]);
  counts.sharedConflicts += passes - (units.size() + kBanks - 1) / kBanks;
}

std::string simCountersJson(const bundle::Program &program, const std::vector<SimCounts> &counts) {
  std::string out = "{\"kernels\":[";
  bool firstRow = true;
  for (size_t k = 0; k < counts.size(); ++k) {
    const SimCounts &c = counts[k];
    if (c.launches == 0)
      continue;
    const bundle::Kernel &kernel = program.kernels[k];
    out += firstRow ? "" : ",";
    firstRow = false;
    out +=
        "{\"name\":" + jsonString(kernel.symbol) + ",\"nodes\":" + jsonStrings(kernel.onnxNodes) +
        ",\"units\":" + std::to_string(kernel.units) + ",\"lanes\":" + std::to_string(kernel.lanes);
    for (const auto &[name, member] : kFields)
      out += std::string(",\"") + name + "\":" + std::to_string(c.*member);
    out += "}";
  }
  return out + "]}";
}

} // namespace fusec::rt
