#include "Codegen/Unrolling.h"

#include "Gir/Walk.h"

#include <algorithm>
#include <set>

namespace fusec {

bool isShort(const Scalar &trip) { return trip.op == ScalarOp::Const && trip.imm <= 8; }

int64_t emittedStatements(const GirKernel &kernel, const std::vector<Stmt> &stmts, int64_t limit) {
  int64_t sum = 0;
  for (const Stmt &s : stmts) {
    int64_t once =
        1 + emittedStatements(kernel, s.body, limit) + emittedStatements(kernel, s.elseBody, limit);
    const Scalar *trip = s.kind == StmtKind::Loop ? &kernel.body[s.trip] : nullptr;
    if (s.kind == StmtKind::While || !s.kernel.empty() ||
        (trip && s.loop == LoopKind::Seq && !isShort(*trip)))
      return limit;
    if (trip && (s.loop == LoopKind::Unroll || s.loop == LoopKind::Seq))
      once *= trip->imm;
    sum += once;
    if (sum >= limit)
      return limit;
  }
  return sum;
}

bool isTested(const GirKernel &kernel, const std::vector<Stmt> &stmts, VarId var) {
  return std::ranges::any_of(stmts, [&](const Stmt &s) {
    for (NodeId id : kernel.body.reachable(exprRoots(s)))
      if (kernel.body[id].op == ScalarOp::ReadIf && dependsOn(kernel, kernel.body[id].args[0], var))
        return true;
    return isTested(kernel, s.body, var) || isTested(kernel, s.elseBody, var);
  });
}

bool sharesTests(const GirKernel &kernel, const Stmt &loop,
                 const std::function<bool(VarId)> &isConstant) {
  const Body &body = kernel.body;
  std::set<VarId> inside, lanes, turns;
  std::vector<NodeId> roots;
  forEachStmt(loop.body, [&](const Stmt &s) {
    if (s.kind == StmtKind::Loop)
      (s.loop == LoopKind::Lane ? lanes : s.loop == LoopKind::Seq ? turns : inside).insert(s.var);
    for (NodeId root : exprRoots(s))
      roots.push_back(root);
  });
  const auto isMask = [&](NodeId condition) {
    bool ofLanes = false, ofTurns = false, open = false, ofLoop = false;
    for (NodeId id : body.reachable({condition})) {
      const Scalar &node = body[id];
      if (node.op == ScalarOp::Axis) {
        ofLoop = ofLoop || node.index == loop.var;
        ofLanes = ofLanes || lanes.contains(node.index);
        ofTurns = ofTurns || turns.contains(node.index);
        open = open || !(lanes.contains(node.index) || turns.contains(node.index) ||
                         inside.contains(node.index) || isConstant(node.index));
      }
      open = open || node.op == ScalarOp::Dim;
    }
    return ofLanes && ofTurns && open && !ofLoop;
  };
  for (NodeId id : body.reachable(roots))
    if (body[id].op == ScalarOp::ReadIf) {
      std::vector<NodeId> conditions = {body[id].args[0]};
      while (!conditions.empty()) {
        const NodeId at = conditions.back();
        conditions.pop_back();
        if (body[at].op == ScalarOp::And)
          conditions.insert(conditions.end(), body[at].args.begin(), body[at].args.end());
        else if (isMask(at))
          return true;
      }
    }
  return false;
}

std::vector<NodeId> certainReads(const Body &body, const std::vector<NodeId> &roots) {
  std::vector<NodeId> open = roots, found;
  std::set<NodeId> seen;
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (id == kNoNode || !seen.insert(id).second)
      continue;
    const Scalar &s = body[id];
    const bool guarded = s.op == ScalarOp::ReadIf;
    if (guarded || s.op == ScalarOp::Read)
      found.push_back(id);
    open.insert(open.end(), s.args.begin(), guarded ? s.args.begin() + 2 : s.args.end());
  }
  return found;
}

} // namespace fusec
