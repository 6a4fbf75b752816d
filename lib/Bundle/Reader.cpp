#include "Bundle/Reader.h"

#include "Bundle/Check.h"
#include "Bundle/Digest.h"
#include "Bundle/ElfImage.h"
#include "Bundle/Manifest.h"
#include "Support/Diag.h"
#include "fusec/bundle_format.h"

#include <algorithm>
#include <cstring>

namespace fusec::bundle {

namespace {

class Reader {
public:
  Reader(const uint8_t *bytes, size_t size, Verify verify, const std::string &where,
         const PublicKey *key)
      : bytes(bytes), size(size), verify(verify), where(where), key(key) {}

  Result<Model> run() {
    copyHeader();
    if (key)
      FUSEC_CHECK(checkOrigin());
    FUSEC_CHECK(readHeader());
    FUSEC_CHECK(readTable());
    FUSEC_CHECK(checkPadding());
    FUSEC_TRY(DecodedManifest manifest, readManifest());
    FUSEC_CHECK(attachImages(manifest));
    FUSEC_CHECK(attachWeights(manifest));
    if (Status s = check(manifest.model); !s) {
      Diagnostic d = s.errors().front();
      d.where = where + ": " + d.where;
      return d;
    }
    FUSEC_CHECK(checkImages(manifest.model));
    return std::move(manifest.model);
  }

private:
  const uint8_t *bytes;
  const size_t size;
  const Verify verify;
  const std::string &where;
  const PublicKey *key;
  fusec_bundle_header header{};
  fusec_bundle_signature signature{}; // whatever follows the header
  std::vector<fusec_bundle_section> table;

  Diagnostic bad(std::string text) const {
    return Diagnostic{Diag::BadBundle, where, std::move(text)};
  }

  void copyHeader() {
    if (size >= sizeof header)
      std::memcpy(&header, bytes, sizeof header);
    if (size >= sizeof header + sizeof signature)
      std::memcpy(&signature, bytes + sizeof header, sizeof signature);
  }

  bool isSigned() const { return header.signature_kind != FUSEC_SIGNATURE_NONE; }
  /// Bytes in front of the section table.
  size_t tableStart() const { return sizeof header + (isSigned() ? sizeof signature : 0); }

  /// Refuses what the holder of `key` did not sign; reads the file's content for the message alone.
  Status checkOrigin() const {
    const auto refused = [&](std::string text) {
      return Diagnostic{Diag::BadSignature, where, std::move(text)};
    };
    const bool there = size >= sizeof header + sizeof signature;
    const bool sameKey = std::memcmp(signature.public_key, key->data(), key->size()) == 0;
    if (there && sameKey && signatureFits(header, signature, *key))
      return success();
    if (!there || header.signature_kind != FUSEC_SIGNATURE_ED25519)
      return refused("not signed, but a public key was given: sign it with fusec --sign");
    if (!sameKey)
      return refused("signed with another key: the given public key is " +
                     hex(key->data(), key->size()) + ", the file's is " +
                     hex(signature.public_key, sizeof signature.public_key));
    return refused("the signature does not fit the header: one of them was changed");
  }

  Status readHeader() {
    if (size < sizeof header)
      return bad("too short for a bundle (" + std::to_string(size) + " bytes)");
    if (std::memcmp(header.magic, FUSEC_BUNDLE_MAGIC, sizeof header.magic) != 0)
      return bad("not a fusec bundle (the first bytes are not FUSECBDL)");
    if (header.endian_tag != FUSEC_ENDIAN_TAG || header.pointer_bytes != 8)
      return bad("made for another byte order or pointer size");
    if (header.version > FUSEC_FORMAT_VERSION || header.min_runtime > FUSEC_RUNTIME_VERSION)
      return Diagnostic{Diag::UnsupportedTarget, where,
                        "format version " + std::to_string(header.version) + ", runtime version " +
                            std::to_string(header.min_runtime) +
                            " needed; this runtime knows format " +
                            std::to_string(FUSEC_FORMAT_VERSION) + " and is version " +
                            std::to_string(FUSEC_RUNTIME_VERSION)};
    if (header.version == 0 || header.min_runtime == 0)
      return bad("version 0 does not exist");
    if (header.section_size != sizeof(fusec_bundle_section) || header.section_count == 0 ||
        header.section_count > FUSEC_MAX_SECTIONS)
      return bad("unusable section table");
    if (header.file_bytes != size)
      return bad("the header says " + std::to_string(header.file_bytes) + " bytes, the file has " +
                 std::to_string(size) + " (cut off, or something appended)");
    for (uint8_t b : header.reserved)
      if (b != 0)
        return bad("reserved bytes of the header are not zero");
    if (!isSigned())
      return success();
    if (header.signature_kind != FUSEC_SIGNATURE_ED25519)
      return bad("signature of unknown kind " + std::to_string(header.signature_kind));
    PublicKey own;
    std::memcpy(own.data(), signature.public_key, own.size());
    if (size < tableStart() || (!key && !signatureFits(header, signature, own)))
      return bad("the signature or the header was changed (they do not fit each other)");
    return success();
  }

