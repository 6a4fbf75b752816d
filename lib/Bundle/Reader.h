#pragma once
#include "Bundle/Model.h"
#include "Bundle/Signature.h"
#include "Support/Result.h"

namespace fusec::bundle {

enum class Verify {
  Full, // all digests
  Code, // all but those of the weights' chunks
};

/// Checks a bundle and reads it: header, section table, digests, manifest (structure and rules), images for
/// CPUs. `bytes` must outlive the result: weights point into it; everything else is copied before it is checked.
/// With `key`, nothing is looked at before a signature by that key was found to fit. Each failure is a BadBundle
/// diagnostic, UnsupportedTarget where the file needs a newer runtime, or BadSignature.
Result<Model> readBundle(const uint8_t *bytes, size_t size, Verify verify, const std::string &where,
                         const PublicKey *key = nullptr);

} // namespace fusec::bundle
