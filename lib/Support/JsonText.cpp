#include "Support/JsonText.h"

namespace fusec {

namespace {

void appendHexEscape(std::string &out, unsigned char c) {
  static const char digits[] = "0123456789abcdef";
  out += "\\x";
  out += digits[c >> 4];
  out += digits[c & 15];
}

/// Length of the well-formed UTF-8 sequence at `s[i]`, or 0.
size_t utf8Length(std::string_view s, size_t i) {
  auto byte = [&](size_t k) {
    return i + k < s.size() ? static_cast<unsigned char>(s[i + k]) : 0u;
  };
  auto tail = [&](size_t k) { return (byte(k) & 0xc0) == 0x80; };
  unsigned a = byte(0), b = byte(1);
  if (a < 0x80)
    return 1;
  if (a >= 0xc2 && a <= 0xdf)
    return tail(1) ? 2 : 0;
  if (a >= 0xe0 && a <= 0xef) // no overlong forms, no surrogates
    return tail(1) && tail(2) && !(a == 0xe0 && b < 0xa0) && !(a == 0xed && b >= 0xa0) ? 3 : 0;
  if (a >= 0xf0 && a <= 0xf4)
    return tail(1) && tail(2) && tail(3) && !(a == 0xf0 && b < 0x90) && !(a == 0xf4 && b >= 0x90)
               ? 4
               : 0;
  return 0;
}

} // namespace

std::string oneLine(std::string_view s) {
  std::string out;
  for (size_t i = 0; i < s.size();) {
    unsigned char c = s[i];
    size_t length = utf8Length(s, i);
    if (length == 0 || c < 0x20 || c == 0x7f) {
      appendHexEscape(out, c);
      ++i;
    } else {
      out.append(s.substr(i, length));
      i += length;
    }
  }
  return out;
}

std::string jsonString(std::string_view s) {
  std::string out = "\"";
  for (char c : oneLine(s)) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += c;
  }
  return out + '"';
}

} // namespace fusec
