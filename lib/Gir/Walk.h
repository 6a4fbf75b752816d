#pragma once
#include "Gir/Gir.h"

namespace fusec {

/// The expressions of a statement, without those of the statements inside it, in the order of its text. Loop:
/// trip; If, While: predicate; Store, Accumulate: indices, value, indexValue where there is one; LaneReduce,
/// Exchange, Signal: indices; Wait: indices, value; Sync: none.
std::vector<NodeId *> exprRefs(Stmt &stmt);
std::vector<NodeId> exprRoots(const Stmt &stmt);

/// Calls `visit` for every statement of a list, parents first, in text order.
template <typename List, typename F> void forEachStmt(List &stmts, F &&visit) {
  for (auto &s : stmts) {
    visit(s);
    forEachStmt(s.body, visit);
    forEachStmt(s.elseBody, visit);
  }
}
template <typename Kernel, typename F> void forEachStmtOf(Kernel &kernel, F &&visit) {
  for (auto &phase : kernel.phases)
    forEachStmt(phase.body, visit);
}

/// True for statements that read and write one element of `buffer`.
inline bool writesBuffer(const Stmt &s) {
  return s.kind == StmtKind::Store || s.kind == StmtKind::Accumulate ||
         s.kind == StmtKind::LaneReduce || s.kind == StmtKind::Exchange;
}

/// Nodes whose value may differ between the lanes of a unit: what depends on a Lane variable or on a register
/// that each lane has for itself.
std::vector<bool> laneVarying(const GirKernel &kernel);

/// Whether what is below these nodes, themselves included, reads a buffer.
bool readsAny(const Body &body, const std::vector<NodeId> &roots);

/// Whether the loop variable is among the operands of the node.
bool dependsOn(const GirKernel &kernel, NodeId node, VarId var);

/// Range of a loop variable whose loop has this trip count.
IndexRange rangeOfTrip(const GirKernel &kernel, NodeId trip);

/// The statement's own text without what is inside it, for messages.
std::string headText(const GirKernel &kernel, const Stmt &stmt);

/// Sets `kernel.body`'s tables of ranges from the trips of blocks and loops and from the symbols.
void setRanges(GirKernel &kernel);

} // namespace fusec
