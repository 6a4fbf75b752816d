// Stores whose lanes lie apart while the turns of an Unroll loop around them lie side by side: what a kernel writes in
// another order than it computes it, the image [c, y, x] of a convolution whose lanes go along c,
//
//   unroll x in 8 {
//     lane c in 16 {
//       %y[c*3136 + x] = ...
//
// The turns' vectors wait for each other and are stored as columns, a vector of x for each c: 16 stores and 48 shuffles
// for 128 stores. A turn waits with what it stores, so nothing in the loop may read it.
#include "Codegen/Transpose.h"

#include "Gir/Walk.h"

#include <bit>
#include <numeric>

namespace fusec {

using llvm::Value;

namespace {

/// By how many elements a step of a loop moves the place in the buffer; a sum over its dimensions.
std::optional<DimExpr> distanceOf(const GirKernel &kernel, const Stmt &store, VarId var) {
  DimExpr sum = 0, stride = 1;
  for (size_t d = store.indices.size(); d-- > 0;) {
    const auto form =
        affineForm(kernel.body, store.indices[d], static_cast<int>(kernel.vars.size()));
    if (!form)
      return std::nullopt;
    sum = sum + form->coefficients[static_cast<size_t>(var)] * stride;
    stride = stride * kernel.buffers[store.buffer].shape[d];
  }
  return sum;
}

} // namespace

bool Emitter::storesTurns(const std::vector<Stmt> &stmts, VarId turn, VarId lane,
                          std::set<BufferId> &stored) const {
  for (const Stmt &s : stmts) {
    if (s.kind == StmtKind::Loop && s.loop != LoopKind::Seq) {
      if (!storesTurns(s.body, turn, s.loop == LoopKind::Lane ? s.var : lane, stored))
        return false;
      continue;
    }
    if (s.kind != StmtKind::Store || lane < 0 ||
        kernel.buffers[s.buffer].level == MemLevel::Register)
      return false;
    const auto turns = distanceOf(kernel, s, turn), lanes = distanceOf(kernel, s, lane);
    if (!turns || !turns->isConst(1) || !lanes || lanes->isConst(0) || lanes->isConst(1))
      return false;
    stored.insert(s.buffer);
  }
  return true;
}

/// Whether the turns of a loop wait for each other.
bool Emitter::storesColumns(const Stmt &loop) const {
  std::set<BufferId> stored;
  if (threads || width == 1 || mask || !turns.empty() || kernel.body[loop.trip].imm < 2 ||
      !storesTurns(loop.body, loop.var, -1, stored) || stored.empty())
    return false;
  bool isRead = false;
  forEachStmt(loop.body, [&](const Stmt &s) {
    for (NodeId id : kernel.body.reachable(exprRoots(s))) {
      const Scalar &node = kernel.body[id];
      isRead |= (node.op == ScalarOp::Read || node.op == ScalarOp::ReadIf) &&
                stored.count(node.index) != 0;
    }
  });
  return !isRead;
}

void Emitter::storeTurns() {
  const std::vector<std::vector<Turn>> all = std::exchange(turns, {});
  for (size_t i = 0; i < all[0].size(); ++i) {
    std::vector<Value *> rows;
    for (const std::vector<Turn> &each : all)
      rows.push_back(each[i].stored);
    rows.resize(std::bit_ceil(rows.size()), llvm::PoisonValue::get(rows[0]->getType()));
    const std::vector<Value *> columns = transposed(b, rows);
    const Turn &first = all[0][i];
    std::vector<int> order(all.size());
    std::iota(order.begin(), order.end(), 0);
    for (int l = 0; l < width; ++l) {
      Value *column =
          all.size() == rows.size() ? columns[l] : b.CreateShuffleVector(columns[l], order);
      Value *at = first.place.index.varying
                      ? b.CreateExtractElement(first.place.index.v, static_cast<uint64_t>(l))
                      : b.CreateAdd(first.place.index.v, b.getInt64(l * first.place.index.step));
      storeVector(first.buffer, column, {first.place.base, {at}});
    }
  }
}

} // namespace fusec
