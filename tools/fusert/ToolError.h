#pragma once
#include "Support/Diagnostic.h"

#include <stdexcept>
#include <string>

namespace fusert {

/// Ends the tool with an exit code and one line on stderr.
struct ToolError : std::runtime_error {
  fusec::ExitCode code;
  ToolError(fusec::ExitCode code, const std::string &text) : std::runtime_error(text), code(code) {}
};

} // namespace fusert
