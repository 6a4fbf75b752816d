// Values that rounds and phases hold (schedule/PersistentReads.h). Where all blocks are resident, a phase in front of
// the rounds fetches them by the loops of the statements that need them:
//
//   phase waiting (b: 32) { if eq(resident, 1) { .. unroll k in 8 { lane l in 32 { %held[k] = %w[..] } } } }
//   rounds (step: 109) {
//     phase (b: 32) {
//       if eq(resident, 1) { .. unroll k in 8 { lane l in 32 { %sum[] sum= mul(%held[k], %h[..]) } } }
//       else { .. seq k in 8 { lane l in 32 { %sum[] sum= mul(%w[..], %h[..]) } } }
//
// Without rounds the statement that reads them first does so:
//
//   phase (c: 32) { if eq(resident, 1) { .. { %held[k] = %x[..]  %sum[] sum= %held[k] } } else { .. } }
#include "Gir/ResidentGrid.h"
#include "Tiling/lower/LowerContext.h"

#include <algorithm>

namespace fusec::lowering {

/// The statements of a block, or of one part of them.
void Lowering::lowerBlock(std::span<const TreeNode> nodes, std::vector<Stmt> &result) {
  if (holding == Holding::No)
    return lowerChildren(nodes, result);
  Stmt choice;
  choice.kind = StmtKind::If;
  choice.predicate = residentTest(kernel);
  lowerChildren(nodes, choice.body);
  if (holding == Holding::Use) {
    holding = Holding::No;
    lowerChildren(nodes, choice.elseBody);
    holding = Holding::Use;
  }
  result.push_back(std::move(choice));
}

const tiling::PersistentRead *Lowering::persistentAt(const ReadPlace &place) const {
  const auto it = std::find_if(held.begin(), held.end(), [&](const tiling::PersistentRead &h) {
    return h.kept.read == place || h.kept.from == place;
  });
  return it == held.end() ? nullptr : &*it;
}

bool Lowering::touchesPersistent(std::span<const TreeNode> nodes) const {
  return std::any_of(nodes.begin(), nodes.end(), [&](const TreeNode &node) {
    if (node.isLoop)
      return touchesPersistent(node.children);
    return node.leaf == LeafKind::Compute &&
           std::any_of(held.begin(), held.end(), [&](const tiling::PersistentRead &h) {
             return h.kept.read.equation == node.target || h.kept.from->equation == node.target;
           });
  });
}

/// The thread's own element for the current iterations of the loops that the read depends on.
NodeId Lowering::persistentElement(const tiling::PersistentRead &read, const ReadPlace &place) {
  const Equation &e = *equations[place.equation];
  const DType type = e.body[readsOf(e)[place.read]].type;
  const bool registers = read.kept.level == MemLevel::Register;
  std::vector<const TreeNode *> around;
  for (const PathLoop &loop : path)
    around.push_back(loop.node);
  const std::vector<const TreeNode *> loops = tiling::loopsOfPersistent(schedule, e, place, around);
  NodeId flat = body.index(0), unit = kNoNode, lane = kNoNode;
  auto digit = [&](NodeId value, int64_t size) {
    flat = body.binary(ScalarOp::Add, body.binary(ScalarOp::Mul, flat, body.index(size)), value);
  };
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i].kind == LoopKind::Unit)
      unit = loopValue(path[i]);
    if (path[i].kind == LoopKind::Lane)
      lane = loopValue(path[i]);
    if (std::count(loops.begin(), loops.end(), path[i].node) == 0)
      continue;
    digit(loopValue(path[i]), (tileAt(path[i].axis, i) + path[i].step - 1) / path[i].step);
    if (registers && path[i].kind == LoopKind::Seq)
      stepsOverRegisters.insert(path[i].var);
  }
  int64_t size = read.elements;
  if (!registers) {
    if (schedule.units > 1)
      digit(unit, schedule.units);
    digit(lane, schedule.lanes);
    size *= int64_t{schedule.units} * schedule.lanes;
  }
  const auto [it, isNew] = heldBuffers.try_emplace({read.phase, read.kept.level, read.number, type},
                                                   static_cast<BufferId>(kernel.buffers.size()));
  if (isNew) {
    GirBuffer buffer;
    buffer.name = "held" + std::to_string(heldBuffers.size() - 1);
    buffer.level = read.kept.level;
    buffer.type = type;
    buffer.shape = {DimExpr(size)};
    kernel.buffers.push_back(std::move(buffer));
  }
  // Parts side by side take the same place: a block is of one of them.
  DimExpr &extent = kernel.buffers[static_cast<size_t>(it->second)].shape[0];
  extent = DimExpr(std::max(extent.constValue(), size));
  return body.read(it->second, type, {flat});
}

void Lowering::fillPersistent(int equation, std::vector<Stmt> &result) {
  const Equation &e = *equations[equation];
  const std::vector<NodeId> reads = readsOf(e);
  const bool sum = e.kind == EquationKind::Reduction;
  std::vector<Stmt> statements;
  clampSpatial = sum;
  for (size_t r = 0; r < reads.size(); ++r)
    if (const ReadPlace place{equation, 0, static_cast<int>(r)};
        const tiling::PersistentRead *read = persistentAt(place)) {
      if (*read->kept.from != place)
        continue;
      const NodeId value = importValue(equation, reads[r]),
                   element = persistentElement(*read, place);
      statements.push_back(storeStmt(body[element].index, body[element].args, value));
    }
  clampSpatial = false;
  if (!statements.empty())
    guarded(inBounds(equation, !sum, true, false), std::move(statements), result);
}

} // namespace fusec::lowering
