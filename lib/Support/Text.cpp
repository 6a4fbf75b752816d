#include "Support/Text.h"

#include "Support/Diag.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace fusec {

namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isIdentifierStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool isIdentifierChar(char c) { return isIdentifierStart(c) || isDigit(c) || c == '.' || c == '$'; }
int hexDigit(char c) {
  if (isDigit(c))
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return -1;
}

/// End of an identifier that starts at `i`. A trailing ".." belongs to the next token.
size_t identifierEnd(std::string_view s, size_t i) {
  while (i < s.size() && isIdentifierChar(s[i]) && s.substr(i, 2) != "..")
    ++i;
  return i;
}

/// End of the hex float 0x1.8p3 at `i`, or `i` when there is none: without an exponent the text is an
/// integer 0 and a name, as in the shape 0x16.
size_t hexFloatEnd(std::string_view s, size_t i) {
  size_t start = i;
  if (s.substr(i, 2) != "0x")
    return start;
  i += 2;
  size_t digits = 0;
  for (; i < s.size() && (hexDigit(s[i]) >= 0 || s[i] == '.'); ++i)
    digits += s[i] != '.';
  if (digits == 0 || i >= s.size() || s[i] != 'p')
    return start;
  ++i;
  if (i < s.size() && (s[i] == '-' || s[i] == '+'))
    ++i;
  size_t exponent = i;
  while (i < s.size() && isDigit(s[i]))
    ++i;
  return i == exponent ? start : i;
}

size_t numberEnd(std::string_view s, size_t i, bool &isFloat) {
  size_t hexEnd = hexFloatEnd(s, i);
  isFloat = hexEnd != i;
  if (isFloat)
    return hexEnd;
  auto digits = [&] {
    while (i < s.size() && isDigit(s[i]))
      ++i;
  };
  digits();
  if (i < s.size() && s[i] == '.' && s.substr(i, 2) != "..") {
    isFloat = true;
    ++i;
    digits();
  }
  if (i < s.size() && (s[i] == 'e' || s[i] == 'E')) {
    size_t j = i + 1;
    if (j < s.size() && (s[j] == '-' || s[j] == '+'))
      ++j;
    if (j < s.size() && isDigit(s[j])) {
      isFloat = true;
      i = j;
      digits();
    }
  }
  return i;
}

/// End of the quoted piece at `i` (past its closing quote, or the end of the text).
size_t quotedEnd(std::string_view s, size_t i) {
  char quote = s[i++];
  while (i < s.size() && s[i] != quote && s[i] != '\n')
    i += s[i] == '\\' && i + 1 < s.size() ? 2 : 1;
  return i < s.size() && s[i] == quote ? i + 1 : i;
}

} // namespace

TextReader::TextReader(std::string_view text, std::string fileName)
    : text(text), fileName(std::move(fileName)), current{Kind::End, {}, 1} {
  advance();
}

void TextReader::advance() {
  for (; pos < text.size(); ++pos) {
    char c = text[pos];
    if (c == '#') {
      while (pos < text.size() && text[pos] != '\n')
        ++pos;
      if (pos == text.size())
        break;
      c = '\n';
    }
    if (c == '\n')
      ++line;
    else if (c != ' ' && c != '\t' && c != '\r')
      break;
  }
  if (pos >= text.size()) {
    current = {Kind::End, text.substr(text.size()), line};
    return;
  }
  size_t start = pos;
  char c = text[pos];
  Kind kind = Kind::Punct;
  if (isIdentifierStart(c)) {
    kind = Kind::Identifier;
    pos = identifierEnd(text, pos);
  } else if (isDigit(c)) {
    bool isFloat = false;
    pos = numberEnd(text, pos, isFloat);
    kind = isFloat ? Kind::Float : Kind::Integer;
  } else if (c == '"') {
    kind = Kind::String;
    pos = quotedEnd(text, pos);
  } else {
    std::string_view two = text.substr(pos, 2);
    pos += two == "->" || two == ".." ? 2 : 1;
  }
  current = {kind, text.substr(start, pos - start), line};
}

TextReader::Token TextReader::next() {
  Token t = current;
  advance();
  return t;
}

bool TextReader::accept(std::string_view t) {
  if (!peekIs(t) || atEnd())
    return false;
  advance();
  return true;
}

Diagnostic TextReader::error(std::string message) const {
  return {Diag::BadIrText, fileName + ":" + std::to_string(current.line), std::move(message)};
}

static std::string found(const TextReader::Token &t) {
  return t.kind == TextReader::Kind::End ? "the end of the text" : quoted(t.text);
}

Status TextReader::expect(std::string_view t) {
  if (!accept(t))
    return error("expected " + quoted(t) + ", found " + found(current));
  return success();
}

Result<std::string> TextReader::identifier() {
  if (current.kind != Kind::Identifier)
    return error("expected an identifier, found " + found(current));
  return std::string(next().text);
}

