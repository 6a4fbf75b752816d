// Rows that are gone through several times, of which the last one writes what the others have found:
//
//   seq m in 8 {
//     .. seq v in 477 { %sum[] sum= exp(..x[m, v]..) } .. seq w in 477 { %y[m, w] = sub(%x[m, w], %log[]) }
//   }
//
// becomes
//
//   seq m in 8 {
//     .. seq v in 477 { %sum[] sum= exp(..x[m, v]..)  if lt(0, m) { %y[m - 1, v] = sub(%x[m - 1, v], %log.row[]) } } ..
//     %log.row[] = %log[]
//   }
//   seq w in 477 { %y[7, w] = sub(%x[7, w], %log.row[]) }
//
// so that memory takes a row while a core computes the functions of the next one. The numbers are the same.
#include "Expr/OpWeight.h"
#include "Gir/Passes.h"
#include "Gir/Walk.h"

#include <algorithm>
#include <map>

namespace fusec {
namespace {

class Delay {
public:
  explicit Delay(GirKernel &kernel) : kernel(kernel), before(kernel.body) {}

  bool run() {
    for (Phase &phase : kernel.phases)
      visit(phase.body);
    return changed;
  }

private:
  void visit(std::vector<Stmt> &stmts) {
    for (size_t i = 0; i < stmts.size(); ++i) {
      visit(stmts[i].body);
      visit(stmts[i].elseBody);
      if (Stmt *busy = busyLoopOf(stmts[i])) {
        stmts.insert(stmts.begin() + static_cast<ptrdiff_t>(i) + 1, delayed(stmts[i], *busy));
        ++i;
        changed = true;
      }
    }
  }

  static bool isSeq(const Stmt &s) { return s.kind == StmtKind::Loop && s.loop == LoopKind::Seq; }

  template <typename F> bool anyNode(const Stmt &stmt, const F &matches) const {
    bool any = false;
    const std::vector<Stmt> one = {stmt};
    forEachStmt(one, [&](const Stmt &s) {
      for (NodeId id : before.reachable(exprRoots(s)))
        any = any || matches(before[id]);
    });
    return any;
  }

  /// A function of many instructions for each element.
  bool computes(const Stmt &loop) const {
    constexpr double kMany = 16;
    return anyNode(loop, [](const Scalar &node) { return weightOf(node.op) >= kMany; });
  }

  bool sameTrip(const Stmt &a, const Stmt &b) const {
    const Scalar &p = before[a.trip], &q = before[b.trip];
    return a.trip == b.trip ||
           (p.op == ScalarOp::Const && q.op == ScalarOp::Const && p.imm == q.imm);
  }

  static bool isRead(const Scalar &node) {
    return node.op == ScalarOp::Read || node.op == ScalarOp::ReadIf;
  }

  /// Writes what nobody reads, from what nobody writes and registers that it does not change.
  bool onlyWrites(const Stmt &loop) const {
    bool only = true;
    forEachStmt(loop.body, [&](const Stmt &s) {
      const bool stores = s.kind == StmtKind::Store &&
                          kernel.buffers[static_cast<size_t>(s.buffer)].level == MemLevel::Global;
      only &= stores || s.kind == StmtKind::If || (s.kind == StmtKind::Loop && !isSeq(s));
      forEachStmtOf(kernel, [&](const Stmt &other) {
        for (NodeId id : before.reachable(exprRoots(other)))
          only &= !stores || !isRead(before[id]) || before[id].index != s.buffer;
      });
    });
    return only && !anyNode(loop, [&](const Scalar &node) {
             if (!isRead(node))
               return false;
             const GirBuffer &buffer = kernel.buffers[static_cast<size_t>(node.index)];
             const bool constant = std::all_of(node.args.begin(), node.args.end(), [&](NodeId arg) {
               return before[arg].op == ScalarOp::Const;
             });
             return buffer.level == MemLevel::Global ? buffer.written
                                                     : buffer.level == MemLevel::Shared ||
                                                           node.op == ScalarOp::ReadIf || !constant;
           });
  }

  /// The loop inside `rows` that computes while the last statement, which only writes, is delayed; null if there is
  /// none.
  Stmt *busyLoopOf(Stmt &rows) const {
    if (!isSeq(rows) || rows.body.size() < 2 || before[rows.trip].op == ScalarOp::Read)
      return nullptr;
    const Stmt &last = rows.body.back();
    if (!isSeq(last) || computes(last) || !onlyWrites(last))
      return nullptr;
    for (size_t i = rows.body.size() - 1; i-- > 0;)
      if (Stmt &s = rows.body[i]; isSeq(s) && computes(s) && sameTrip(s, last))
        return &s;
    return nullptr;
  }

  VarId newVar(const Stmt &loop) {
    kernel.vars.push_back(kernel.vars[static_cast<size_t>(loop.var)]);
    kernel.body.axisRanges.push_back(before.axisRanges[static_cast<size_t>(loop.var)]);
    return static_cast<VarId>(kernel.vars.size() - 1);
  }

  /// Copies with other nodes for variables and other buffers for registers.
  struct Copier {
    std::map<VarId, NodeId> vars;
    std::map<BufferId, BufferId> registers;
  };

