#pragma once
#include "Bundle/Model.h"
#include "Support/Result.h"

namespace fusec::bundle {

/// Where the manifest says that a weight lies in the WEIGHTS section.
struct WeightRange {
  uint64_t offset, size;
  DType type;
};

/// DataSize.test where it is absent, as in bundles from before there was one.
constexpr uint8_t kTestByName = 255;

/// Model <-> FlatBuffer (Manifest.fbs). Images and weights are replaced by references: `imageSections` has the
/// section index of each image, programs in order.
std::vector<uint8_t> encodeManifest(const Model &model, const std::vector<WeightRange> &weights,
                                    const std::vector<uint32_t> &imageSections);

struct DecodedManifest {
  Model model; // images without code, weights without bytes
  std::vector<WeightRange> weights;
  std::vector<uint32_t> imageSections;
};
/// Checks the FlatBuffer's structure and reads it; the model's own rules are check()'s.
Result<DecodedManifest> decodeManifest(const uint8_t *bytes, size_t size, const std::string &where);

} // namespace fusec::bundle
