// A symbol as the constant 1. Where a length is 1 its axis needs no loop, products of matrices become sums of rows and
// what is broadcast along it is read as it is:
//
//   reduction c [i:n, j:64; k:32] sum f32    %c = mul(%a[i, k], %b[k, j])     a contraction
// with n as 1
//   reduction c [i:1, j:64; k:32] sum f32    %c = mul(%a[0, k], %b[k, j])     64 sums: no factor is used twice
//
// What comes of it is right for this size alone. A search of schedules for all sizes never tries it: it is there for
// variants whose guards let no other size through, and they are verified to do so (Tiling/search/SizeVariants.h).
#include "Expr/SizeOne.h"
#include "Expr/transforms/Walk.h"

#include <algorithm>

namespace fusec {

std::optional<SymbolId> symbolOfSizeOne(const Rewrite &rewrite) {
  if (rewrite.alternative != kSizeOne)
    return std::nullopt;
  return static_cast<SymbolId>(rewrite.choice - 1);
}

std::optional<ExprProgram> sizeOne(const ExprProgram &pattern, int64_t choice) {
  if (choice < 1 || choice > static_cast<int64_t>(pattern.symbols.size()))
    return std::nullopt;
  const auto one = static_cast<SymbolId>(choice - 1);
  ExprProgram program = pattern;
  Symbol &symbol = program.symbols[static_cast<size_t>(one)];
  if (symbol.min > 1 || symbol.max < 1 || symbol.divisor != 1)
    return std::nullopt;
  symbol.min = symbol.opt = symbol.max = 1;
  bool isUsed = false;
  auto fix = [&](DimExpr &size) {
    std::vector<SymbolId> used;
    size.collectSymbols(used);
    if (std::find(used.begin(), used.end(), one) == used.end())
      return;
    isUsed = true;
    size = size.substitute(
        [&](SymbolId s) { return s == one ? std::optional(DimExpr(1)) : std::nullopt; });
  };
  for (Tensor &tensor : program.tensors)
    for (DimExpr &size : tensor.shape)
      fix(size);
  forEachEquation(program.items, [&](Equation &e, const DimExpr *steps) {
    for (Axis &axis : e.axes)
      fix(axis.extent);
    fix(e.steps);
    for (Scalar &node : e.body.nodes) {
      if (node.op != ScalarOp::Dim)
        continue;
      fix(node.dim);
      if (node.dim.isConst())
        node = {.op = ScalarOp::Const,
                .type = node.type,
                .args = {},
                .imm = node.dim.constValue(),
                .dim = {}};
    }
    if (e.kind != EquationKind::Scan && e.kind != EquationKind::Opaque)
      rebuild(e, program.symbols, steps, {});
    compact(e);
  });
  if (!isUsed)
    return std::nullopt;
  return program;
}

} // namespace fusec
