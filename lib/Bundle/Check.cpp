#include "Bundle/Check.h"

#include "Bundle/CheckCaches.h"
#include "Bundle/CheckSizes.h"
#include "Bundle/CheckSymbols.h"
#include "Bundle/Liveness.h"
#include "Support/Diag.h"
#include "fusec/bundle_format.h"

#include <algorithm>
#include <bit>
#include <set>

namespace fusec::bundle {

namespace {

constexpr int kMaxStepDepth = 64;               // nesting of If and Loop
constexpr int64_t kMaxThreads = 1024;           // of a block
constexpr int64_t kMaxSharedBytes = 256 << 10;  // GPU
constexpr int64_t kMaxScratchBytes = 256 << 20; // CPU, a worker
constexpr int64_t kMaxGpuGrid = INT32_MAX;
constexpr int64_t kMaxGpuParamBytes = 4096;

Status bad(const std::string &where, std::string text) {
  return Diagnostic{Diag::BadBundle, where, std::move(text)};
}

/// The data of a constant, or of an input that a run leaves out.
Status weightFits(const Model &model, int32_t weight, DType type, const std::vector<DimCode> &shape,
                  const std::string &place) {
  if (weight < 0 || static_cast<size_t>(weight) >= model.weights.size())
    return bad(place, "the weight's index is out of range");
  const Weight &w = model.weights[weight];
  for (const DimCode &d : shape)
    if (!d.isConst())
      return bad(place, "the dimensions of what has a weight must be constants");
  auto elements = evaluateElements(type, shape, {});
  if (w.type != type || !elements || w.sizeBytes != *elements * sizeInBytes(type))
    return bad(place, "type and shape do not agree with the weight's type and size");
  return success();
}

/// Checks one program; `where` tells the place in messages.
class ProgramChecker {
public:
  ProgramChecker(const Model &m, const Program &p)
      : model(m), program(p), gpu(!isCpuTarget(p.target)), where("program '" + p.target + "'") {}

  Status run() {
    if (!usableName(program.target))
      return bad(where, "the target has no usable name");
    if (program.images.empty() != program.kernels.empty())
      return bad(where, "there must be machine code exactly when there are kernels");
    if (gpu ? program.maxBlockThreads < 1 || program.maxBlockThreads > kMaxThreads ||
                  program.maxSharedBytes < 0 || program.maxSharedBytes > kMaxSharedBytes ||
                  program.maxDynamicShared < 0 || program.maxDynamicShared > kMaxSharedBytes
            : program.maxBlockThreads != 0 || program.maxSharedBytes != 0 ||
                  program.maxDynamicShared != 0)
      return bad(where, "the limits of a block are missing or out of range");
    if (program.decisions.find('\0') != std::string::npos)
      return bad(where, "the decisions are no text");
    FUSEC_CHECK(kernels());
    FUSEC_CHECK(tensors());
    FUSEC_CHECK(interface());
    written.assign(program.tensors.size(), false);
    for (size_t i = 0; i < program.tensors.size(); ++i)
      written[i] = program.tensors[i].kind == TensorKind::Input ||
                   program.tensors[i].kind == TensorKind::Constant;
    FUSEC_CHECK(steps(program.steps, 0));
    for (int32_t t : program.outputs)
      if (!written[t])
        return bad(tensorPlace(t), "no step writes this output");
    FUSEC_CHECK(checkSizesOfSteps(model, program, where));
    return liveness();
  }

private:
  const Model &model;
  const Program &program;
  const bool gpu;
  const std::string where;
  std::vector<bool> written; // by an earlier step on some path
  int64_t numSteps = 0;

  std::string tensorPlace(int32_t t) const {
    return where + ", tensor '" + program.tensors[t].name + "'";
  }

