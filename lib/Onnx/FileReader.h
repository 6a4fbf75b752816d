#pragma once
#include "Support/Result.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <sys/types.h>
#include <tuple>
#include <vector>

namespace fusec {

/// Bytes of a file on the heap: a mapping would fault when somebody truncates the file.
using Bytes = std::shared_ptr<const std::vector<uint8_t>>;

/// A file descriptor that closes itself.
class File {
public:
  explicit File(int fd = -1) : fd(fd) {}
  File(File &&other) noexcept : fd(other.fd) { other.fd = -1; }
  File &operator=(File &&other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~File();
  int get() const { return fd; }

private:
  int fd;
};

/// Reads a regular file of at most `limit` bytes; never blocks on a FIFO. `noun` names it in messages.
Result<Bytes> readWholeFile(const std::string &path, int64_t limit, const std::string &noun);

/// Files beside the model that hold tensor data. Paths stay inside the model's folder: no absolute paths,
/// "..", symbolic or hard links; only regular files other than the model. One descriptor serves check and
/// read, so a file swapped in between cannot be read.
class ExternalFiles {
public:
  /// `outputPath`: what the compiler will replace, so that it may not be one of these files; empty: nothing.
  explicit ExternalFiles(const std::string &modelPath, std::string outputPath = "");
  ~ExternalFiles();
  /// Bytes [offset, offset + length) of `location`, or of the rest of the file when length < 0. `where`
  /// names the tensor. `expected` is the size that the tensor's type and shape need. Tensors with the same bytes share
  /// them.
  Result<Bytes> read(const std::string &location, int64_t offset, int64_t length, int64_t expected,
                     const std::string &where);

private:
  struct Opened {
    File file;
    int64_t size;
  };
  Result<const Opened *> open(const std::string &location, const std::string &where);
  std::string folder, outputPath;
  File folderFile;
  dev_t modelDevice = 0;
  ino_t modelInode = 0;
  std::map<std::string, Opened> opened;
  using Range = std::tuple<std::string, int64_t, int64_t>; // location, offset, size
  std::map<Range, std::weak_ptr<const std::vector<uint8_t>>> taken;
};

} // namespace fusec
