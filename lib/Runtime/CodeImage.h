#pragma once
#include "fusec/runtime.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fusec::rt {

/// An ELF image (bundle_format.h) in memory: copied to anonymous pages, checked there, then made read + execute.
/// No file backs it, so it works from volumes mounted noexec and survives a file that changes.
class CodeImage {
public:
  CodeImage() = default;
  CodeImage(const CodeImage &) = delete;
  CodeImage &operator=(const CodeImage &) = delete;
  ~CodeImage();

  fusert_status load(const std::vector<uint8_t> &elf);
  /// Address of an exported function or null.
  void *function(const std::string &name) const;

private:
  uint8_t *base = nullptr;
  size_t span = 0;
  std::map<std::string, uint64_t> functions;
};

} // namespace fusec::rt
