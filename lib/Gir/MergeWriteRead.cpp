// merge-write-read: what a thread has stored it does not load back.
//
// Guarantees: a read of the element that the same thread stored, with no other store to the buffer between, becomes a
// read of a register that got the value beside the store; a Shared buffer goes where all of its reads do. Needs:
// simplify. Stands before insertSyncs: the barriers of a buffer that is gone are not needed either.
//
//   unit u in 8 { lane l in 32 { %s[u*32 + l] = exp(..) } }
//   ..
//   unit v in 8 { lane m in 32 { %y[..] = mul(%s[v*32 + m], ..) } }
// becomes
//   unit u in 8 { lane l in 32 { %s.kept[] = exp(..); %s[u*32 + l] = %s.kept[] } }    the second one goes
//   ..
//   unit v in 8 { lane m in 32 { %y[..] = mul(%s.kept[], ..) } }
//
// The thread that stores at an index is the one that reads there only if no two iterations and no two threads store at
// one index: the index has to be affine in the loops between, with steps that do not overlap. What one thread stores
// for the whole block, all of them know, as far as their units agree on the value.
//
// Not handled: buffers that are accumulated to; indices with divisions.
#include "Gir/ValueCache.h"
#include "Gir/Walk.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <unordered_map>

namespace fusec {
namespace {

class Forwarder {
public:
  Forwarder(GirKernel &kernel, const RewriteLimits &limits)
      : kernel(kernel), cache(kernel, limits) {}

  bool run() {
    return untilDone(kernel, [&](Phase &phase) { return once(phase); });
  }

private:
  bool once(Phase &phase) {
    const std::vector<StatementPath> sites = statementPathsOf(phase);
    touching.assign(kernel.buffers.size(), 0);
    forEachStmtOf(kernel, [&](const Stmt &s) { noteTouched(s); });
    readsAt.clear();
    for (const StatementPath &site : sites)
      readsAt.push_back(readsOf(*site.stmt));
    return std::any_of(sites.begin(), sites.end(), [&](const StatementPath &from) {
      if (from.stmt->kind != StmtKind::Store ||
          kernel.buffers[static_cast<size_t>(from.stmt->buffer)].level == MemLevel::Register ||
          !unitsAgree(from))
        return false;
      CachedValue value{from.number, from.stmt->value, from.stmt->buffer, true, {}};
      const bool all = findUses(sites, from, value);
      const bool shared =
          kernel.buffers[static_cast<size_t>(value.source)].level == MemLevel::Shared;
      return !value.uses.empty() && (!shared || all) && cache.keep(sites, value);
    });
  }

  /// Reads that the store serves. True where these are all reads of the buffer, and the store its only writer.
  bool findUses(const std::vector<StatementPath> &sites, const StatementPath &from,
                CachedValue &value) {
    bool all = true;
    int inPhase = 0;
    for (const StatementPath &to : sites) {
      const bool writes = writesBuffer(*to.stmt) &&
                          (to.stmt->buffer == value.source || to.stmt->indexBuffer == value.source);
      if (writes && to.stmt != from.stmt)
        all = false;
      bool reads = false;
      for (NodeId id : readsAt[static_cast<size_t>(to.number)]) {
        const Scalar node = kernel.body[id];
        if (node.index != value.source)
          continue;
        reads = true;
        auto renaming =
            node.op == ScalarOp::Read ? servedUnder(sites, from, to, node) : std::nullopt;
        const bool served =
            renaming && cache.addUse(sites, value, {to.number, id, std::move(*renaming)});
        all = all && served;
      }
      inPhase += writes || reads;
    }
    return all && touching[static_cast<size_t>(value.source)] == inPhase;
  }

  std::vector<NodeId> readsOf(const Stmt &s) {
    std::vector<NodeId> nodes;
    for (NodeId root : exprRoots(s)) {
      const std::vector<NodeId> &below = readsBelow(root);
      nodes.insert(nodes.end(), below.begin(), below.end());
    }
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes;
  }

  /// Expressions only come, so that what was found for one holds.
  const std::vector<NodeId> &readsBelow(NodeId root) {
    const auto [known, isNew] = readsOfRoot.try_emplace(root);
    if (isNew) {
      known->second = kernel.body.reachable({root});
      std::erase_if(known->second, [&](NodeId id) {
        return kernel.body[id].op != ScalarOp::Read && kernel.body[id].op != ScalarOp::ReadIf;
      });
    }
    return known->second;
  }

  void noteTouched(const Stmt &s) {
    std::set<BufferId> touched;
    if (writesBuffer(s))
      touched = {s.buffer, s.indexBuffer};
    for (NodeId id : readsOf(s))
      touched.insert(kernel.body[id].index);
    for (BufferId b : touched)
      if (b >= 0)
        ++touching[static_cast<size_t>(b)];
  }

  /// Names of the loops under which the read gets what its thread has stored.
  std::optional<Renaming> servedUnder(const std::vector<StatementPath> &sites,
                                      const StatementPath &from, const StatementPath &to,
                                      const Scalar &read) {
    if (to.stmt->kind != StmtKind::Store && to.stmt->kind != StmtKind::Accumulate)
      return std::nullopt;
    const size_t depth = commonDepth(from, to);
    if (isWritten(sites, from.stmt->buffer, extentAt(from, depth).first, extentAt(to, depth).second,
                  from.stmt))
      return std::nullopt;
    std::optional<Renaming> renaming = reachesWithSameValues(kernel, from, to);
    if (!renaming)
      return std::nullopt;
    for (size_t d = 0; d < read.args.size(); ++d)
      if (!isFixed(kernel, from.stmt->indices[d]) ||
          renamed(kernel.body, from.stmt->indices[d], *renaming) !=
              renamed(kernel.body, read.args[d], {}))
        return std::nullopt;
    return isInjective(from, depth) ? renaming : std::nullopt;
  }

