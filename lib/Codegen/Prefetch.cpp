#include "Codegen/Prefetch.h"

#include "Gir/Walk.h"

#include <algorithm>

namespace fusec {
namespace {

class Finder {
public:
  Finder(const GirKernel &kernel, int64_t leastBytes) : kernel(kernel), leastBytes(leastBytes) {}

  void run() {
    for (const Phase &phase : kernel.phases) {
      around.clear();
      for (const Phase::Block &block : phase.blocks)
        around.push_back(block.var);
      visit(phase.body);
    }
  }
  std::multimap<const Stmt *, Prefetch> found;

private:
  void visit(const std::vector<Stmt> &stmts) {
    std::vector<const Stmt *> loops;
    for (const Stmt &s : stmts)
      if (s.kind == StmtKind::Loop && s.loop == LoopKind::Seq)
        loops.push_back(&s);
    auto busy =
        std::find_if(loops.begin(), loops.end(), [&](const Stmt *s) { return computes(*s); });
    if (busy != loops.end()) {
      for (auto later = busy + 1; later != loops.end(); ++later)
        ask(**busy, **later, true);
      if (busy != loops.begin())
        ask(**busy, *loops.front(), false);
    }
    for (const Stmt &s : stmts) {
      const bool isLoop = s.kind == StmtKind::Loop;
      if (isLoop)
        around.push_back(s.var);
      visit(s.body);
      visit(s.elseBody);
      if (isLoop)
        around.pop_back();
    }
  }

  bool sameTrip(const Stmt &a, const Stmt &b) const {
    const Scalar &p = kernel.body[a.trip], &q = kernel.body[b.trip];
    return a.trip == b.trip ||
           (p.op == ScalarOp::Const && q.op == ScalarOp::Const && p.imm == q.imm);
  }

  /// A function of many instructions for each element.
  bool computes(const Stmt &loop) const {
    bool any = false;
    forEachStmt(loop.body, [&](const Stmt &s) {
      for (NodeId id : kernel.body.reachable(exprRoots(s))) {
        const ScalarOp op = kernel.body[id].op;
        any = any || op == ScalarOp::Pow || (op >= ScalarOp::Exp && op <= ScalarOp::Atanh);
      }
    });
    return any;
  }

  bool isLarge(BufferId id) const {
    const GirBuffer &buffer = kernel.buffers[static_cast<size_t>(id)];
    if (buffer.level != MemLevel::Global)
      return false;
    const DimExpr elements = numElements(buffer.shape);
    return elements.isConst() && elements.constValue() * sizeInBytes(buffer.type) >= leastBytes;
  }

  bool readsNothing(NodeId index) const {
    const std::vector<NodeId> nodes = kernel.body.reachable({index});
    return std::none_of(nodes.begin(), nodes.end(), [&](NodeId id) {
      return kernel.body[id].op == ScalarOp::Read || kernel.body[id].op == ScalarOp::ReadIf;
    });
  }

  /// What `other` writes, or reads of what nobody writes, once for each buffer.
  void ask(const Stmt &busy, const Stmt &other, bool writes) {
    if (!sameTrip(busy, other))
      return;
    Prefetch access;
    access.isWritten = writes;
    access.loop = other.var;
    below(busy, other.body, access);
  }

  void below(const Stmt &busy, const std::vector<Stmt> &stmts, const Prefetch &outer) {
    for (const Stmt &s : stmts) {
      Prefetch access = outer;
      if (s.kind == StmtKind::Loop) {
        if (s.loop == LoopKind::Lane) {
          access.lane = s.var;
        } else if (s.loop == LoopKind::Unroll && access.unroll < 0) {
          access.unroll = s.var;
          access.unrollTrip = kernel.body[s.trip].imm;
        } else {
          continue;
        }
      } else if (access.lane >= 0 && access.isWritten && s.kind == StmtKind::Store) {
        add(busy, access, s.buffer, s.indices);
      } else if (access.lane >= 0 && !access.isWritten) {
        for (NodeId id : kernel.body.reachable(exprRoots(s)))
          if (const Scalar &read = kernel.body[id]; read.op == ScalarOp::Read)
            add(busy, access, read.index, read.args);
      }
      below(busy, s.body, access);
    }
  }

  void add(const Stmt &busy, Prefetch access, BufferId buffer, const std::vector<NodeId> &indices) {
    if (indices.size() != 1 || !isLarge(buffer) || !readsNothing(indices.front()) ||
        kernel.buffers[static_cast<size_t>(buffer)].written != access.isWritten)
      return;
    access.buffer = buffer;
    access.index = indices.front();
    if (!access.isWritten) {
      auto inner = std::find_if(around.rbegin(), around.rend(),
                                [&](VarId var) { return dependsOn(kernel, access.index, var); });
      if (inner == around.rend())
        return;
      access.next = *inner;
    }
    auto [first, last] = found.equal_range(&busy);
    if (std::none_of(first, last, [&](const auto &known) { return known.second.buffer == buffer; }))
      found.emplace(&busy, access);
  }

  const GirKernel &kernel;
  const int64_t leastBytes;
  std::vector<VarId> around;
};

} // namespace

std::multimap<const Stmt *, Prefetch> findPrefetches(const GirKernel &kernel, int64_t leastBytes) {
  Finder finder(kernel, leastBytes);
  finder.run();
  return std::move(finder.found);
}

} // namespace fusec
