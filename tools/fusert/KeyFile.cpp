#include "KeyFile.h"

#include "Support/Diag.h"
#include "ToolError.h"

#include <cerrno>
#include <cstring>
#include <fstream>

namespace fusert {

namespace {

int digitOf(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

} // namespace

PublicKey readPublicKey(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw ToolError(fusec::Diag::UnreadableFile, path, std::strerror(errno));
  std::string text;
  for (char c; text.size() < 256 && in.get(c);)
    text += c;
  PublicKey key;
  if (text.size() == key.size()) {
    std::memcpy(key.data(), text.data(), key.size());
    return key;
  }
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  bool good = text.size() == 2 * key.size();
  for (size_t i = 0; good && i < key.size(); ++i) {
    const int high = digitOf(text[2 * i]), low = digitOf(text[2 * i + 1]);
    good = high >= 0 && low >= 0;
    key[i] = static_cast<uint8_t>(high * 16 + low);
  }
  if (!good)
    throw ToolError(fusec::Diag::BadOption, "--public-key " + path,
                    "expected an Ed25519 public key: 32 bytes or 64 hexadecimal digits");
  return key;
}

} // namespace fusert
