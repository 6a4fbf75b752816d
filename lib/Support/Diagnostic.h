#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fusec {

/// Process exit codes of the tools; every diagnostic belongs to one.
enum class ExitCode {
  Done = 0,
  Internal = 1,
  Usage = 2,
  BadInput = 3,
  Unsupported = 4,
  Limit = 5,
  Environment = 6,
  Mismatch = 7
};

/// One entry for each row of Diagnostics.def. Who names one includes Support/Diag.h; all others need not be compiled
/// anew for another row.
enum class Diag : uint16_t;

/// What went wrong, for a user: `where` names the file and the ONNX node or tensor ("m.onnx: node
/// 'conv1' (Conv, opset 18)"), `text` says what was expected, what was given and what to do.
struct Diagnostic {
  Diag id;
  std::string where;
  std::string text;
};
using Diagnostics = std::vector<Diagnostic>;

/// Stable code that users may search for, such as "E3102"; "W0001" for a warning.
std::string_view code(Diag id);
ExitCode exitCode(Diag id);
/// Exit code of a whole list: that of its first entry (Done when empty).
ExitCode exitCode(const Diagnostics &list);

/// "error[E3102] m.onnx: node 'x': text", one line, control bytes escaped as \xNN.
std::string format(const Diagnostic &d);
/// The diagnostic as one JSON object on one line.
std::string formatJson(const Diagnostic &d);

} // namespace fusec
