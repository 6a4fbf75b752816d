#include "Support/DType.h"

namespace fusec {

std::optional<DType> parseDType(std::string_view text) {
  for (int i = 0; i < kNumDTypes; ++i)
    if (name(static_cast<DType>(i)) == text)
      return static_cast<DType>(i);
  return std::nullopt;
}

} // namespace fusec
