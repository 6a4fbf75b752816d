// What stands where in a phase, and which threads come by with which values of the loop variables.
#include "Gir/StatementPaths.h"

#include "Gir/Walk.h"

#include <algorithm>

namespace fusec {
namespace {

void collect(std::vector<Stmt> &list, std::vector<PathStep> &path,
             std::vector<StatementPath> &sites) {
  for (size_t i = 0; i < list.size(); ++i) {
    const size_t at = sites.size();
    const int number = static_cast<int>(at);
    sites.push_back({&list[i], &list, i, number, number, path});
    path.push_back({&list[i], i, false, number, number});
    collect(list[i].body, path, sites);
    path.back().otherwise = true;
    collect(list[i].elseBody, path, sites);
    path.pop_back();
    sites[at].last = static_cast<int>(sites.size()) - 1;
  }
}

/// True if loops of both kinds run the same threads through the same iterations: Seq and Unroll count as one kind.
bool oneKind(LoopKind a, LoopKind b) {
  auto inOrder = [](LoopKind k) { return k == LoopKind::Seq || k == LoopKind::Unroll; };
  return a == b || (inOrder(a) && inOrder(b));
}

} // namespace

std::vector<StatementPath> statementPathsOf(Phase &phase) {
  std::vector<StatementPath> sites;
  std::vector<PathStep> path;
  collect(phase.body, path, sites);
  for (StatementPath &s : sites)
    for (PathStep &step : s.path)
      step.last = sites[static_cast<size_t>(step.number)].last;
  return sites;
}

size_t commonDepth(const StatementPath &a, const StatementPath &b) {
  size_t depth = 0;
  while (depth < a.path.size() && depth < b.path.size() &&
         a.path[depth].stmt == b.path[depth].stmt &&
         a.path[depth].otherwise == b.path[depth].otherwise)
    ++depth;
  return depth;
}

std::pair<int, int> extentAt(const StatementPath &site, size_t depth) {
  if (depth < site.path.size())
    return {site.path[depth].number, site.path[depth].last};
  return {site.number, site.last};
}

const Stmt *loopAround(const StatementPath &site, LoopKind kind) {
  for (const PathStep &step : site.path)
    if (step.stmt->kind == StmtKind::Loop && step.stmt->loop == kind)
      return step.stmt;
  return nullptr;
}

bool isInMicroKernel(const StatementPath &site) {
  return std::ranges::any_of(site.path,
                             [](const PathStep &step) { return !step.stmt->kernel.empty(); });
}

VarId renamed(const Renaming &renaming, VarId var) {
  for (auto [from, to] : renaming)
    if (from == var)
      return to;
  return var;
}

NodeId Renamed::of(NodeId root) {
  std::vector<NodeId> open{root}, fresh; // without a copy
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (!copies.try_emplace(id, kNoNode).second)
      continue;
    fresh.push_back(id);
    open.insert(open.end(), body[id].args.begin(), body[id].args.end());
  }
  std::sort(fresh.begin(), fresh.end());
  for (NodeId id : fresh) {
    Scalar s = body[id];
    for (NodeId &a : s.args)
      a = copies.at(a);
    if (s.op == ScalarOp::Axis)
      s.index = renamed(renaming, s.index);
    else if (s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf)
      s.imm = 0;
    copies[id] = body.add(std::move(s));
  }
  return copies.at(root);
}

NodeId renamed(Body &body, NodeId root, const Renaming &renaming) {
  return Renamed(body, renaming).of(root);
}

NodeId substituted(Body &body, NodeId root, NodeId from, NodeId to) {
  std::vector<std::pair<NodeId, NodeId>> copy;
  for (NodeId id : body.reachable({root})) {
    NodeId made = id == from ? to : id;
    if (id != from) {
      Scalar s = body[id];
      bool changed = false;
      for (NodeId &a : s.args) {
        auto at = std::lower_bound(copy.begin(), copy.end(), std::pair{a, kNoNode});
        changed = changed || at->second != a;
        a = at->second;
      }
      if (changed)
        made = body.add(std::move(s));
    }
    copy.emplace_back(id, made);
  }
  return copy.back().second;
}

void substitute(Body &body, Stmt &stmt, NodeId from, NodeId to) {
  for (NodeId *ref : exprRefs(stmt))
    *ref = substituted(body, *ref, from, to);
}