  Status kernels() {
    std::set<std::string> symbols;
    if (program.kernels.size() > kMaxValues)
      return bad(where, "too many kernels");
    for (const Kernel &k : program.kernels) {
      const std::string place = where + ", kernel '" + k.symbol + "'";
      if (!usableName(k.symbol) || !symbols.insert(k.symbol).second)
        return bad(place, "the symbol is empty or stands twice");
      if (k.units < 1 || k.lanes < 1 || int64_t{k.units} * k.lanes > kMaxThreads)
        return bad(place, "a block must have 1 to 1024 threads");
      if (k.scratchBytes < 0 || k.scratchBytes > (gpu ? kMaxSharedBytes : kMaxScratchBytes))
        return bad(place, "scratch memory of " + std::to_string(k.scratchBytes) +
                              " bytes is out of range");
      if (k.grids.empty() || k.grids.size() > 4096)
        return bad(place, "a kernel has 1 to 4096 phases");
      for (const DimCode &g : k.grids) {
        if (!g.valid(model.symbols.size()))
          return bad(place, "a grid expression is malformed");
        if (g.isConst() && (g.constValue() < 0 || (gpu && g.constValue() > kMaxGpuGrid)))
          return bad(place,
                     "a grid of " + std::to_string(g.constValue()) + " blocks is out of range");
      }
      FUSEC_CHECK(sharedMemory(k, place));
      const auto phases = static_cast<int64_t>(k.grids.size());
      if (k.roundsFirst < 0 || k.roundsLast < k.roundsFirst || k.roundsLast > phases)
        return bad(place, "rounds are of phases that the kernel does not have");
      if (k.hasRounds() && !k.rounds.valid(model.symbols.size()))
        return bad(place, "the number of rounds is malformed");
      if (k.waits && !k.gridBarrier)
        return bad(place, "phases wait for counters in an entry for all of them alone");
      if (k.resident && !k.gridBarrier)
        return bad(place, "blocks are resident in an entry for all phases alone");
      for (const Param &p : k.params)
        if (static_cast<int>(p.type) >= kNumDTypes)
          return bad(place, "a parameter has an unknown element type");
      SymbolId last = -1;
      for (SymbolId d : k.dims) {
        if (d <= last || static_cast<size_t>(d) >= model.symbols.size())
          return bad(place, "dims must be ascending symbols of the model");
        last = d;
      }
      const int64_t paramBytes = 8 * static_cast<int64_t>(k.params.size() + k.dims.size() + 1);
      if (gpu && !isSimTarget(program.target) && paramBytes > kMaxGpuParamBytes)
        return bad(place, "the parameters take more than 4096 bytes");
    }
    return success();
  }

  Status sharedMemory(const Kernel &k, const std::string &place) {
    if (!std::has_single_bit(static_cast<uint32_t>(k.sharedAlign)) ||
        k.sharedAlign < int64_t{FUSEC_SHARED_ALIGN} ||
        k.sharedAlign > int64_t{gpu ? FUSEC_MOST_SHARED_ALIGN : FUSEC_SHARED_ALIGN})
      return bad(place, "an alignment of shared memory to " + std::to_string(k.sharedAlign) +
                            " bytes does not exist");
    if (k.dynamicShared.empty())
      return success();
    if (!gpu || k.dynamicShared.size() != k.grids.size())
      return bad(place, "a launch gives each phase of a GPU its shared memory, or none");
    for (int64_t bytes : k.dynamicShared)
      if (bytes < 0 || bytes > k.scratchBytes)
        return bad(place, "a launch gives " + std::to_string(bytes) +
                              " bytes of shared memory, and may give 0 to " +
                              std::to_string(k.scratchBytes));
    return success();
  }

  Status shape(const std::vector<DimCode> &dims, DType type, const std::string &place) {
    if (static_cast<int>(type) >= kNumDTypes)
      return bad(place, "unknown element type " + std::to_string(static_cast<int>(type)));
    if (dims.size() > FUSEC_MAX_RANK)
      return bad(place, "rank " + std::to_string(dims.size()) + " is over 64");
    bool fixed = true;
    for (const DimCode &d : dims) {
      if (!d.valid(model.symbols.size()))
        return bad(place, "a dimension is malformed");
      fixed &= d.isConst();
    }
    if (fixed && !evaluateElements(type, dims, {}))
      return bad(place, "the dimensions are negative or their product overflows");
    return success();
  }

  Status tensors() {
    if (program.tensors.size() > kMaxValues)
      return bad(where, "too many tensors");
    for (size_t i = 0; i < program.tensors.size(); ++i) {
      const Tensor &t = program.tensors[i];
      const std::string place = tensorPlace(static_cast<int32_t>(i));
      if (t.kind > TensorKind::Output)
        return bad(place, "unknown kind");
      FUSEC_CHECK(shape(t.shape, t.type, place));
      if (t.kind != TensorKind::Constant) {
        if (t.weight != -1)
          return bad(place, "only a constant has a weight");
        continue;
      }
      FUSEC_CHECK(weightFits(model, t.weight, t.type, t.shape, place));
    }
    return success();
  }

  Status sideMatches(const std::vector<Value> &values, const std::vector<int32_t> &ids,
                     bool input) {
    const std::string side = input ? "inputs" : "outputs";
    if (values.size() != ids.size())
      return bad(where, "the number of " + side + " differs from the model's");
    std::set<int32_t> seen;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0 || static_cast<size_t>(ids[i]) >= program.tensors.size())
        return bad(where, "the list of " + side + " has an index out of range");
      const Tensor &t = program.tensors[ids[i]];
      const std::string place = tensorPlace(ids[i]);
      if (input && (t.kind != TensorKind::Input || !seen.insert(ids[i]).second))
        return bad(place, "is listed as an input, but is none or stands twice");
      if (!input && t.kind == TensorKind::Temp)
        return bad(place, "an output cannot be a temporary");
      if (t.type != values[i].type || !fitsValue(model, input, i, t.shape))
        return bad(place, "type or shape differ from the model's " + side);
    }
    return success();
  }

