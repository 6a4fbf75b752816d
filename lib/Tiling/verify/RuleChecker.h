#pragma once
#include "Support/Diag.h"
#include "Tiling/schedule/Message.h"

#include <algorithm>

namespace fusec::tiling {

/// The rules that a schedule breaks, each once. Who checks a family of them in several functions derives from it.
class RuleChecker {
public:
  explicit RuleChecker(const BoundSchedule &bound) : bound(bound) {}

  /// `rule`: the pieces of its message.
  template <typename... Pieces> void require(bool holds, const Pieces &...rule) {
    if (!holds)
      add({message(bound, rule...)});
  }
  void add(const std::vector<std::string> &more) {
    for (const std::string &rule : more)
      if (std::ranges::count(rules, rule) == 0)
        rules.push_back(rule);
  }
  bool none() const { return rules.empty(); }
  void clear() { rules.clear(); }
  std::vector<std::string> list() const { return rules; }
  /// BadIr, a diagnostic for each; success where there is none.
  Status status() const {
    Diagnostics errors;
    for (const std::string &rule : rules)
      errors.push_back({Diag::BadIr, "schedule " + bound.schedule.name, "broken rule: " + rule});
    if (errors.empty())
      return success();
    return errors;
  }

protected:
  const BoundSchedule &bound;

private:
  std::vector<std::string> rules;
};

} // namespace fusec::tiling
