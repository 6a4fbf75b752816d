// What the contractions of a tree read from outside: tiles that a block copies, weights that are packed at build time.
#include "Tiling/space/TreeBuilder.h"

#include <algorithm>

namespace fusec::tiling {

/// Tiles of what comes from outside and is used again: on a GPU all that either rows or columns need, `depth` steps of
/// the sum at once; on a CPU what lanes would gather, for all of the sum.
void TreeBuilder::stageOperands(const SpaceNest &nest, int reduced, int64_t depth,
                                std::vector<TreeNode> &out) {
  const int main = nest.equations[0];
  const EquationFacts &facts = program.facts[static_cast<size_t>(main)];
  const int n = nest.spatial.back();
  for (size_t r = 0; r < facts.reads.size(); ++r) {
    const Tensor &tensor = program.tensor(facts.tensors[r]);
    auto depends = [&](int l) { return tree.depends(main, r, l); };
    const bool onRows = std::ranges::any_of(rowAxes.back(), depends);
    if (tensor.kind == TensorKind::Temp || !facts.accesses[r] || !depends(reduced))
      continue;
    const int64_t elementBytes = sizeInBytes(tensor.type);
    std::vector<LayoutDigit> digits;
    int64_t elements = 1;
    if (target.blocksHaveUnits()) {
      if (onRows == depends(n))
        continue;
      digits = {{axis(reduced)}, {depends(n) ? axis(n) : m}};
      const int64_t columns = widthOf(nestOf[static_cast<size_t>(main)]);
      elements = depth * ((depends(n) ? columns : shape.rows) + 1);
    } else {
      const DimExpr &stride =
          facts.accesses[r]->stride[static_cast<size_t>(tree.positionOf(n, main))];
      if (!depends(n) || stride.isConst(1) || tensor.kind == TensorKind::Constant || onRows)
        continue;
      for (int l : nest.reduced)
        if (depends(l)) {
          const std::optional<int64_t> most = tree.mostOf(l);
          if (!most || *most > sharedLeft)
            return;
          digits.push_back({axis(l)});
          elements *= *most;
        }
      digits.push_back({axis(n)});
      elements *= columnsOf(nestOf[static_cast<size_t>(main)]);
    }
    const int64_t bytes = roundUp(elements * elementBytes, 128);
    if (bytes > sharedLeft)
      continue;
    sharedLeft -= bytes;
    Operand operand;
    operand.name = "s" + std::to_string(schedule.operands.size());
    operand.equation = main;
    operand.read = static_cast<int>(r);
    operand.digits = std::move(digits);
    operand.padElements = target.blocksHaveUnits() ? 1 : 0;
    schedule.operands.push_back(std::move(operand));
    out.push_back(
        LeafNode{.kind = LeafKind::Stage, .operand = OperandIndex(schedule.operands.size() - 1)});
  }
}

/// Weights as panels of columns, one layout for all kernels of the target.
void TreeBuilder::packConstants(const SpaceNest &nest) {
  const int main = nest.equations[0];
  const EquationFacts &facts = program.facts[static_cast<size_t>(main)];
  auto depends = [&](size_t r, int l) { return tree.depends(main, r, l); };
  const int n = nest.spatial.back();
  for (size_t r = 0; r < facts.reads.size(); ++r) {
    if (program.tensor(facts.tensors[r]).kind != TensorKind::Constant || !facts.accesses[r] ||
        tree.equation(main).body[facts.reads[r]].op != ScalarOp::Read || !depends(r, n) ||
        std::ranges::none_of(nest.reduced, [&](int l) { return depends(r, l); }))
      continue;
    Operand operand;
    operand.name = "w" + std::to_string(schedule.operands.size());
    operand.equation = main;
    operand.read = static_cast<int>(r);
    operand.level = MemLevel::Global;
    for (const std::vector<int> &row : rowAxes)
      if (std::ranges::any_of(row, [&](int l) { return depends(r, l); }))
        operand.digits.push_back({axis(row[0])});
    for (size_t i = 0; i + 1 < nest.spatial.size(); ++i)
      if (depends(r, nest.spatial[i]))
        operand.digits.push_back({axis(nest.spatial[i])});
    operand.digits.push_back({axis(n), -1, kPanel, 0});
    for (int l : nest.reduced)
      if (depends(r, l))
        operand.digits.push_back({axis(l)});
    operand.digits.push_back({axis(n), -1, 1, kPanel});
    schedule.operands.push_back(std::move(operand));
  }
}

} // namespace fusec::tiling
