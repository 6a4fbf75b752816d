#pragma once
#include <string>
#include <unordered_set>
#include <vector>

namespace fusec {

/// A list of names, each once, in the order in which they came.
class UniqueNames {
public:
  void add(const std::string &name) {
    if (seen.insert(name).second)
      list.push_back(name);
  }
  void add(const std::vector<std::string> &names) {
    for (const std::string &name : names)
      add(name);
  }
  const std::vector<std::string> &names() const { return list; }

private:
  std::vector<std::string> list;
  std::unordered_set<std::string> seen;
};

} // namespace fusec
