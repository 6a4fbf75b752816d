#pragma once
#include <string>

namespace fusec::cost {

/// Predicted seconds for people, three digits: "12.3 us". Does not depend on the locale.
std::string secondsText(double seconds);

} // namespace fusec::cost
