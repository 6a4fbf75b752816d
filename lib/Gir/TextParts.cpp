#include "Gir/TextParts.h"

namespace fusec::girtext {

std::string typeText(DType type, const Shape &shape, const std::vector<Symbol> &symbols) {
  std::string out = std::string(name(type)) + "[";
  for (size_t i = 0; i < shape.size(); ++i)
    out += (i ? ", " : "") + shape[i].str(symbols);
  return out + "]";
}

Result<std::pair<DType, Shape>> parseType(TextReader &in, const std::vector<Symbol> &symbols) {
  FUSEC_TRY(std::string word, in.identifier());
  auto type = parseDType(word);
  if (!type)
    return in.error("'" + word + "' is no element type");
  FUSEC_CHECK(in.expect("["));
  Shape shape;
  while (!in.peekIs("]")) {
    if (!shape.empty())
      FUSEC_CHECK(in.expect(","));
    FUSEC_TRY(DimExpr d, DimExpr::parse(in.rawUntil(",]"), symbols));
    shape.push_back(std::move(d));
  }
  FUSEC_CHECK(in.expect("]"));
  return std::make_pair(*type, std::move(shape));
}

std::string symbolText(const Symbol &s) {
  return nameToText(s.name) + " = " + std::to_string(s.min) + ".." + std::to_string(s.max) +
         " opt " + std::to_string(s.opt) + " divisor " + std::to_string(s.divisor);
}

Result<Symbol> parseSymbol(TextReader &in) {
  Symbol s;
  FUSEC_TRY(s.name, in.nameText());
  FUSEC_CHECK(in.expect("="));
  FUSEC_TRY(s.min, in.integer());
  FUSEC_CHECK(in.expect(".."));
  FUSEC_TRY(s.max, in.integer());
  FUSEC_CHECK(in.expect("opt"));
  FUSEC_TRY(s.opt, in.integer());
  FUSEC_CHECK(in.expect("divisor"));
  FUSEC_TRY(s.divisor, in.integer());
  return s;
}

} // namespace fusec::girtext