  Status readTable() {
    const size_t tableBytes = header.section_count * sizeof(fusec_bundle_section);
    if (size < tableStart() || size - tableStart() < tableBytes)
      return bad("the section table is cut off");
    std::vector<uint8_t> covered(sizeof header + tableBytes);
    table.resize(header.section_count);
    std::memcpy(table.data(), bytes + tableStart(), tableBytes);
    fusec_bundle_header bare = header;
    std::memset(bare.digest, 0, sizeof bare.digest);
    std::memcpy(covered.data(), &bare, sizeof bare);
    std::memcpy(covered.data() + sizeof bare, table.data(), tableBytes);
    if (!matches(covered.data(), covered.size(), header.digest))
      return bad("the header or the section table was changed (digest differs)");

    uint64_t end = tableStart() + tableBytes;
    size_t weights = 0, digests = 0;
    for (size_t i = 0; i < table.size(); ++i) {
      const fusec_bundle_section &s = table[i];
      const std::string place = "section " + std::to_string(i);
      if (s.reserved0 != 0 || s.reserved1 != 0)
        return bad(place + ": reserved bytes are not zero");
      if (s.size == 0 || s.offset % FUSEC_SECTION_ALIGN != 0 || s.offset > size ||
          s.size > size - s.offset)
        return bad(place + " is empty, not aligned or outside the file");
      if (s.offset < end || s.offset - end >= FUSEC_SECTION_ALIGN)
        return bad(place + " overlaps its neighbour or leaves a hole");
      end = s.offset + s.size;
      weights += s.kind == FUSEC_SECTION_WEIGHTS;
      digests += s.kind == FUSEC_SECTION_DIGESTS;
      const bool first = i == 0;
      const size_t last = table.size() - 1;
      const bool inOrder = (s.kind == FUSEC_SECTION_MANIFEST && first) ||
                           (s.kind == FUSEC_SECTION_CODE && !first) ||
                           (s.kind == FUSEC_SECTION_WEIGHTS && i + 1 == last) ||
                           (s.kind == FUSEC_SECTION_DIGESTS && !first && i == last);
      if (!inOrder || (s.kind == FUSEC_SECTION_CODE && weights + digests > 0))
        return bad(place + " is of unknown kind or stands in the wrong place");
    }
    if (end != size || weights != digests)
      return bad("a section is missing or bytes follow the last one");
    return success();
  }

  static bool matches(const void *data, size_t n, const uint8_t *digest) {
    return std::memcmp(digestOf(data, n).data(), digest, FUSEC_DIGEST_BYTES) == 0;
  }

  Status checkPadding() {
    uint64_t at = tableStart() + table.size() * sizeof(fusec_bundle_section);
    for (const fusec_bundle_section &s : table) {
      for (; at < s.offset; ++at)
        if (bytes[at] != 0)
          return bad("the padding in front of a section is not zero");
      at = s.offset + s.size;
    }
    return success();
  }

  /// A private copy of section `i` whose digest is right.
  Result<std::vector<uint8_t>> copySection(size_t i) const {
    const fusec_bundle_section &s = table[i];
    std::vector<uint8_t> copy(bytes + s.offset, bytes + s.offset + s.size);
    if (!matches(copy.data(), copy.size(), s.digest))
      return bad("section " + std::to_string(i) + " was changed (digest differs)");
    return copy;
  }

  Result<DecodedManifest> readManifest() {
    FUSEC_TRY(std::vector<uint8_t> copy, copySection(0));
    return decodeManifest(copy.data(), copy.size(), where);
  }

