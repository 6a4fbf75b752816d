#pragma once
#include "Bundle/Digest.h"
#include "Bundle/Liveness.h"
#include "Bundle/Manifest.h"
#include "Bundle/Reader.h"
#include "Bundle/Writer.h"
#include "TestModels.h"
#include "fusec/bundle_format.h"

#include <cstring>
#include <functional>

namespace test {

/// A bundle put together without the writer's checks, so that each part can be made wrong while all digests are
/// right.
struct RawBundle {
  Model model;
  std::vector<WeightRange> ranges;
  std::vector<uint32_t> imageSections;
  std::vector<uint8_t> weights;
  bool fillLiveness = true;
  std::function<void(std::vector<uint8_t> &manifest)> editManifest;
  std::function<void(fusec_bundle_header &, std::vector<fusec_bundle_section> &)> editTable;
  std::function<void(std::vector<uint8_t> &file)> editFile; // after the digests

  explicit RawBundle(Model m) : model(std::move(m)) {
    uint32_t next = 1;
    for (const Program &p : model.programs)
      for (size_t i = 0; i < p.images.size(); ++i)
        imageSections.push_back(next++);
    for (const Weight &w : model.weights) {
      weights.resize((weights.size() + 63) / 64 * 64);
      ranges.push_back({weights.size(), static_cast<uint64_t>(w.sizeBytes), w.type});
      weights.insert(weights.end(), w.bytes, w.bytes + w.sizeBytes);
    }
  }

  std::vector<uint8_t> bytes() {
    if (fillLiveness)
      for (Program &p : model.programs) {
        std::vector<Interval> live = computeLiveness(p);
        for (size_t i = 0; i < live.size(); ++i)
          if (p.tensors[i].kind == TensorKind::Temp) {
            p.tensors[i].firstStep = live[i].first;
            p.tensors[i].lastStep = live[i].last;
          }
      }
    std::vector<uint8_t> manifest = encodeManifest(model, ranges, imageSections);
    if (editManifest)
      editManifest(manifest);
    std::vector<std::pair<uint32_t, std::vector<uint8_t>>> parts = {
        {FUSEC_SECTION_MANIFEST, manifest}};
    for (const Program &p : model.programs)
      for (const Image &i : p.images)
        parts.push_back({FUSEC_SECTION_CODE, i.code});
    if (!weights.empty()) {
      ChunkDigester chunks;
      chunks.add(weights.data(), weights.size());
      parts.push_back({FUSEC_SECTION_WEIGHTS, weights});
      parts.push_back({FUSEC_SECTION_DIGESTS, chunks.finish()});
    }
    std::vector<fusec_bundle_section> table;
    uint64_t at = sizeof(fusec_bundle_header) + parts.size() * sizeof(fusec_bundle_section);
    for (const auto &[kind, data] : parts) {
      fusec_bundle_section s{};
      s.kind = kind;
      s.offset = (at + 4095) / 4096 * 4096;
      s.size = data.size();
      at = s.offset + s.size;
      const Digest d =
          digestOf(kind == FUSEC_SECTION_WEIGHTS ? parts.back().second.data() : data.data(),
                   kind == FUSEC_SECTION_WEIGHTS ? parts.back().second.size() : data.size());
      std::memcpy(s.digest, d.data(), d.size());
      table.push_back(s);
    }
    fusec_bundle_header h{};
    std::memcpy(h.magic, FUSEC_BUNDLE_MAGIC, 8);
    h.version = FUSEC_FORMAT_VERSION;
    h.min_runtime = 1;
    h.endian_tag = FUSEC_ENDIAN_TAG;
    h.pointer_bytes = 8;
    h.section_count = static_cast<uint32_t>(table.size());
    h.section_size = sizeof(fusec_bundle_section);
    h.file_bytes = at;
    std::vector<uint8_t> file(at);
    for (size_t i = 0; i < parts.size(); ++i)
      std::memcpy(file.data() + table[i].offset, parts[i].second.data(), parts[i].second.size());
    if (editTable)
      editTable(h, table);
    std::vector<uint8_t> head(sizeof h + table.size() * sizeof(fusec_bundle_section));
    std::memcpy(head.data(), &h, sizeof h);
    std::memcpy(head.data() + sizeof h, table.data(), head.size() - sizeof h);
    const Digest d = digestOf(head.data(), head.size());
    std::memcpy(h.digest, d.data(), d.size());
    std::memcpy(head.data(), &h, sizeof h);
    if (file.size() < head.size())
      file.resize(head.size());
    std::memcpy(file.data(), head.data(), head.size());
    if (editFile)
      editFile(file);
    return file;
  }
};

/// "" when the bundle is good, else the text of the refusal.
inline std::string refusal(const std::vector<uint8_t> &file, Verify verify = Verify::Full) {
  Result<Model> r = readBundle(file.data(), file.size(), verify, "b");
  return r.ok() ? "" : r.errors().front().where + ": " + r.errors().front().text;
}

} // namespace test