std::optional<Renaming> reachesWithSameValues(GirKernel &kernel, const StatementPath &from,
                                              const StatementPath &to) {
  const size_t depth = commonDepth(from, to);
  if (extentAt(from, depth).second >= extentAt(to, depth).first)
    return std::nullopt;
  for (const StatementPath *site : {&from, &to})
    for (size_t i = depth; i < site->path.size(); ++i)
      if (site->path[i].stmt->kind == StmtKind::While ||
          !isFixed(kernel, site->path[i].condition()))
        return std::nullopt;
  Body &body = kernel.body;
  Renaming renaming;
  size_t next = depth;
  for (size_t i = depth; i < from.path.size(); ++i) {
    const Stmt &loop = *from.path[i].stmt;
    if (loop.kind != StmtKind::Loop)
      continue;
    const NodeId trip = renamed(body, loop.trip, renaming);
    auto isLike = [&](const Stmt &other) {
      return other.kind == StmtKind::Loop && oneKind(other.loop, loop.loop) &&
             renamed(body, other.trip, {}) == trip;
    };
    while (next < to.path.size() && !isLike(*to.path[next].stmt))
      ++next;
    if (next == to.path.size())
      return std::nullopt;
    renaming.emplace_back(loop.var, to.path[next++].stmt->var);
  }
  for (size_t i = depth; i < from.path.size(); ++i) {
    const PathStep &step = from.path[i];
    if (step.stmt->kind != StmtKind::If)
      continue;
    const NodeId predicate = renamed(body, step.stmt->predicate, renaming);
    bool found = false;
    for (size_t k = depth; k < to.path.size() && !found; ++k)
      found = to.path[k].stmt->kind == StmtKind::If && to.path[k].otherwise == step.otherwise &&
              renamed(body, to.path[k].stmt->predicate, {}) == predicate;
    if (!found)
      return std::nullopt;
  }
  return renaming;
}

std::vector<NodeId> alwaysEvaluated(const Body &body, const Stmt &stmt) {
  std::vector<bool> always(body.nodes.size());
  const std::vector<NodeId> roots = exprRoots(stmt);
  for (NodeId r : roots)
    always[static_cast<size_t>(r)] = true;
  std::vector<NodeId> nodes = body.reachable(roots);
  std::reverse(nodes.begin(), nodes.end());
  std::erase_if(nodes, [&](NodeId id) {
    if (!always[static_cast<size_t>(id)])
      return true;
    const Scalar &node = body[id];
    // A ReadIf always evaluates its predicate and its other value, and its indices only if the predicate holds.
    const size_t end = node.op == ScalarOp::ReadIf ? 2 : node.args.size();
    for (size_t i = 0; i < end; ++i)
      always[static_cast<size_t>(node.args[i])] = true;
    return false;
  });
  return nodes;
}

bool isFixed(const GirKernel &kernel, NodeId root) {
  for (NodeId id : kernel.body.reachable({root})) {
    const Scalar &s = kernel.body[id];
    if (s.op != ScalarOp::Read && s.op != ScalarOp::ReadIf)
      continue;
    const GirBuffer &b = kernel.buffers[s.index];
    if (b.level != MemLevel::Global || b.written)
      return false;
  }
  return true;
}

bool isWritten(const std::vector<StatementPath> &sites, BufferId buffer, int first, int last,
               const Stmt *except) {
  for (int i = first; i <= last; ++i) {
    const Stmt &s = *sites[static_cast<size_t>(i)].stmt;
    if (&s != except && writesBuffer(s) && (s.buffer == buffer || s.indexBuffer == buffer))
      return true;
  }
  return false;
}

std::vector<uint64_t> shapeHashes(const GirKernel &kernel) {
  auto mix = [](uint64_t h, uint64_t v) { return (h ^ v) * 0x9e3779b97f4a7c15u + (h >> 29); };
  std::vector<uint64_t> hashes;
  hashes.reserve(kernel.body.nodes.size());
  for (const Scalar &s : kernel.body.nodes) {
    uint64_t h = mix(static_cast<uint64_t>(s.op), static_cast<uint64_t>(s.type));
    if (s.op == ScalarOp::Axis) {
      const LoopKind kind = kernel.vars[s.index].kind;
      h = mix(h, static_cast<uint64_t>(kind == LoopKind::Unroll ? LoopKind::Seq : kind));
    } else {
      h = mix(h, static_cast<uint64_t>(s.index));
      if (s.op == ScalarOp::Const)
        h = mix(h, static_cast<uint64_t>(s.imm));
      h = mix(h, std::hash<double>()(s.fimm));
      if (s.op == ScalarOp::Dim)
        h = mix(h, s.dim.hash());
    }
    // Operands of sums stand in the order of their numbers, which says nothing.
    uint64_t operands = 0;
    for (NodeId a : s.args)
      operands += hashes[static_cast<size_t>(a)];
    hashes.push_back(mix(h, operands));
  }
  return hashes;
}

} // namespace fusec
