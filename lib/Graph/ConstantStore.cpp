#include "Graph/Constant.h"
#include "Support/Diag.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fusec {

static std::string headerLine(const Constant &c) {
  std::string line(name(c.type));
  line += ' ';
  for (size_t i = 0; i < c.dims.size(); ++i)
    line += (i ? "x" : "") + std::to_string(c.dims[i]);
  return line + "\n";
}

Status ConstantStore::put(const ConstantRef &c) {
  if (directory.empty()) {
    inMemory.emplace(c->digest, c);
    return success();
  }
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  std::string path = directory + "/" + c->digest.hex() + ".bin";
  if (std::filesystem::exists(path, error))
    return success();
  std::ofstream out(path, std::ios::binary);
  std::string head = headerLine(*c);
  out.write(head.data(), static_cast<std::streamsize>(head.size()));
  out.write(reinterpret_cast<const char *>(c->bytes), c->sizeBytes);
  out.close();
  if (!out) {
    std::filesystem::remove(path, error); // half of it would pass for the whole next time
    failed.push_back({Diag::CannotWrite, path, "cannot write a constant; is the disk full?"});
    return failed.back();
  }
  return success();
}

Result<ConstantRef> ConstantStore::get(Hash128 digest) const {
  if (directory.empty()) {
    auto it = inMemory.find(digest);
    if (it == inMemory.end())
      return Diagnostic{Diag::BadIr, digest.hex(), "no constant with this digest"};
    return it->second;
  }
  std::string path = directory + "/" + digest.hex() + ".bin";
  auto bad = [&](std::string text) {
    return Diagnostic{Diag::UnreadableFile, path, std::move(text)};
  };
  std::ifstream in(path, std::ios::binary);
  std::string head;
  if (!in || !std::getline(in, head))
    return bad("cannot read a constant that a dump names");
  std::istringstream words(head);
  std::string typeName, dimText;
  words >> typeName >> dimText;
  auto type = parseDType(typeName);
  if (!type)
    return bad("the first line must be an element type and dims, such as 'f32 2x3'");
  std::vector<int64_t> dims;
  int64_t count = 1;
  for (size_t pos = 0; pos < dimText.size();) {
    size_t end = dimText.find('x', pos);
    std::string part = dimText.substr(pos, end == std::string::npos ? end : end - pos);
    if (part.empty() || part.size() > 18 ||
        part.find_first_not_of("0123456789") != std::string::npos)
      return bad("the first line must be an element type and dims, such as 'f32 2x3'");
    dims.push_back(std::stoll(part));
    if (__builtin_mul_overflow(count, dims.back(), &count))
      return bad("the dims of the constant overflow");
    pos = end == std::string::npos ? dimText.size() : end + 1;
  }
  int64_t sizeBytes;
  std::error_code error;
  auto fileSize = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (error || __builtin_mul_overflow(count, sizeInBytes(*type), &sizeBytes) ||
      fileSize != sizeBytes + static_cast<int64_t>(head.size()) + 1)
    return bad("the file's length is not that of its type and dims");
  std::vector<uint8_t> data(static_cast<size_t>(sizeBytes));
  in.read(reinterpret_cast<char *>(data.data()), sizeBytes);
  if (!in && sizeBytes)
    return bad("the constant is cut short");
  ConstantRef c = makeConstant(*type, std::move(dims), std::move(data));
  if (c->digest != digest)
    return bad("the constant's bytes do not match the digest in its name");
  return c;
}

} // namespace fusec
