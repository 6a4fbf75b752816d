#pragma once
#include "Bundle/Signature.h"
#include "Driver/State.h"

namespace fusec {

/// Writes the compiled model to `path`, as lib/Bundle does. Weights are packed on the way, by up to `threads` threads.
Status writeBundle(const CompileState &state, const std::string &path, const bundle::SecretKey *key,
                   int threads);

} // namespace fusec
