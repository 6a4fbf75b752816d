#include "Support/Guard.h"

#include "Support/TypeText.h"

#include <algorithm>

namespace fusec {

bool isImplied(const Guard &wanted, const std::vector<Guard> &guards) {
  return std::any_of(guards.begin(), guards.end(), [&](const Guard &guard) {
    const DimExpr spare = wanted.value - guard.value;
    return guard.modulus == 0 && spare.isConst() && spare.constValue() >= 0;
  });
}

std::string guardText(const Guard &guard, const std::vector<Symbol> &symbols) {
  return "(" + guard.value.str(symbols) +
         (guard.modulus > 0 ? " % " + std::to_string(guard.modulus) + " == 0)" : " >= 0)");
}

Result<Guard> parseGuard(TextReader &in, const std::vector<Symbol> &symbols) {
  Guard g;
  FUSEC_CHECK(in.expect("("));
  FUSEC_TRY(g.value, parseDim(in, ">%", symbols));
  if (in.accept("%")) {
    FUSEC_TRY(g.modulus, in.integer());
    if (g.modulus < 1)
      return in.error("a modulus is at least 1");
    FUSEC_CHECK(in.expect("="));
  } else {
    FUSEC_CHECK(in.expect(">"));
  }
  FUSEC_CHECK(in.expect("="));
  FUSEC_CHECK(in.expect("0"));
  FUSEC_CHECK(in.expect(")"));
  return g;
}

} // namespace fusec
