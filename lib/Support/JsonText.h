#pragma once
#include <string>
#include <string_view>

namespace fusec {

/// Makes one line of valid UTF-8 out of text that comes from an untrusted file: other bytes become \xNN.
std::string oneLine(std::string_view text);
/// oneLine as a JSON string, quotes included.
std::string jsonString(std::string_view text);

} // namespace fusec
