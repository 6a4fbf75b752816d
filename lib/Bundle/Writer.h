#pragma once
#include "Bundle/Model.h"
#include "Bundle/Signature.h"
#include "Support/Pieces.h"

#include <functional>
#include <string>

namespace fusec::bundle {

/// Gives all bytes of weight `w` of the model, the same ones each time; another number of them than `sizeBytes` is an
/// internal error.
using GiveWeight = std::function<Status(size_t w, const TakeBytes &take)>;

/// Writes `model` to `path` as bundle_format.h says. Equal weights (type and bytes) are stored once; lifetimes
/// are filled in; the model is checked first. The same model gives the same bytes. The file appears under its
/// name only when it is whole and on disk: it is written beside the target and renamed. Signed where `key` is given.
/// `give`: asked twice for the data of weights whose `bytes` are null.
Status writeBundle(Model model, const std::string &path, const SecretKey *key = nullptr,
                   const GiveWeight &give = nullptr);

/// Writes the bundle into memory.
Result<std::vector<uint8_t>> writeBundle(Model model, const SecretKey *key = nullptr);

} // namespace fusec::bundle
