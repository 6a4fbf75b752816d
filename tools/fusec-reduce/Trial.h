#pragma once
#include "Support/Result.h"

#include <string>
#include <vector>

namespace fusec::reduce {

/// Asks the user's command about candidates. Each is written beside the output, and takes its place once it is found
/// interesting: what lies there is always the best so far, also after an interruption.
class Trial {
public:
  Trial(std::string output, std::vector<std::string> command, int seconds)
      : output(std::move(output)), command(std::move(command)), seconds(seconds) {}

  /// The command exits with 0 for this text within the time. Its own output goes nowhere.
  Result<bool> isInteresting(const std::string &text);
  /// Removes what trials left behind.
  Status finish() const;

  const std::string &path() const { return output; }
  std::string commandText() const;
  int tried = 0;

private:
  std::string candidate() const { return output + ".candidate"; }
  Result<bool> runCommand() const;
  const std::string output;
  const std::vector<std::string> command;
  const int seconds;
};

} // namespace fusec::reduce
