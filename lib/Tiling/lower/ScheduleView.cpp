#include "Tiling/lower/ScheduleView.h"

#include "Tiling/schedule/GridScan.h"

#include <algorithm>

namespace fusec::lowering {

namespace {

bool findIn(const std::vector<TreeNode> &nodes,
            const std::function<bool(const TreeNode &)> &matches, TreePath &path) {
  for (const TreeNode &node : nodes) {
    path.push_back(&node);
    if (node.isLoop ? findIn(node.children, matches, path) : matches(node))
      return true;
    path.pop_back();
  }
  return false;
}

} // namespace

ScheduleView::ScheduleView(const tiling::BoundSchedule &bound, const std::vector<Symbol> &symbols)
    : bound(bound), program(bound.program()), schedule(bound.schedule()), symbols(symbols),
      equations(bound.equations()), scan(bound.scan()), inGridScan(bound.gridScan() != nullptr),
      tree(schedule.tree) {
  for (const EdgeLevel &edge : schedule.edges)
    if (edge.level != MemLevel::Register)
      addStore(edge.tensor);
}

/// An edge above registers needs the values in memory before the first statement that reads them. If the tree has no
/// Store of the reduction that makes them, puts one in front of that statement, under loops like its own.
void ScheduleView::addStore(TensorId edge) {
  const int producer = bound.producer(edge);
  if (producer < 0 || equation(producer).kind != EquationKind::Reduction ||
      findLeaf(LeafKind::Store, producer))
    return;
  auto reads = [&](const TreeNode &leaf) { return bound.readsValue(leaf, edge); };
  TreePath reader;
  const auto compute = findLeaf(LeafKind::Compute, producer);
  if (!compute || !findIn(tree, reads, reader))
    return;
  std::vector<TreeNode> *siblings = &tree;
  size_t common = 0, position = 0;
  for (;; ++common) {
    position = static_cast<size_t>(reader[common] - siblings->data());
    if (reader[common] != (*compute)[common])
      break;
    siblings = &(*siblings)[position].children;
  }
  TreeNode store = (*siblings)[position];
  TreeNode *node = &store;
  for (size_t i = common + 1; i < reader.size(); ++i) {
    TreeNode child = node->children[reader[i] - reader[i - 1]->children.data()];
    node->children.assign(1, std::move(child));
    node = &node->children[0];
  }
  node->leaf = LeafKind::Store;
  node->target = producer;
  siblings->insert(siblings->begin() + static_cast<ptrdiff_t>(position), std::move(store));
}

int64_t ScheduleView::tile(AxisId axis, std::span<const TreeNode *const> loops) const {
  DimExpr tile = extent(axis);
  for (const TreeNode *loop : loops)
    if (loop->isLoop && loop->axis == axis)
      tile = DimExpr(loop->step);
  return tile.isConst() ? tile.constValue() : 0;
}

std::optional<TreePath> ScheduleView::findLeaf(LeafKind kind, int target) const {
  TreePath path;
  auto matches = [&](const TreeNode &leaf) { return leaf.leaf == kind && leaf.target == target; };
  if (findIn(tree, matches, path))
    return path;
  return std::nullopt;
}

std::vector<TreePath> ScheduleView::findReaders(TensorId tensor) const {
  std::vector<TreePath> paths;
  for (size_t e = 0; e < equations.size(); ++e) {
    const std::vector<NodeId> &reads = bound.facts()[e].reads;
    const bool isReader = std::any_of(reads.begin(), reads.end(), [&](NodeId read) {
      return equations[e]->body[read].index == tensor;
    });
    if (auto path = isReader ? findLeaf(LeafKind::Compute, static_cast<int>(e)) : std::nullopt)
      paths.push_back(std::move(*path));
  }
  return paths;
}

const ScanCarry *ScheduleView::carryOf(TensorId tensor, bool next) const {
  for (const ScanCarry &carry : scan->carries)
    if ((next ? carry.next : carry.previous) == tensor)
      return &carry;
  return nullptr;
}

bool ScheduleView::outlivesStep(TensorId tensor) const {
  return scan && tiling::outlivesStep(*scan, tensor, inGridScan);
}

bool ScheduleView::isStoredTwice(int number) const {
  const TensorId value = equation(number).outputs[0];
  if (equation(number).kind != EquationKind::Map || !outlivesStep(value))
    return false;
  const bool isStacked =
      std::any_of(scan->scanOutputs.begin(), scan->scanOutputs.end(),
                  [&](const ScanOutput &output) { return output.perStep == value; });
  return bound.level(value) == MemLevel::Shared ||
         (isStacked && inGridScan && carryOf(value, true));
}

} // namespace fusec::lowering
