#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace fusec {

/// A part of a dump or a decisions file: what follows a line "=== what target".
struct Section {
  std::string what, target;
  std::string_view text;
  int line = 1; // in the file, of the text's first line
};
std::vector<Section> splitSections(std::string_view text);

} // namespace fusec
