#include "Tiling/lower/PersistentValues.h"

#include "Tiling/lower/ReadLowering.h"

#include <algorithm>

namespace fusec::lowering {

void PersistentValues::begin() {
  reads = tiling::persistentReads(bound);
  if (!reads.empty())
    writer.kernel.resident = writer.newVar("resident", LoopKind::Seq, {0, 1, std::nullopt});
}

bool PersistentValues::areReadIn(std::span<const TreeNode> nodes) const {
  const std::set<int> inside = tiling::equationsIn(nodes, bound.schedule);
  return std::ranges::any_of(reads, [&](const tiling::PersistentRead &read) {
    return inside.count(read.kept.read.equation) + inside.count(read.kept.from->equation) != 0;
  });
}

const tiling::PersistentRead *PersistentValues::find(const ReadPlace &place) const {
  const auto it = std::ranges::find_if(reads, [&](const tiling::PersistentRead &read) {
    return read.kept.read == place || read.kept.from == place;
  });
  return it == reads.end() ? nullptr : &*it;
}

NodeId PersistentValues::element(const tiling::PersistentRead &read, const ReadPlace &place) {
  const bool inRegisters = read.kept.level == MemLevel::Register;
  const Loops numbering = tiling::loopsOfPersistent(bound, place, loops.nodes());
  NodeId flat = body.index(0), unit = kNoNode, lane = kNoNode;
  auto addDigit = [&](NodeId value, int64_t size) {
    flat = writer.add(writer.mul(flat, body.index(size)), value);
  };
  for (size_t i = 0; i < loops.path.size(); ++i) {
    const PathLoop &loop = loops.path[i];
    const LoopNode &node = *loop.node;
    if (node.kind == LoopKind::Unit)
      unit = loops.value(loop);
    if (node.kind == LoopKind::Lane)
      lane = loops.value(loop);
    if (std::ranges::count(numbering, &node) == 0)
      continue;
    addDigit(loops.value(loop), (loops.tile(node.axis, i) + node.step - 1) / node.step);
    if (inRegisters && node.kind == LoopKind::Seq)
      numbersRegisters.insert(loop.var);
  }
  int64_t size = read.elements;
  if (!inRegisters) {
    if (writer.units > 1)
      addDigit(unit, writer.units);
    addDigit(lane, writer.lanes);
    size *= int64_t{writer.units} * writer.lanes;
  }
  const DType type = bound.equation(place.equation).body[bound.program.nodeOf(place)].type;
  const BufferId buffer = bufferOf(read, type, size);
  return writer.read(buffer, {flat});
}

/// Parts side by side share a buffer, as large as the largest of them needs it: a block is of one part.
BufferId PersistentValues::bufferOf(const tiling::PersistentRead &read, DType type, int64_t size) {
  const std::tuple key{read.phase, read.kept.level, read.number, type};
  const auto it = buffers.find(key);
  if (it == buffers.end())
    return buffers[key] = writer.addBuffer({.name = "held" + std::to_string(buffers.size()),
                                            .level = read.kept.level,
                                            .type = type,
                                            .shape = {DimExpr(size)}});
  DimExpr &extent = writer.kernel.buffers[it->second].shape[0];
  extent = DimExpr(std::max(extent.constValue(), size));
  return it->second;
}

void PersistentValues::fill(ReadLowering &lowering, int equation, Stmts &result) {
  const std::vector<NodeId> &nodes = bound.facts(equation).reads;
  const bool reduces = bound.facts(equation).reduces();
  Stmts statements;
  loops.clampSpatial = reduces;
  for (size_t r = 0; r < nodes.size(); ++r) {
    const ReadPlace place{equation, 0, static_cast<int>(r)};
    const tiling::PersistentRead *read = find(place);
    if (!read || *read->kept.from != place)
      continue;
    const NodeId value = lowering.value(equation, nodes[r]);
    const Scalar kept = body[element(*read, place)];
    statements.push_back(storeStmt(kept.index, kept.args, value));
  }
  loops.clampSpatial = false;
  if (!statements.empty())
    writer.guarded(loops.inBounds(equation, reduces ? Bounds::Reduced : Bounds::All),
                   std::move(statements), result);
}

void PersistentValues::unrollOverRegisters(Stmt &loop, const std::string &axis) {
  if (numbersRegisters.count(loop.var) == 0)
    return;
  loop.loop = writer.kernel.vars[loop.var].kind = LoopKind::Unroll;
  if (body[loop.trip].op != ScalarOp::Const)
    writer.problem("registers are kept in loops with constant trips, given one over axis ", axis);
}

} // namespace fusec::lowering
