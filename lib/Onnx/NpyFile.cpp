#include "Onnx/FileReader.h"
#include "Onnx/Tensors.h"
#include "Support/Diag.h"

// NumPy's .npy files, versions 1 to 3 (numpy.lib.format): a magic number, the length of a header, the header as the
// text of a Python dictionary, and the elements.

namespace fusec {

namespace {

struct NpyType {
  std::string_view descr;
  DType type;
};
// NumPy has no bfloat16: the Python package ml_dtypes saves it as two bytes without a meaning, others as u2.
constexpr NpyType kTypes[] = {
    {"|b1", DType::Bool}, {"|i1", DType::I8},   {"<i2", DType::I16},  {"<i4", DType::I32},
    {"<i8", DType::I64},  {"|u1", DType::U8},   {"<u2", DType::U16},  {"<u4", DType::U32},
    {"<u8", DType::U64},  {"<f2", DType::F16},  {"|V2", DType::BF16}, {"<f4", DType::F32},
    {"<f8", DType::F64},  {"<V2", DType::BF16},
};

class NpyReader {
public:
  NpyReader(Bytes bytes, const std::string &path, const Limits &limits)
      : bytes(std::move(bytes)), path(path), limits(limits) {}

  Result<ConstantRef> run() {
    FUSEC_CHECK(readHeader());
    FUSEC_TRY(std::string_view quoted, valueOf("descr"));
    const std::string_view descr = quoted.size() > 2 ? quoted.substr(1, quoted.size() - 2) : "";
    const NpyType *found = nullptr;
    for (const NpyType &t : kTypes)
      if (t.descr == descr)
        found = &t;
    if (!found)
      return Diagnostic{Diag::UnsupportedType, path,
                        "element type '" + std::string(descr) + "' is not supported"};
    FUSEC_TRY(std::vector<int64_t> dims, shape());
    FUSEC_TRY(std::string_view fortran, valueOf("fortran_order"));
    if (fortran.substr(0, 4) == "True" && dims.size() > 1)
      return Diagnostic{Diag::UnsupportedType, path,
                        "is in Fortran order; save it with numpy.ascontiguousarray"};
    int64_t want = sizeInBytes(found->type);
    for (int64_t d : dims)
      if (__builtin_mul_overflow(want, d, &want))
        return bad("the .npy shape is out of range");
    const int64_t present = static_cast<int64_t>(bytes->size() - dataBegin);
    if (want != present)
      return bad("the shape needs " + std::to_string(want) + " bytes, the file has " +
                 std::to_string(present));
    constexpr size_t kAligned = 8; // what NumPy wrote is; anybody else's is moved there
    const uint8_t *data = bytes->data() + dataBegin;
    if (dataBegin % kAligned != 0)
      return makeConstant(found->type, std::move(dims), {data, data + want});
    return makeConstantView(found->type, std::move(dims), data, want, bytes);
  }

private:
  Diagnostic bad(std::string text) const { return {Diag::BadTensor, path, std::move(text)}; }

  Status readHeader() {
    const std::string_view all(reinterpret_cast<const char *>(bytes->data()), bytes->size());
    constexpr size_t kMagic = 6, kVersion = 2;
    if (all.size() < kMagic + kVersion || all.substr(0, kMagic) != "\x93NUMPY")
      return bad("is not a .npy file");
    const size_t lengthBytes = all[kMagic] == 1 ? 2 : 4, begin = kMagic + kVersion + lengthBytes;
    if (all.size() < begin)
      return bad("the .npy header is cut off");
    size_t length = 0;
    for (size_t i = 0; i < lengthBytes; ++i)
      length |= size_t((*bytes)[kMagic + kVersion + i]) << (8 * i);
    if (length > all.size() - begin)
      return bad("the .npy header is cut off");
    header = all.substr(begin, length);
    dataBegin = begin + length;
    return success();
  }

  /// Text between `key` and the end of its value.
  Result<std::string_view> valueOf(const std::string &key) const {
    size_t at = header.find("'" + key + "'");
    if (at == std::string_view::npos || (at = header.find(':', at)) == std::string_view::npos)
      return bad("the .npy header has no '" + key + "'");
    at = header.find_first_not_of(' ', at + 1);
    if (at == std::string_view::npos)
      return bad("the .npy header is cut off");
    const char close = header[at] == '(' ? ')' : header[at] == '\'' ? '\'' : ',';
    const size_t end = header.find(close, at + 1);
    if (end == std::string_view::npos)
      return bad("the .npy header is cut off");
    return header.substr(at, end - at + (close == ',' ? 0 : 1));
  }

  Result<std::vector<int64_t>> shape() const {
    FUSEC_TRY(std::string_view text, valueOf("shape"));
    constexpr std::string_view kDigits = "0123456789";
    std::vector<int64_t> dims;
    for (size_t at = text.find_first_of(kDigits); at != std::string_view::npos;
         at = text.find_first_of(kDigits, at)) {
      int64_t size = 0;
      for (; at < text.size() && kDigits.find(text[at]) != std::string_view::npos; ++at)
        if (__builtin_mul_overflow(size, 10, &size) ||
            __builtin_add_overflow(size, text[at] - '0', &size))
          return bad("the .npy shape is out of range");
      dims.push_back(size);
      if (static_cast<int64_t>(dims.size()) > limits.rank)
        return Diagnostic{Diag::LimitExceeded, path,
                          "more than " + std::to_string(limits.rank) + " dimensions"};
    }
    return dims;
  }

  const Bytes bytes;
  const std::string &path;
  const Limits &limits;
  std::string_view header;
  size_t dataBegin = 0;
};

} // namespace

Result<ConstantRef> readNpyFile(const std::string &path, const Limits &limits) {
  FUSEC_TRY(Bytes bytes, readWholeFile(path, limits.tensorBytes, "tensor file"));
  return NpyReader(std::move(bytes), path, limits).run();
}

} // namespace fusec
