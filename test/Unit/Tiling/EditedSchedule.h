#pragma once
// A schedule that is right, and what an edit of its text makes of it.
#include "Candidates.h"
#include "Tiling/verify/Verify.h"

namespace fusec::test {

inline Schedule scheduleFrom(const std::string &text, const ExprProgram &pattern) {
  TextReader in(text, "s.txt");
  return valueOf(parseSchedule(in, pattern));
}

/// A schedule that keeps all rules, to be edited.
struct Case {
  ExprProgram pattern;
  const std::string text;

  Case(const std::string &program, const char *schedule, const char *constant = "")
      : pattern(patternFrom(program)), text(schedule) {
    fix(pattern, constant);
    require(verify(scheduleFrom(text, pattern), pattern));
  }

  /// `from` replaced by `to`, wherever it stands.
  std::string edited(const std::string &from, const std::string &to) const {
    std::string changed = text;
    REQUIRE(changed.find(from) != std::string::npos);
    for (size_t at = 0; (at = changed.find(from, at)) != std::string::npos; at += to.size())
      changed.replace(at, from.size(), to);
    return changed;
  }

  void breaks(const std::string &from, const std::string &to, const std::string &rule) const {
    INFO(from << " -> " << to);
    const Status status = verify(scheduleFrom(edited(from, to), pattern), pattern);
    REQUIRE(!status.ok());
    bool found = false;
    for (const Diagnostic &d : status.errors()) {
      found = found || d.text == "broken rule: " + rule;
      UNSCOPED_INFO(d.text);
    }
    CHECK(found);
  }

  /// The error of a text that keeps all rules and has no kernel.
  std::string unlowered(const std::string &from, const std::string &to) const {
    INFO(from << " -> " << to);
    const Schedule schedule = scheduleFrom(edited(from, to), pattern);
    require(verify(schedule, pattern));
    Result<LoweredKernel> lowered = lowerSchedule(pattern, schedule, pattern.symbols);
    REQUIRE(!lowered.ok());
    return lowered.errors().front().text;
  }

  /// The error of a text that does not parse.
  std::string error(const std::string &from, const std::string &to) const {
    INFO(from << " -> " << to);
    const std::string changed = edited(from, to);
    TextReader in(changed, "s.txt");
    Result<Schedule> schedule = parseSchedule(in, pattern);
    REQUIRE(!schedule.ok());
    return schedule.errors().front().text;
  }
};

} // namespace fusec::test