  NodeId copied(NodeId root, const Copier &copier) {
    if (root == kNoNode)
      return root;
    return kernel.body.import(before, root, [&](const Scalar &node, NodeId) -> NodeId {
      if (node.op == ScalarOp::Axis)
        if (const auto it = copier.vars.find(node.index); it != copier.vars.end())
          return it->second;
      if (node.op == ScalarOp::Read)
        if (const auto it = copier.registers.find(node.index); it != copier.registers.end())
          return kernel.body.read(it->second, node.type, node.args);
      return kNoNode;
    });
  }

  std::vector<Stmt> copied(const std::vector<Stmt> &stmts, Copier &copier) {
    std::vector<Stmt> out;
    for (const Stmt &s : stmts) {
      Stmt copy = s;
      if (s.kind == StmtKind::Loop) {
        copy.var = newVar(s);
        copier.vars[s.var] = kernel.body.axis(copy.var);
      }
      for (NodeId *ref : exprRefs(copy))
        *ref = copied(*ref, copier);
      copy.body = copied(s.body, copier);
      copy.elseBody = copied(s.elseBody, copier);
      out.push_back(std::move(copy));
    }
    return out;
  }

  static Stmt ifStmt(NodeId predicate, std::vector<Stmt> body) {
    Stmt s;
    s.kind = StmtKind::If;
    s.predicate = predicate;
    s.body = std::move(body);
    return s;
  }

  /// The registers that a loop reads get others, which hold the row before; `fills` gets what fills them.
  std::map<BufferId, BufferId> holdRow(const Stmt &loop, std::vector<Stmt> &fills) {
    std::map<BufferId, BufferId> held;
    std::map<std::pair<BufferId, std::vector<NodeId>>, NodeId> elements;
    anyNode(loop, [&](const Scalar &node) {
      if (isRead(node) &&
          kernel.buffers[static_cast<size_t>(node.index)].level == MemLevel::Register)
        elements.emplace(std::pair{node.index, node.args}, kNoNode);
      return false;
    });
    for (const auto &[element, unused] : elements) {
      const auto &[id, args] = element;
      if (held.count(id) == 0) {
        GirBuffer buffer = kernel.buffers[static_cast<size_t>(id)];
        buffer.name += ".row";
        held[id] = static_cast<BufferId>(kernel.buffers.size());
        kernel.buffers.push_back(std::move(buffer));
      }
      const GirBuffer &buffer = kernel.buffers[static_cast<size_t>(id)];
      Stmt store;
      store.buffer = held[id];
      for (NodeId arg : args)
        store.indices.push_back(copied(arg, {}));
      store.value = kernel.body.read(id, buffer.type, store.indices);
      if (!buffer.perLane) {
        fills.push_back(std::move(store));
        continue;
      }
      Stmt lanes;
      lanes.kind = StmtKind::Loop;
      lanes.loop = LoopKind::Lane;
      lanes.trip = kernel.body.index(kernel.lanes);
      lanes.var = static_cast<VarId>(kernel.vars.size());
      kernel.vars.push_back({"lane", LoopKind::Lane});
      kernel.body.axisRanges.push_back({0, kernel.lanes - 1, std::nullopt});
      lanes.body = {std::move(store)};
      fills.push_back(std::move(lanes));
    }
    return held;
  }

  /// Takes the last loop out of `rows`, of which it writes all but the last row there; returns what writes that one.
  Stmt delayed(Stmt &rows, Stmt &busy) {
    Stmt writes = std::move(rows.body.back());
    rows.body.pop_back();
    Copier earlier, last;
    std::vector<Stmt> fills;
    earlier.registers = last.registers = holdRow(writes, fills);
    Body &body = kernel.body;
    const NodeId row = body.axis(rows.var), one = body.index(1);
    earlier.vars[rows.var] = body.binary(ScalarOp::Sub, row, one);
    earlier.vars[writes.var] = body.axis(busy.var);
    const NodeId isLater = body.binary(ScalarOp::Lt, body.index(0), row);
    // Full and cut tiles of the one are those of the other.
    Stmt *tiles =
        busy.body.size() == 1 && busy.body[0].kind == StmtKind::If ? &busy.body[0] : nullptr;
    const Stmt *own =
        writes.body.size() == 1 && writes.body[0].kind == StmtKind::If ? &writes.body[0] : nullptr;
    if (tiles && own && copied(own->predicate, earlier) == tiles->predicate) {
      tiles->body.push_back(ifStmt(isLater, copied(own->body, earlier)));
      if (!own->elseBody.empty())
        tiles->elseBody.push_back(ifStmt(isLater, copied(own->elseBody, earlier)));
    } else {
      busy.body.push_back(ifStmt(isLater, copied(writes.body, earlier)));
    }
    rows.body.insert(rows.body.end(), fills.begin(), fills.end());
    last.vars[rows.var] = body.binary(ScalarOp::Sub, rows.trip, one);
    return ifStmt(body.binary(ScalarOp::Lt, body.index(0), rows.trip), copied({writes}, last));
  }

  GirKernel &kernel;
  const Body before;
  bool changed = false;
};

} // namespace

void delayStores(GirKernel &kernel) {
  if (Delay(kernel).run())
    simplify(kernel);
}

} // namespace fusec
