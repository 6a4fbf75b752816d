#pragma once
#include <charconv>
#include <functional>
#include <string>

namespace fusec::tools {

/// A check of an option's text: a number below `least` is refused in words. (CLI11's own checks of signs print the
/// largest double, and let an unsigned number take a sign.) What is no number is left to the conversion.
inline std::function<std::string(const std::string &)> numberFrom(int least) {
  return [least](const std::string &text) {
    long long value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    return parsed.ec == std::errc() && value < least
               ? "expected a number from " + std::to_string(least) + ", given is " + text
               : std::string();
  };
}

} // namespace fusec::tools
