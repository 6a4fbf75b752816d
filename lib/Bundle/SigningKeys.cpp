#include "Bundle/Signature.h"
#include "Support/Diag.h"

#include <sodium.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace fusec::bundle {

namespace {

Diagnostic unusable(const std::string &path) {
  return Diagnostic{
      Diag::BadOption, path,
      "expected an Ed25519 secret key: 64 bytes or 128 hexadecimal digits, the seed and "
      "the public key that belongs to it (fusec --make-key FILE makes one)"};
}

/// A new file with `text`, which is on disk when this returns.
Status writeNew(const std::string &path, const std::string &text, mode_t mode) {
  const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode);
  if (fd < 0)
    return Diagnostic{Diag::CannotWrite, path, std::strerror(errno)};
  const bool good =
      write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(fd) == 0;
  const int error = errno;
  if (close(fd) == 0 && good)
    return success();
  unlink(path.c_str());
  return Diagnostic{Diag::CannotWrite, path, std::strerror(error)};
}

} // namespace

fusec_bundle_signature sign(const fusec_bundle_header &header, const SecretKey &key) {
  fusec_bundle_signature s{};
  [[maybe_unused]] const int ready = sodium_init();
  assert(ready >= 0);
  std::memcpy(s.public_key, key.data() + 32, sizeof s.public_key);
  crypto_sign_detached(s.signature, nullptr, reinterpret_cast<const unsigned char *>(&header),
                       sizeof header, key.data());
  return s;
}

Result<SecretKey> readSecretKey(const std::string &path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return Diagnostic{Diag::UnreadableFile, path, std::strerror(errno)};
  char text[256];
  const ssize_t size = read(fd, text, sizeof text);
  const int error = errno;
  close(fd);
  if (size < 0)
    return Diagnostic{Diag::UnreadableFile, path, std::strerror(error)};
  SecretKey key;
  size_t bytes = 0;
  if (size == static_cast<ssize_t>(key.size())) {
    std::memcpy(key.data(), text, key.size());
  } else if (sodium_hex2bin(key.data(), key.size(), text, static_cast<size_t>(size), " \t\r\n",
                            &bytes, nullptr) != 0 ||
             bytes != key.size()) {
    return unusable(path);
  }
  unsigned char publicKey[32], again[64];
  if (sodium_init() < 0 || crypto_sign_seed_keypair(publicKey, again, key.data()) != 0 ||
      std::memcmp(again, key.data(), key.size()) != 0)
    return unusable(path);
  return key;
}

Status makeKey(const std::string &path) {
  PublicKey publicKey;
  SecretKey secretKey;
  if (sodium_init() < 0 || crypto_sign_keypair(publicKey.data(), secretKey.data()) != 0)
    return Diagnostic{Diag::InternalError, path, "there are no random numbers for a key"};
  FUSEC_CHECK(writeNew(path, hex(secretKey.data(), secretKey.size()) + "\n", 0600));
  if (Status status = writeNew(path + ".pub", hex(publicKey.data(), publicKey.size()) + "\n", 0644);
      !status.ok()) {
    unlink(path.c_str());
    return status;
  }
  return success();
}

} // namespace fusec::bundle
