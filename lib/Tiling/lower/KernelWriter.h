#pragma once
#include "Tiling/lower/Lower.h"
#include "Tiling/schedule/Message.h"

#include <functional>

namespace fusec::lowering {

using tiling::BoundSchedule, tiling::Loops;
using Stmts = std::vector<Stmt>;

Stmt storeStmt(BufferId buffer, std::vector<NodeId> indices, NodeId value);
Stmt ifStmt(NodeId predicate, Stmts body, Stmts elseBody = {});
Stmt accumulateStmt(BufferId buffer, std::vector<NodeId> indices, Monoid monoid, NodeId value);

/// Elements of the axis below these loops; 0 if they are no constant.
int64_t constantTile(const BoundSchedule &bound, AxisId axis,
                     std::span<const LoopNode *const> loops);
/// The most elements that it has below them; 0 if no memory has room for as many.
int64_t mostOfTile(const BoundSchedule &bound, AxisId axis, std::span<const LoopNode *const> loops);

/// The kernel that is being made, and how its variables, buffers, expressions and statements are put together.
class KernelWriter {
public:
  /// `symbols`: what is known of the program's.
  KernelWriter(const BoundSchedule &bound, const std::vector<Symbol> &symbols);
  KernelWriter(const KernelWriter &) = delete;

  const BoundSchedule &bound;
  LoweredKernel out;
  GirKernel &kernel = out.kernel;
  Body &body = out.kernel.body;
  const int units, lanes;
  std::vector<std::string> problems;

  /// Remembers why the schedule has no kernel, in pieces of a message; the first one that is found ends no lowering.
  template <typename... Pieces> void problem(const Pieces &...pieces) {
    problems.push_back(tiling::message(bound, pieces...));
  }

  VarId newVar(const std::string &name, LoopKind kind, IndexRange range);
  BufferId addBuffer(GirBuffer buffer);

  NodeId add(NodeId a, NodeId b) { return body.binary(ScalarOp::Add, a, b); }
  NodeId sub(NodeId a, NodeId b) { return body.binary(ScalarOp::Sub, a, b); }
  NodeId mul(NodeId a, NodeId b) { return body.binary(ScalarOp::Mul, a, b); }
  NodeId div(NodeId a, NodeId b) { return body.binary(ScalarOp::FloorDiv, a, b); }
  NodeId mod(NodeId a, NodeId b) { return body.binary(ScalarOp::FloorMod, a, b); }
  NodeId min(NodeId a, NodeId b) { return body.binary(ScalarOp::Min, a, b); }
  NodeId less(NodeId a, NodeId b) { return body.binary(ScalarOp::Lt, a, b); }
  NodeId atMost(NodeId a, NodeId b) { return body.binary(ScalarOp::Le, a, b); }
  NodeId read(BufferId buffer, std::vector<NodeId> indices);
  /// Row-major address of an element, given one index a dimension.
  NodeId flatIndex(const Shape &shape, const std::vector<NodeId> &indices);

  /// A loop without statements, with a variable of its own.
  Stmt loop(LoopKind kind, NodeId trip, const std::string &name);
  Stmt laneLoop(Stmts statements);
  /// Appends the statements, under an If where there is a predicate.
  void guarded(NodeId predicate, Stmts statements, Stmts &result);
  /// Spreads [0, total) over units and lanes (on a CPU, over vectors). `emit` gets the flat position.
  void cooperative(NodeId total, const std::function<Stmts(NodeId)> &emit, Stmts &result);
};

} // namespace fusec::lowering
