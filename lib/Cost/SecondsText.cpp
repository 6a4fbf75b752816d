#include "Cost/SecondsText.h"

#include <charconv>
#include <cmath>

namespace fusec::cost {

std::string secondsText(double seconds) {
  constexpr struct {
    double perSecond;
    const char *unit;
  } kUnits[] = {{1, " s"}, {1e3, " ms"}, {1e6, " us"}, {1e9, " ns"}};
  // The largest unit in which the rounded number is at least 1.
  for (const auto &unit : kUnits) {
    if (std::abs(seconds * unit.perSecond) < 0.9995 && &unit != std::end(kUnits) - 1)
      continue;
    char buffer[32];
    const auto end = std::to_chars(buffer, std::end(buffer), seconds * unit.perSecond,
                                   std::chars_format::general, 3);
    return std::string(buffer, end.ptr) + unit.unit;
  }
  return "";
}

} // namespace fusec::cost
