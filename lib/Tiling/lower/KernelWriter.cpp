#include "Tiling/lower/KernelWriter.h"

#include <algorithm>

namespace fusec::lowering {

Stmt storeStmt(BufferId buffer, std::vector<NodeId> indices, NodeId value) {
  Stmt s;
  s.kind = StmtKind::Store;
  s.buffer = buffer;
  s.indices = std::move(indices);
  s.value = value;
  return s;
}

Stmt ifStmt(NodeId predicate, Stmts body, Stmts elseBody) {
  Stmt s;
  s.kind = StmtKind::If;
  s.predicate = predicate;
  s.body = std::move(body);
  s.elseBody = std::move(elseBody);
  return s;
}

Stmt accumulateStmt(BufferId buffer, std::vector<NodeId> indices, Monoid monoid, NodeId value) {
  Stmt s = storeStmt(buffer, std::move(indices), value);
  s.kind = StmtKind::Accumulate;
  s.monoid = monoid;
  return s;
}

int64_t constantTile(const BoundSchedule &bound, AxisId axis,
                     std::span<const LoopNode *const> loops) {
  const DimExpr tile = bound.tile(axis, loops);
  return tile.isConst() ? tile.constValue() : 0;
}

int64_t mostOfTile(const BoundSchedule &bound, AxisId axis,
                   std::span<const LoopNode *const> loops) {
  const std::optional<int64_t> most = bound.program.mostOf(bound.tile(axis, loops));
  return most ? std::max<int64_t>(*most, 1) : 0; // an empty one has a place that nobody uses
}

KernelWriter::KernelWriter(const BoundSchedule &bound, const std::vector<Symbol> &symbols)
    : bound(bound), units(bound.schedule.units), lanes(bound.schedule.lanes) {
  kernel.name = bound.schedule.name;
  kernel.symbols = symbols;
  kernel.units = units;
  kernel.lanes = lanes;
  body.symbolTable = symbols;
}

VarId KernelWriter::newVar(const std::string &name, LoopKind kind, IndexRange range) {
  const auto var = static_cast<VarId>(kernel.vars.size());
  kernel.vars.push_back({name + "_" + std::to_string(var), kind});
  body.axisRanges.push_back(std::move(range));
  return var;
}

BufferId KernelWriter::addBuffer(GirBuffer buffer) {
  kernel.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(kernel.buffers.size() - 1);
}

NodeId KernelWriter::read(BufferId buffer, std::vector<NodeId> indices) {
  return body.read(buffer, kernel.buffers[buffer].type, std::move(indices));
}

NodeId KernelWriter::flatIndex(const Shape &shape, const std::vector<NodeId> &indices) {
  const std::vector<DimExpr> strides = stridesOf(shape);
  NodeId flat = body.index(0);
  for (size_t d = 0; d < indices.size(); ++d)
    flat = add(flat, mul(indices[d], body.dim(strides[d])));
  return flat;
}

Stmt KernelWriter::loop(LoopKind kind, NodeId trip, const std::string &name) {
  const int64_t most = body.rangeOf(trip).max;
  Stmt loop;
  loop.kind = StmtKind::Loop;
  loop.loop = kind;
  loop.trip = trip;
  loop.var = newVar(name, kind, {0, most == INT64_MAX ? INT64_MAX : most - 1, std::nullopt});
  return loop;
}

Stmt KernelWriter::laneLoop(Stmts statements) {
  Stmt lane = loop(LoopKind::Lane, body.index(lanes), "lane");
  lane.body = std::move(statements);
  return lane;
}

void KernelWriter::guarded(NodeId predicate, Stmts statements, Stmts &result) {
  if (predicate == kNoNode) {
    for (Stmt &s : statements)
      result.push_back(std::move(s));
    return;
  }
  result.push_back(ifStmt(predicate, std::move(statements)));
}

void KernelWriter::cooperative(NodeId total, const std::function<Stmts(NodeId)> &emit,
                               Stmts &result) {
  const int64_t width = int64_t{units} * lanes;
  const NodeId trip = div(add(total, body.index(width - 1)), body.index(width));
  Stmt round = loop(LoopKind::Seq, trip, "round");
  NodeId flat = mul(body.axis(round.var), body.index(width));
  Stmt unit;
  if (units > 1) {
    unit = loop(LoopKind::Unit, body.index(units), "unit");
    flat = add(flat, mul(body.axis(unit.var), body.index(lanes)));
  }
  Stmt lane = laneLoop({});
  flat = add(flat, body.axis(lane.var));
  const Scalar &count = body[total];
  const bool divides = (count.op == ScalarOp::Const && count.imm % width == 0) ||
                       (count.op == ScalarOp::Dim && count.dim.divisibleBy(width, kernel.symbols));
  const NodeId predicate = divides ? kNoNode : less(flat, total);
  guarded(predicate, emit(flat), lane.body);
  if (units == 1) {
    round.body.push_back(std::move(lane));
    result.push_back(std::move(round));
    return;
  }
  // The rounds go inside: between them no unit waits for another.
  round.body = std::move(lane.body);
  lane.body.clear();
  lane.body.push_back(std::move(round));
  unit.body.push_back(std::move(lane));
  result.push_back(std::move(unit));
}

} // namespace fusec::lowering
