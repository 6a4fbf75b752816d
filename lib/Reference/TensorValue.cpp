#include "Reference/TensorValue.h"

#include "Support/Half.h"

#include <cstring>

namespace fusec {

int64_t checkedProduct(const std::vector<int64_t> &dims) {
  int64_t n = 1;
  bool empty = false;
  for (int64_t d : dims) {
    if (d < 0)
      return -1;
    empty = empty || d == 0;
  }
  if (empty)
    return 0;
  for (int64_t d : dims) {
    if (d > kMaxElements / n)
      return -1;
    n *= d;
  }
  return n;
}

TensorValue::TensorValue(DType type, std::vector<int64_t> dims)
    : type(type), dims(std::move(dims)) {
  int64_t n = checkedProduct(this->dims);
  assert(n >= 0 && "the interpreter checks sizes before it makes tensors");
  if (isFloat(type))
    floats.resize(static_cast<size_t>(n));
  else
    ints.resize(static_cast<size_t>(n));
}

int64_t TensorValue::numElements() const {
  return static_cast<int64_t>(isFloating() ? floats.size() : ints.size());
}

double numberOf(DType t, int64_t bits) {
  return t == DType::U64 ? static_cast<double>(static_cast<uint64_t>(bits))
                         : static_cast<double>(bits);
}

double TensorValue::number(int64_t i) const {
  return isFloating() ? floats[static_cast<size_t>(i)]
                      : numberOf(type, ints[static_cast<size_t>(i)]);
}

void TensorValue::setNumber(int64_t i, double v) {
  if (isFloating())
    floats[static_cast<size_t>(i)] = v;
  else
    ints[static_cast<size_t>(i)] =
        type == DType::Bool ? v != 0 : wrapToDType(type, truncateToInt(type, v));
}

void TensorValue::round() {
  if (isFloating() && type != DType::F64)
    for (double &v : floats)
      v = roundToDType(type, v);
}

double roundToDType(DType t, double v) {
  switch (t) {
  case DType::F16: return halfToDouble(halfFromDouble(v));
  case DType::BF16: return bfloatToDouble(bfloatFromDouble(v));
  case DType::F32: return static_cast<float>(v);
  default: return v;
  }
}

int64_t wrapToDType(DType t, int64_t v) {
  switch (t) {
  case DType::Bool: return v != 0;
  case DType::I8: return static_cast<int8_t>(v);
  case DType::I16: return static_cast<int16_t>(v);
  case DType::I32: return static_cast<int32_t>(v);
  case DType::U8: return static_cast<uint8_t>(v);
  case DType::U16: return static_cast<uint16_t>(v);
  case DType::U32: return static_cast<uint32_t>(v);
  default: return v;
  }
}

int64_t truncateToInt(DType to, double v) {
  constexpr double limit = 9223372036854775808.0; // 2^63
  if (to == DType::U64 && v >= limit && v < 2 * limit)
    return static_cast<int64_t>(static_cast<uint64_t>(v));
  return v >= -limit && v < limit ? static_cast<int64_t>(v) : INT64_MIN;
}

TensorValue toTensorValue(const Constant &c) {
  TensorValue t(c.type, c.dims);
  int64_t n = c.numElements();
  if (c.type == DType::F32) {
    std::vector<float> values(static_cast<size_t>(n));
    if (n)
      std::memcpy(values.data(), c.bytes, static_cast<size_t>(c.sizeBytes));
    t.floats.assign(values.begin(), values.end());
    return t;
  }
  for (int64_t i = 0; i < n; ++i) {
    if (t.isFloating())
      t.floats[static_cast<size_t>(i)] = c.floatAt(i);
    else
      t.ints[static_cast<size_t>(i)] = c.intAt(i);
  }
  return t;
}

ConstantRef toConstant(const TensorValue &t) {
  auto n = static_cast<size_t>(t.numElements());
  auto width = static_cast<size_t>(sizeInBytes(t.type));
  std::vector<uint8_t> bytes(n * width);
  auto put = [&](size_t i, auto v) { std::memcpy(bytes.data() + i * width, &v, width); };
  for (size_t i = 0; i < n; ++i) {
    switch (t.type) {
    case DType::F16: put(i, halfFromDouble(t.floats[i])); break;
    case DType::BF16: put(i, bfloatFromDouble(t.floats[i])); break;
    case DType::F32: put(i, static_cast<float>(t.floats[i])); break;
    case DType::F64: put(i, t.floats[i]); break;
    default: put(i, t.ints[i]); break; // little-endian: the low bytes come first
    }
  }
  return makeConstant(t.type, t.dims, std::move(bytes));
}

} // namespace fusec
