#include "Onnx/Tensors.h"
#include "Onnx/WireScan.h"
#include "Support/Diag.h"

#include "onnx-ml.pb.h"

#include <cstring>

namespace fusec {

std::optional<DType> dtypeOfOnnx(int32_t dataType) {
  switch (dataType) {
  case onnx::TensorProto::FLOAT: return DType::F32;
  case onnx::TensorProto::UINT8: return DType::U8;
  case onnx::TensorProto::INT8: return DType::I8;
  case onnx::TensorProto::UINT16: return DType::U16;
  case onnx::TensorProto::INT16: return DType::I16;
  case onnx::TensorProto::INT32: return DType::I32;
  case onnx::TensorProto::INT64: return DType::I64;
  case onnx::TensorProto::BOOL: return DType::Bool;
  case onnx::TensorProto::FLOAT16: return DType::F16;
  case onnx::TensorProto::DOUBLE: return DType::F64;
  case onnx::TensorProto::UINT32: return DType::U32;
  case onnx::TensorProto::UINT64: return DType::U64;
  case onnx::TensorProto::BFLOAT16: return DType::BF16;
  default: return std::nullopt;
  }
}

std::string onnxTypeName(int32_t dataType) {
  std::string text =
      onnx::TensorProto_DataType_IsValid(dataType)
          ? onnx::TensorProto_DataType_Name(static_cast<onnx::TensorProto_DataType>(dataType))
          : "number " + std::to_string(dataType);
  for (char &c : text)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

namespace {

/// Decimal digits only: no sign, space or prefix.
std::optional<int64_t> parseCount(const std::string &text) {
  if (text.empty() || text.size() > 19 || text.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  uint64_t v = 0;
  for (char c : text)
    v = v * 10 + static_cast<uint64_t>(c - '0');
  return v > static_cast<uint64_t>(INT64_MAX) ? std::nullopt
                                              : std::optional(static_cast<int64_t>(v));
}

class TensorReader {
public:
  TensorReader(onnx::TensorProto &t, ExternalFiles *files, const Limits &limits,
               const std::string &where)
      : t(t), files(files), limits(limits), where(where) {}

  Result<ConstantRef> run() {
    if (t.data_type() != 0 && onnx::TensorProto_DataType_IsValid(t.data_type()) &&
        !dtypeOfOnnx(t.data_type()))
      return Diagnostic{Diag::UnsupportedType, where,
                        "element type " + onnxTypeName(t.data_type()) + " is not supported"};
    auto found = dtypeOfOnnx(t.data_type());
    if (!found)
      return bad("element type " + std::to_string(t.data_type()) + " does not exist");
    type = *found;
    if (t.has_segment())
      return bad("segmented tensors are not supported");
    FUSEC_CHECK(checkDims());
    int fields = t.has_raw_data() + (t.float_data_size() > 0) + (t.int32_data_size() > 0) +
                 (t.int64_data_size() > 0) + (t.double_data_size() > 0) +
                 (t.uint64_data_size() > 0) + (t.string_data_size() > 0);
    bool external = t.data_location() == onnx::TensorProto::EXTERNAL;
    if (!external && t.external_data_size() > 0)
      return bad("has external_data but its data_location is not EXTERNAL");
    if (fields + external > 1)
      return bad("its data is given in more than one field");
    if (external)
      return readExternal();
    if (t.has_raw_data())
      return readRaw();
    return readTyped();
  }

private:
  Diagnostic bad(std::string text) const { return {Diag::BadTensor, where, std::move(text)}; }

  Status checkDims() {
    if (t.dims_size() > limits.rank)
      return Diagnostic{Diag::LimitExceeded, where,
                        "rank " + std::to_string(t.dims_size()) + "; at most " +
                            std::to_string(limits.rank) + " is supported"};
    count = 1;
    bool empty = false, overflow = false;
    for (int64_t d : t.dims()) {
      if (d < 0)
        return bad("dimension " + std::to_string(d) + " is negative");
      dims.push_back(d);
      empty = empty || d == 0;
      overflow = overflow || __builtin_mul_overflow(count, d, &count);
    }
    if (empty)
      count = 0;
    else if (overflow || __builtin_mul_overflow(count, sizeInBytes(type), &sizeBytes) ||
             sizeBytes > limits.tensorBytes)
      return Diagnostic{Diag::LimitExceeded, where,
                        "its dimensions declare more than " + std::to_string(limits.tensorBytes) +
                            " bytes"};
    sizeBytes = count * sizeInBytes(type);
    return success();
  }

  Status checkSize(int64_t given) const {
    if (given == sizeBytes)
      return success();
    return bad("its type and dimensions need " + std::to_string(sizeBytes) + " bytes, " +
               std::to_string(given) + " are given");
  }

  template <typename Owner> ConstantRef view(std::shared_ptr<Owner> owner, const uint8_t *bytes) {
    return makeConstantView(type, dims, bytes, sizeBytes, std::move(owner));
  }

  Status checkBools(const uint8_t *bytes) const {
    for (int64_t i = 0; type == DType::Bool && i < count; ++i)
      if (bytes[i] > 1)
        return bad("a bool element is " + std::to_string(bytes[i]) + "; 0 or 1 is needed");
    return success();
  }

  Result<ConstantRef> readRaw() {
    FUSEC_CHECK(checkSize(static_cast<int64_t>(t.raw_data().size())));
    std::shared_ptr<std::string> owner(t.release_raw_data());
    const auto *bytes = reinterpret_cast<const uint8_t *>(owner->data());
    FUSEC_CHECK(checkBools(bytes));
    return view(std::move(owner), bytes);
  }

  template <typename Field> Result<ConstantRef> take(Field &field) {
    if (field.size() != count)
      return bad("its dimensions need " + std::to_string(count) + " elements, " +
                 std::to_string(field.size()) + " are given");
    if (static_cast<int64_t>(sizeof(typename Field::value_type)) == sizeInBytes(type)) {
      auto owner = std::make_shared<Field>();
      owner->Swap(&field);
      const auto *bytes = reinterpret_cast<const uint8_t *>(owner->data());
      return view(std::move(owner), bytes);
    }
    std::vector<uint8_t> data;
    data.reserve(static_cast<size_t>(sizeBytes));
    for (auto v : field) {
      if constexpr (std::is_floating_point_v<decltype(v)>) {
        appendElement(data, type, static_cast<double>(v));
      } else if (isFloat(type)) {
        // float16 and bfloat16 travel as the bits of a uint16 in int32_data
        if (v < 0 || v > 65535)
          return bad("element " + std::to_string(v) + " is no 16-bit pattern");
        appendElement(data, DType::U16, static_cast<int64_t>(v));
      } else {
        if (!fits(static_cast<int64_t>(v)))
          return bad("element " + std::to_string(v) + " does not fit into " +
                     std::string(name(type)));
        appendElement(data, type, static_cast<int64_t>(v));
      }
    }
    Field().Swap(&field);
    return makeConstant(type, dims, std::move(data));
  }

  bool fits(int64_t v) const {
    if (type == DType::Bool)
      return v == 0 || v == 1;
    int64_t bits = sizeInBytes(type) * 8;
    if (bits == 64)
      return true;
    if (!isSigned(type))
      return v >= 0 && v < (int64_t(1) << bits);
    return v >= -(int64_t(1) << (bits - 1)) && v < (int64_t(1) << (bits - 1));
  }

  Result<ConstantRef> readTyped() {
    switch (type) {
    case DType::F32: return only(t.mutable_float_data(), "float_data");
    case DType::F64: return only(t.mutable_double_data(), "double_data");
    case DType::I64: return only(t.mutable_int64_data(), "int64_data");
    case DType::U32:
    case DType::U64: return only(t.mutable_uint64_data(), "uint64_data");
    default: return only(t.mutable_int32_data(), "int32_data");
    }
  }

  template <typename Field> Result<ConstantRef> only(Field *field, const char *fieldName) {
    int others = t.float_data_size() + t.int32_data_size() + t.int64_data_size() +
                 t.double_data_size() + t.uint64_data_size() + t.string_data_size() - field->size();
    if (others)
      return bad("data of type " + std::string(name(type)) + " belongs into " + fieldName);
    return take(*field);
  }

  Result<ConstantRef> readExternal() {
    auto badData = [&](std::string text) {
      return Diagnostic{Diag::BadExternalData, where, std::move(text)};
    };
    if (!files)
      return badData("external data is not allowed here");
    std::map<std::string, std::string> entries;
    for (const auto &e : t.external_data()) {
      if (e.key() != "location" && e.key() != "offset" && e.key() != "length" &&
          e.key() != "checksum")
        return badData("unknown key '" + e.key() + "' in external_data");
      if (!entries.emplace(e.key(), e.value()).second)
        return badData("key '" + e.key() + "' is given twice in external_data");
    }
    if (!entries.count("location"))
      return badData("external_data has no location");
    int64_t offset = 0, length = -1;
    for (auto [key, to] : {std::pair{"offset", &offset}, std::pair{"length", &length}}) {
      auto it = entries.find(key);
      if (it == entries.end())
        continue;
      auto v = parseCount(it->second);
      if (!v)
        return badData(std::string(key) + " '" + it->second + "' is not a decimal number of bytes");
      *to = *v;
    }
    FUSEC_TRY(Bytes bytes, files->read(entries["location"], offset, length, sizeBytes, where));
    FUSEC_CHECK(checkBools(bytes->data()));
    const uint8_t *data = bytes->data();
    return view(std::move(bytes), data);
  }

  onnx::TensorProto &t;
  ExternalFiles *files;
  const Limits &limits;
  const std::string &where;
  DType type = DType::F32;
  std::vector<int64_t> dims;
  int64_t count = 1, sizeBytes = 0;
};

} // namespace

Result<ConstantRef> readTensor(onnx::TensorProto &tensor, ExternalFiles *files,
                               const Limits &limits, const std::string &where) {
  return TensorReader(tensor, files, limits, where).run();
}

Result<ConstantRef> readSparseTensor(onnx::SparseTensorProto &tensor, ExternalFiles *files,
                                     const Limits &limits, const std::string &where) {
  auto bad = [&](std::string text) { return Diagnostic{Diag::BadTensor, where, std::move(text)}; };
  FUSEC_TRY(ConstantRef values, readTensor(*tensor.mutable_values(), files, limits, where));
  FUSEC_TRY(ConstantRef indices, readTensor(*tensor.mutable_indices(), files, limits, where));
  int64_t rank = tensor.dims_size(), count = 1, sizeBytes;
  std::vector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  for (int64_t d : dims)
    if (d <= 0 || __builtin_mul_overflow(count, d, &count))
      return bad("the dense dimensions must be positive and not overflow");
  if (__builtin_mul_overflow(count, sizeInBytes(values->type), &sizeBytes) || sizeBytes > 256 << 20)
    return Diagnostic{Diag::LimitExceeded, where, "a sparse tensor larger than 256 MiB when dense"};
  if (values->dims.size() != 1 || indices->type != DType::I64)
    return bad("sparse values must be a vector and indices of type i64");
  int64_t n = values->dims[0];
  bool flat = indices->dims == std::vector<int64_t>{n};
  if (!flat && indices->dims != std::vector<int64_t>{n, rank})
    return bad("sparse indices must have the shape [values] or [values, rank]");
  std::vector<uint8_t> data(static_cast<size_t>(sizeBytes));
  int64_t elementBytes = sizeInBytes(values->type), previous = -1;
  for (int64_t i = 0; i < n; ++i) {
    int64_t position = 0;
    for (int64_t a = 0; a < (flat ? 1 : rank); ++a) {
      int64_t index = indices->intAt(flat ? i : i * rank + a), bound = flat ? count : dims[a];
      if (index < 0 || index >= bound)
        return bad("sparse index " + std::to_string(index) + " is out of range");
      position = flat ? index : position * dims[a] + index;
    }
    if (position <= previous)
      return bad("sparse indices must be sorted and unique");
    previous = position;
    std::memcpy(data.data() + position * elementBytes, values->bytes + i * elementBytes,
                static_cast<size_t>(elementBytes));
  }
  return makeConstant(values->type, std::move(dims), std::move(data));
}

Result<ConstantRef> readTensorFile(const std::string &path, std::optional<DType> wanted,
                                   const Limits &limits) {
  if (std::string_view(path).ends_with(".npy")) {
    FUSEC_TRY(ConstantRef c, readNpyFile(path, limits));
    if (wanted != DType::BF16 || c->type != DType::U16)
      return c;
    return makeConstantView(*wanted, c->dims, c->bytes, c->sizeBytes, c);
  }
  FUSEC_TRY(Bytes bytes, readWholeFile(path, limits.modelBytes, "tensor file"));
  std::string_view view(reinterpret_cast<const char *>(bytes->data()), bytes->size());
  FUSEC_CHECK(scanWire(view, onnx::TensorProto::descriptor(), path, limits));
  onnx::TensorProto tensor;
  if (!tensor.ParseFromArray(view.data(), static_cast<int>(view.size())))
    return Diagnostic{Diag::MalformedModel, path, "the bytes are not an ONNX tensor"};
  return readTensor(tensor, nullptr, limits, path);
}

} // namespace fusec
