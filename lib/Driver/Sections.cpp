#include "Driver/Sections.h"

#include <algorithm>

namespace fusec {

std::vector<Section> splitSections(std::string_view text) {
  std::vector<Section> sections;
  size_t position = text.find("\n=== "), counted = 0;
  int line = 1;
  while (position != std::string_view::npos) {
    size_t begin = position + 5;
    size_t lineEnd = std::min(text.find('\n', begin), text.size());
    size_t next = text.find("\n=== ", lineEnd);
    std::string_view head = text.substr(begin, lineEnd - begin);
    size_t space = head.find(' ');
    Section s;
    s.what = std::string(head.substr(0, space));
    if (space != std::string_view::npos)
      s.target = std::string(head.substr(space + 1));
    size_t end = next == std::string_view::npos ? text.size() : next + 1;
    size_t first = std::min(lineEnd + 1, text.size());
    s.text = text.substr(first, end - first);
    line += static_cast<int>(std::count(text.begin() + counted, text.begin() + first, '\n'));
    counted = first;
    s.line = line;
    sections.push_back(std::move(s));
    position = next;
  }
  return sections;
}

} // namespace fusec
