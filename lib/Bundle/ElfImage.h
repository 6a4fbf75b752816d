#pragma once
#include "Support/Result.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fusec::bundle {

/// An x86-64 image as bundle_format.h demands it, after all checks.
struct ElfImage {
  struct Segment {
    uint64_t fileOffset, fileBytes; // in the image's bytes
    uint64_t address, memoryBytes;  // in the loaded image
    bool executable;
  };
  std::vector<Segment> segments; // ascending, disjoint pages
  uint64_t spanBytes = 0;        // addresses 0 .. spanBytes, a multiple of 4096
  /// Address of each exported function, inside an executable segment.
  std::map<std::string, uint64_t> functions;
};

Result<ElfImage> parseElfImage(const uint8_t *bytes, size_t size, const std::string &where);

} // namespace fusec::bundle
