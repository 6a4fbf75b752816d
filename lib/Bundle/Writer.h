#pragma once
#include "Bundle/Model.h"
#include "Bundle/Signature.h"
#include "Support/Result.h"

#include <string>

namespace fusec::bundle {

/// Writes `model` to `path` as bundle_format.h says. Equal weights (type and bytes) are stored once; lifetimes
/// are filled in; the model is checked first. The same model gives the same bytes. The file appears under its
/// name only when it is whole and on disk: it is written beside the target and renamed. Signed where `key` is given.
Status writeBundle(Model model, const std::string &path, const SecretKey *key = nullptr);

/// The same into memory.
Result<std::vector<uint8_t>> writeBundle(Model model, const SecretKey *key = nullptr);

} // namespace fusec::bundle
