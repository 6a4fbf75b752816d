#include "Driver/Diff.h"

#include "Bundle/Reader.h"
#include "Support/Diag.h"
#include "Support/DimProgram.h"
#include "fusec/bundle_format.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

namespace fusec {

namespace {

struct File {
  std::vector<uint8_t> bytes;
  bundle::Model model; // weights point into `bytes`
};

Result<std::vector<uint8_t>> readBytes(const std::string &path) {
  // A folder can be opened, and says that it is as long as a file can be.
  std::error_code error;
  const bool isFile = std::filesystem::is_regular_file(path, error);
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = isFile && in ? static_cast<std::streamoff>(in.tellg()) : -1;
  std::vector<uint8_t> bytes(static_cast<size_t>(std::max<std::streamoff>(size, 0)));
  if (size >= 0)
    in.seekg(0).read(reinterpret_cast<char *>(bytes.data()), size);
  if (size < 0 || !in)
    return Diagnostic{Diag::UnreadableFile, path, "cannot be read; expected a bundle"};
  return bytes;
}

const char *sectionName(uint32_t kind) {
  switch (kind) {
  case FUSEC_SECTION_MANIFEST: return "manifest";
  case FUSEC_SECTION_CODE: return "code";
  case FUSEC_SECTION_WEIGHTS: return "weights";
  default: return "digests";
  }
}

/// `file` was found to be well-formed.
BundleDiff::Side sideOf(const File &file, const std::string &path) {
  BundleDiff::Side side;
  side.path = path;
  side.producer = file.model.producer;
  side.fileBytes = file.bytes.size();
  side.weights = file.model.weights.size();
  for (const bundle::Weight &w : file.model.weights)
    side.weightBytes += static_cast<uint64_t>(w.sizeBytes);
  fusec_bundle_header header;
  std::memcpy(&header, file.bytes.data(), sizeof header);
  size_t at = sizeof header;
  if (header.signature_kind != FUSEC_SIGNATURE_NONE)
    at += sizeof(fusec_bundle_signature);
  for (uint32_t s = 0; s < header.section_count; ++s, at += sizeof(fusec_bundle_section)) {
    fusec_bundle_section section;
    std::memcpy(&section, file.bytes.data() + at, sizeof section);
    const std::string kind = sectionName(section.kind);
    if (!side.sections.empty() && side.sections.back().first == kind)
      side.sections.back().second += section.size;
    else
      side.sections.push_back({kind, section.size});
  }
  return side;
}

Result<File> load(const std::string &path) {
  File file;
  FUSEC_TRY(file.bytes, readBytes(path));
  FUSEC_TRY(file.model,
            bundle::readBundle(file.bytes.data(), file.bytes.size(), bundle::Verify::Full, path));
  return file;
}

struct Side {
  std::string plan;
  std::vector<DiffedKernel> kernels;
  Sums sums;
};

Result<Side> programSide(const bundle::Program &program, const std::string &path) {
  Result<DecidedPlan> read = readDecisions(program.decisions, path);
  if (!read)
    return Diagnostic{Diag::BadBundle, path,
                      "the decisions for " + program.target +
                          " cannot be read: " + read.errors().front().text};
  DecidedPlan &decided = *read;
  std::map<std::string, const bundle::Kernel *> kernels;
  for (const bundle::Kernel &k : program.kernels)
    kernels[k.symbol] = &k;
  Side side;
  side.plan = decided.plan;
  for (DecidedKernel &kernel : decided.kernels) {
    DiffedKernel out{kernel.name, {}, kernel};
    if (auto it = kernels.find(kernel.name); it != kernels.end())
      out.nodes = it->second->onnxNodes;
    const auto launches = static_cast<double>(kernel.launches);
    side.sums.launches += kernel.launches;
    side.sums.readBytes += launches * kernel.prediction.readBytes;
    side.sums.writtenBytes += launches * kernel.prediction.writtenBytes;
    side.sums.seconds += launches * kernel.prediction.seconds;
    side.kernels.push_back(std::move(out));
  }
  return side;
}

void pairKernels(Side &a, Side &b, DiffedTarget &out) {
  std::map<std::string, const DiffedKernel *> ofB;
  for (const DiffedKernel &k : b.kernels)
    ofB[k.name] = &k;
  std::set<std::string> inBoth;
  for (const DiffedKernel &k : a.kernels) {
    auto it = ofB.find(k.name);
    if (it == ofB.end()) {
      out.removed.push_back(k);
      continue;
    }
    inBoth.insert(k.name);
    const DiffedKernel &other = *it->second;
    if (k.decided.schedules != other.decided.schedules)
      out.rescheduled.push_back({k, other});
    if (k.decided.launches != other.decided.launches || k.nodes != other.nodes)
      out.relaunched.push_back({k, other});
  }
  for (const DiffedKernel &k : b.kernels)
    if (!inBoth.count(k.name))
      out.added.push_back(k);
  for (size_t r = 0; r < out.removed.size();) {
    auto same = std::find_if(out.added.begin(), out.added.end(), [&](const DiffedKernel &k) {
      return !k.nodes.empty() && k.nodes == out.removed[r].nodes;
    });
    if (same == out.added.end()) {
      ++r;
      continue;
    }
    out.changed.push_back({out.removed[r], *same});
    out.removed.erase(out.removed.begin() + static_cast<std::ptrdiff_t>(r));
    out.added.erase(same);
  }
}

const char *imageName(bundle::ImageKind kind) {
  constexpr const char *kNames[] = {"elf", "cubin", "ptx", "code object"};
  return kNames[static_cast<size_t>(kind)];
}

void compareCode(const bundle::Program *a, const bundle::Program *b, DiffedTarget &out) {
  auto imageOf = [](const bundle::Program *p, bundle::ImageKind kind) -> const bundle::Image * {
    if (p)
      for (const bundle::Image &image : p->images)
        if (image.kind == kind)
          return &image;
    return nullptr;
  };
  for (auto kind : {bundle::ImageKind::Elf, bundle::ImageKind::Cubin, bundle::ImageKind::Ptx,
                    bundle::ImageKind::CodeObject}) {
    const bundle::Image *inA = imageOf(a, kind), *inB = imageOf(b, kind);
    if (!inA && !inB)
      continue;
    out.code.push_back({imageName(kind), inA ? inA->code.size() : 0, inB ? inB->code.size() : 0,
                        !inA || !inB || inA->code != inB->code});
  }
}

const bundle::Program *programFor(const bundle::Model &model, const std::string &target) {
  for (const bundle::Program &p : model.programs)
    if (p.target == target)
      return &p;
  return nullptr;
}

/// Digests of the constants of all programs by tensor, with the target behind it where `withTarget`; packed copies are
/// constants too.
std::map<std::string, Hash128> constantsOf(const bundle::Model &model, bool withTarget) {
  std::vector<Hash128> digests;
  for (const bundle::Weight &w : model.weights)
    digests.push_back(hash128(w.bytes, static_cast<size_t>(w.sizeBytes)));
  std::map<std::string, Hash128> constants;
  for (const bundle::Program &p : model.programs)
    for (const bundle::Tensor &t : p.tensors)
      if (t.kind == bundle::TensorKind::Constant)
        constants[withTarget ? t.name + " for " + p.target : t.name] =
            digests[static_cast<size_t>(t.weight)];
  return constants;
}

/// Behind the comparison of targets: one tensor has a constant for each target of either bundle.
void compareConstants(const bundle::Model &a, const bundle::Model &b, BundleDiff &out) {
  const bool withTarget = out.targets.size() > 1;
  const std::map<std::string, Hash128> inA = constantsOf(a, withTarget),
                                       inB = constantsOf(b, withTarget);
  for (const auto &[name, digest] : inA) {
    auto it = inB.find(name);
    if (it == inB.end())
      out.removedConstants.push_back(name);
    else if (it->second != digest)
      out.changedConstants.push_back(name);
  }
  for (const auto &[name, digest] : inB)
    if (!inA.count(name))
      out.addedConstants.push_back(name);
}

bool sameInterface(const bundle::Model &a, const bundle::Model &b) {
  auto sameValues = [](const std::vector<bundle::Value> &x, const std::vector<bundle::Value> &y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto &v, const auto &w) {
      return v.name == w.name && v.type == w.type && v.shape == w.shape;
    });
  };
  auto sameSymbol = [](const Symbol &x, const Symbol &y) {
    return x.name == y.name && x.min == y.min && x.opt == y.opt && x.max == y.max &&
           x.divisor == y.divisor && !x.definition == !y.definition &&
           (!x.definition || *x.definition == *y.definition);
  };
  auto sameTuned = [&](const Symbol &x) {
    const auto s = static_cast<size_t>(&x - a.symbols.data());
    return std::ranges::equal(tunedSizesOf(a, s), tunedSizesOf(b, s));
  };
  auto sameInferred = [](const bundle::InferredDim &x, const bundle::InferredDim &y) {
    return x.name == y.name && x.value == y.value;
  };
  auto sameRule = [](const bundle::DimRule &x, const bundle::DimRule &y) {
    return x.kind == y.kind && x.left == y.left && x.right == y.right && x.node == y.node &&
           x.op == y.op && x.text == y.text && x.tested == y.tested;
  };
  return std::equal(a.inferred.begin(), a.inferred.end(), b.inferred.begin(), b.inferred.end(),
                    sameInferred) &&
         std::equal(a.rules.begin(), a.rules.end(), b.rules.begin(), b.rules.end(), sameRule) &&
         sameValues(a.inputs, b.inputs) && sameValues(a.outputs, b.outputs) &&
         std::equal(a.symbols.begin(), a.symbols.end(), b.symbols.begin(), b.symbols.end(),
                    sameSymbol) &&
         std::ranges::all_of(a.symbols, sameTuned);
}

} // namespace

