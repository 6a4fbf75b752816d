#pragma once
#include "Onnx/FileReader.h"
#include "Onnx/Import.h"

namespace onnx {
class TensorProto;
class SparseTensorProto;
} // namespace onnx

namespace fusec {

/// The element type with this ONNX number, or nullopt: fusec has no such type.
std::optional<DType> dtypeOfOnnx(int32_t dataType);
/// "float8e4m3fn" and the like, for messages about types that fusec lacks.
std::string onnxTypeName(int32_t dataType);

/// Checks a tensor of any wire form (raw, typed fields, external) and takes its data over; `tensor` is
/// left without data. `where` names the tensor in messages.
Result<ConstantRef> readTensor(onnx::TensorProto &tensor, ExternalFiles *files,
                               const Limits &limits, const std::string &where);
/// The dense form of a sparse tensor.
Result<ConstantRef> readSparseTensor(onnx::SparseTensorProto &tensor, ExternalFiles *files,
                                     const Limits &limits, const std::string &where);
/// Reads a file of NumPy's: little-endian, row-major.
Result<ConstantRef> readNpyFile(const std::string &path, const Limits &limits);

} // namespace fusec
