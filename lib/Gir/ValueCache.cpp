// Keeps values in registers or private memory until their thread needs them again.
//
//   seq i in 120 { unit u in 8 { lane l in 32 { .. %x[i*256 + u*32 + l] .. } } }
//   ..
//   seq j in 120 { unit v in 8 { lane m in 32 { .. %x[j*256 + v*32 + m] .. } } }
// becomes
//   unroll i in 120 { unit u in 8 { lane l in 32 { %x.kept[i] = %x[i*256 + u*32 + l]; .. %x.kept[i] .. } } }
//   ..
//   unroll j in 120 { unit v in 8 { lane m in 32 { .. %x.kept[j] .. } } }
//
// Registers have no addresses, so loops that step over them are unrolled. The registers of both branches of an If are
// the same ones: an iteration goes one way or the other.
//
// There is room where the live registers (Liveness.h) and the value come to no more than the limit at each point that
// it lives through. The value counts from before the statement that makes it to the last one that needs it, and through
// the loops that stand around one of them alone.
#include "Gir/ValueCache.h"

#include "Gir/Liveness.h"
#include "Gir/Passes.h"

#include <algorithm>

namespace fusec {
namespace {

// Statements that unrolling may leave where one nest stood: the code of a kernel has to fit an instruction cache.
constexpr int64_t kMostCopies = 4096;

bool isInOrder(const Stmt &s) {
  return s.kind == StmtKind::Loop && (s.loop == LoopKind::Seq || s.loop == LoopKind::Unroll);
}

} // namespace

const Stmt *ValueCache::loopOf(const StatementPath &site, VarId var) const {
  for (const PathStep &step : site.path)
    if (step.stmt->kind == StmtKind::Loop && step.stmt->var == var)
      return step.stmt;
  return nullptr;
}

NodeId ValueCache::copyOf(NodeId node, const Renaming &renaming) {
  return copies.try_emplace(renaming, kernel.body, renaming).first->second.of(node);
}

/// Reads of Global and Shared buffers among what the roots are computed from.
std::vector<NodeId> ValueCache::memoryReads(const std::vector<NodeId> &roots) const {
  std::vector<NodeId> reads = kernel.body.reachable(roots);
  std::erase_if(reads, [&](NodeId id) {
    const Scalar &s = kernel.body[id];
    return (s.op != ScalarOp::Read && s.op != ScalarOp::ReadIf) ||
           kernel.buffers[static_cast<size_t>(s.index)].level == MemLevel::Register;
  });
  return reads;
}

/// What a use does not read when it is served, and what stands for each of these reads where the value is made.
std::vector<ValueCache::Saved> ValueCache::savedBy(const std::vector<StatementPath> &sites,
                                                   const CachedValue &value,
                                                   const CachedValue::Use &use) {
  Body &body = kernel.body;
  const Stmt &made = *sites[static_cast<size_t>(value.site)].stmt;
  std::vector<std::pair<NodeId, int64_t>> known; // what a read comes to, its number
  for (NodeId id : memoryReads(value.stored ? made.indices : std::vector{value.node})) {
    const int64_t number = body[id].imm;
    known.emplace_back(copyOf(id, use.renaming), number);
  }
  std::vector<Saved> saved;
  for (NodeId id : memoryReads({use.node})) {
    Saved one{body[id].imm, 0};
    if (!value.stored || id != use.node) {
      const NodeId same = copyOf(id, {});
      auto it = std::find_if(known.begin(), known.end(),
                             [&](const auto &entry) { return entry.first == same; });
      one.from = it == known.end() ? 0 : it->second;
      if (one.from == 0)
        one.read = 0;
    }
    saved.push_back(one);
  }
  return saved;
}

const KeptRead *ValueCache::wanted(const Saved &saved) const {
  for (const KeptRead &kept : *limits.numbered->wanted)
    if (kept.read == saved.read && kept.from == saved.from)
      return &kept;
  return nullptr;
}

bool ValueCache::addUse(const std::vector<StatementPath> &sites, CachedValue &value,
                        CachedValue::Use use) {
  if (isInMicroKernel(sites[static_cast<size_t>(value.site)]) ||
      isInMicroKernel(sites[static_cast<size_t>(use.site)]))
    return false;
  if (limits.numbered) {
    const std::vector<Saved> saved = savedBy(sites, value, use);
    if (!std::all_of(saved.begin(), saved.end(), [&](const Saved &one) {
          return one.read != 0 && (!limits.numbered->wanted || wanted(one));
        }))
      return false;
  }
  value.uses.push_back(std::move(use));
  return true;
}

void ValueCache::addEqual(const std::vector<StatementPath> &sites, CachedValue &value, int site,
                          NodeId node) {
  std::optional<Renaming> renaming = reachesWithSameValues(
      kernel, sites[static_cast<size_t>(value.site)], sites[static_cast<size_t>(site)]);
  if (renaming && copyOf(value.node, *renaming) == copyOf(node, {}))
    addUse(sites, value, {site, node, std::move(*renaming)});
}

/// The level that the first use's reads are wanted at.
std::optional<MemLevel> ValueCache::wantedLevel(const std::vector<StatementPath> &sites,
                                                const CachedValue &value) {
  if (!limits.numbered || !limits.numbered->wanted)
    return std::nullopt;
  const std::vector<Saved> saved = savedBy(sites, value, value.uses.front());
  return saved.empty() ? std::nullopt : std::optional(wanted(saved.front())->level);
}

void ValueCache::note(const std::vector<StatementPath> &sites, const CachedValue &value,
                      MemLevel level) {
  if (!limits.numbered)
    return;
  for (const CachedValue::Use &use : value.uses)
    for (const Saved &saved : savedBy(sites, value, use))
      limits.numbered->kept.insert({saved.read, saved.from, level});
}

/// Loops whose every iteration has a value of its own, outermost first.
std::vector<VarId> ValueCache::loopsBetween(const std::vector<StatementPath> &sites,
                                            const CachedValue &value) const {
  const StatementPath &from = sites[static_cast<size_t>(value.site)];
  size_t depth = from.path.size();
  for (const CachedValue::Use &use : value.uses)
    depth = std::min(depth, commonDepth(from, sites[static_cast<size_t>(use.site)]));
  std::vector<bool> depends(kernel.vars.size());
  for (NodeId id : kernel.body.reachable({value.node}))
    if (kernel.body[id].op == ScalarOp::Axis)
      depends[static_cast<size_t>(kernel.body[id].index)] = true;
  std::vector<VarId> loops;
  for (size_t i = depth; i < from.path.size(); ++i)
    if (const Stmt &s = *from.path[i].stmt;
        isInOrder(s) && (value.stored || depends[static_cast<size_t>(s.var)]))
      loops.push_back(s.var);
  return loops;
}

/// `other`: the registers that the value shares with another branch, -1 where it needs new ones.
bool ValueCache::fitsRegisters(const std::vector<StatementPath> &sites, const CachedValue &value,
                               const std::vector<VarId> &loops, BufferId other) const {
  int64_t elements = 1;
  for (VarId var : loops) {
    const Scalar &trip = kernel.body[loopOf(sites[static_cast<size_t>(value.site)], var)->trip];
    if (trip.op != ScalarOp::Const || trip.imm > kMostCopies ||
        __builtin_mul_overflow(elements, trip.imm, &elements))
      return false;
  }
  const int64_t words = registersFor(elements, kernel.body[value.node].type);
  if (words > limits.registers)
    return false;
  auto copies = [&](int number, const Renaming &renaming) {
    const StatementPath &site = sites[static_cast<size_t>(number)];
    int64_t most = 1, product = 1;
    for (const PathStep &step : site.path) {
      if (!isInOrder(*step.stmt))
        continue;
      bool unrolled = step.stmt->loop == LoopKind::Unroll;
      for (VarId var : loops)
        unrolled = unrolled || renamed(renaming, var) == step.stmt->var;
      if (unrolled && kernel.body[step.stmt->trip].op == ScalarOp::Const)
        product = std::min(product * kernel.body[step.stmt->trip].imm, kMostCopies + 1);
      most = std::max(most, product * (step.last - step.number));
    }
    return most;
  };
  if (!loops.empty()) {
    int64_t most = copies(value.site, {});
    for (const CachedValue::Use &use : value.uses)
      most = std::max(most, copies(use.site, use.renaming));
    if (most > kMostCopies)
      return false;
  }

  int64_t everywhere = words; // as if all were live at once
  for (const GirBuffer &buffer : kernel.buffers)
    if (buffer.level == MemLevel::Register)
      everywhere += registersFor(numElements(buffer.shape).constValue(), buffer.type);
  if (everywhere <= limits.registers)
    return true;

  // Registers in use at each point. The value is there when the first statement reads, to where the last one does.
  const StatementPath &front = sites.front();
  const auto phase = std::find_if(kernel.phases.begin(), kernel.phases.end(),
                                  [&](const Phase &p) { return &p.body == front.list; });
  const Liveness live = livenessOf(kernel, {phase, 1}, MemLevel::Register);
  LiveRange range;
  if (other >= 0)
    for (const LiveRange &held : live.buffers[static_cast<size_t>(other)])
      range.include(held.first, held.last);
  auto include = [&](int site) {
    const int at = live.at[static_cast<size_t>(site)];
    range.include(at, at);
  };
  include(value.site);
  for (const CachedValue::Use &use : value.uses)
    include(use.site);
  range = live.closeOverLoops(range);
  const std::vector<double> inUse = live.registersAt(kernel, other);
  return *std::max_element(inUse.begin() + range.first, inUse.begin() + range.last + 1) +
             double(words) <=
         double(limits.registers);
}

/// The registers of another branch, or new ones; -1 where there is no room.
BufferId ValueCache::registerPlace(const std::vector<StatementPath> &sites,
                                   const CachedValue &value, const std::vector<VarId> &loops) {
  const StatementPath &from = sites[static_cast<size_t>(value.site)];
  std::vector<Around> around;
  for (const PathStep &step : from.path) {
    bool isLoop = step.stmt->kind == StmtKind::Loop;
    around.push_back({isLoop, step.otherwise, isLoop ? step.stmt->var : step.condition()});
  }
  auto exclusive = [&](const std::vector<Around> &other) {
    auto [a, b] = std::mismatch(around.begin(), around.end(), other.begin(), other.end());
    return a != around.end() && b != other.end() && !a->isLoop && !b->isLoop &&
           a->what == b->what && a->otherwise != b->otherwise;
  };
  for (Place &place : places)
    if (place.source == value.source && place.loops == loops &&
        kernel.buffers[static_cast<size_t>(place.buffer)].type == kernel.body[value.node].type &&
        std::all_of(place.filled.begin(), place.filled.end(), exclusive) &&
        fitsRegisters(sites, value, loops, place.buffer)) {
      place.filled.push_back(std::move(around));
      return place.buffer;
    }
  if (!fitsRegisters(sites, value, loops, -1))
    return -1;
  GirBuffer buffer;
  buffer.name = (value.source >= 0 ? kernel.buffers[static_cast<size_t>(value.source)].name
                                   : std::string("value")) +
                ".kept";
  buffer.level = MemLevel::Register;
  buffer.type = kernel.body[value.node].type;
  for (VarId var : loops)
    buffer.shape.push_back(DimExpr(kernel.body[loopOf(from, var)->trip].imm));
  kernel.buffers.push_back(std::move(buffer));
  const auto id = static_cast<BufferId>(kernel.buffers.size() - 1);
  places.push_back({id, value.source, loops, {std::move(around)}});
  return id;
}

/// A Shared buffer with an element for each thread and iteration; -1 where the block has no room for it.
BufferId ValueCache::sharedPlace(const std::vector<StatementPath> &sites, const CachedValue &value,
                                 const std::vector<VarId> &loops) {
  const StatementPath &from = sites[static_cast<size_t>(value.site)];
  const GirBuffer *source =
      value.source >= 0 ? &kernel.buffers[static_cast<size_t>(value.source)] : nullptr;
  if (!source || source->level != MemLevel::Global || !loopAround(from, LoopKind::Lane) ||
      (kernel.units > 1 && !loopAround(from, LoopKind::Unit)))
    return -1;
  int64_t elements = int64_t(kernel.units) * kernel.lanes;
  for (VarId var : loops) {
    const int64_t most = kernel.body.rangeOf(loopOf(from, var)->trip).max;
    if (most > limits.sharedBytes || __builtin_mul_overflow(elements, most, &elements))
      return -1;
  }
  const DType type = kernel.body[value.node].type;
  if (elements > limits.sharedBytes / sizeInBytes(type))
    return -1;
  GirKernel trial = kernel;
  insertSyncs(trial);
  allocate(trial);
  if (trial.sharedBytes + elements * sizeInBytes(type) > limits.sharedBytes)
    return -1;
  GirBuffer buffer;
  buffer.name = source->name + ".kept";
  buffer.level = MemLevel::Shared;
  buffer.type = type;
  buffer.shape = {DimExpr(elements)};
  kernel.buffers.push_back(std::move(buffer));
  const auto id = static_cast<BufferId>(kernel.buffers.size() - 1);
  return id;
}

NodeId ValueCache::element(BufferId place, const StatementPath &at, const std::vector<VarId> &loops,
                           const Renaming &renaming) {
  Body &body = kernel.body;
  const DType type = kernel.buffers[static_cast<size_t>(place)].type;
  std::vector<NodeId> indices;
  for (VarId var : loops)
    indices.push_back(body.axis(renamed(renaming, var)));
  if (kernel.buffers[static_cast<size_t>(place)].level == MemLevel::Register)
    return body.read(place, type, indices);
  NodeId flat = body.index(0);
  auto digit = [&](NodeId value, NodeId size) {
    flat = body.binary(ScalarOp::Add, body.binary(ScalarOp::Mul, flat, size), value);
  };
  for (size_t i = 0; i < loops.size(); ++i)
    digit(indices[i], body.index(body.rangeOf(loopOf(at, renamed(renaming, loops[i]))->trip).max));
  if (kernel.units > 1)
    digit(body.axis(loopAround(at, LoopKind::Unit)->var), body.index(kernel.units));
  digit(body.axis(loopAround(at, LoopKind::Lane)->var), body.index(kernel.lanes));
  return body.read(place, type, {flat});
}

void ValueCache::apply(const std::vector<StatementPath> &sites, const CachedValue &value,
                       BufferId place, const std::vector<VarId> &loops) {
  Body &body = kernel.body;
  const StatementPath &from = sites[static_cast<size_t>(value.site)];
  const bool registers = kernel.buffers[static_cast<size_t>(place)].level == MemLevel::Register;
  auto unroll = [&](const StatementPath &site, const Renaming &renaming) {
    for (const PathStep &step : site.path)
      for (VarId var : loops)
        if (step.stmt->kind == StmtKind::Loop && step.stmt->var == renamed(renaming, var)) {
          step.stmt->loop = LoopKind::Unroll;
          kernel.vars[static_cast<size_t>(step.stmt->var)].kind = LoopKind::Unroll;
        }
  };
  for (const CachedValue::Use &use : value.uses) {
    const StatementPath &to = sites[static_cast<size_t>(use.site)];
    substitute(body, *to.stmt, use.node, element(place, to, loops, use.renaming));
    if (registers)
      unroll(to, use.renaming);
  }
  if (registers)
    unroll(from, {});
  const NodeId here = element(place, from, loops, {});
  substitute(body, *from.stmt, value.node, here);
  Stmt store;
  store.kind = StmtKind::Store;
  store.buffer = place;
  store.indices = body[here].args;
  store.value = value.node;
  from.list->insert(from.list->begin() + static_cast<ptrdiff_t>(from.position), std::move(store));
}

BufferId ValueCache::placeFor(const std::vector<StatementPath> &sites, const CachedValue &value,
                              const std::vector<VarId> &loops) {
  const std::optional<MemLevel> level = wantedLevel(sites, value);
  if (level != MemLevel::Shared) {
    const BufferId place = registerPlace(sites, value, loops);
    if (place >= 0 || level)
      return place;
  }
  return sharedPlace(sites, value, loops);
}

bool ValueCache::keep(const std::vector<StatementPath> &sites, const CachedValue &value) {
  const std::vector<VarId> loops = loopsBetween(sites, value);
  const BufferId place = placeFor(sites, value, loops);
  if (place < 0) {
    if (limits.numbered)
      limits.numbered->lackedRoom = true;
    return false;
  }
  note(sites, value, kernel.buffers[static_cast<size_t>(place)].level);
  apply(sites, value, place, loops);
  return true;
}

} // namespace fusec
