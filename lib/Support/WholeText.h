#pragma once
#include <charconv>
#include <iterator>
#include <string>

namespace fusec {

/// A whole number in full, however large: 4096.
inline std::string wholeText(double number) {
  char buffer[400]; // the largest double has 309 digits
  return std::string(
      buffer, std::to_chars(buffer, std::end(buffer), number, std::chars_format::fixed, 0).ptr);
}

} // namespace fusec
