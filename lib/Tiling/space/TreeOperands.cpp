// What the contractions of a tree read from outside: tiles that a block copies, weights that are packed at build time.
#include "Expr/Padding.h"
#include "Expr/TurnsOfGroup.h"
#include "Tiling/schedule/StagedTile.h"
#include "Tiling/space/ReadBox.h"
#include "Tiling/space/TreeBuilder.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace fusec::tiling {

bool TreeBuilder::takeShared(int64_t elements, int64_t elementBytes) {
  if (elements > sharedLeft / elementBytes)
    return false;
  const int64_t bytes = roundUp(elements * elementBytes, 128);
  if (bytes > sharedLeft)
    return false;
  sharedLeft -= bytes;
  return true;
}

Operand TreeBuilder::operandOf(int equation, size_t read, std::vector<LayoutDigit> digits,
                               int64_t pad) const {
  Operand operand;
  operand.name = "s" + std::to_string(schedule.operands.size());
  operand.equation = equation;
  operand.read = static_cast<int>(read);
  operand.digits = std::move(digits);
  operand.padElements = pad;
  return operand;
}

void TreeBuilder::stage(Operand operand, std::vector<TreeNode> &out) {
  schedule.operands.push_back(std::move(operand));
  out.push_back(
      LeafNode{.kind = LeafKind::Stage, .operand = OperandIndex(schedule.operands.size() - 1)});
}

/// Tiles of what either rows or columns need.
void TreeBuilder::stageTiles(const SpaceNest &nest, int reduced, int64_t depth,
                             std::vector<TreeNode> &out) {
  const int main = nest.equations[0];
  const Equation &e = tree.equation(main);
  const EquationFacts &facts = tree.facts(main);
  const int n = nest.spatial.back();
  const size_t position = nestOf[static_cast<size_t>(main)];
  const int64_t columns = widthOf(position), neighbours = neighboursOf(position);
  // Where columns are too few for vectors, threads read single elements.
  const bool isWide = shape.wideRows && (neighbours > 1 || neighbours == shape.neighbours);
  for (size_t r = 0; r < facts.reads.size(); ++r) {
    const Tensor &tensor = program.tensor(facts.tensors[r]);
    const NodeId read = facts.reads[r];
    auto depends = [&](int l) { return tree.depends(main, r, l); };
    const bool onRows = m >= 0 && std::ranges::any_of(rowAxes.back(), depends),
               onColumns = depends(n);
    if (tensor.kind == TensorKind::Temp || !depends(reduced) || onRows == onColumns)
      continue;
    const bool isBox = shape.boxes && slidingAxes(e, read) != 0;
    std::vector<LayoutDigit> digits = {{axis(reduced)}, {onColumns ? axis(n) : m}};
    // Rows begin at other banks than their neighbours.
    int64_t pad = isWide ? std::max<int64_t>(1, kWidestAccess / sizeInBytes(tensor.type)) : 1;
    if (isBox) {
      pad = 0;
      digits.clear();
      for (size_t d = 0; d < tensor.shape.size(); ++d)
        digits.push_back({{}, static_cast<int>(d)});
    }
    Operand operand = operandOf(main, r, std::move(digits), pad);
    std::vector<int64_t> extents = stagedExtents(schedule, e, operand, [&](AxisId a) -> int64_t {
      return a == axis(reduced) ? depth : a == axis(n) ? columns : a == m ? shape.rows : 1;
    });
    extents.back() += pad;
    const int64_t elements =
        std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<int64_t>());
    const bool hasElse =
        e.body[read].op == ScalarOp::ReadIf && !paddingBounds(e, read, program.expr);
    if ((isBox && hasElse) || elements == 0 || !takeShared(elements, sizeInBytes(tensor.type)))
      fits = fits && !isBox;
    else
      stage(std::move(operand), out);
  }
}