  Status attachImages(DecodedManifest &m) {
    const size_t count = static_cast<size_t>(std::count_if(
        table.begin(), table.end(), [](const auto &s) { return s.kind == FUSEC_SECTION_CODE; }));
    if (m.imageSections.size() != count)
      return bad("the number of code sections is not that of the images");
    std::vector<bool> taken(table.size(), false);
    size_t next = 0;
    for (Program &p : m.model.programs)
      for (Image &image : p.images) {
        const uint32_t i = m.imageSections[next++];
        if (i >= table.size() || table[i].kind != FUSEC_SECTION_CODE || taken[i])
          return bad("an image of '" + p.target +
                     "' names a section that is not its own code section");
        taken[i] = true;
        if (image.kind > ImageKind::CodeObject || image.minDriver < 0)
          return bad("an image of '" + p.target + "' is of unknown kind");
        FUSEC_TRY(image.code, copySection(i));
      }
    return success();
  }

  Status attachWeights(DecodedManifest &m) {
    uint64_t end = 0;
    const bool present = table.back().kind == FUSEC_SECTION_DIGESTS;
    const fusec_bundle_section section = present ? table[table.size() - 2] : fusec_bundle_section{};
    for (const WeightRange &r : m.weights) {
      const uint64_t want =
          (end + FUSEC_WEIGHT_ALIGN - 1) / FUSEC_WEIGHT_ALIGN * FUSEC_WEIGHT_ALIGN;
      if (r.offset != want || r.size > section.size || r.offset > section.size - r.size)
        return bad("a weight is outside its section, overlaps another or leaves a hole");
      end = r.offset + r.size;
      m.model.weights.push_back(
          {r.type, bytes + section.offset + r.offset, static_cast<int64_t>(r.size)});
    }
    if (end != section.size)
      return bad("the weights do not fill their section");
    if (!present)
      return success();
    FUSEC_TRY(std::vector<uint8_t> digests, copySection(table.size() - 1));
    const uint64_t chunks = (section.size + FUSEC_WEIGHT_CHUNK - 1) / FUSEC_WEIGHT_CHUNK;
    if (digests.size() != chunks * FUSEC_DIGEST_BYTES ||
        std::memcmp(section.digest, table.back().digest, FUSEC_DIGEST_BYTES) != 0)
      return bad("the digests of the weights do not fit the weights");
    if (verify == Verify::Code)
      return success();
    for (uint64_t c = 0; c < chunks; ++c) {
      const uint64_t at = c * FUSEC_WEIGHT_CHUNK;
      if (!matches(bytes + section.offset + at,
                   std::min<uint64_t>(FUSEC_WEIGHT_CHUNK, section.size - at),
                   digests.data() + c * FUSEC_DIGEST_BYTES))
        return bad("the weights were changed (digest of chunk " + std::to_string(c) + " differs)");
    }
    return success();
  }

  Status checkImages(const Model &m) {
    for (const Program &p : m.programs) {
      const bool hostCode = isCpuTarget(p.target) || isSimTarget(p.target);
      for (const Image &image : p.images) {
        if ((image.kind == ImageKind::Elf) != hostCode)
          return bad("an image of '" + p.target + "' is of a kind that this target does not run");
        if (!hostCode)
          continue;
        FUSEC_TRY(ElfImage elf, parseElfImage(image.code.data(), image.code.size(), where));
        for (const Kernel &k : p.kernels) {
          const std::string all = k.symbol + "_grid";
          if (k.gridBarrier && !elf.functions.count(all))
            return bad("the code for '" + p.target + "' has no function '" + all + "'");
          for (size_t phase = 0; phase < k.grids.size(); ++phase) {
            const std::string entry =
                isSimTarget(p.target) ? k.symbol + "_p" + std::to_string(phase) : k.symbol;
            if (!elf.functions.count(entry))
              return bad("the code for '" + p.target + "' has no function '" + entry + "'");
          }
        }
      }
    }
    return success();
  }
};

} // namespace

Result<Model> readBundle(const uint8_t *bytes, size_t size, Verify verify, const std::string &where,
                         const PublicKey *key) {
  return Reader(bytes, size, verify, where, key).run();
}

} // namespace fusec::bundle
