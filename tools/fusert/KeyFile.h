#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace fusert {

using PublicKey = std::array<uint8_t, 32>; // Ed25519

/// A file with the key's bytes, or with as many hexadecimal digits and white space after them. Throws ToolError.
PublicKey readPublicKey(const std::string &path);

} // namespace fusert
