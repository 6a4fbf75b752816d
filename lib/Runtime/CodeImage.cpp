#include "Runtime/CodeImage.h"

#include "Bundle/ElfImage.h"
#include "Runtime/Error.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace fusec::rt {

namespace {

fusert_status protectFailed() {
  return errno == ENOMEM ? fail(FUSERT_NO_MEMORY, "no memory to protect machine code")
                         : fail(FUSERT_UNSUPPORTED,
                                std::string("the system does not allow executable memory: ") +
                                    std::strerror(errno));
}

} // namespace

CodeImage::~CodeImage() {
  if (base)
    munmap(base, span);
}

fusert_status CodeImage::load(const std::vector<uint8_t> &elf) {
  Result<bundle::ElfImage> parsed = bundle::parseElfImage(elf.data(), elf.size(), "code");
  if (!parsed)
    return fail(parsed.errors());
  span = parsed->spanBytes;
  void *memory = mmap(nullptr, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return fail(FUSERT_NO_MEMORY,
                std::string("no memory for machine code: ") + std::strerror(errno));
  base = static_cast<uint8_t *>(memory);
  for (const bundle::ElfImage::Segment &s : parsed->segments)
    std::memcpy(base + s.address, elf.data() + s.fileOffset, s.fileBytes);
  // Everything read-only first: no page is ever writable and executable.
  if (mprotect(base, span, PROT_READ) != 0)
    return protectFailed();
  constexpr uint64_t page = 4096;
  for (const bundle::ElfImage::Segment &s : parsed->segments) {
    if (!s.executable)
      continue;
    const uint64_t first = s.address / page * page;
    const uint64_t end = (s.address + s.memoryBytes + page - 1) / page * page;
    if (mprotect(base + first, end - first, PROT_READ | PROT_EXEC) != 0)
      return protectFailed();
  }
  functions = std::move(parsed->functions);
  return FUSERT_OK;
}

void *CodeImage::function(const std::string &name) const {
  auto at = functions.find(name);
  return at == functions.end() ? nullptr : base + at->second;
}

} // namespace fusec::rt
