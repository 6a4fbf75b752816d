#include "Graph/Constant.h"
#include "Support/Half.h"

#include <cassert>
#include <cstring>

namespace fusec {

int64_t Constant::numElements() const {
  int64_t n = 1;
  for (int64_t d : dims)
    n *= d;
  return n;
}

int64_t Constant::intAt(int64_t i) const {
  assert(i >= 0 && i < numElements());
  switch (type) {
  case DType::Bool: return as<uint8_t>()[i] != 0;
  case DType::I8: return as<int8_t>()[i];
  case DType::I16: return as<int16_t>()[i];
  case DType::I32: return as<int32_t>()[i];
  case DType::I64: return as<int64_t>()[i];
  case DType::U8: return as<uint8_t>()[i];
  case DType::U16: return as<uint16_t>()[i];
  case DType::U32: return as<uint32_t>()[i];
  case DType::U64: return static_cast<int64_t>(as<uint64_t>()[i]);
  default: return static_cast<int64_t>(floatAt(i));
  }
}

double Constant::floatAt(int64_t i) const {
  assert(i >= 0 && i < numElements());
  switch (type) {
  case DType::F16: return halfToDouble(as<uint16_t>()[i]);
  case DType::BF16: return bfloatToDouble(as<uint16_t>()[i]);
  case DType::F32: return as<float>()[i];
  case DType::F64: return as<double>()[i];
  case DType::U64: return static_cast<double>(as<uint64_t>()[i]);
  default: return static_cast<double>(intAt(i));
  }
}

static Hash128 digestOf(DType type, const std::vector<int64_t> &dims, const uint8_t *bytes,
                        int64_t sizeBytes) {
  std::string head(name(type));
  for (int64_t d : dims)
    head += "x" + std::to_string(d);
  Hash128 h = hash128(head);
  Hash128 body = hash128(bytes, static_cast<size_t>(sizeBytes), h.low);
  return Hash128{body.high ^ h.high, body.low};
}

ConstantRef makeConstantView(DType type, std::vector<int64_t> dims, const uint8_t *bytes,
                             int64_t sizeBytes, std::shared_ptr<const void> owner) {
  auto c = std::make_shared<Constant>();
  c->type = type;
  c->dims = std::move(dims);
  c->bytes = bytes;
  c->sizeBytes = sizeBytes;
  c->owner = std::move(owner);
  assert(sizeBytes == c->numElements() * sizeInBytes(type));
  c->digest = digestOf(type, c->dims, bytes, sizeBytes);
  return c;
}

ConstantRef makeConstant(DType type, std::vector<int64_t> dims, std::vector<uint8_t> data) {
  auto block = std::make_shared<const std::vector<uint8_t>>(std::move(data));
  return makeConstantView(type, std::move(dims), block->data(), static_cast<int64_t>(block->size()),
                          block);
}

ConstantRef makeIntConstant(std::vector<int64_t> dims, const std::vector<int64_t> &values) {
  std::vector<uint8_t> data(values.size() * sizeof(int64_t));
  if (!values.empty())
    std::memcpy(data.data(), values.data(), data.size());
  return makeConstant(DType::I64, std::move(dims), std::move(data));
}

template <typename T> static void append(std::vector<uint8_t> &out, T v) {
  const auto *p = reinterpret_cast<const uint8_t *>(&v);
  out.insert(out.end(), p, p + sizeof(T));
}

void appendElement(std::vector<uint8_t> &out, DType type, int64_t v) {
  switch (type) {
  case DType::Bool: return append<uint8_t>(out, v != 0);
  case DType::I8:
  case DType::U8: return append(out, static_cast<uint8_t>(v));
  case DType::I16:
  case DType::U16: return append(out, static_cast<uint16_t>(v));
  case DType::I32:
  case DType::U32: return append(out, static_cast<uint32_t>(v));
  case DType::I64:
  case DType::U64: return append(out, v);
  default: return appendElement(out, type, static_cast<double>(v));
  }
}

void appendElement(std::vector<uint8_t> &out, DType type, double v) {
  switch (type) {
  case DType::F16: return append(out, halfFromDouble(v));
  case DType::BF16: return append(out, bfloatFromDouble(v));
  case DType::F32: return append(out, static_cast<float>(v));
  case DType::F64: return append(out, v);
  case DType::U64: return append(out, static_cast<uint64_t>(v));
  default: return appendElement(out, type, static_cast<int64_t>(v));
  }
}

ConstantRef makeScalarConstant(DType type, double value) {
  std::vector<uint8_t> data;
  appendElement(data, type, value);
  return makeConstant(type, {}, std::move(data));
}

} // namespace fusec
