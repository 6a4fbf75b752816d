#pragma once
#include "Support/Diagnostic.h"
#include "fusec/runtime.h"

#include <string>

namespace fusec::rt {

/// Sets the calling thread's last error and returns `status`: `return fail(FUSERT_BUSY, "...")`.
fusert_status fail(fusert_status status, const std::string &text);
/// Sets the last error to what the bundle reader says, and returns its status.
fusert_status fail(const Diagnostics &list);
const char *lastError();

#define FUSERT_TRY(...)                                                                            \
  do {                                                                                             \
    if (fusert_status tryStatus = (__VA_ARGS__); tryStatus != FUSERT_OK)                           \
      return tryStatus;                                                                            \
  } while (0)

} // namespace fusec::rt
