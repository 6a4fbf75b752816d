#pragma once
#include "Support/DType.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fusert {

/// A tensor in host memory, row-major.
struct HostTensor {
  fusec::DType type = fusec::DType::F32;
  std::vector<int64_t> dims;
  std::vector<uint8_t> bytes;

  int64_t numElements() const;
  /// Element `i` as a double, whatever the type.
  double at(int64_t i) const;
  std::string describe() const; // "f32 [1, 3, 224, 224]"
};

/// NumPy's .npy, versions 1 to 3, little-endian, C order. bf16 is written as the two-byte void type "|V2", as the
/// Python package ml_dtypes does. Throws ToolError.
HostTensor readNpy(const std::string &path);
void writeNpy(const std::string &path, const HostTensor &tensor);

/// A .npy file, or a .pb file that holds one ONNX TensorProto, by extension. Throws ToolError.
HostTensor readTensor(const std::string &path);

} // namespace fusert
