#include "Driver/BundleModel.h"

#include "Bundle/Writer.h"
#include "Support/OptValues.h"
#include "Support/TunedSizes.h"

#include <algorithm>

namespace fusec {

namespace {

/// What the bundle writer takes, with weights that point into the compiler's constants.
struct BundleModel {
  bundle::Model model;
  std::map<size_t, const PackedConstant *> packed; // weights that are made when they are written
};

std::vector<bundle::DimCode> dimCodes(const Shape &shape) {
  std::vector<bundle::DimCode> codes;
  for (const DimExpr &d : shape)
    codes.emplace_back(d);
  return codes;
}

bundle::ImageKind imageKind(CodeImage::Format format) {
  switch (format) {
  case CodeImage::Format::Ptx: return bundle::ImageKind::Ptx;
  case CodeImage::Format::Cubin: return bundle::ImageKind::Cubin;
  case CodeImage::Format::Hsaco: return bundle::ImageKind::CodeObject;
  default: return bundle::ImageKind::Elf;
  }
}

std::vector<bundle::Copy> copies(const std::vector<ExecStep::Copy> &list) {
  std::vector<bundle::Copy> out;
  for (const ExecStep::Copy &c : list)
    out.push_back({c.from, c.to});
  return out;
}

std::vector<bundle::Guard> guards(const std::vector<Guard> &list) {
  std::vector<bundle::Guard> out;
  for (const Guard &guard : list)
    out.push_back({bundle::DimCode(guard.value), guard.modulus});
  return out;
}

std::vector<bundle::Step> bundleSteps(const std::vector<ExecStep> &steps) {
  std::vector<bundle::Step> out;
  for (const ExecStep &step : steps) {
    bundle::Step s;
    constexpr bundle::StepKind kKinds[] = {bundle::StepKind::Launch, bundle::StepKind::If,
                                           bundle::StepKind::Loop, bundle::StepKind::Size,
                                           bundle::StepKind::Where};
    s.kind = kKinds[static_cast<size_t>(step.kind)];
    s.name = step.name;
    for (const LaunchVariant &variant : step.variants) {
      bundle::Variant v;
      v.kernel = variant.kernel;
      v.guards = guards(variant.guards);
      v.arguments = variant.arguments;
      s.variants.push_back(std::move(v));
    }
    s.guards = guards(step.guards);
    s.condition = step.condition;
    s.tripCount = step.tripCount;
    s.iteration = step.iteration;
    s.nextCondition = step.nextCondition;
    s.symbol = step.symbol;
    s.thenSteps = bundleSteps(step.thenSteps);
    s.elseSteps = bundleSteps(step.elseSteps);
    s.before = copies(step.before);
    s.thenCopies = copies(step.thenCopies);
    s.elseCopies = copies(step.elseCopies);
    s.after = copies(step.after);
    out.push_back(std::move(s));
  }
  return out;
}

bundle::Program bundleProgram(const TargetState &target, std::map<Hash128, int32_t> &weightOf,
                              BundleModel &made) {
  const GirProgram &gir = target.gir;
  bundle::Program program;
  program.target = target.target.name;
  if (target.target.kind != TargetKind::Cpu) {
    program.maxBlockThreads = target.target.maxUnits * target.target.lanes;
    program.maxSharedBytes = target.target.staticSharedBytes;
  }
  for (const CodeImage &image : target.images)
    program.images.push_back({imageKind(image.format), image.bytes, image.minDriverCuda});
  std::vector<KernelCode> codes = kernelCodes(gir.kernels, target.target);
  for (size_t k = 0; k < gir.kernels.size(); ++k) {
    const GirKernel &kernel = gir.kernels[k];
    bundle::Kernel out;
    out.symbol = codes[k].symbol;
    for (const Phase &phase : kernel.phases)
      out.grids.emplace_back(gridSize(phase));
    if (kernel.rounds) {
      out.rounds = bundle::DimCode(kernel.rounds->count);
      out.roundsFirst = static_cast<int32_t>(kernel.rounds->first);
      out.roundsLast = static_cast<int32_t>(kernel.rounds->last);
    }
    for (int p = 0; p < kernel.numParams(); ++p)
      out.params.push_back({kernel.buffers[p].type, kernel.buffers[p].written});
    out.dims = kernel.usedSymbols();
    out.scratchBytes = codes[k].sharedBytes;
    out.units = codes[k].units;
    out.lanes = codes[k].lanes;
    out.gridBarrier = codes[k].gridBarrier;
    out.sharedAlign = static_cast<int32_t>(codes[k].sharedAlign);
    out.dynamicShared = codes[k].dynamicShared;
    if (!out.dynamicShared.empty())
      program.maxDynamicShared = target.target.dynamicSharedBytes;
    out.waits = !kernel.counters.empty();
    out.resident = kernel.resident >= 0;
    out.onnxNodes = kernel.onnxNodes;
    program.kernels.push_back(std::move(out));
  }
  for (size_t t = 0; t < gir.tensors.size(); ++t) {
    const Tensor &tensor = gir.tensors[t];
    bundle::Tensor out;
    out.name = tensor.name;
    out.kind = static_cast<bundle::TensorKind>(tensor.kind);
    out.type = tensor.type;
    out.shape = dimCodes(tensor.shape);
    if (tensor.kind == TensorKind::Constant) {
      std::vector<bundle::Weight> &weights = made.model.weights;
      const auto packed = gir.packed.find(static_cast<TensorId>(t));
      const bool isPacked = packed != gir.packed.end();
      auto [it, isNew] =
          weightOf.emplace(isPacked ? packed->second.identity : tensor.constant->digest,
                           static_cast<int32_t>(weights.size()));
      if (isNew && isPacked) {
        made.packed.emplace(weights.size(), &packed->second);
        weights.push_back({tensor.type, nullptr, packed->second.sizeBytes()});
      } else if (isNew) {
        weights.push_back({tensor.type, tensor.constant->bytes, tensor.constant->sizeBytes});
      }
      out.weight = it->second;
    }
    program.tensors.push_back(std::move(out));
  }
  program.inputs = gir.inputs;
  program.outputs = gir.outputs;
  program.steps = bundleSteps(gir.steps);
  program.decisions = target.decisions;
  program.checked = target.checked;
  return program;
}

void addSizeRules(const CompileState &state, bundle::Model &model) {
  const GirProgram &gir = state.targets[0].gir;
  std::map<std::string, int32_t> inputs;
  for (size_t i = 0; i < gir.inputs.size(); ++i)
    inputs.emplace(gir.tensors[gir.inputs[i]].name, static_cast<int32_t>(i));
  for (const InferredSize &size : state.sizeRules.inferred) {
    bundle::InferredDim out{size.name, bundle::DimCode(size.value), {}};
    for (const InferredSize::Place &place : size.places)
      if (auto input = inputs.find(place.input); input != inputs.end())
        out.places.push_back({input->second, static_cast<int32_t>(place.axis)});
    model.inferred.push_back(std::move(out));
  }
  for (const SizeRule &rule : state.sizeRules.rules)
    model.rules.push_back({rule.kind, bundle::DimCode(rule.left), bundle::DimCode(rule.right),
                           rule.node, rule.op, rule.text, rule.tested});
}

void addCaches(const CompileState &state, bundle::Model &model) {
  auto position = [](const std::vector<bundle::Value> &values, const std::string &name) {
    const auto found = std::ranges::find_if(values, [&](auto &v) { return v.name == name; });
    return static_cast<int32_t>(found - values.begin());
  };
  for (const CachePair &c : state.caches)
    model.caches.push_back({position(model.inputs, c.input), position(model.outputs, c.output),
                            c.axis, c.inputRoom, c.outputRoom, c.kept});
}

BundleModel bundleModel(const CompileState &state) {
  const GirProgram &first = state.targets[0].gir;
  BundleModel made;
  bundle::Model &model = made.model;
  model.name = first.name;
  model.producer = "fusec " FUSEC_VERSION;
  model.symbols = tunedFor(first.symbols, optValues(first.symbols));
  model.tunedSizes = tunedSizesOfEach(first.symbols);
  addSizeRules(state, model);
  for (size_t s = 0; s < first.symbols.size(); ++s)
    if (const auto &bound = first.symbols[s].bound)
      model.dataSizes.push_back(
          {static_cast<SymbolId>(s), bundle::DimCode(*bound), first.symbols[s].test});
  auto value = [&](TensorId t) {
    return bundle::Value{first.tensors[t].name, first.tensors[t].type,
                         dimCodes(withoutRoom(first.tensors[t].shape, first.symbols))};
  };
  std::map<Hash128, int32_t> weightOf;
  for (TensorId t : first.inputs) {
    model.inputs.push_back(value(t));
    if (const ConstantRef &c = first.tensors[t].defaultValue) {
      const auto next = static_cast<int32_t>(model.weights.size());
      const auto [it, isNew] = weightOf.emplace(c->digest, next);
      if (isNew)
        model.weights.push_back({c->type, c->bytes, c->sizeBytes});
      model.inputs.back().weight = it->second;
    }
  }
  for (TensorId t : first.outputs)
    model.outputs.push_back(value(t));
  addCaches(state, model);
  for (const TargetState &target : state.targets)
    model.programs.push_back(bundleProgram(target, weightOf, made));
  return made;
}

} // namespace

Status writeBundle(const CompileState &state, const std::string &path, const bundle::SecretKey *key,
                   int threads) {
  BundleModel made = bundleModel(state);
  return bundle::writeBundle(std::move(made.model), path, key,
                             [&](size_t weight, const TakeBytes &take) {
                               return giveInPieces(*made.packed.at(weight), threads, take);
                             });
}

} // namespace fusec
