#include "Runtime/Error.h"

#include "Support/Diag.h"

#include <cstring>

namespace fusec::rt {

namespace {
// Plain storage: a thread that ends leaves nothing behind.
thread_local char lastErrorText[1024];
} // namespace

fusert_status fail(fusert_status status, const std::string &text) {
  const size_t n = text.size() < sizeof lastErrorText ? text.size() : sizeof lastErrorText - 1;
  std::memcpy(lastErrorText, text.data(), n);
  lastErrorText[n] = 0;
  return status;
}

fusert_status fail(const Diagnostics &list) {
  const Diagnostic &d = list.front();
  fusert_status status = FUSERT_INTERNAL;
  switch (d.id) {
  case Diag::BadBundle: status = FUSERT_BAD_BUNDLE; break;
  case Diag::BadSignature: status = FUSERT_BAD_SIGNATURE; break;
  case Diag::UnsupportedTarget: status = FUSERT_UNSUPPORTED; break;
  case Diag::UnreadableFile: status = FUSERT_IO_ERROR; break;
  default: break;
  }
  return fail(status, d.where.empty() ? d.text : d.where + ": " + d.text);
}

const char *lastError() { return lastErrorText; }

} // namespace fusec::rt
