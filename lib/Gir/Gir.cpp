#include "Gir/Gir.h"

#include "Gir/Walk.h"

#include <algorithm>

namespace fusec {

std::string_view name(MemLevel level) {
  constexpr std::string_view table[] = {"register", "shared", "global"};
  return table[static_cast<int>(level)];
}

std::string_view name(LoopKind kind) {
  constexpr std::string_view table[] = {"block", "unit", "lane", "seq", "unroll"};
  return table[static_cast<int>(kind)];
}

std::string_view name(SyncScope scope) { return scope == SyncScope::Unit ? "unit" : "block"; }

int GirKernel::numParams() const {
  auto isGlobal = [](const GirBuffer &b) { return b.level == MemLevel::Global; };
  return static_cast<int>(std::count_if(buffers.begin(), buffers.end(), isGlobal));
}

std::vector<SymbolId> GirKernel::usedSymbols() const {
  std::vector<SymbolId> used;
  auto collect = [&](const DimExpr &d) { d.collectSymbols(used); };
  for (const GirBuffer &b : buffers)
    std::for_each(b.shape.begin(), b.shape.end(), collect);
  for (const Phase &p : phases)
    for (const Phase::Block &b : p.blocks)
      collect(b.trip);
  if (rounds)
    collect(rounds->count);
  for (const GirCounters &c : counters)
    collect(c.count);
  std::vector<NodeId> roots;
  forEachStmtOf(*this, [&](const Stmt &s) {
    for (NodeId r : exprRoots(s))
      roots.push_back(r);
  });
  for (NodeId id : body.reachable(roots))
    if (body[id].op == ScalarOp::Dim)
      collect(body[id].dim);
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  return used;
}

DimExpr gridSize(const Phase &phase) {
  DimExpr size = 1;
  for (const Phase::Block &b : phase.blocks)
    size = size * b.trip;
  return size;
}

std::vector<NodeId *> exprRefs(Stmt &s) {
  switch (s.kind) {
  case StmtKind::Loop: return {&s.trip};
  case StmtKind::If:
  case StmtKind::While: return {&s.predicate};
  case StmtKind::Sync: return {};
  case StmtKind::Store:
  case StmtKind::Accumulate:
  case StmtKind::LaneReduce:
  case StmtKind::Exchange:
  case StmtKind::Signal:
  case StmtKind::Wait: break;
  }
  std::vector<NodeId *> refs;
  for (NodeId &i : s.indices)
    refs.push_back(&i);
  if (s.kind == StmtKind::Store || s.kind == StmtKind::Accumulate || s.kind == StmtKind::Wait)
    refs.push_back(&s.value);
  if (s.kind == StmtKind::Accumulate && s.indexBuffer >= 0)
    refs.push_back(&s.indexValue);
  return refs;
}

std::vector<NodeId> exprRoots(const Stmt &stmt) {
  std::vector<NodeId> roots;
  for (const NodeId *id : exprRefs(const_cast<Stmt &>(stmt)))
    roots.push_back(*id);
  return roots;
}

std::vector<bool> laneVarying(const GirKernel &kernel) {
  std::vector<bool> varying(kernel.body.nodes.size());
  for (size_t id = 0; id < varying.size(); ++id) {
    const Scalar &s = kernel.body.nodes[id];
    bool v = s.op == ScalarOp::Axis && kernel.vars[s.index].kind == LoopKind::Lane;
    if (s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf) {
      const GirBuffer &b = kernel.buffers[s.index];
      v = b.level == MemLevel::Register && b.perLane;
    }
    for (NodeId a : s.args)
      v = v || varying[a];
    varying[id] = v;
  }
  return varying;
}

bool readsAny(const Body &body, const std::vector<NodeId> &roots) {
  return std::ranges::any_of(body.reachable(roots), [&](NodeId id) {
    return body[id].op == ScalarOp::Read || body[id].op == ScalarOp::ReadIf;
  });
}

bool dependsOn(const GirKernel &kernel, NodeId node, VarId var) {
  return std::ranges::any_of(kernel.body.reachable({node}), [&](NodeId id) {
    return kernel.body[id].op == ScalarOp::Axis && kernel.body[id].index == var;
  });
}

IndexRange rangeOfTrip(const GirKernel &kernel, NodeId trip) {
  const Scalar &s = kernel.body[trip];
  if (s.op == ScalarOp::Const || s.op == ScalarOp::Dim)
    return rangeOfExtent(s.op == ScalarOp::Const ? DimExpr(s.imm) : s.dim, kernel.symbols);
  IndexRange range{0, INT64_MAX, std::nullopt};
  if (int64_t most = kernel.body.rangeOf(trip).max; most != INT64_MAX)
    range.max = std::max<int64_t>(most - 1, 0);
  return range;
}

void setRanges(GirKernel &kernel) {
  Body &body = kernel.body;
  body.symbolTable = kernel.symbols;
  body.axisRanges.assign(kernel.vars.size(), IndexRange{0, INT64_MAX, std::nullopt});
  if (kernel.resident >= 0)
    body.axisRanges[kernel.resident] = {0, 1, std::nullopt};
  if (kernel.rounds)
    body.axisRanges[kernel.rounds->var] = rangeOfExtent(kernel.rounds->count, kernel.symbols);
  for (const Phase &p : kernel.phases)
    for (const Phase::Block &b : p.blocks)
      body.axisRanges[b.var] = rangeOfExtent(b.trip, kernel.symbols);
  // Parents come first, so a trip that depends on outer loops sees their ranges.
  forEachStmtOf(kernel, [&](const Stmt &s) {
    if (s.kind == StmtKind::Loop)
      body.axisRanges[s.var] = rangeOfTrip(kernel, s.trip);
  });
}

} // namespace fusec
