#include "NpyWriter.h"

#include <fstream>

namespace fusec::opt {

static std::string_view numpyType(DType t) {
  constexpr std::string_view table[kNumDTypes] = {"|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2",
                                                  "<u4", "<u8", "<f2", "|V2", "<f4", "<f8"};
  return table[static_cast<int>(t)];
}

Status writeNpy(const std::string &path, const Constant &c) {
  std::string header =
      "{'descr': '" + std::string(numpyType(c.type)) + "', 'fortran_order': False, 'shape': (";
  for (int64_t d : c.dims)
    header += std::to_string(d) + ",";
  header += "), }";
  constexpr size_t preamble = 10; // magic, version, header length
  header.append(63 - (preamble + header.size()) % 64, ' ');
  header += '\n';
  std::ofstream out(path, std::ios::binary);
  out << "\x93NUMPY\x01" << '\0' << static_cast<char>(header.size() & 255)
      << static_cast<char>(header.size() >> 8) << header;
  out.write(reinterpret_cast<const char *>(c.bytes), c.sizeBytes);
  out.close();
  if (!out)
    return Diagnostic{Diag::CannotWrite, path, "cannot be written"};
  return success();
}

std::string fileNameFor(const std::string &tensor) {
  std::string out = tensor;
  for (char &c : out) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '.' || c == '_' || c == '-';
    if (!plain)
      c = '_';
  }
  return out;
}

} // namespace fusec::opt
