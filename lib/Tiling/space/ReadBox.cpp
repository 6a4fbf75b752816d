#include "Tiling/space/ReadBox.h"

#include "Expr/Padding.h"

#include <algorithm>
#include <bit>

namespace fusec::tiling {

int64_t ReadBox::elements() const {
  int64_t product = 1;
  for (int64_t extent : extents)
    product *= extent;
  return product;
}

uint64_t slidingAxes(const Equation &e, NodeId read) {
  uint64_t sliding = 0, moving = 0;
  for (size_t p = 0; p < e.axes.size(); ++p)
    moving |= uint64_t{!e.axes[p].extent.isConst(1)} << p;
  for (NodeId index : indexOperands(e.body[read]))
    if (const uint64_t axes = axisDependence(e.body, index) & moving; std::popcount(axes) > 1)
      sliding |= axes;
  return sliding;
}

bool isPadded(const TreeSpace &tree, int equation, size_t read) {
  const EquationFacts &facts = tree.facts(equation);
  const NodeId node = facts.reads[read];
  return tree.program.tensor(facts.tensors[read]).kind != TensorKind::Constant &&
         facts.equation.body[node].op == ScalarOp::ReadIf &&
         paddingBounds(facts.equation, node, tree.program.expr);
}

/// Points of a loop in a block, at most; nullopt where they have no bound, or where the loop is a part of an axis.
static std::optional<int64_t> pointsOf(const TreeSpace &tree, int equation, int loop,
                                       const BlockPoints &block) {
  if (tree.axisOf(loop).size() > 1)
    return std::nullopt;
  for (size_t r = 0; r < tree.rowAxes.size(); ++r)
    if (tree.rowAxes[r][0] == loop) {
      const size_t inner = tree.rowAxes.size() - 1 - r + !tree.hasRows; // 0: rows, 1: around them
      return inner == 0 ? block.rows : inner == 1 ? block.outside : 1;
    }
  const auto nest = std::ranges::find_if(
      tree.nests, [&](const SpaceNest &n) { return std::ranges::count(n.equations, equation); });
  return nest->spatial.back() == loop ? std::optional(block.columns) : tree.mostOf(loop);
}

std::optional<ReadBox> boxOf(const TreeSpace &tree, int equation, size_t read,
                             const BlockPoints &block) {
  const EquationFacts &facts = tree.facts(equation);
  const Equation &e = facts.equation;
  ReadBox box{{}, sizeInBytes(tree.program.tensor(facts.tensors[read]).type)};
  for (NodeId index : indexOperands(e.body[facts.reads[read]])) {
    const std::optional<AffineForm> form =
        affineForm(e.body, index, static_cast<int>(e.axes.size()));
    if (!form)
      return std::nullopt;
    int64_t span = 1;
    for (size_t p = 0; p < e.axes.size(); ++p) {
      const DimExpr &coefficient = form->coefficients[p];
      const int loop = tree.space.loopOf[static_cast<size_t>(equation)][p];
      if (coefficient.isConst(0) || loop < 0)
        continue;
      const std::optional<int64_t> points = pointsOf(tree, equation, loop, block);
      if (!coefficient.isConst() || !points)
        return std::nullopt;
      span += std::abs(coefficient.constValue()) * (*points - 1);
    }
    box.extents.push_back(span);
  }
  return box;
}

} // namespace fusec::tiling
