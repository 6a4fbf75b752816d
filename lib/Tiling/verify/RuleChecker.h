#pragma once
#include "Support/Diag.h"
#include "Tiling/schedule/Schedule.h"

#include <algorithm>

namespace fusec::tiling {

/// The rules that a schedule breaks, as a verifier finds them: each once.
class RuleChecker {
public:
  void require(bool holds, std::string rule) {
    if (!holds && std::count(rules.begin(), rules.end(), rule) == 0)
      rules.push_back(std::move(rule));
  }
  void add(std::vector<std::string> more) {
    for (std::string &rule : more)
      require(false, std::move(rule));
  }
  bool none() const { return rules.empty(); }
  std::vector<std::string> list() const { return rules; }
  /// BadIr, a diagnostic for each; success where there is none.
  Status status(const Schedule &schedule) const {
    Diagnostics errors;
    for (const std::string &rule : rules)
      errors.push_back({Diag::BadIr, "schedule " + schedule.name, "broken rule: " + rule});
    if (errors.empty())
      return success();
    return errors;
  }

private:
  std::vector<std::string> rules;
};

} // namespace fusec::tiling
