#include "HostTensor.h"
#include "ToolError.h"
#include "common/NpyWriter.h"

#include <cstring>
#include <fstream>

namespace fusert {

namespace {

using fusec::Diag;
using fusec::DType;

struct NpyType {
  const char *descr;
  DType type;
};
constexpr NpyType types[] = {
    {"|b1", DType::Bool}, {"|i1", DType::I8},   {"<i2", DType::I16},  {"<i4", DType::I32},
    {"<i8", DType::I64},  {"|u1", DType::U8},   {"<u2", DType::U16},  {"<u4", DType::U32},
    {"<u8", DType::U64},  {"<f2", DType::F16},  {"|V2", DType::BF16}, {"<f4", DType::F32},
    {"<f8", DType::F64},  {"<V2", DType::BF16},
};

[[noreturn]] void bad(const std::string &path, const std::string &text) {
  throw ToolError(Diag::BadTensor, path, text);
}

/// Text between `key` and the end of its value in the header's Python dictionary.
std::string valueOf(const std::string &header, const std::string &key, const std::string &path) {
  size_t at = header.find("'" + key + "'");
  if (at == std::string::npos || (at = header.find(':', at)) == std::string::npos)
    bad(path, "the .npy header has no '" + key + "'");
  at = header.find_first_not_of(' ', at + 1);
  if (at == std::string::npos)
    bad(path, "the .npy header is cut off");
  const char close = header[at] == '(' ? ')' : header[at] == '\'' ? '\'' : ',';
  const size_t end = header.find(close, at + 1);
  if (end == std::string::npos)
    bad(path, "the .npy header is cut off");
  return header.substr(at, end - at + (close == ',' ? 0 : 1));
}

std::vector<int64_t> parseShape(const std::string &text, const std::string &path) {
  std::vector<int64_t> dims;
  size_t at = 1;
  while (at < text.size()) {
    const size_t digit = text.find_first_of("0123456789", at);
    if (digit == std::string::npos)
      break;
    size_t used = 0;
    try {
      dims.push_back(std::stoll(text.substr(digit), &used));
    } catch (const std::exception &) {
      bad(path, "the .npy shape is out of range");
    }
    at = digit + used;
  }
  return dims;
}

} // namespace

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

HostTensor readNpy(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw ToolError(Diag::UnreadableFile, path, std::strerror(errno));
  unsigned char magic[8];
  if (!in.read(reinterpret_cast<char *>(magic), 8) || std::memcmp(magic, "\x93NUMPY", 6) != 0)
    bad(path, "is not a .npy file");
  unsigned char length[4] = {};
  in.read(reinterpret_cast<char *>(length), magic[6] == 1 ? 2 : 4);
  const size_t headerBytes = length[0] | length[1] << 8 | length[2] << 16 | size_t(length[3]) << 24;
  if (!in || headerBytes > (1 << 20))
    bad(path, "the .npy header is cut off or too long");
  std::string header(headerBytes, ' ');
  if (!in.read(header.data(), static_cast<std::streamsize>(headerBytes)))
    bad(path, "the .npy header is cut off");

  HostTensor t;
  std::string descr = valueOf(header, "descr", path);
  descr = descr.size() > 2 ? descr.substr(1, descr.size() - 2) : "";
  bool known = false;
  for (const NpyType &k : types)
    if (descr == k.descr) {
      t.type = k.type;
      known = true;
    }
  if (!known)
    throw ToolError(Diag::UnsupportedType, path, "element type '" + descr + "' is not supported");
  t.dims = parseShape(valueOf(header, "shape", path), path);
  const bool fortran = valueOf(header, "fortran_order", path).rfind("True", 0) == 0;
  if (fortran && t.dims.size() > 1)
    throw ToolError(Diag::UnsupportedType, path,
                    "is in Fortran order; save it with numpy.ascontiguousarray");

  const std::streamoff start = in.tellg();
  in.seekg(0, std::ios::end);
  const int64_t present = in.tellg() - start;
  int64_t want = fusec::sizeInBytes(t.type);
  for (int64_t d : t.dims)
    if (__builtin_mul_overflow(want, d, &want))
      bad(path, "the .npy shape is out of range");
  if (want != present)
    bad(path, "the shape needs " + std::to_string(want) + " bytes, the file has " +
                  std::to_string(present));
  in.seekg(start);
  t.bytes.resize(static_cast<size_t>(want));
  if (want > 0 && !in.read(reinterpret_cast<char *>(t.bytes.data()), want))
    throw ToolError(Diag::UnreadableFile, path, std::strerror(errno));
  return t;
}

void writeNpy(const std::string &path, const HostTensor &t) {
  fusec::Status written = fusec::tools::writeNpy(path, t.type, t.dims, t.bytes.data(),
                                                 static_cast<int64_t>(t.bytes.size()));
  if (!written)
    throw ToolError(written.errors().front());
}

} // namespace fusert
