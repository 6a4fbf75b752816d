#pragma once

namespace fusec::tools {

/// Standard output of a tool from the first line of main() to its last. Streams that the caller closed are held by
/// /dev/null, so that no file which the tool opens takes their number.
class StandardOutput {
public:
  StandardOutput();
  /// The exit code: `code`, or that of CannotWrite where all went well except that a part of standard output is lost,
  /// which is said on stderr, as JSON if `json`.
  int finish(int code, bool json = false) const;
};

} // namespace fusec::tools