  Status interface() {
    FUSEC_CHECK(sideMatches(model.inputs, program.inputs, true));
    FUSEC_CHECK(sideMatches(model.outputs, program.outputs, false));
    std::vector<bool> listed(program.tensors.size(), false);
    for (int32_t t : program.inputs)
      listed[t] = true;
    for (int32_t t : program.outputs)
      listed[t] = true;
    for (size_t i = 0; i < program.tensors.size(); ++i) {
      const TensorKind k = program.tensors[i].kind;
      if ((k == TensorKind::Input || k == TensorKind::Output) && !listed[i])
        return bad(tensorPlace(static_cast<int32_t>(i)),
                   "is an input or output that the model does not have");
    }
    return success();
  }

  Status tensorIndex(int32_t t, const std::string &place) {
    if (t < 0 || static_cast<size_t>(t) >= program.tensors.size())
      return bad(place, "a tensor index is out of range");
    return success();
  }
  Status reads(int32_t t, const std::string &place) {
    FUSEC_CHECK(tensorIndex(t, place));
    if (!written[t])
      return bad(place, "reads '" + program.tensors[t].name + "', which no earlier step writes");
    return success();
  }
  Status writes(int32_t t, const std::string &place) {
    FUSEC_CHECK(tensorIndex(t, place));
    const TensorKind k = program.tensors[t].kind;
    if (k == TensorKind::Input || k == TensorKind::Constant)
      return bad(place,
                 "writes '" + program.tensors[t].name + "', which is an input or a constant");
    written[t] = true;
    return success();
  }
  /// A scalar that the executor itself reads.
  Status scalar(int32_t t, DType type, const std::string &place) {
    FUSEC_CHECK(tensorIndex(t, place));
    const Tensor &x = program.tensors[t];
    std::optional<int64_t> n;
    if (x.type == type &&
        std::all_of(x.shape.begin(), x.shape.end(), [](auto &d) { return d.isConst(); }))
      n = evaluateElements(type, x.shape, {});
    if (n != 1)
      return bad(place,
                 "'" + x.name + "' must hold one element of type " + std::string(name(type)));
    return success();
  }
  Status readsScalar(int32_t t, DType type, const std::string &place) {
    FUSEC_CHECK(scalar(t, type, place));
    return reads(t, place);
  }
  Status copies(const std::vector<Copy> &list, const std::string &place) {
    for (const Copy &c : list) {
      FUSEC_CHECK(reads(c.from, place));
      FUSEC_CHECK(tensorIndex(c.to, place));
      if (program.tensors[c.from].type != program.tensors[c.to].type)
        return bad(place, "a copy changes the element type");
    }
    for (const Copy &c : list)
      FUSEC_CHECK(writes(c.to, place));
    return success();
  }

  Status guards(const std::vector<Guard> &list, const std::string &place) const {
    for (const Guard &g : list)
      if (!g.value.valid(model.symbols.size()) || g.modulus < 0)
        return bad(place, "a guard is malformed");
    return success();
  }

  Status launch(const Step &s, const std::string &place) {
    if (s.variants.empty() || !s.variants.back().guards.empty())
      return bad(place, "the last variant of a launch must be there and unguarded");
    std::vector<int32_t> results;
    for (const Variant &v : s.variants) {
      if (v.kernel < 0 || static_cast<size_t>(v.kernel) >= program.kernels.size())
        return bad(place, "the kernel's index is out of range");
      const Kernel &k = program.kernels[v.kernel];
      if (v.arguments.size() != k.params.size())
        return bad(place, "the kernel takes " + std::to_string(k.params.size()) +
                              " arguments, given are " + std::to_string(v.arguments.size()));
      FUSEC_CHECK(guards(v.guards, place));
      for (size_t i = 0; i < v.arguments.size(); ++i) {
        FUSEC_CHECK(tensorIndex(v.arguments[i], place));
        if (program.tensors[v.arguments[i]].type != k.params[i].type)
          return bad(place, "argument " + std::to_string(i) +
                                " has another element type than the parameter");
        if (k.params[i].written)
          results.push_back(v.arguments[i]);
        else
          FUSEC_CHECK(reads(v.arguments[i], place));
      }
    }
    for (int32_t t : results)
      FUSEC_CHECK(writes(t, place));
    return success();
  }