Result<std::string> TextReader::string() {
  std::string_view raw = current.text;
  if (current.kind != Kind::String)
    return error("expected a string, found " + found(current));
  if (raw.size() < 2 || raw.back() != '"')
    return error("the string has no closing quote on its line");
  std::string out;
  for (size_t i = 1; i + 1 < raw.size(); ++i) {
    if (raw[i] != '\\') {
      out += raw[i];
      continue;
    }
    char c = raw[++i];
    if (c == 'n')
      out += '\n';
    else if (c == 't')
      out += '\t';
    else if (c == '\\' || c == '"')
      out += c;
    else if (c == 'x' && i + 3 < raw.size() && hexDigit(raw[i + 1]) >= 0 &&
             hexDigit(raw[i + 2]) >= 0) {
      out += static_cast<char>(hexDigit(raw[i + 1]) << 4 | hexDigit(raw[i + 2]));
      i += 2;
    } else
      return error("unknown escape in a string: use \\n, \\t, \\\\, \\\" or \\xNN");
  }
  advance();
  return out;
}

Result<std::string> TextReader::nameText() {
  if (current.kind == Kind::String)
    return string();
  if (current.kind == Kind::Identifier)
    return identifier();
  return error("expected a name, found " + found(current));
}

Result<std::string> TextReader::nameAfter(std::string_view sign) {
  FUSEC_CHECK(expect(sign));
  return nameText();
}

Result<int64_t> TextReader::integer() {
  bool negative = accept("-");
  if (current.kind != Kind::Integer)
    return error("expected an integer, found " + found(current));
  std::string digits = (negative ? "-" : "") + std::string(current.text);
  int64_t value = 0;
  auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (ec != std::errc() || end != digits.data() + digits.size())
    return error("the integer " + digits + " does not fit 64 bits");
  advance();
  return value;
}

Result<double> TextReader::floating() {
  bool negative = accept("-");
  double value = 0;
  if (current.kind == Kind::Identifier && (current.text == "inf" || current.text == "nan")) {
    value = current.text == "inf" ? std::numeric_limits<double>::infinity()
                                  : std::numeric_limits<double>::quiet_NaN();
  } else if (current.kind == Kind::Integer || current.kind == Kind::Float) {
    std::string_view digits = current.text;
    bool hex = digits.substr(0, 2) == "0x";
    if (hex)
      digits.remove_prefix(2);
    auto format = hex ? std::chars_format::hex : std::chars_format::general;
    auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), value, format);
    if (ec != std::errc() || end != digits.data() + digits.size())
      return error("the number " + std::string(current.text) + " does not fit a double");
  } else {
    return error("expected a number, found " + found(current));
  }
  advance();
  return negative ? -value : value;
}

std::string_view TextReader::rawUntil(std::string_view stops) {
  size_t start = current.text.data() - text.data();
  size_t i = start;
  for (int depth = 0; i < text.size();) {
    char c = text[i];
    if (depth == 0 && stops.find(c) != std::string_view::npos)
      break;
    if (c == '"' || c == '`') {
      i = quotedEnd(text, i);
      continue;
    }
    if (c == '(' || c == '[' || c == '{')
      ++depth;
    else if (c == ')' || c == ']' || c == '}')
      --depth;
    if (depth < 0)
      break;
    ++i;
  }
  std::string_view raw = text.substr(start, i - start);
  line = current.line;
  for (char c : raw)
    line += c == '\n';
  pos = i;
  advance();
  while (!raw.empty() && (raw.back() == ' ' || raw.back() == '\t' || raw.back() == '\n'))
    raw.remove_suffix(1);
  return raw;
}

std::string quoted(std::string_view s) {
  static const char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (unsigned char c : s) {
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20 || c == 0x7f) {
      out += "\\x";
      out += digits[c >> 4];
      out += digits[c & 15];
    } else
      out += static_cast<char>(c);
  }
  return out + '"';
}

std::string nameToText(std::string_view s) {
  bool plain = !s.empty() && isIdentifierStart(s[0]) && identifierEnd(s, 0) == s.size() &&
               s.back() != '.'; // "a..." would be cut before the dots
  return plain ? std::string(s) : quoted(s);
}

static std::string finishFloat(std::string digits) {
  if (digits.find_first_of(".en") == std::string::npos)
    digits += ".0";
  return digits;
}

std::string floatToText(double v) {
  if (std::isnan(v))
    return std::signbit(v) ? "-nan" : "nan";
  char buffer[40];
  return finishFloat(std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, v).ptr));
}

std::string floatToText(float v) {
  if (std::isnan(v))
    return floatToText(static_cast<double>(v));
  char buffer[40];
  char *end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  double readBack = 0;
  std::from_chars(buffer, end, readBack);
  // The reader rounds to double first; where that second rounding would hit another float, print all digits.
  if (!std::isinf(v) && static_cast<float>(readBack) != v)
    return floatToText(static_cast<double>(v));
  return finishFloat(std::string(buffer, end));
}

} // namespace fusec
