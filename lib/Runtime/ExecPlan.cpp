#include "Runtime/ExecPlan.h"

#include "Runtime/Error.h"
#include "Runtime/Memory.h"
#include "Runtime/MemoryPlan.h"

#include <algorithm>

namespace fusec::rt {

namespace {

size_t aligned(size_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

bool holds(const bundle::Guard &g, const std::vector<int64_t> &symbols) {
  std::optional<int64_t> v = g.value.evaluate(symbols);
  return v && (g.modulus > 0 ? *v % g.modulus == 0 : *v >= 0);
}

} // namespace

fusert_status ExecPlan::build(const bundle::Program &program, const std::vector<int64_t> &symbols,
                              bool runs) {
  symbolValues = symbols;
  tensorBytes.clear();
  for (const bundle::Tensor &t : program.tensors) {
    std::optional<int64_t> n = bundle::evaluateElements(t.type, t.shape, symbols);
    if (!n)
      return fail(FUSERT_INVALID_ARGUMENT, "under these shapes tensor '" + t.name +
                                               "' has a negative dimension or too many elements");
    tensorBytes.push_back(static_cast<size_t>(*n * sizeInBytes(t.type)));
  }
  uses.assign(program.tensors.size(), {});
  addresses.assign(program.tensors.size(), nullptr);
  launches.clear();
  nodes.clear();
  stagingBytes = 0;
  if (runs)
    FUSERT_TRY(buildNodes(program, program.steps, nodes));

  // What other variants alone than the chosen ones would use needs no memory.
  std::vector<bool> isIdle;
  for (const std::vector<Use> &ofTensor : uses)
    isIdle.push_back(ofTensor.empty());
  markUsed(nodes, isIdle);
  std::vector<MemoryRequest> requests;
  std::vector<int32_t> owner;
  for (size_t t = 0; t < program.tensors.size(); ++t) {
    const bundle::Tensor &x = program.tensors[t];
    if (x.kind != bundle::TensorKind::Temp || x.firstStep < 0 || isIdle[t])
      continue;
    requests.push_back({tensorBytes[t], x.firstStep, x.lastStep});
    owner.push_back(static_cast<int32_t>(t));
  }
  std::optional<MemoryPlan> plan = planMemory(requests);
  if (!plan)
    return fail(FUSERT_NO_MEMORY, "the intermediates need more than 64 TiB");
  tempOffsets.assign(program.tensors.size(), -1);
  for (size_t i = 0; i < owner.size(); ++i)
    tempOffsets[owner[i]] = static_cast<int64_t>(stagingBytes + plan->offsets[i]);
  workspaceBytes = stagingBytes + plan->totalBytes;
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
}

fusert_status ExecPlan::buildNodes(const bundle::Program &program,
                                   const std::vector<bundle::Step> &steps, std::vector<Node> &out) {
  for (const bundle::Step &s : steps) {
    Node node;
    node.kind = s.kind;
    node.condition = s.condition;
    node.tripCount = s.tripCount;
    node.iteration = s.iteration;
    node.nextCondition = s.nextCondition;
    if (s.kind == bundle::StepKind::Launch)
      FUSERT_TRY(buildLaunch(program, s, node));
    FUSERT_TRY(buildNodes(program, s.thenSteps, node.thenNodes));
    FUSERT_TRY(buildNodes(program, s.elseSteps, node.elseNodes));
    FUSERT_TRY(buildCopies(program, s.before, node.before));
    FUSERT_TRY(buildCopies(program, s.thenCopies, node.thenCopies));
    FUSERT_TRY(buildCopies(program, s.elseCopies, node.elseCopies));
    FUSERT_TRY(buildCopies(program, s.after, node.after));
    out.push_back(std::move(node));
  }
  return FUSERT_OK;
}

fusert_status ExecPlan::buildLaunch(const bundle::Program &program, const bundle::Step &step,
                                    Node &node) {
  const bundle::Variant *chosen = nullptr;
  for (const bundle::Variant &v : step.variants) {
    chosen = &v;
    if (std::all_of(v.guards.begin(), v.guards.end(),
                    [&](auto &g) { return holds(g, symbolValues); }))
      break;
  }
  const bundle::Kernel &kernel = program.kernels[chosen->kernel];
  node.launch = static_cast<int32_t>(launches.size());
  Launch launch;
  launch.kernel = chosen->kernel;
  launch.step = &step.name;
  launch.buffers.assign(chosen->arguments.size(), nullptr);
  for (size_t i = 0; i < chosen->arguments.size(); ++i) {
    uses[chosen->arguments[i]].push_back({node.launch, static_cast<int32_t>(i)});
    launch.bufferBytes.push_back(static_cast<int64_t>(tensorBytes[chosen->arguments[i]]));
  }
  for (SymbolId d : kernel.dims)
    launch.dims.push_back(symbolValues[d]);
  for (const bundle::DimCode &g : kernel.grids) {
    std::optional<int64_t> blocks = g.evaluate(symbolValues);
    if (!blocks || *blocks < 0)
      return fail(FUSERT_INVALID_ARGUMENT,
                  "under these shapes kernel '" + kernel.symbol + "' has no grid");
    launch.grids.push_back(*blocks);
  }
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
  launch.trials.resize(launch.grids.size());
  launches.push_back(std::move(launch));
  return FUSERT_OK;
}

fusert_status ExecPlan::buildCopies(const bundle::Program &program,
                                    const std::vector<bundle::Copy> &list, std::vector<Copy> &out) {
  size_t staged = 0;
  std::vector<bool> overwritten(list.empty() ? 0 : program.tensors.size(), false);
  for (const bundle::Copy &c : list) {
    if (tensorBytes[c.from] != tensorBytes[c.to])
      return fail(FUSERT_INVALID_ARGUMENT, "under these shapes '" + program.tensors[c.from].name +
                                               "' and '" + program.tensors[c.to].name +
                                               "' differ in size, but must not");
    Copy copy{c.from, c.to, tensorBytes[c.from], -1};
    if (overwritten[c.from]) {
      copy.staging = static_cast<int64_t>(staged);
      staged += aligned(copy.bytes);
    }
    overwritten[c.to] = true;
    if (c.from != c.to)
      out.push_back(copy);
  }
  stagingBytes = std::max(stagingBytes, staged);
  return FUSERT_OK;
}

void ExecPlan::bindWorkspace(const Model &model, void *base) {
  workspace = base;
  const bundle::Program &program = *model.program;
  for (size_t t = 0; t < program.tensors.size(); ++t) {
    const bundle::Tensor &x = program.tensors[t];
    if (x.kind == bundle::TensorKind::Constant)
      setAddress(static_cast<int32_t>(t), model.device->weight(x.weight));
    else if (tempOffsets[t] >= 0)
      setAddress(static_cast<int32_t>(t),
                 base ? static_cast<char *>(base) + tempOffsets[t] : nullptr);
  }
}

} // namespace fusec::rt
