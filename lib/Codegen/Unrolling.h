#pragma once
// What the emitter asks of a loop before it writes its iterations out one behind the other.
#include "Gir/Gir.h"

#include <functional>

namespace fusec {

/// True for the constant trip of a loop whose iterations may be written out.
bool isShort(const Scalar &trip);

/// Statements that are emitted for a list, or `limit` as soon as that is reached. A Seq loop that is not short counts
/// as the limit: loops around it gain nothing by being unrolled. So does a micro-kernel: its sums leave no registers
/// for factors that steps share, such as the elements of a row under neighbouring windows.
int64_t emittedStatements(const GirKernel &kernel, const std::vector<Stmt> &stmts, int64_t limit);

/// True if a read under `stmts` tests a predicate that `var` goes into.
bool isTested(const GirKernel &kernel, const std::vector<Stmt> &stmts, VarId var);

/// True if each turn of a loop inside has masks of lanes that are the same in all turns of this one, and that constants
/// do not tell when code is made: they are made once in front of a loop that stays one.
bool sharesTests(const GirKernel &kernel, const Stmt &loop,
                 const std::function<bool(VarId)> &isConstant);

/// Reads, guarded ones among them, that are come to whatever the predicates of others say: none of their indices.
std::vector<NodeId> certainReads(const Body &body, const std::vector<NodeId> &roots);

} // namespace fusec
