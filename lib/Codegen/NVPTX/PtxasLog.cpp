// What ptxas -v says of entries. A function's lines follow "Compiling entry function"; remarks stand anywhere and name
// theirs:
//   ptxas info    : Compiling entry function 'k_1_p0' for 'sm_90'
//   ptxas info    : Function properties for k_1_p0
//       8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
//   ptxas info    : Used 41 registers, used 1 barriers, 8384 bytes smem
//   ptxas info    : (C7510) Potential Performance Loss: ... in the function 'k_1_p0'
#include "Codegen/Resources.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace fusec {
namespace {

/// The number in front of `words`, or 0.
int64_t numberBefore(std::string_view line, std::string_view words) {
  const size_t end = line.find(words);
  if (end == std::string_view::npos || end == 0 || line[end - 1] != ' ')
    return 0;
  size_t begin = end - 1;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9')
    --begin;
  int64_t value = 0;
  std::from_chars(line.data() + begin, line.data() + end - 1, value);
  return value;
}

/// What stands in quotation marks behind `words`; empty where nothing does.
std::string quotedBehind(std::string_view line, std::string_view words) {
  size_t at = line.find(words);
  if (at == std::string_view::npos)
    return "";
  at += words.size();
  const size_t end = line.find('\'', at);
  return end == std::string_view::npos ? "" : std::string(line.substr(at, end - at));
}

} // namespace

std::vector<EntryResources> parsePtxasLog(std::string_view log) {
  std::map<std::string, EntryResources> entries;
  std::string current;
  while (!log.empty()) {
    const size_t length = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, length);
    log.remove_prefix(std::min(length + 1, log.size()));
    if (const std::string name = quotedBehind(line, "Compiling entry function '"); !name.empty()) {
      current = name;
      entries[current].entry = current;
    } else if (const size_t code = line.find("(C"); code != std::string_view::npos) {
      const size_t end = line.find(") ", code);
      const std::string in = quotedBehind(line, "function '");
      if (end != std::string_view::npos && !in.empty()) {
        EntryResources &entry = entries[in];
        entry.entry = in;
        entry.remarks.push_back(std::string(line.substr(code + 1, end - code - 1)) + ": " +
                                std::string(line.substr(end + 2)));
      }
    } else if (!current.empty() && line.find("bytes stack frame") != std::string_view::npos) {
      entries[current].stackBytes = numberBefore(line, "bytes stack frame");
      entries[current].spillStores = numberBefore(line, "bytes spill stores");
      entries[current].spillLoads = numberBefore(line, "bytes spill loads");
    } else if (!current.empty() && line.find(": Used ") != std::string_view::npos) {
      entries[current].registers = static_cast<int>(numberBefore(line, "registers"));
      entries[current].barriers = static_cast<int>(numberBefore(line, "barriers"));
      entries[current].sharedBytes = numberBefore(line, "bytes smem");
    }
  }
  std::vector<EntryResources> list;
  for (auto &[name, entry] : entries)
    list.push_back(std::move(entry));
  return list;
}

} // namespace fusec
