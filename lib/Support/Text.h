#pragma once
#include "Support/Result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fusec {

/// Reader for the textual IRs. All of them share these tokens: identifiers [A-Za-z_][A-Za-z0-9_.$]*,
/// integers, floats (decimal, or bit-exact hex 0x1.8p3, inf, nan), "strings" with \n \t \\ \" \xNN escapes,
/// punctuation (one character each, plus -> and ..), and # comments to the end of the line.
class TextReader {
public:
  TextReader(std::string_view text, std::string fileName);

  enum class Kind { Identifier, Integer, Float, String, Punct, End };
  struct Token {
    Kind kind;
    std::string_view text; // raw text
    int line;
  };
  const Token &peek() const { return current; }
  Token next();
  bool atEnd() const { return current.kind == Kind::End; }
  /// Consumes the token if its text is `t` (identifier or punctuation).
  bool accept(std::string_view t);
  bool peekIs(std::string_view t) const {
    return current.kind != Kind::String && current.text == t;
  }

  // Each of these consumes one construct or returns a BadIrText diagnostic with file and line.
  Status expect(std::string_view t);
  Result<std::string> identifier();
  Result<std::string> string(); // unescaped
  /// A name: an identifier or a quoted string.
  Result<std::string> nameText();
  /// A name behind "%" or another sign.
  Result<std::string> nameAfter(std::string_view sign);
  Result<int64_t> integer(); // with optional leading '-'
  Result<double> floating(); // also takes an integer; optional leading '-'
  /// What `item` reads, once between commas, up to and including `close`; the opener is read already.
  template <typename F>
  auto list(std::string_view close, F item)
      -> Result<std::vector<std::decay_t<decltype(*item())>>> {
    std::vector<std::decay_t<decltype(*item())>> items;
    if (accept(close))
      return items;
    do {
      FUSEC_TRY(auto one, item());
      items.push_back(std::move(one));
    } while (accept(","));
    FUSEC_CHECK(expect(close));
    return items;
  }
  Diagnostic error(std::string text) const;

  /// Raw text between the current token and the matching closer, for embedded DimExpr: reads up to (not
  /// including) one of the characters in `stops` at bracket depth 0.
  std::string_view rawUntil(std::string_view stops);

private:
  void advance();
  std::string_view text;
  std::string fileName;
  size_t pos = 0;
  int line = 1;
  Token current;
};

/// "text" with escapes; inverse of TextReader::string().
std::string quoted(std::string_view s);
/// `s` itself when it is an identifier, else quoted(s).
std::string nameToText(std::string_view s);
/// Shortest text that reads back to the same bits ("1.5", "inf", "nan", "-0.0"), independent of locale.
std::string floatToText(double v);
std::string floatToText(float v);

} // namespace fusec
