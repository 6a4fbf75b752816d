#include "Runtime/Error.h"
#include "Runtime/Model.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fusec::rt {

namespace {

/// Closes at the end of the scope.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0)
      close(fd);
  }
};

} // namespace

FileBytes::~FileBytes() {
  if (mapped)
    munmap(mapped, size);
}

fusert_status FileBytes::allocate(size_t bytes) {
  void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    return fail(FUSERT_NO_MEMORY, "no memory for the bundle's " + std::to_string(bytes) + " bytes");
  mapped = p;
  data = static_cast<const uint8_t *>(p);
  size = bytes;
  return FUSERT_OK;
}

fusert_status FileBytes::openFile(const char *path, bool copy) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  Descriptor file{open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat st;
  if (file.fd < 0 || fstat(file.fd, &st) != 0)
    return fail(FUSERT_IO_ERROR, std::string(path) + ": " + std::strerror(errno));
  if (!S_ISREG(st.st_mode))
    return fail(FUSERT_IO_ERROR, std::string(path) + ": not a regular file");
  if (st.st_size == 0)
    return fail(FUSERT_BAD_BUNDLE, std::string(path) + ": the file is empty");
  const auto bytes = static_cast<size_t>(st.st_size);
  if (!copy) {
    void *p = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.fd, 0);
    if (p == MAP_FAILED)
      return fail(FUSERT_IO_ERROR, std::string(path) + ": cannot map: " + std::strerror(errno));
    mapped = p;
    data = static_cast<const uint8_t *>(p);
    size = bytes;
    return FUSERT_OK;
  }
  FUSERT_TRY(allocate(bytes));
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n = pread(file.fd, static_cast<char *>(mapped) + done,
                            std::min<size_t>(bytes - done, 1 << 30), static_cast<off_t>(done));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return fail(FUSERT_IO_ERROR, std::string(path) + ": " + std::strerror(errno));
    if (n == 0)
      return fail(FUSERT_BAD_BUNDLE,
                  std::string(path) + ": the file became shorter while it was read");
    done += static_cast<size_t>(n);
  }
  return FUSERT_OK;
}

fusert_status FileBytes::useMemory(const void *bytes, size_t n, bool copy) {
  if (n == 0)
    return fail(FUSERT_BAD_BUNDLE, "the bundle is empty");
  // Weights lie at multiples of 64 from the start: a base that is not aligned so has to be copied.
  if (!copy && reinterpret_cast<uintptr_t>(bytes) % 64 == 0) {
    data = static_cast<const uint8_t *>(bytes);
    size = n;
    return FUSERT_OK;
  }
  FUSERT_TRY(allocate(n));
  std::memcpy(mapped, bytes, n);
  return FUSERT_OK;
}

} // namespace fusec::rt