  /// Each iteration and thread of the loops from `depth` on stores at an index of its own.
  bool isInjective(const StatementPath &from, size_t depth) {
    Body &body = kernel.body;
    const GirBuffer &buffer = kernel.buffers[static_cast<size_t>(from.stmt->buffer)];
    NodeId flat = body.index(0);
    for (size_t d = 0; d < from.stmt->indices.size(); ++d)
      flat = body.binary(ScalarOp::Add, body.binary(ScalarOp::Mul, flat, body.dim(buffer.shape[d])),
                         from.stmt->indices[d]);
    auto form = affineForm(body, flat, static_cast<int>(kernel.vars.size()));
    if (!form)
      return false;
    std::vector<std::pair<int64_t, int64_t>>
        steps; // step of the index, largest value of the variable
    for (size_t i = depth; i < from.path.size(); ++i) {
      const Stmt &loop = *from.path[i].stmt;
      if (loop.kind != StmtKind::Loop)
        continue;
      const int64_t last = body.rangeOf(body.axis(loop.var)).max;
      const DimExpr &step = form->coefficients[static_cast<size_t>(loop.var)];
      if (!step.isConst() || last > INT32_MAX || std::abs(step.constValue()) > INT32_MAX)
        return false;
      steps.emplace_back(std::abs(step.constValue()), last);
    }
    std::sort(steps.begin(), steps.end());
    int64_t span = 0; // of the loops with smaller steps
    for (auto [step, last] : steps) {
      if (last > 0 && step <= span)
        return false;
      if (__builtin_add_overflow(span, step * last, &span))
        return false;
    }
    return true;
  }

  /// Outside Unit loops the first unit stores; what the others compute has to be the same.
  bool unitsAgree(const StatementPath &from) {
    return kernel.units == 1 || loopAround(from, LoopKind::Unit) ||
           agree(*from.list, from.position, from.stmt->value);
  }

  /// Whether all units find the same value in front of statement `position` of a list outside Unit loops.
  bool agree(const std::vector<Stmt> &list, size_t position, NodeId value) {
    for (NodeId id : kernel.body.reachable({value})) {
      const Scalar &s = kernel.body[id];
      if ((s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf) && isOwn(s.index) &&
          !agreeOn(list, position, s.index))
        return false;
    }
    return true;
  }

  /// A register whose value may differ between units.
  bool isOwn(BufferId b) const {
    const GirBuffer &buffer = kernel.buffers[static_cast<size_t>(b)];
    return buffer.level == MemLevel::Register && buffer.perLane;
  }

  bool agreeOn(const std::vector<Stmt> &list, size_t position, BufferId buffer) {
    if (!kernel.buffers[static_cast<size_t>(buffer)].shape.empty())
      return false;
    while (position-- > 0) {
      const Stmt &s = list[position];
      if (s.kind == StmtKind::Store && s.buffer == buffer)
        return agree(list, position, s.value);
      if (!combinesAlike(s, buffer))
        return false;
    }
    return false;
  }

  /// True if the statement changes the register in all units with the same operands, or not at all.
  bool combinesAlike(const Stmt &s, BufferId buffer) {
    bool alike = true;
    auto visit = [&](const Stmt &t) {
      if (!writesBuffer(t) || (t.buffer != buffer && t.indexBuffer != buffer))
        return;
      alike = alike && t.kind == StmtKind::Accumulate && t.indexBuffer < 0;
      for (NodeId id : kernel.body.reachable(exprRoots(t))) {
        const Scalar &node = kernel.body[id];
        alike = alike && !(node.op == ScalarOp::Axis &&
                           kernel.vars[static_cast<size_t>(node.index)].kind == LoopKind::Unit);
        alike = alike &&
                !((node.op == ScalarOp::Read || node.op == ScalarOp::ReadIf) && isOwn(node.index));
      }
    };
    visit(s);
    forEachStmt(s.body, visit);
    forEachStmt(s.elseBody, visit);
    // Inside an If or While a condition decides: what it reads would have to agree as well.
    const bool plain =
        writesBuffer(s) || s.kind == StmtKind::Sync ||
        (s.kind == StmtKind::Loop && s.loop != LoopKind::Unit &&
         std::all_of(s.body.begin(), s.body.end(), [&](const Stmt &t) { return writesBuffer(t); }));
    return alike && (plain || !writes(s, buffer));
  }

  bool writes(const Stmt &s, BufferId buffer) const {
    bool found = writesBuffer(s) && (s.buffer == buffer || s.indexBuffer == buffer);
    for (const auto *list : {&s.body, &s.elseBody})
      for (const Stmt &t : *list)
        found = found || writes(t, buffer);
    return found;
  }

  GirKernel &kernel;
  ValueCache cache;
  std::unordered_map<NodeId, std::vector<NodeId>> readsOfRoot;
  // While sites stand:
  std::vector<std::vector<NodeId>> readsAt; // reads of each
  std::vector<int> touching;                // statements of all phases that read or write a buffer
};

} // namespace

bool mergeWriteRead(GirKernel &kernel, const RewriteLimits &limits) {
  return Forwarder(kernel, limits).run();
}

} // namespace fusec
