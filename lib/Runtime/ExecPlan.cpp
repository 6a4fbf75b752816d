#include "Runtime/ExecPlan.h"

#include "Runtime/Error.h"
#include "Runtime/Memory.h"

#include <algorithm>

namespace fusec::rt {

static constexpr uint64_t kMostStaged = uint64_t{1} << 46;

ExecPlan::ExecPlan(const PlanOutline &outline)
    : outline(outline), launches(outline.launches.size()), chosen(outline.launches.size()),
      segments(outline.segments.size()) {
  for (size_t l = 0; l < launches.size(); ++l)
    launches[l].step = &outline.launches[l].step->name;
  typeBytes.resize(outline.types.size());
  choices.resize(outline.choices.size());
  if (!outline.program)
    return;
  kernels.resize(outline.program->kernels.size());
  tensorBytes.resize(outline.program->tensors.size());
}

fusert_status ExecPlan::build(const std::vector<int64_t> &symbols) {
  symbolValues = symbols;
  for (size_t s = 1; s < segments.size(); ++s) {
    segments[s].seen = 0;
    for (int32_t t : outline.segments[s].tensors)
      tensorBytes[t] = 0;
  }
  if (segments.size() > 1)
    setBounds();
  isUsed = outline.isNeeded;
  takeSides();
  addresses.assign(tensorBytes.size(), nullptr);
  FUSERT_TRY(workOut(0));
  FUSERT_TRY(planCopies());
  workspaceBytes = stagingBytes + segments[0].memory.totalBytes;
  return FUSERT_OK;
}

void ExecPlan::takeSides() {
  isTaken.assign(1, true);
  for (const PlanOutline::Where &where : outline.wheres) {
    const bool isThen = allHold(where.step->guards, symbolValues);
    const bool isReached = isTaken[where.side];
    isTaken.push_back(isReached && isThen);
    isTaken.push_back(isReached && !isThen);
  }
}

fusert_status ExecPlan::workOut(size_t number) {
  const PlanOutline::Segment &segment = outline.segments[number];
  const bundle::Program &program = *outline.program;
  for (int32_t type : segment.types) {
    const bundle::Tensor &t = program.tensors[outline.types[type]];
    typeBytes[type] = bundle::evaluateElements(t.type, t.shape, symbolValues).value_or(-1);
    if (typeBytes[type] > 0)
      typeBytes[type] *= sizeInBytes(t.type);
  }
  FUSERT_TRY(evaluateBytes(segment.tensors));
  for (int32_t t : segment.temps)
    isUsed[t] = outline.isNeeded[t];
  for (int32_t k : segment.kernels)
    evaluate(program.kernels[k], kernels[k]);
  for (int32_t c : segment.choices)
    choices[c] = choose(*outline.choices[c]);
  for (int32_t l : segment.launches)
    if (isTaken[outline.launches[l].side])
      FUSERT_TRY(resolve(l));
    else
      launches[l].buffers.clear();
  return pack(number);
}

/// " of node 'mm'", the first one of the kernel that writes the tensor; "": none does.
static std::string makerText(const PlanOutline &outline, int32_t tensor) {
  for (const PlanOutline::Launched &launch : outline.launches)
    for (const bundle::Variant &v : launch.step->variants) {
      const bundle::Kernel &kernel = outline.program->kernels[static_cast<size_t>(v.kernel)];
      for (size_t i = 0; i < v.arguments.size(); ++i)
        if (v.arguments[i] == tensor && kernel.params[i].written && !kernel.onnxNodes.empty())
          return " of node '" + kernel.onnxNodes.front() + "'";
    }
  return "";
}

fusert_status ExecPlan::evaluateBytes(const std::vector<int32_t> &tensors) {
  for (int32_t t : tensors) {
    const int64_t bytes = typeBytes[outline.typeOf[t]];
    if (bytes < 0)
      return fail(FUSERT_INVALID_ARGUMENT,
                  "under these shapes tensor '" + outline.program->tensors[t].name + "'" +
                      makerText(outline, t) + " has a negative dimension or too many elements");
    tensorBytes[t] = static_cast<size_t>(bytes);
  }
  return FUSERT_OK;
}

void ExecPlan::evaluate(const bundle::Kernel &kernel, KernelSizes &sizes) const {
  sizes.dims.clear();
  for (SymbolId d : kernel.dims)
    sizes.dims.push_back(symbolValues[d]);
  sizes.grids.clear();
  for (const bundle::DimCode &g : kernel.grids)
    sizes.grids.push_back(g.evaluate(symbolValues).value_or(-1));
  if (kernel.hasRounds()) {
    sizes.rounds = kernel.rounds.evaluate(symbolValues).value_or(-1);
    sizes.dims.push_back(0);
  }
}

/// The first variant whose guards hold; the last one has none.
size_t ExecPlan::choose(const bundle::Step &step) const {
  const std::vector<bundle::Variant> &variants = step.variants;
  const auto fits = [&](const bundle::Variant &v) { return allHold(v.guards, symbolValues); };
  return static_cast<size_t>(std::find_if(variants.begin(), variants.end() - 1, fits) -
                             variants.begin());
}

/// All but the buffers' addresses.
fusert_status ExecPlan::resolve(int32_t number) {
  const PlanOutline::Launched &launched = outline.launches[number];
  const bundle::Variant &variant = launched.step->variants[choices[launched.choice]];
  const bundle::Kernel &kernel = outline.program->kernels[variant.kernel];
  const KernelSizes &sizes = kernels[variant.kernel];
  const auto missing = [](int64_t n) { return n < 0; };
  if (std::any_of(sizes.grids.begin(), sizes.grids.end(), missing))
    return fail(FUSERT_INVALID_ARGUMENT,
                "under these shapes kernel '" + kernel.symbol + "' has no grid");
  if (missing(sizes.rounds))
    return fail(FUSERT_INVALID_ARGUMENT,
                "under these shapes kernel '" + kernel.symbol + "' has no number of rounds");
  chosen[number] = &variant;
  Launch &launch = launches[number];
  launch.kernel = variant.kernel;
  launch.buffers.assign(variant.arguments.size(), nullptr);
  launch.bufferBytes.clear();
  for (int32_t t : variant.arguments) {
    launch.bufferBytes.push_back(static_cast<int64_t>(tensorBytes[t]));
    isUsed[t] = true;
  }
  launch.dims = sizes.dims;
  launch.grids = sizes.grids;
  launch.rounds = sizes.rounds;
  launch.roundsFirst = kernel.roundsFirst;
  launch.roundsLast = kernel.roundsLast;
  launch.cycles.assign(launch.grids.size(), -1);
  launch.trials.assign(kernel.hasRounds() ? launch.grids.size() : 0, ParallelTrial());
  return FUSERT_OK;
}

/// What other variants alone than the chosen ones would use needs no memory.
fusert_status ExecPlan::pack(size_t number) {
  const PlanOutline::Segment &of = outline.segments[number];
  Segment &segment = segments[number];
  segment.bytes.clear();
  for (int32_t t : of.temps)
    segment.bytes.push_back(isUsed[t] ? tensorBytes[t] : 0);
  if (!segment.memory.pack(of.lifetimes, segment.bytes))
    return fail(FUSERT_NO_MEMORY, "the intermediates need more than 64 TiB");
  return FUSERT_OK;
}

fusert_status ExecPlan::planCopies() {
  stagingBytes = 0;
  const std::vector<bundle::Tensor> &tensors = outline.program->tensors;
  for (const bundle::Copy &c : outline.copies)
    if (tensorBytes[c.from] != tensorBytes[c.to])
      return fail(FUSERT_INVALID_ARGUMENT, "under these shapes '" + tensors[c.from].name +
                                               "' and '" + tensors[c.to].name +
                                               "' differ in size, but must not");
  for (const std::vector<int32_t> &list : outline.staged) {
    size_t bytes = 0;
    for (int32_t t : list) {
      const auto most = isSized(t) ? static_cast<uint64_t>(mostBytes(t)) : tensorBytes[t];
      if (most > kMostStaged)
        return fail(FUSERT_NO_MEMORY,
                    "under these shapes '" + tensors[t].name + "' may need more than 64 TiB");
      bytes += aligned(most);
    }
    stagingBytes = std::max(stagingBytes, bytes);
  }
  return FUSERT_OK;
}

void ExecPlan::bindWorkspace(const Device &device, void *base) {
  workspace = base;
  for (int32_t t : outline.constants)
    addresses[t] = device.weight(outline.program->tensors[t].weight);
  const std::vector<int32_t> &temps = outline.segments[0].temps;
  for (size_t i = 0; i < temps.size(); ++i)
    addresses[temps[i]] = base && isUsed[temps[i]] ? static_cast<char *>(base) + stagingBytes +
                                                         segments[0].memory.offsets[i]
                                                   : nullptr;
  bindLaunches(0);
}

void ExecPlan::bindLaunches(size_t segment) {
  for (int32_t l : outline.segments[segment].launches)
    for (size_t i = 0; i < launches[l].buffers.size(); ++i)
      launches[l].buffers[i] = addresses[chosen[l]->arguments[i]];
}

void ExecPlan::setAddress(int32_t tensor, void *p) {
  if (addresses[tensor] == p)
    return;
  addresses[tensor] = p;
  for (int32_t l : outline.takers[tensor])
    for (size_t i = 0; i < launches[l].buffers.size(); ++i)
      if (chosen[l]->arguments[i] == tensor)
        launches[l].buffers[i] = p;
}

} // namespace fusec::rt
