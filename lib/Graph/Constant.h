#pragma once
#include "Support/DType.h"
#include "Support/Hash.h"
#include "Support/Result.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fusec {

/// Immutable dense tensor data, row-major, little-endian, shared by reference through all stages.
/// `bytes` points into `owner` (a heap block, or a mapping of the model's external data).
struct Constant {
  DType type;
  std::vector<int64_t> dims;
  const uint8_t *bytes = nullptr;
  int64_t sizeBytes = 0;
  std::shared_ptr<const void> owner;
  Hash128 digest; // over type, dims and bytes

  int64_t numElements() const;
  template <typename T> const T *as() const { return reinterpret_cast<const T *>(bytes); }
  /// Element `i` as an integer or a double, whatever the type (exact for i64; u64 wraps).
  int64_t intAt(int64_t i) const;
  double floatAt(int64_t i) const;
};
using ConstantRef = std::shared_ptr<const Constant>;

/// Takes over `data` (size must equal product of dims times element size).
ConstantRef makeConstant(DType type, std::vector<int64_t> dims, std::vector<uint8_t> data);
/// A view of `sizeBytes` bytes that `owner` keeps alive.
ConstantRef makeConstantView(DType type, std::vector<int64_t> dims, const uint8_t *bytes,
                             int64_t sizeBytes, std::shared_ptr<const void> owner);
ConstantRef makeIntConstant(std::vector<int64_t> dims, const std::vector<int64_t> &values); // i64
ConstantRef makeScalarConstant(DType type, double value);
/// Appends one element in storage form; floats round to nearest even, integers wrap.
void appendElement(std::vector<uint8_t> &out, DType type, int64_t v);
void appendElement(std::vector<uint8_t> &out, DType type, double v);

/// Constants by digest, for dumps: a directory with one file `<digest>.bin` each (header line
/// "f32 768x768\n", then the raw bytes). In memory when `directory` is empty.
class ConstantStore {
public:
  explicit ConstantStore(std::string directory = "") : directory(std::move(directory)) {}
  Status put(const ConstantRef &c);
  /// What went wrong in any put() so far; the caller of a printer looks here once at the end.
  const Diagnostics &failures() const { return failed; }
  Result<ConstantRef> get(Hash128 digest) const;

private:
  std::string directory;
  std::map<Hash128, ConstantRef> inMemory;
  Diagnostics failed;
};

} // namespace fusec
