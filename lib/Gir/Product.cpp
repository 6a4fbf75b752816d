#include "Gir/Product.h"

#include "Gir/Walk.h"

#include <algorithm>

namespace fusec {
namespace {

/// Whether the statement sums products of two reads of other buffers in registers.
bool sumsProducts(const GirKernel &kernel, const Stmt &s) {
  if (s.kind != StmtKind::Accumulate || s.monoid != Monoid::Sum)
    return false;
  const GirBuffer &sums = kernel.buffers[static_cast<size_t>(s.buffer)];
  const Scalar &value = kernel.body[s.value];
  return sums.level == MemLevel::Register && sums.perLane && isFloat(sums.type) &&
         value.op == ScalarOp::Mul && std::ranges::all_of(value.args, [&](NodeId a) {
           return kernel.body[a].op == ScalarOp::Read && kernel.body[a].index != s.buffer;
         });
}

} // namespace

std::optional<Product> productOf(const GirKernel &kernel, const Stmt &loop) {
  Product found;
  std::vector<Product::TileLoop> loops;
  const Stmt *at = &loop;
  for (; at->kind == StmtKind::Loop; at = &at->body.front()) {
    if (at->body.size() != 1 || (at->loop != LoopKind::Unroll && at->loop != LoopKind::Lane))
      return std::nullopt;
    if (at->loop == LoopKind::Lane)
      found.lanes = at->var;
    else if (const Scalar &trip = kernel.body[at->trip]; trip.op == ScalarOp::Const)
      loops.push_back({at->var, trip.imm});
    else
      return std::nullopt;
  }
  if (found.lanes < 0 || !sumsProducts(kernel, *at))
    return std::nullopt;
  found.sum = at;
  const std::vector<NodeId> &factors = kernel.body[at->value].args;
  const std::vector<bool> varies = laneVarying(kernel);
  const bool first = varies[factors[0]];
  if (first == varies[factors[1]])
    return std::nullopt;
  found.row = factors[first ? 1 : 0];
  found.column = factors[first ? 0 : 1];
  for (const Product::TileLoop &one : loops) {
    const bool ofRow = dependsOn(kernel, found.row, one.var),
               ofColumn = dependsOn(kernel, found.column, one.var);
    const bool ofSum = std::ranges::any_of(
        at->indices, [&](NodeId index) { return dependsOn(kernel, index, one.var); });
    const bool isOnce = one.trip == 1 && !ofRow && !ofColumn && !ofSum;
    if (!isOnce && ((!ofRow && !ofColumn) || ofSum == (ofRow && ofColumn)))
      return std::nullopt;
    (ofRow && ofColumn ? found.terms : ofRow ? found.rows : found.columns).push_back(one);
  }
  return found;
}

} // namespace fusec
