// Thin contractions on GPUs: one to eight rows times a large matrix. Of the matrix nothing is used twice but by the
// rows of one thread, so that it goes from memory straight into registers, 16 bytes a read; what counts is that all of
// the device reads. A row times a matrix of f32 with columns side by side, in blocks of 512 threads:
//
//   block n:128 {
//     lane n:4 { unroll n:1 { init e0 } }
//     seq k0:64 { unit k0:4 { unroll k0:1 { lane n:4 { unroll n:1 { compute e0 } } } } }
//     lane n:4 { unroll n:1 { combine e0 } }
//     lane n:4 { unroll n:1 { store e0 } } }
//
// and with its terms side by side, a unit for each column:
//
//   block n:8 { unit n:1 {
//     init e0
//     seq k0:512 { unroll k0:128 { lane k0:4 { unroll k0:1 { compute e0 } } } }
//     combine e0
//     store e0 } }
//
// Rows are an Unroll loop around the lanes.
#include "Tiling/candidates/LoopTemplates.h"
#include "Tiling/space/TreeBuilder.h"

namespace fusec::tiling {

namespace {

LoopNode loop(LoopKind kind, AxisId axis, int64_t step) {
  return ScheduleBuilder::loop(kind, axis, step);
}
LeafNode leaf(LeafKind kind, int equation) { return ScheduleBuilder::leaf(kind, equation); }

} // namespace

/// All rows of the block's columns, the sums in parts.
void TreeBuilder::addThin(const SpaceNest &nest, std::vector<TreeNode> &out) {
  const int main = nest.equations[0];
  std::vector<LoopNode> walk;
  for (size_t i = 0; i + 1 < nest.reduced.size(); ++i)
    walk.push_back(loop(LoopKind::Seq, axis(nest.reduced[i]), 1));
  for (LoopNode &shared : sharedByUnits(axis(nest.reduced.back()), tree.opt(nest.reduced.back()),
                                        schedule.units, static_cast<int>(shape.thin->terms)))
    walk.push_back(std::move(shared));
  out.push_back(overTile(nest, leaf(LeafKind::Init, main)));
  out.push_back(
      ScheduleBuilder::nest(std::move(walk), {overTile(nest, leaf(LeafKind::Compute, main))}));
  out.push_back(overTile(nest, leaf(LeafKind::Combine, main)));
  if (levels.at(tree.equation(main).outputs[0]) != MemLevel::Register)
    out.push_back(overTile(nest, leaf(LeafKind::Store, main)));
  for (size_t i = 1; i < nest.equations.size(); ++i)
    out.push_back(overTile(nest, leaf(LeafKind::Compute, nest.equations[i])));
}

/// A unit's columns, or those of a block whose units share each sum, too.
void TreeBuilder::addThinAlongSum(const SpaceNest &nest, std::vector<TreeNode> &out) {
  const int main = nest.equations[0];
  const ThinTile &tile = *shape.thin;
  const AxisId n = axis(nest.spatial.back()), k = axis(nest.reduced.back());
  const int64_t step = tile.neighbours * target.lanes;
  std::vector<LoopNode> units, walk, sums;
  for (size_t i = 0; i + 1 < nest.reduced.size(); ++i)
    walk.push_back(loop(LoopKind::Seq, axis(nest.reduced[i]), 1));
  if (tile.wholeBlock) {
    walk.push_back(loop(LoopKind::Seq, k, tile.units * tile.terms * step));
    walk.push_back(loop(LoopKind::Unit, k, tile.terms * step));
  } else {
    units.push_back(loop(LoopKind::Unit, n, tile.columns));
    walk.push_back(loop(LoopKind::Seq, k, tile.terms * step));
  }
  if (tile.terms > 1)
    walk.push_back(loop(LoopKind::Unroll, k, step));
  if (tile.columns > 1)
    sums.push_back(loop(LoopKind::Unroll, n, 1));
  if (shape.tile.rows > 1)
    sums.push_back(loop(LoopKind::Unroll, m, 1));
  for (const LoopNode &one : sums)
    walk.push_back(one);
  walk.push_back(loop(LoopKind::Lane, k, tile.neighbours));
  if (tile.neighbours > 1)
    walk.push_back(loop(LoopKind::Unroll, k, 1));
  std::vector<TreeNode> body;
  const auto overSums = [&](LeafNode statement) {
    body.push_back(sums.empty() ? TreeNode(std::move(statement))
                                : ScheduleBuilder::nest(sums, {TreeNode(std::move(statement))}));
  };
  overSums(leaf(LeafKind::Init, main));
  body.push_back(ScheduleBuilder::nest(std::move(walk), {TreeNode(leaf(LeafKind::Compute, main))}));
  overSums(leaf(LeafKind::Combine, main));
  if (levels.at(tree.equation(main).outputs[0]) != MemLevel::Register)
    overSums(leaf(LeafKind::Store, main));
  for (size_t i = 1; i < nest.equations.size(); ++i)
    overSums(leaf(LeafKind::Compute, nest.equations[i]));
  if (units.empty())
    std::ranges::move(body, std::back_inserter(out));
  else
    out.push_back(ScheduleBuilder::nest(std::move(units), std::move(body)));
}

} // namespace fusec::tiling
