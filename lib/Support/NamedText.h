#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fusec {

/// "NAME=VALUE" cut behind the longest of `names` that it begins with: names and values may hold '=' themselves. Where
/// it begins with none of them, cut at the first '=' whose name is not empty. Null where it has no two parts.
inline std::optional<std::pair<std::string, std::string>>
splitNamed(const std::string &text, const std::vector<std::string> &names) {
  size_t at = text.find('=', 1);
  size_t longest = 0;
  for (const std::string &name : names)
    if (name.size() > longest && text.size() > name.size() && text[name.size()] == '=' &&
        text.compare(0, name.size(), name) == 0)
      at = longest = name.size();
  if (at == std::string::npos || at + 1 == text.size())
    return std::nullopt;
  return std::pair(text.substr(0, at), text.substr(at + 1));
}

} // namespace fusec
