#pragma once
#include "Expr/Expr.h"

#include <functional>

namespace fusec {

/// Calls `visit` for every equation in order of execution, those of branches, loops and scans included: a scan
/// before the equations of its body. `steps` is the surrounding scan's trip count or nullptr.
void forEachEquation(std::vector<Item> &items,
                     const std::function<void(Equation &, const DimExpr *steps)> &visit);
void forEachControl(std::vector<Item> &items, const std::function<void(Control &)> &visit);

/// Calls `use` for every tensor that an equation or control needs as a whole and not through a body's reads:
/// scan inits and results of a step, scatter bases, opaque inputs, conditions, yields, carried values.
void forEachWholeUse(Equation &e, const std::function<void(TensorId &)> &use);
void forEachWholeUse(Control &c, const std::function<void(TensorId &)> &use);

/// Calls `use` for every tensor that the equation names besides its outputs, its scan body aside: what it reads, the
/// base of a scatter, carries, stacked results, opaque inputs. Those that it lacks are -1.
void forEachTensor(Equation &e, const std::function<void(TensorId &)> &use);

/// True for a tensor that must exist in memory: an output, or used as a whole somewhere.
std::vector<bool> wholeUses(ExprProgram &program);

/// For every node: bit a is set iff it depends on axis a (axes from 63 on share the last bit).
std::vector<uint64_t> axisDependences(const Body &body);

/// A new body for the equation in which every node has been copied through the simplifier, with `leaf`
/// replacing leaves as in Body::import.
void rebuild(Equation &e, const std::vector<Symbol> &symbols, const DimExpr *steps,
             const std::function<NodeId(Body &body, const Scalar &copied, NodeId original)> &leaf);

/// `value`, or the reduction's identity in runs where `e` has no points: what it is divided by may be a sum of nothing.
NodeId orIdentity(Body &body, const Equation &e, NodeId value, const std::vector<Symbol> &symbols);

/// Number of elements under the symbols' opt values; for weighing costs only.
double typicalElements(const Shape &shape, const std::vector<Symbol> &symbols);

inline bool isRead(const Scalar &s) { return s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf; }

} // namespace fusec
