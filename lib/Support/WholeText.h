#pragma once
#include <charconv>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace fusec {

/// A whole number in full, however large: 4096.
inline std::string wholeText(double number) {
  char buffer[400]; // the largest double has 309 digits
  return std::string(
      buffer, std::to_chars(buffer, std::end(buffer), number, std::chars_format::fixed, 0).ptr);
}

/// The number that digits alone write; none where there is anything else or it is beyond a Number.
template <typename Number> std::optional<Number> wholeNumber(std::string_view digits) {
  Number number = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), number);
  if (error != std::errc() || end != digits.end() || number < 0)
    return std::nullopt;
  return number;
}

} // namespace fusec
