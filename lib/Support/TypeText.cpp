#include "Support/TypeText.h"

#include "Support/TunedSizes.h"

namespace fusec {

Result<DType> parseElementType(TextReader &in) {
  FUSEC_TRY(std::string word, in.identifier());
  auto type = parseDType(word);
  if (!type)
    return in.error("'" + word + "' is no element type");
  return *type;
}

Result<DimExpr> parseDim(TextReader &in, std::string_view stops,
                         const std::vector<Symbol> &symbols) {
  std::string raw(in.rawUntil(stops));
  auto dim = DimExpr::parse(raw, symbols);
  if (!dim.ok())
    return in.error("'" + raw + "' is no dimension: " + dim.errors().front().text);
  return *dim;
}

Result<Shape> parseDims(TextReader &in, std::string_view close,
                        const std::vector<Symbol> &symbols) {
  const std::string stops = "," + std::string(close);
  return in.list(close, [&] { return parseDim(in, stops, symbols); });
}

Status parseType(TextReader &in, const std::vector<Symbol> &symbols, DType &type, Shape &shape) {
  FUSEC_TRY(type, parseElementType(in));
  FUSEC_CHECK(in.expect("["));
  FUSEC_TRY(shape, parseDims(in, "]", symbols));
  return success();
}

std::string typeText(DType type, const Shape &shape, const std::vector<Symbol> &symbols) {
  std::string text(name(type));
  text += '[';
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i)
      text += ',';
    text += shape[i].str(symbols);
  }
  return text + ']';
}

Result<Symbol> parseSymbol(TextReader &in) {
  Symbol s;
  FUSEC_TRY(s.name, in.nameText());
  FUSEC_CHECK(in.expect("="));
  FUSEC_TRY(s.min, in.integer());
  FUSEC_CHECK(in.expect(".."));
  FUSEC_TRY(s.max, in.integer());
  FUSEC_CHECK(in.expect("opt"));
  if (in.peek().kind == TextReader::Kind::Identifier) {
    FUSEC_TRY(const std::string word, in.identifier());
    const std::optional<SymbolKind> kind = parseSymbolKind(word);
    if (!kind)
      return in.error("'" + word + "' is no size and no kind of symbol");
    s.opt = static_cast<int64_t>(*kind);
  } else {
    FUSEC_TRY(s.opt, in.integer());
  }
  FUSEC_CHECK(in.expect("divisor"));
  FUSEC_TRY(s.divisor, in.integer());
  return s;
}

Result<std::vector<Symbol>> parseSymbols(TextReader &in) {
  std::vector<Symbol> symbols;
  while (in.accept("symbol")) {
    FUSEC_TRY(Symbol s, parseSymbol(in));
    symbols.push_back(std::move(s));
  }
  return symbols;
}

std::string symbolText(const Symbol &s) {
  return nameToText(s.name) + " = " + std::to_string(s.min) + ".." + std::to_string(s.max) +
         " opt " + (kindOf(s) ? std::string(name(*kindOf(s))) : std::to_string(s.opt)) +
         " divisor " + std::to_string(s.divisor);
}

} // namespace fusec
