// Guards in words, from the code that a compiler makes of them: a difference from a constant becomes a comparison.
#include "Bundle/Model.h"

namespace fusec::bundle {

using Op = DimCode::Op;

namespace {

/// Takes the last two instructions from the code where they are that operation with a constant.
std::optional<int64_t> takeLast(DimCode &code, Op op) {
  const size_t size = code.code.size();
  if (size < 3 || code.code[size - 1].op != op || code.code[size - 2].op != Op::Const)
    return std::nullopt;
  const int64_t constant = code.code[size - 2].value;
  if (constant == INT64_MIN)
    return std::nullopt;
  code.code.resize(size - 2);
  return constant;
}

std::string words(const Guard &guard, const std::vector<Symbol> &symbols) {
  if (guard.modulus > 0)
    return guard.value.str(symbols) + " % " + std::to_string(guard.modulus) + " = 0";
  DimCode value = guard.value;
  const int64_t constant = takeLast(value, Op::Add).value_or(0);
  DimCode positive = value;
  if (takeLast(positive, Op::Mul) == -1)
    return positive.str(symbols) + " <= " + std::to_string(constant);
  return value.str(symbols) + " >= " + std::to_string(-constant);
}

} // namespace

std::string guardWords(const std::vector<Guard> &guards, const std::vector<Symbol> &symbols) {
  std::string out;
  for (const Guard &guard : guards)
    out += (out.empty() ? "" : " and ") + words(guard, symbols);
  return out;
}

} // namespace fusec::bundle
