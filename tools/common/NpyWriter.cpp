#include "common/NpyWriter.h"

#include "Support/Diag.h"

#include <cerrno>
#include <cstring>
#include <fstream>

namespace fusec::tools {

static std::string_view numpyType(DType t) {
  constexpr std::string_view table[kNumDTypes] = {"|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2",
                                                  "<u4", "<u8", "<f2", "|V2", "<f4", "<f8"};
  return table[static_cast<int>(t)];
}

Status writeNpy(const std::string &path, DType type, const std::vector<int64_t> &dims,
                const void *bytes, int64_t sizeBytes) {
  std::string header =
      "{'descr': '" + std::string(numpyType(type)) + "', 'fortran_order': False, 'shape': (";
  for (int64_t d : dims)
    header += std::to_string(d) + ",";
  header += "), }";
  constexpr size_t preamble = 10;                           // magic, version, length of the header
  header.append(63 - (preamble + header.size()) % 64, ' '); // the data starts at a multiple of 64
  header += '\n';
  const char length[2] = {static_cast<char>(header.size() & 255),
                          static_cast<char>(header.size() >> 8)};
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write("\x93NUMPY\x01\x00", 8).write(length, 2);
  out.write(header.data(), static_cast<std::streamsize>(header.size()));
  out.write(static_cast<const char *>(bytes), sizeBytes);
  out.close();
  if (!out)
    return Diagnostic{Diag::CannotWrite, path, std::strerror(errno)};
  return success();
}

} // namespace fusec::tools
