#pragma once
#include "Support/Diagnostic.h"

#include <stdexcept>
#include <string>

namespace fusert {

/// Ends the tool with the diagnostic's exit code and one line on stderr.
struct ToolError : std::runtime_error {
  fusec::Diagnostic diagnostic;
  ToolError(fusec::Diag id, const std::string &where, const std::string &text)
      : std::runtime_error(text), diagnostic{id, where, text} {}
  explicit ToolError(const fusec::Diagnostic &d) : std::runtime_error(d.text), diagnostic(d) {}
};

} // namespace fusert