/// Padding is written into what a block reads, else lanes would test each element; what lanes would gather is put side
/// by side.
void TreeBuilder::stagePanels(const SpaceNest &nest, int64_t columns, std::vector<TreeNode> &out) {
  const int main = nest.equations[0], n = nest.spatial.back();
  const EquationFacts &facts = tree.facts(main);
  for (size_t r = 0; r < facts.reads.size(); ++r) {
    if (program.tensor(facts.tensors[r]).kind == TensorKind::Temp)
      continue;
    if (isPadded(tree, main, r)) {
      stageBox(nest, r, columns, out);
      continue;
    }
    auto depends = [&](int l) { return tree.depends(main, r, l); };
    if (!depends(n) || isPacked(nest, r) || std::ranges::none_of(nest.reduced, depends))
      continue;
    const std::optional<FlatAccess> &access = facts.accesses[r];
    const auto hasStride = [&](int64_t elements) {
      return access &&
             access->stride[static_cast<size_t>(tree.positionOf(n, main))].isConst(elements);
    };
    if (!hasStride(0) && !hasStride(1))
      stagePanel(nest, r, columns, out);
    else if (shape.panels)
      hasPanels |= stagePanel(nest, r, columns, out);
  }
}

/// False where what is copied has no bound or no room.
bool TreeBuilder::stagePanel(const SpaceNest &nest, size_t read, int64_t columns,
                             std::vector<TreeNode> &out) {
  const int main = nest.equations[0];
  std::vector<LayoutDigit> digits;
  int64_t elements = 1;
  auto add = [&](int l, int64_t most) {
    digits.push_back({axis(l)});
    if (most > 0 && elements > sharedLeft / most)
      return false;
    elements *= most;
    return true;
  };
  for (const std::vector<int> &row : rowAxes) {
    const AxisId a = axis(row[0]);
    const int64_t points = a == m ? shape.rows : a == around ? shape.outside : 1;
    if ((points > 1 || a == m) && tree.depends(main, read, row[0]) && !add(row[0], points))
      return false;
  }
  for (int l : nest.reduced) {
    const std::optional<int64_t> most = tree.mostOf(l);
    if (tree.depends(main, read, l) && (!most || !add(l, *most)))
      return false;
  }
  if (!add(nest.spatial.back(), columns) ||
      !takeShared(elements, sizeInBytes(program.tensor(tree.facts(main).tensors[read]).type)))
    return false;
  stage(operandOf(main, read, std::move(digits), 0), out);
  return true;
}

void TreeBuilder::stageBox(const SpaceNest &nest, size_t read, int64_t columns,
                           std::vector<TreeNode> &out) {
  const int main = nest.equations[0];
  const std::optional<ReadBox> box =
      boxOf(tree, main, read, {.rows = shape.rows, .outside = shape.outside, .columns = columns});
  if (!box || !takeShared(box->elements(), box->elementBytes))
    return;
  std::vector<LayoutDigit> digits;
  for (size_t d = 0; d < box->extents.size(); ++d)
    digits.push_back({{}, static_cast<int>(d)});
  stage(operandOf(main, read, std::move(digits), 0), out);
}

/// Whether a read is of weights that lie as panels.
bool TreeBuilder::isPacked(const SpaceNest &nest, size_t read) const {
  const int main = nest.equations[0];
  const EquationFacts &facts = tree.facts(main);
  auto depends = [&](int l) { return tree.depends(main, read, l); };
  return program.tensor(facts.tensors[read]).kind == TensorKind::Constant && facts.accesses[read] &&
         tree.equation(main).body[facts.reads[read]].op == ScalarOp::Read &&
         depends(nest.spatial.back()) && std::ranges::any_of(nest.reduced, depends);
}

/// Weights as panels of columns, one layout for all kernels of the target.
void TreeBuilder::packConstants(const SpaceNest &nest) {
  const int main = nest.equations[0];
  const int n = nest.spatial.back();
  for (size_t r = 0; r < tree.facts(main).reads.size(); ++r) {
    if (!isPacked(nest, r))
      continue;
    auto depends = [&](int l) { return tree.depends(main, r, l); };
    Operand operand;
    operand.name = "w" + std::to_string(schedule.operands.size());
    operand.equation = main;
    operand.read = static_cast<int>(r);
    operand.level = MemLevel::Global;
    for (const std::vector<int> &row : rowAxes)
      if (std::ranges::any_of(row, depends))
        operand.digits.push_back({axis(row[0])});
    for (size_t i = 0; i + 1 < nest.spatial.size(); ++i)
      if (depends(nest.spatial[i]))
        operand.digits.push_back({axis(nest.spatial[i])});
    operand.digits.push_back({axis(n), -1, kPanel, 0});
    for (int l : nest.reduced)
      if (depends(l))
        operand.digits.push_back({axis(l)});
    operand.digits.push_back({axis(n), -1, 1, kPanel});
    schedule.operands.push_back(std::move(operand));
  }
}

} // namespace fusec::tiling
