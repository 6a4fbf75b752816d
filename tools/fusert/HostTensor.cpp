#include "HostTensor.h"

#include "Onnx/Import.h"
#include "Support/Diag.h"
#include "Support/Half.h"
#include "ToolError.h"
#include "common/NpyWriter.h"

#include <cstring>

namespace fusert {

namespace {

template <typename T> T load(const HostTensor &t, int64_t i) {
  T v;
  std::memcpy(&v, t.bytes.data() + static_cast<size_t>(i) * sizeof(T), sizeof v);
  return v;
}

} // namespace

double HostTensor::at(int64_t i) const {
  using fusec::DType;
  switch (type) {
  case DType::Bool:
  case DType::U8: return load<uint8_t>(*this, i);
  case DType::I8: return load<int8_t>(*this, i);
  case DType::I16: return load<int16_t>(*this, i);
  case DType::I32: return load<int32_t>(*this, i);
  case DType::I64: return static_cast<double>(load<int64_t>(*this, i));
  case DType::U16: return load<uint16_t>(*this, i);
  case DType::U32: return load<uint32_t>(*this, i);
  case DType::U64: return static_cast<double>(load<uint64_t>(*this, i));
  case DType::F16: return fusec::halfToDouble(load<uint16_t>(*this, i));
  case DType::BF16: return fusec::bfloatToDouble(load<uint16_t>(*this, i));
  case DType::F32: return load<float>(*this, i);
  case DType::F64: return load<double>(*this, i);
  }
  return 0;
}

int64_t HostTensor::numElements() const {
  int64_t n = 1;
  for (int64_t d : dims)
    n *= d;
  return n;
}

std::string HostTensor::describe() const {
  std::string out = std::string(fusec::name(type)) + " [";
  for (size_t i = 0; i < dims.size(); ++i)
    out += (i ? ", " : "") + std::to_string(dims[i]);
  return out + "]";
}

void writeNpy(const std::string &path, const HostTensor &t) {
  fusec::Status written = fusec::tools::writeNpy(path, t.type, t.dims, t.bytes.data(),
                                                 static_cast<int64_t>(t.bytes.size()));
  if (!written)
    throw ToolError(written.errors().front());
}

HostTensor readTensor(const std::string &path, fusec::DType wanted) {
  if (!path.ends_with(".npy") && !path.ends_with(".pb"))
    throw ToolError(fusec::Diag::BadOption, path,
                    "give a .npy file or a .pb file with one TensorProto");
  fusec::Result<fusec::ConstantRef> read = fusec::readTensorFile(path, wanted);
  if (!read)
    throw ToolError(read.errors().front());
  const fusec::Constant &c = **read;
  return {c.type, c.dims, std::vector<uint8_t>(c.bytes, c.bytes + c.sizeBytes)};
}

} // namespace fusert
