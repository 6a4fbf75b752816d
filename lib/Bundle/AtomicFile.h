#pragma once
#include "Support/Result.h"

#include <string>
#include <string_view>

namespace fusec::bundle {

/// A file that appears under its name only when it is whole: written as NAME.tmp.PID.N beside it, synced,
/// renamed, folder synced. Without commit() nothing is left behind. Temporary files of dead processes for the
/// same name are removed first.
class AtomicFile {
public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  Status open();
  Status write(const void *data, size_t sizeBytes);
  Status commit();

private:
  Diagnostic failed(const char *what) const; // with errno's text
  std::string path, folder, base, temporary;
  int fd = -1;
};

/// The text as such a file.
Status writeWhole(const std::string &path, std::string_view text);

} // namespace fusec::bundle