bool DiffedTarget::differs() const {
  return inA != inB || !removed.empty() || !added.empty() || !changed.empty() ||
         !rescheduled.empty() || !relaunched.empty() || planDiffers ||
         std::any_of(code.begin(), code.end(), [](const Code &c) { return c.differs; });
}

bool BundleDiff::onlyElsewhere() const {
  return !identical && changedConstants.empty() && removedConstants.empty() &&
         addedConstants.empty() && !interfaceDiffers && a.producer == b.producer &&
         std::none_of(targets.begin(), targets.end(),
                      [](const DiffedTarget &t) { return t.differs(); });
}

Result<BundleDiff> diffBundles(const std::string &pathA, const std::string &pathB) {
  FUSEC_TRY(File a, load(pathA));
  FUSEC_TRY(File b, load(pathB));
  BundleDiff out;
  out.a = sideOf(a, pathA);
  out.b = sideOf(b, pathB);
  out.identical = a.bytes == b.bytes;
  std::vector<std::string> targets;
  for (const bundle::Model *model : {&a.model, &b.model})
    for (const bundle::Program &p : model->programs)
      if (std::find(targets.begin(), targets.end(), p.target) == targets.end())
        targets.push_back(p.target);
  for (const std::string &name : targets) {
    DiffedTarget target;
    target.target = name;
    const bundle::Program *inA = programFor(a.model, name), *inB = programFor(b.model, name);
    target.inA = inA != nullptr;
    target.inB = inB != nullptr;
    Side sideA, sideB;
    if (inA) {
      FUSEC_TRY(sideA, programSide(*inA, pathA));
    }
    if (inB) {
      FUSEC_TRY(sideB, programSide(*inB, pathB));
    }
    target.a = sideA.sums;
    target.b = sideB.sums;
    if (inA && inB) {
      pairKernels(sideA, sideB, target);
      target.planDiffers = sideA.plan != sideB.plan;
    }
    compareCode(inA, inB, target);
    out.targets.push_back(std::move(target));
  }
  compareConstants(a.model, b.model, out);
  out.interfaceDiffers = !sameInterface(a.model, b.model);
  return out;
}

} // namespace fusec
