#include "Bundle/Writer.h"

#include "Bundle/AtomicFile.h"
#include "Bundle/Check.h"
#include "Bundle/Digest.h"
#include "Bundle/Liveness.h"
#include "Bundle/Manifest.h"
#include "Support/Diag.h"
#include "Support/DimProgram.h"
#include "Support/Hash.h"
#include "fusec/bundle_format.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace fusec::bundle {

namespace {

uint64_t alignUp(uint64_t v, uint64_t to) { return (v + to - 1) / to * to; }

/// What the WEIGHTS section holds. Its data may have to be made and is looked at once here.
struct WeightPlaces {
  std::vector<WeightRange> ranges; // one a weight of the model
  std::vector<size_t> origins;     // which weight the caller knows it as
  std::vector<uint8_t> digests;
  uint64_t sizeBytes = 0;
};

Status giveBytes(const Model &model, size_t w, const GiveWeight &give, const TakeBytes &take) {
  const Weight &weight = model.weights[w];
  if (weight.sizeBytes == 0 || weight.bytes)
    return take(weight.bytes, static_cast<size_t>(weight.sizeBytes));
  int64_t came = 0;
  FUSEC_CHECK(give(w, [&](const uint8_t *bytes, size_t n) {
    came += static_cast<int64_t>(n);
    return take(bytes, n);
  }));
  if (came != weight.sizeBytes)
    return Diagnostic{Diag::InternalError, "bundle",
                      "weight " + std::to_string(w) + " has " + std::to_string(weight.sizeBytes) +
                          " bytes; " + std::to_string(came) + " came"};
  return success();
}

/// The numbers of weights that tensors and inputs have.
std::vector<int32_t *> weightUses(Model &model) {
  std::vector<int32_t *> uses;
  for (Value &v : model.inputs)
    if (v.weight >= 0)
      uses.push_back(&v.weight);
  for (Program &p : model.programs)
    for (Tensor &t : p.tensors)
      if (t.kind == TensorKind::Constant)
        uses.push_back(&t.weight);
  return uses;
}

/// Replaces equal weights by the first of them, drops those that nothing uses, and gives each other one its place.
Result<WeightPlaces> placeWeights(Model &model, const GiveWeight &give) {
  static const uint8_t zeros[FUSEC_WEIGHT_ALIGN] = {};
  std::vector<bool> used(model.weights.size(), false);
  const std::vector<int32_t *> uses = weightUses(model);
  for (const int32_t *weight : uses)
    used[*weight] = true;
  std::map<std::pair<Hash128, DType>, int32_t> known; // 128 bits: equal hashes mean equal bytes
  std::vector<int32_t> newIndex(model.weights.size(), -1);
  std::vector<Weight> kept;
  WeightPlaces places;
  ChunkDigester chunks;
  for (size_t i = 0; i < model.weights.size(); ++i) {
    if (!used[i])
      continue;
    const Weight &w = model.weights[i];
    const ChunkDigester::Mark before = chunks.mark();
    const uint64_t offset = alignUp(places.sizeBytes, FUSEC_WEIGHT_ALIGN);
    chunks.add(zeros, offset - places.sizeBytes);
    PiecewiseHash hash;
    FUSEC_CHECK(giveBytes(model, i, give, [&](const uint8_t *bytes, size_t n) {
      hash.add(bytes, n);
      chunks.add(bytes, n);
      return success();
    }));
    auto [at, fresh] = known.try_emplace({hash.value(), w.type}, static_cast<int32_t>(kept.size()));
    newIndex[i] = at->second;
    if (!fresh) {
      chunks.goBack(before);
      continue;
    }
    kept.push_back(w);
    places.origins.push_back(i);
    places.ranges.push_back({offset, static_cast<uint64_t>(w.sizeBytes), w.type});
    places.sizeBytes = offset + static_cast<uint64_t>(w.sizeBytes);
  }
  places.digests = chunks.finish();
  model.weights = std::move(kept);
  for (int32_t *weight : uses)
    *weight = newIndex[*weight];
  return places;
}

void fillLiveness(Program &program) {
  std::vector<Interval> live = computeLiveness(program);
  for (size_t i = 0; i < live.size(); ++i)
    if (program.tensors[i].kind == TensorKind::Temp) {
      program.tensors[i].firstStep = live[i].first;
      program.tensors[i].lastStep = live[i].last;
    }
}

/// computeLiveness indexes by these numbers before check() can run.
bool tensorIndicesInRange(const std::vector<Step> &steps, size_t count) {
  auto in = [&](int32_t t) { return t >= -1 && t < static_cast<int64_t>(count); };
  for (const Step &s : steps) {
    for (const Variant &v : s.variants)
      for (int32_t t : v.arguments)
        if (!in(t))
          return false;
    for (const auto *list : {&s.before, &s.thenCopies, &s.elseCopies, &s.after})
      for (const Copy &c : *list)
        if (!in(c.from) || !in(c.to))
          return false;
    if (!in(s.condition) || !in(s.tripCount) || !in(s.iteration) || !in(s.nextCondition) ||
        !tensorIndicesInRange(s.thenSteps, count) || !tensorIndicesInRange(s.elseSteps, count))
      return false;
  }
  return true;
}

/// A bundle ready to be written: everything except the weights, which are streamed.
struct Layout {
  fusec_bundle_header header{};
  std::optional<fusec_bundle_signature> signature;
  std::vector<fusec_bundle_section> sections;
  std::vector<uint8_t> manifest;
  WeightPlaces weights;
};

/// Whether one of the steps, or of those inside them, is wanted.
template <typename F> bool anyStep(const std::vector<Step> &steps, const F &wanted) {
  return std::ranges::any_of(steps, [&](const Step &s) {
    return wanted(s) || anyStep(s.thenSteps, wanted) || anyStep(s.elseSteps, wanted);
  });
}

void addSection(Layout &out, uint32_t kind, uint64_t size, const Digest &digest) {
  fusec_bundle_section s{};
  s.kind = kind;
  s.size = size;
  std::memcpy(s.digest, digest.data(), digest.size());
  out.sections.push_back(s);
}

Layout layOut(const Model &model, WeightPlaces weights, const SecretKey *key) {
  Layout out;
  out.weights = std::move(weights);
  std::vector<uint32_t> imageSections;
  uint32_t next = 1; // the manifest is section 0
  for (const Program &p : model.programs)
    for (size_t i = 0; i < p.images.size(); ++i)
      imageSections.push_back(next++);

  out.manifest = encodeManifest(model, out.weights.ranges, imageSections);

  addSection(out, FUSEC_SECTION_MANIFEST, out.manifest.size(),
             digestOf(out.manifest.data(), out.manifest.size()));
  for (const Program &p : model.programs)
    for (const Image &i : p.images)
      addSection(out, FUSEC_SECTION_CODE, i.code.size(), digestOf(i.code.data(), i.code.size()));
  if (out.weights.sizeBytes > 0) {
    const std::vector<uint8_t> &digests = out.weights.digests;
    const Digest all = digestOf(digests.data(), digests.size());
    addSection(out, FUSEC_SECTION_WEIGHTS, out.weights.sizeBytes, all);
    addSection(out, FUSEC_SECTION_DIGESTS, digests.size(), all);
  }
  uint64_t at = sizeof(fusec_bundle_header) + (key ? sizeof(fusec_bundle_signature) : 0) +
                out.sections.size() * sizeof(fusec_bundle_section);
  for (fusec_bundle_section &s : out.sections) {
    s.offset = alignUp(at, FUSEC_SECTION_ALIGN);
    at = s.offset + s.size;
  }

  fusec_bundle_header &h = out.header;
  std::memcpy(h.magic, FUSEC_BUNDLE_MAGIC, sizeof h.magic);
  h.version = FUSEC_FORMAT_VERSION;
  const auto &in = model.inputs;
  const bool defaults =
      std::any_of(in.begin(), in.end(), [](const Value &v) { return v.weight >= 0; });
  const bool hasRules = !model.inferred.empty() || !model.rules.empty();
  const bool computes = numGiven(model) < model.symbols.size();
  const auto isWhere = [](const Step &s) { return s.kind == StepKind::Where; };
  const auto isSize = [](const Step &s) { return s.kind == StepKind::Size; };
  bool hasWhere = false, sizesInWhere = false;
  for (const Program &p : model.programs) {
    hasWhere = hasWhere || anyStep(p.steps, isWhere);
    sizesInWhere =
        sizesInWhere || anyStep(p.steps, [&](const Step &s) {
          return isWhere(s) && (anyStep(s.thenSteps, isSize) || anyStep(s.elseSteps, isSize));
        });
  }
  h.min_runtime = sizesInWhere ? 5 : hasWhere ? 4 : hasRules || computes ? 3 : defaults ? 2 : 1;
  h.endian_tag = FUSEC_ENDIAN_TAG;
  h.pointer_bytes = 8;
  h.section_count = static_cast<uint32_t>(out.sections.size());
  h.section_size = sizeof(fusec_bundle_section);
  h.file_bytes = at;
  h.signature_kind = key ? FUSEC_SIGNATURE_ED25519 : FUSEC_SIGNATURE_NONE;
  std::vector<uint8_t> digested(sizeof h + out.sections.size() * sizeof(fusec_bundle_section));
  std::memcpy(digested.data(), &h, sizeof h);
  std::memcpy(digested.data() + sizeof h, out.sections.data(), digested.size() - sizeof h);
  const Digest d = digestOf(digested.data(), digested.size());
  std::memcpy(h.digest, d.data(), d.size());
  if (key)
    out.signature = sign(h, *key);
  return out;
}

/// Gives the whole file, in order. `model` has the weights that `layout` has places for.
Status emit(const Model &model, const Layout &layout, const GiveWeight &give,
            const TakeBytes &take) {
  static const std::vector<uint8_t> zeros(FUSEC_SECTION_ALIGN, 0);
  uint64_t at = 0;
  auto write = [&](const void *data, uint64_t size) -> Status {
    at += size;
    return take(static_cast<const uint8_t *>(data), static_cast<size_t>(size));
  };
  FUSEC_CHECK(write(&layout.header, sizeof layout.header));
  if (layout.signature)
    FUSEC_CHECK(write(&*layout.signature, sizeof *layout.signature));
  FUSEC_CHECK(write(layout.sections.data(), layout.sections.size() * sizeof(fusec_bundle_section)));
  size_t section = 0;
  auto pad = [&] { return write(zeros.data(), layout.sections[section++].offset - at); };
  FUSEC_CHECK(pad());
  FUSEC_CHECK(write(layout.manifest.data(), layout.manifest.size()));
  for (const Program &p : model.programs)
    for (const Image &i : p.images) {
      FUSEC_CHECK(pad());
      FUSEC_CHECK(write(i.code.data(), i.code.size()));
    }
  if (layout.weights.sizeBytes == 0)
    return success();
  FUSEC_CHECK(pad());
  const uint64_t start = at;
  for (size_t w = 0; w < model.weights.size(); ++w) {
    FUSEC_CHECK(write(zeros.data(), layout.weights.ranges[w].offset - (at - start)));
    FUSEC_CHECK(giveBytes(
        model, w,
        [&](size_t i, const TakeBytes &to) { return give(layout.weights.origins[i], to); }, write));
  }
  FUSEC_CHECK(pad());
  return write(layout.weights.digests.data(), layout.weights.digests.size());
}

/// The model as it will be read, and the file without its weights.
Result<Layout> prepare(Model &model, const SecretKey *key, const GiveWeight &give) {
  size_t images = 0;
  for (Program &p : model.programs) {
    if (!tensorIndicesInRange(p.steps, p.tensors.size()))
      return Diagnostic{Diag::InternalError, "bundle", "a step names a tensor that does not exist"};
    fillLiveness(p);
    images += p.images.size();
    for (const Image &i : p.images)
      if (i.code.empty())
        return Diagnostic{Diag::InternalError, "bundle",
                          "an image for '" + p.target + "' is empty"};
  }
  if (images > FUSEC_MAX_SECTIONS - 3)
    return Diagnostic{Diag::LimitExceeded, "bundle", "more than 1021 images of machine code"};
  FUSEC_CHECK(check(model));
  FUSEC_TRY(WeightPlaces places, placeWeights(model, give));
  return layOut(model, std::move(places), key);
}

} // namespace

Status writeBundle(Model model, const std::string &path, const SecretKey *key,
                   const GiveWeight &give) {
  FUSEC_TRY(const Layout layout, prepare(model, key, give));
  AtomicFile file(path);
  FUSEC_CHECK(file.open());
  FUSEC_CHECK(emit(model, layout, give,
                   [&](const uint8_t *data, size_t n) { return file.write(data, n); }));
  return file.commit();
}

Result<std::vector<uint8_t>> writeBundle(Model model, const SecretKey *key) {
  FUSEC_TRY(const Layout layout, prepare(model, key, nullptr));
  std::vector<uint8_t> out;
  FUSEC_CHECK(emit(model, layout, nullptr, [&](const uint8_t *data, size_t n) {
    out.insert(out.end(), data, data + n);
    return success();
  }));
  return out;
}

} // namespace fusec::bundle
