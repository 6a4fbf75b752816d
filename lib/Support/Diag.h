#pragma once
#include "Support/Diagnostic.h"

namespace fusec {

enum class Diag : uint16_t {
#define FUSEC_DIAG(id, code, exitCode, summary) id,
#include "Support/Diagnostics.def"
};

} // namespace fusec
