#include "Support/Diagnostic.h"

#include "Support/JsonText.h"

namespace fusec {

namespace {

struct DiagRow {
  std::string_view id, code;
  ExitCode exitCode;
};
constexpr DiagRow rows[] = {
#define FUSEC_DIAG(id, code, exitCode, summary) {#id, code, ExitCode::exitCode},
#include "Support/Diagnostics.def"
};
const DiagRow &row(Diag id) { return rows[static_cast<int>(id)]; }
std::string level(Diag id) { return exitCode(id) == ExitCode::Done ? "warning" : "error"; }

} // namespace

std::string_view code(Diag id) { return row(id).code; }
ExitCode exitCode(Diag id) { return row(id).exitCode; }
ExitCode exitCode(const Diagnostics &list) {
  return list.empty() ? ExitCode::Done : exitCode(list.front().id);
}

std::string format(const Diagnostic &d) {
  std::string out = level(d.id) + "[" + std::string(code(d.id)) + "] ";
  if (!d.where.empty())
    out += oneLine(d.where) + ": ";
  return out + oneLine(d.text);
}

std::string formatJson(const Diagnostic &d) {
  return "{\"level\":\"" + level(d.id) + "\",\"code\":\"" + std::string(code(d.id)) +
         "\",\"id\":\"" + std::string(row(d.id).id) + "\",\"where\":" + jsonString(d.where) +
         ",\"text\":" + jsonString(d.text) + "}";
}

} // namespace fusec