  Status steps(const std::vector<Step> &list, int depth) {
    if (depth > kMaxStepDepth)
      return bad(where, "steps are nested deeper than 64");
    for (const Step &s : list) {
      const std::string place = where + ", step '" + s.name + "'";
      if (++numSteps > static_cast<int64_t>(kMaxValues))
        return bad(place, "too many steps");
      switch (s.kind) {
      case StepKind::Launch: FUSEC_CHECK(launch(s, place)); break;
      case StepKind::If:
        FUSEC_CHECK(readsScalar(s.condition, DType::Bool, place));
        FUSEC_CHECK(steps(s.thenSteps, depth + 1));
        FUSEC_CHECK(copies(s.thenCopies, place));
        FUSEC_CHECK(steps(s.elseSteps, depth + 1));
        FUSEC_CHECK(copies(s.elseCopies, place));
        break;
      case StepKind::Where:
        if (s.guards.empty())
          return bad(place, "a where must have a guard");
        FUSEC_CHECK(guards(s.guards, place));
        FUSEC_CHECK(steps(s.thenSteps, depth + 1));
        FUSEC_CHECK(steps(s.elseSteps, depth + 1));
        break;
      case StepKind::Loop: FUSEC_CHECK(loop(s, place, depth)); break;
      case StepKind::Size: FUSEC_CHECK(readsScalar(s.tripCount, DType::I64, place)); break;
      default: return bad(place, "unknown kind of step");
      }
    }
    return success();
  }

  Status loop(const Step &s, const std::string &place, int depth) {
    FUSEC_CHECK(copies(s.before, place));
    if (s.condition != -1)
      FUSEC_CHECK(readsScalar(s.condition, DType::Bool, place));
    if (s.tripCount != -1)
      FUSEC_CHECK(readsScalar(s.tripCount, DType::I64, place));
    if (s.iteration != -1) {
      FUSEC_CHECK(scalar(s.iteration, DType::I64, place));
      FUSEC_CHECK(writes(s.iteration, place));
    }
    FUSEC_CHECK(steps(s.thenSteps, depth + 1));
    if (s.nextCondition != -1)
      FUSEC_CHECK(readsScalar(s.nextCondition, DType::Bool, place));
    if (s.tripCount == -1 && s.nextCondition == -1)
      return bad(place, "the loop has neither a trip count nor a condition");
    FUSEC_CHECK(copies(s.thenCopies, place));
    return copies(s.after, place);
  }

  Status liveness() {
    std::vector<Interval> live = computeLiveness(program);
    for (size_t i = 0; i < live.size(); ++i) {
      const Tensor &t = program.tensors[i];
      const Interval want = t.kind == TensorKind::Temp ? live[i] : Interval{};
      if (t.firstStep != want.first || t.lastStep != want.last)
        return bad(tensorPlace(static_cast<int32_t>(i)),
                   "the stored lifetime is not that of its uses");
    }
    return success();
  }
};

Status values(const Model &model, const std::vector<Value> &list, const char *side) {
  std::set<std::string> names;
  const size_t known = &list == &model.inputs ? numGiven(model) : model.symbols.size();
  if (list.size() > kMaxValues)
    return bad(side, "too many");
  for (const Value &v : list) {
    const std::string place = std::string(side) + " '" + v.name + "'";
    if (!usableName(v.name) || !names.insert(v.name).second)
      return bad(place, "the name is empty, longer than 64 KiB, holds a zero byte or stands twice");
    if (static_cast<int>(v.type) >= kNumDTypes || v.shape.size() > FUSEC_MAX_RANK)
      return bad(place, "unknown element type or rank over 64");
    for (const DimCode &d : v.shape)
      if (!d.valid(known))
        return bad(place, "a dimension is malformed");
    if (v.weight == -1)
      continue;
    if (&list != &model.inputs)
      return bad(place, "only an input has a default value");
    FUSEC_CHECK(weightFits(model, v.weight, v.type, v.shape, place));
  }
  return success();
}

} // namespace

bool isSimTarget(std::string_view target) { return target.substr(0, 4) == "sim:"; }
bool isCpuTarget(std::string_view target) { return target.substr(0, 7) == "x86-64-"; }

Status check(const Model &model) {
  std::set<std::string> names;
  FUSEC_CHECK(checkDataSizes(model));
  FUSEC_CHECK(checkSymbols(model, names));
  FUSEC_CHECK(checkSizeRules(model, names));
  FUSEC_CHECK(values(model, model.inputs, "input"));
  FUSEC_CHECK(values(model, model.outputs, "output"));
  for (const Weight &w : model.weights)
    if (static_cast<int>(w.type) >= kNumDTypes || w.sizeBytes < 0)
      return bad("weights", "unknown element type or negative size");
  if (model.programs.empty())
    return bad("bundle", "there is no program");
  std::set<std::string> targets;
  for (const Program &p : model.programs) {
    if (!targets.insert(p.target).second)
      return bad("program '" + p.target + "'", "the target stands twice");
    FUSEC_CHECK(ProgramChecker(model, p).run());
  }
  return checkCaches(model);
}

} // namespace fusec::bundle
