#include "common/Names.h"

#include <cstdio>
#include <set>

namespace fusec::tools {

/// One '_' for each character that is not plain, of however many bytes it is.
static std::string plain(const std::string &tensor) {
  std::string out;
  for (char c : tensor) {
    const bool isPlain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    const bool continues = (static_cast<unsigned char>(c) & 0xc0) == 0x80; // UTF-8
    if (isPlain)
      out += c;
    else if (!continues || out.empty())
      out += '_';
  }
  return out;
}

std::vector<std::string> npyNamesFor(const std::vector<std::string> &tensors) {
  constexpr size_t kLongest = 255; // NAME_MAX of Linux's file systems
  std::set<std::string> taken;
  std::vector<std::string> files;
  for (const std::string &tensor : tensors) {
    const std::string name = plain(tensor);
    for (int number = 1;; ++number) {
      const std::string ending = (number > 1 ? "." + std::to_string(number) : "") + ".npy";
      std::string file = name.substr(0, kLongest - ending.size()) + ending;
      if (!taken.insert(file).second)
        continue;
      files.push_back(std::move(file));
      break;
    }
  }
  return files;
}

std::string renamedFiles(const std::vector<std::string> &tensors,
                         const std::vector<std::string> &files) {
  std::string lines;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (files[i] != tensors[i] + ".npy")
      lines += "output '" + printable(tensors[i]) + "' goes to " + files[i] + "\n";
  return lines;
}

std::string printable(std::string_view text) {
  std::string out;
  for (unsigned char c : text) {
    char buffer[8];
    if (c < 0x20 || c == 0x7f) {
      std::snprintf(buffer, sizeof buffer, "\\x%02X", c);
      out += buffer;
    } else {
      out += static_cast<char>(c);
    }
  }
  return out;
}

} // namespace fusec::tools
