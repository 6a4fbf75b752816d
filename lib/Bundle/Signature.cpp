#include "Bundle/Signature.h"

#include <sodium.h>

namespace fusec::bundle {

bool signatureFits(const fusec_bundle_header &header, const fusec_bundle_signature &signature,
                   const PublicKey &key) {
  return sodium_init() >= 0 &&
         crypto_sign_verify_detached(signature.signature,
                                     reinterpret_cast<const unsigned char *>(&header),
                                     sizeof header, key.data()) == 0;
}

std::string hex(const uint8_t *bytes, size_t size) {
  static const char digits[] = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < size; ++i) {
    out += digits[bytes[i] >> 4];
    out += digits[bytes[i] & 15];
  }
  return out;
}

} // namespace fusec::bundle
