#pragma once
#include "Support/Result.h"
#include "fusec/bundle_format.h"

#include <array>
#include <cstdint>
#include <string>

namespace fusec::bundle {

using PublicKey = std::array<uint8_t, 32>;
/// Ed25519 as libsodium keeps it: 32 bytes of seed, then the public key.
using SecretKey = std::array<uint8_t, 64>;

/// Signature.cpp, what the runtime needs.
bool signatureFits(const fusec_bundle_header &header, const fusec_bundle_signature &signature,
                   const PublicKey &key);
std::string hex(const uint8_t *bytes, size_t size);

/// SigningKeys.cpp, what the compiler needs. A key file holds the key's bytes, or as many hexadecimal digits and
/// white space after them.
fusec_bundle_signature sign(const fusec_bundle_header &header, const SecretKey &key);
Result<SecretKey> readSecretKey(const std::string &path);
/// Makes a key: the secret one in `path` (readable by its owner alone), the public one in `path`.pub. Neither may
/// exist.
Status makeKey(const std::string &path);

} // namespace fusec::bundle
