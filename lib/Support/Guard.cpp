#include "Support/Guard.h"

#include "Support/TypeText.h"

#include <algorithm>

namespace fusec {

bool Guard::holds(const std::vector<int64_t> &symbols) const {
  const std::optional<int64_t> v = value.evaluate(symbols);
  return v && (modulus > 0 ? *v % modulus == 0 : *v >= 0);
}

bool allHold(const std::vector<Guard> &guards, const std::vector<int64_t> &symbols) {
  return std::all_of(guards.begin(), guards.end(),
                     [&](const Guard &g) { return g.holds(symbols); });
}

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

/// The constant that a sum ends with.
static int64_t constantTerm(const DimExpr &e) {
  if (e.isConst())
    return e.constValue();
  return e.op() == DimExpr::Op::Add && e.operands().back().isConst()
             ? e.operands().back().constValue()
             : 0;
}

/// True where the first term of a sum is subtracted.
static bool beginsNegative(const DimExpr &e) {
  if (e.op() == DimExpr::Op::Add)
    return beginsNegative(e.operands().front());
  return e.op() == DimExpr::Op::Mul && e.operands().back().isConst() &&
         e.operands().back().constValue() < 0;
}

static std::string words(const Guard &guard, const std::vector<Symbol> &symbols) {
  if (guard.modulus > 0)
    return guard.value.str(symbols) + " % " + std::to_string(guard.modulus) + " = 0";
  const int64_t constant = constantTerm(guard.value);
  const DimExpr rest = guard.value - DimExpr(constant);
  if (rest.isConst() || constant == INT64_MIN)
    return guard.value.str(symbols) + " >= 0";
  if (beginsNegative(rest))
    return (DimExpr(0) - rest).str(symbols) + " <= " + std::to_string(constant);
  return rest.str(symbols) + " >= " + std::to_string(-constant);
}

std::string guardWords(const std::vector<Guard> &guards, const std::vector<Symbol> &symbols) {
  std::string out;
  for (const Guard &guard : guards)
    out += (out.empty() ? "" : " and ") + words(guard, symbols);
  return out;
}

} // namespace fusec
