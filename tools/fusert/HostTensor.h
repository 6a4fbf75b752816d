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

/// A file of NumPy's (common/NpyWriter.h). Throws ToolError.
void writeNpy(const std::string &path, const HostTensor &tensor);

/// A .npy file, or a .pb file that holds one ONNX TensorProto, by extension, as readTensorFile()
/// reads it. Throws ToolError.
HostTensor readTensor(const std::string &path, fusec::DType wanted);

} // namespace fusert
