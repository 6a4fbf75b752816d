#include "Runtime/SimGrid.h"

#include <algorithm>

namespace fusec::rt {

void SimGrid::start(const bundle::Kernel &kernel, const Launch &launch) {
  barrier();
  cells.assign(launch.buffers.size(), {});
  counts.clear();
  awaitedCounts.clear();
  alone = kernel.units * kernel.lanes == 1;
}

void SimGrid::barrier() {
  firstRun += static_cast<int64_t>(runs.size());
  runs.clear();
  numbers.clear();
  for (auto &elements : cells)
    elements.clear();
}

int64_t SimGrid::begin(int32_t phase, int64_t block) {
  const int64_t next = firstRun + static_cast<int64_t>(runs.size());
  const auto [it, isNew] = numbers.emplace(std::pair{phase, block}, next);
  if (isNew)
    runs.push_back({{phase, block}, {}, {}});
  return it->second;
}

bool SimGrid::ordered(const Cell &cell, const Who &who) const {
  const Run &writer = runs[static_cast<size_t>(cell.writer - firstRun)],
            &run = runs[static_cast<size_t>(who.run - firstRun)];
  return std::any_of(writer.signals.begin(), writer.signals.end(), [&](const Signal &s) {
    return (cell.writeEpoch < s.epoch || cell.writeThread == 0) &&
           std::any_of(run.waits.begin(), run.waits.end(), [&](const Wait &w) {
             return w.first <= s.counter && s.counter <= w.last && (w.epoch < who.epoch || alone);
           });
  });
}

std::optional<SimGrid::Name> SimGrid::access(int32_t param, uint64_t element, const Who &who,
                                             bool write) {
  Cell &cell = cells[static_cast<size_t>(param)][element];
  if (cell.writer >= 0 && cell.writer != who.run && !ordered(cell, who))
    return nameOf(cell.writer);
  if (write && cell.reader >= 0 && (cell.manyReaders || cell.reader != who.run))
    return nameOf(cell.reader);
  if (write) {
    cell.writer = who.run;
    cell.writeEpoch = who.epoch;
    cell.writeThread = who.thread;
  } else {
    cell.manyReaders = cell.manyReaders || (cell.reader >= 0 && cell.reader != who.run);
    if (!cell.manyReaders)
      cell.reader = who.run;
  }
  return std::nullopt;
}

void SimGrid::signal(int64_t counter, const Who &who) {
  ++counts[counter];
  runs[static_cast<size_t>(who.run - firstRun)].signals.push_back({counter, who.epoch});
}

int64_t SimGrid::valueOf(int64_t counter) const {
  const auto it = counts.find(counter);
  return it == counts.end() ? 0 : it->second;
}

bool SimGrid::reached(int64_t first, int64_t last, int64_t count) const {
  for (int64_t c = first; c <= last; ++c)
    if (valueOf(c) < count)
      return false;
  return true;
}

void SimGrid::waited(int64_t first, int64_t last, int64_t count, const Who &who) {
  runs[static_cast<size_t>(who.run - firstRun)].waits.push_back({first, last, who.epoch});
  awaitedCounts[{first, last}] = count;
}

std::string SimGrid::miscount() const {
  for (const auto &[range, count] : awaitedCounts)
    for (int64_t c = range.first; c <= range.second; ++c)
      if (const int64_t got = valueOf(c); got != count)
        return "a block waited for " + std::to_string(count) + " signals of counter " +
               std::to_string(c) + ", which got " + std::to_string(got);
  return "";
}

} // namespace fusec::rt
