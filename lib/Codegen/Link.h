#pragma once
#include "Support/Result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fusec {

/// A folder of its own under `parent`, removed with what is in it at the end of the object's life.
class TempDir {
public:
  static Result<TempDir> create(const std::string &parent);
  TempDir(TempDir &&other) noexcept : folder(std::exchange(other.folder, "")) {}
  TempDir &operator=(TempDir &&) = delete;
  ~TempDir();
  const std::string &path() const { return folder; }

private:
  explicit TempDir(std::string folder) : folder(std::move(folder)) {}
  std::string folder;
};

Status writeFile(const std::string &path, const std::string &bytes);
Result<std::vector<uint8_t>> readFile(const std::string &path);

/// Links relocatable objects, in this order, to one shared object, with lld in this process. x86-64 images come out
/// as bundle_format.h asks for and are checked for it; AMD ones are what the HIP runtime loads.
Result<std::vector<uint8_t>> linkImage(const std::vector<std::string> &objects, bool amd,
                                       const std::string &tempDir);

/// What an x86-64 image must be to run from anonymous memory: no relocations, imports, initialisers, writable or
/// thread-local segments. A failure is a bug of the emitter.
Status checkCpuImage(const std::vector<uint8_t> &image);

} // namespace fusec
