#include "Runtime/ExecPlan.h"

#include "Runtime/Error.h"
#include "Runtime/Memory.h"
#include "Runtime/MemoryPlan.h"

#include <algorithm>

namespace fusec::rt {

namespace {

constexpr uint64_t kMostStaged = uint64_t{1} << 46;

size_t aligned(size_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

bool holds(const bundle::Guard &g, const std::vector<int64_t> &symbols) {
  std::optional<int64_t> v = g.value.evaluate(symbols);
  return v && (g.modulus > 0 ? *v % g.modulus == 0 : *v >= 0);
}

} // namespace

fusert_status ExecPlan::build(const Model &of, const bundle::Program &which,
                              const std::vector<int64_t> &symbols, bool runs) {
  model = &of;
  program = &which;
  symbolValues = symbols;
  findSizes();
  const size_t count = program->tensors.size();
  tensorBytes.assign(count, 0);
  for (size_t t = 0; t < count; ++t)
    if (sizeOf[t] < 0)
      FUSERT_TRY(evaluateBytes(static_cast<int32_t>(t)));
  uses.assign(count, {});
  addresses.assign(count, nullptr);
  launches.clear();
  nodes.clear();
  stagingBytes = 0;
  if (runs)
    FUSERT_TRY(buildNodes(program->steps, nodes));

  // What other variants alone than the chosen ones would use needs no memory.
  std::vector<bool> isIdle;
  for (const std::vector<Use> &ofTensor : uses)
    isIdle.push_back(ofTensor.empty());
  markUsed(nodes, isIdle);
  packed.clear();
  for (size_t t = 0; t < count; ++t) {
    const bundle::Tensor &x = program->tensors[t];
    if (x.kind == bundle::TensorKind::Temp && x.firstStep >= 0 && sizeOf[t] < 0 && !isIdle[t])
      packed.push_back(static_cast<int32_t>(t));
  }
  size_t bytes = 0;
  FUSERT_TRY(pack(packed, offsets, bytes));
  workspaceBytes = stagingBytes + bytes;
  return FUSERT_OK;
}

fusert_status ExecPlan::evaluateBytes(int32_t tensor) {
  const bundle::Tensor &t = program->tensors[tensor];
  const std::optional<int64_t> n = bundle::evaluateElements(t.type, t.shape, symbolValues);
  if (!n)
    return fail(FUSERT_INVALID_ARGUMENT, "under these shapes tensor '" + t.name +
                                             "' has a negative dimension or too many elements");
  tensorBytes[tensor] = static_cast<size_t>(*n * sizeInBytes(t.type));
  return FUSERT_OK;
}

fusert_status ExecPlan::pack(const std::vector<int32_t> &tensors, std::vector<uint64_t> &at,
                             size_t &bytes) const {
  std::vector<MemoryRequest> requests;
  for (int32_t t : tensors)
    requests.push_back(
        {tensorBytes[t], program->tensors[t].firstStep, program->tensors[t].lastStep});
  std::optional<MemoryPlan> plan = planMemory(requests);
  if (!plan)
    return fail(FUSERT_NO_MEMORY, "the intermediates need more than 64 TiB");
  at = std::move(plan->offsets);
  bytes = plan->totalBytes;
  return FUSERT_OK;
}

void ExecPlan::markUsed(const std::vector<Node> &list, std::vector<bool> &isIdle) const {
  auto use = [&](int32_t tensor) {
    if (tensor >= 0)
      isIdle[static_cast<size_t>(tensor)] = false;
  };
  for (const Node &node : list) {
    for (int32_t tensor : {node.condition, node.tripCount, node.iteration, node.nextCondition})
      use(tensor);
    for (const auto *copies : {&node.before, &node.thenCopies, &node.elseCopies, &node.after})
      for (const Copy &copy : *copies) {
        use(copy.from);
        use(copy.to);
      }
    markUsed(node.thenNodes, isIdle);
    markUsed(node.elseNodes, isIdle);
  }
  // Any variant of a launch that waits for a size may run.
  for (const Size &size : sizes)
    for (const Size::Launched &launched : size.launches)
      for (const bundle::Variant &variant : launched.step->variants)
        for (int32_t tensor : variant.arguments)
          use(tensor);
}

fusert_status ExecPlan::buildNodes(const std::vector<bundle::Step> &steps, std::vector<Node> &out) {
  for (const bundle::Step &s : steps) {
    if (s.kind == bundle::StepKind::Where) {
      const bool isThen = std::all_of(s.guards.begin(), s.guards.end(),
                                      [&](auto &g) { return holds(g, symbolValues); });
      FUSERT_TRY(buildNodes(isThen ? s.thenSteps : s.elseSteps, out));
      continue;
    }
    Node node;
    node.kind = s.kind;
    node.condition = s.condition;
    node.tripCount = s.tripCount;
    node.iteration = s.iteration;
    node.nextCondition = s.nextCondition;
    if (s.kind == bundle::StepKind::Size)
      node.size = sizeNumber[static_cast<size_t>(s.symbol)];
    if (s.kind == bundle::StepKind::Launch)
      FUSERT_TRY(buildLaunch(s, node));
    FUSERT_TRY(buildNodes(s.thenSteps, node.thenNodes));
    FUSERT_TRY(buildNodes(s.elseSteps, node.elseNodes));
    FUSERT_TRY(buildCopies(s.before, node.before));
    FUSERT_TRY(buildCopies(s.thenCopies, node.thenCopies));
    FUSERT_TRY(buildCopies(s.elseCopies, node.elseCopies));
    FUSERT_TRY(buildCopies(s.after, node.after));
    out.push_back(std::move(node));
  }
  return FUSERT_OK;
}

fusert_status ExecPlan::buildLaunch(const bundle::Step &step, Node &node) {
  node.launch = static_cast<int32_t>(launches.size());
  Launch &launch = launches.emplace_back();
  launch.step = &step.name;
  if (const int32_t size = lastSize(step); size >= 0) {
    sizes[static_cast<size_t>(size)].launches.push_back({node.launch, &step});
    return FUSERT_OK;
  }
  const bundle::Variant &chosen = variantOf(step);
  for (size_t i = 0; i < chosen.arguments.size(); ++i)
    uses[chosen.arguments[i]].push_back({node.launch, static_cast<int32_t>(i)});
  return resolve(chosen, launch);
}

const bundle::Variant &ExecPlan::variantOf(const bundle::Step &step) const {
  for (const bundle::Variant &v : step.variants)
    if (std::all_of(v.guards.begin(), v.guards.end(),
                    [&](auto &g) { return holds(g, symbolValues); }))
      return v;
  return step.variants.back();
}

fusert_status ExecPlan::resolve(const bundle::Variant &variant, Launch &launch) const {
  const bundle::Kernel &kernel = program->kernels[variant.kernel];
  launch.kernel = variant.kernel;
  launch.buffers.assign(variant.arguments.size(), nullptr);
  launch.bufferBytes.clear();
  for (int32_t t : variant.arguments)
    launch.bufferBytes.push_back(static_cast<int64_t>(tensorBytes[t]));
  launch.dims.clear();
  for (SymbolId d : kernel.dims)
    launch.dims.push_back(symbolValues[d]);
  launch.grids.clear();
  for (const bundle::DimCode &g : kernel.grids) {
    std::optional<int64_t> blocks = g.evaluate(symbolValues);
    if (!blocks || *blocks < 0)
      return fail(FUSERT_INVALID_ARGUMENT,
                  "under these shapes kernel '" + kernel.symbol + "' has no grid");
    launch.grids.push_back(*blocks);
  }
  launch.rounds = 1;
  launch.roundsFirst = launch.roundsLast = 0;
  if (kernel.hasRounds()) {
    std::optional<int64_t> rounds = kernel.rounds.evaluate(symbolValues);
    if (!rounds || *rounds < 0)
      return fail(FUSERT_INVALID_ARGUMENT,
                  "under these shapes kernel '" + kernel.symbol + "' has no number of rounds");
    launch.rounds = *rounds;
    launch.roundsFirst = kernel.roundsFirst;
    launch.roundsLast = kernel.roundsLast;
    launch.dims.push_back(0);
  }
  launch.cycles.assign(launch.grids.size(), -1);
  launch.trials.assign(launch.grids.size(), ParallelTrial());
  return FUSERT_OK;
}

fusert_status ExecPlan::buildCopies(const std::vector<bundle::Copy> &list, std::vector<Copy> &out) {
  size_t staged = 0;
  std::vector<bool> overwritten(list.empty() ? 0 : program->tensors.size(), false);
  for (const bundle::Copy &c : list) {
    if (tensorBytes[c.from] != tensorBytes[c.to])
      return fail(FUSERT_INVALID_ARGUMENT, "under these shapes '" + program->tensors[c.from].name +
                                               "' and '" + program->tensors[c.to].name +
                                               "' differ in size, but must not");
    Copy copy{c.from, c.to, -1};
    if (overwritten[c.from]) {
      const auto bytes =
          isSized(c.from) ? static_cast<uint64_t>(mostBytes(c.from)) : tensorBytes[c.from];
      if (bytes > kMostStaged)
        return fail(FUSERT_NO_MEMORY, "under these shapes '" + program->tensors[c.from].name +
                                          "' may need more than 64 TiB");
      copy.staging = static_cast<int64_t>(staged);
      staged += aligned(bytes);
    }
    overwritten[c.to] = true;
    if (c.from != c.to)
      out.push_back(copy);
  }
  stagingBytes = std::max(stagingBytes, staged);
  return FUSERT_OK;
}

void ExecPlan::bindWorkspace(const Model &of, void *base) {
  workspace = base;
  for (size_t t = 0; t < program->tensors.size(); ++t)
    if (const bundle::Tensor &x = program->tensors[t]; x.kind == bundle::TensorKind::Constant)
      setAddress(static_cast<int32_t>(t), of.device->weight(x.weight));
  for (size_t i = 0; i < packed.size(); ++i)
    setAddress(packed[i], base ? static_cast<char *>(base) + stagingBytes + offsets[i] : nullptr);
}

} // namespace fusec::rt
