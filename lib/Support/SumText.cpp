#include "Support/SumText.h"

#include <algorithm>

namespace fusec {

std::string sumText(const std::vector<SumTerm> &terms) {
  std::string out;
  for (const SumTerm &t : terms) {
    const bool minus = !out.empty() && t.factor < 0 && t.factor != INT64_MIN;
    const int64_t factor = minus ? -t.factor : t.factor;
    out += out.empty() ? "" : minus ? " - " : " + ";
    out += t.text;
    if (t.text.empty() || factor != 1)
      out += (t.text.empty() ? "" : "*") + std::to_string(factor);
  }
  return out;
}

std::string guardWords(std::vector<SumTerm> value, int64_t modulus) {
  if (modulus > 0)
    return sumText(value) + " % " + std::to_string(modulus) + " = 0";
  auto cannotMove = [](const SumTerm &t) { return t.factor == INT64_MIN; };
  if (value.front().text.empty() || std::any_of(value.begin(), value.end(), cannotMove))
    return sumText(value) + " >= 0";
  int64_t constant = 0;
  if (value.back().text.empty()) {
    constant = value.back().factor;
    value.pop_back();
  }
  if (value.front().factor > 0)
    return sumText(value) + " >= " + std::to_string(-constant);
  for (SumTerm &t : value)
    t.factor = -t.factor;
  return sumText(value) + " <= " + std::to_string(constant);
}

} // namespace fusec
