#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace fusec {

/// One term of a sum for people: `text`, a product, `factor` times; a number where there is no text.
struct SumTerm {
  int64_t factor = 1;
  std::string text;
};
/// "n*m*2 - k + 5"; terms stay as they are, one behind the other.
std::string sumText(const std::vector<SumTerm> &terms);
/// "batch*seq >= 16" for what is at least 0: a constant behind the terms goes to the other side, and where the first
/// term is subtracted "batch <= 3"; "batch % 16 = 0" where there is a modulus.
std::string guardWords(std::vector<SumTerm> value, int64_t modulus);

} // namespace fusec
