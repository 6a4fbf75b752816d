// Schedules of contractions. On a GPU: block tiles through shared memory (GpuShapes.cpp), or sums in parts
// (ThinTrees.cpp). On a CPU: register tiles of rows x vectors over packed or contiguous operands.
//
// Roles there. The last spatial group L runs over lanes. Reads that depend on it are the vector operands ("B"); the
// others are broadcast ("A"). A row group M is one that some vector operand does not depend on, so that a vector
// loaded once serves all rows of the register tile (a depthwise convolution's weights, for instance).
// Example, C[m, n] = sum_k A[m, k] * B[k, n] on AVX2 with rows 6, vectors 2:
//
//   block m:96 { block n:16 { seq m:6 {
//     unroll m:1 { unroll n:8 { lane n:1 { init } } }
//     seq k0:1 { unroll m:1 { unroll n:8 { lane n:1 { compute } } } }      # 2 vector loads, 6 broadcasts, 12 fma
//     unroll m:1 { unroll n:8 { lane n:1 { store } } } } } }
#include "Tiling/space/OneContraction.h"

#include "Expr/transforms/Profile.h"
#include "Tiling/candidates/RegisterTiles.h"
#include "Tiling/space/ContractionShapes.h"

#include <algorithm>
#include <ranges>

namespace fusec::tiling {

namespace {

/// Sums in an order that walks the broadcast operand contiguously inside.
AxisGroups orderedSums(const View &view, const Roles &roles) {
  const auto strideOf = [&](const std::vector<int> &group) {
    int64_t stride = INT64_MAX;
    for (const ReadInfo &read : view.reads)
      if (!read.dependsOn(view.spatial[roles.lane]))
        stride = std::min(stride, read.stride(group).value_or(INT64_MAX - 1));
    return stride;
  };
  AxisGroups sums = view.reduction;
  std::ranges::stable_sort(sums, std::greater(), strideOf);
  return sums;
}

TreeRoles treeRoles(const View &view, const Roles &roles) {
  TreeRoles out;
  for (int g : roles.blocks)
    out.outside.push_back(view.spatial[g]);
  if (roles.row >= 0)
    out.rows = view.spatial[roles.row];
  out.columns = view.spatial[roles.lane];
  out.sums = orderedSums(view, roles);
  return out;
}

/// A matrix that no layout can be chosen for and whose elements are used once each, in a row along the summed axis:
/// lanes along that axis read it as it lies, lanes along the output would gather. Not for batches of matrices: the keys
/// of GPT-2's attention took twice as long so.
bool sumsAlongMemory(const View &view) {
  return view.spatial.size() == 1 && std::ranges::any_of(view.reads, [&](const ReadInfo &r) {
           return !r.constant && r.stride(view.reduction.back()) == 1 &&
                  view.opt(view.spatial[0]) > 1 && r.dependsOn(view.spatial[0]);
         });
}

/// Whether register tiles walk down a matrix one after the other that no layout can be chosen for: neighbouring
/// elements of the sum lie in a line of their own. 1024 x 1024 times 1024 x 1024 took 2.4 times as long (AVX2 and
/// AVX-512) as with copied panels, whose rows crowd into few sets of the caches; 768 x 768 times 768 x 768 as long.
bool walksColumns(const View &view, const Roles &roles, RegisterTile tile) {
  return roles.row >= 0 && view.opt(view.spatial[roles.row]) > 2 * tile.rows &&
         std::ranges::any_of(view.reads, [&](const ReadInfo &r) {
           return !r.constant && !r.guarded && r.stride(view.spatial[roles.lane]) == 1 &&
                  r.dependsOn(view.reduction.back());
         });
}

void add(Candidates &out, const TreeSpace &tree, const View &view, const TreeShape &shape) {
  if (std::optional<Schedule> made = TreeBuilder(tree, *view.target, shape).build())
    out.push_back(std::move(*made));
}

/// The view with all rows in one group, which no vector operand depends on, where there are several that lie at no one
/// distance, as those of heads that are read where they lie, [batch, head, length, width]. A tile then has rows of
/// several, so that few of each do not read all weights again: 768 x 768 times 8 batches of one row took 266 us, and
/// takes 101.
std::optional<View> withRowsTogether(const View &view, const Roles &roles) {
  const std::vector<int> &lane = view.spatial[roles.lane];
  std::vector<int> rows;
  AxisGroups others;
  for (const std::vector<int> &group : view.spatial) {
    const bool isRow = &group != &lane && std::ranges::none_of(view.reads, [&](const ReadInfo &r) {
      return (r.dependsOn(lane) && r.dependsOn(group)) || slides(view, r, group);
    });
    if (isRow)
      rows.insert(rows.end(), group.begin(), group.end());
    else
      others.push_back(group);
  }
  if (others.size() + 1 >= view.spatial.size())
    return std::nullopt;
  View together = view;
  others.insert(others.end() - 1, std::move(rows));
  together.spatial = std::move(others);
  return together;
}

/// Adds the trees of the best register tiles, that many, of the first one also those with taller blocks. Returns how
/// many there are beside these.
size_t addTiles(Candidates &out, const View &view, const Roles &roles, size_t most) {
  const TreeSpace tree(*view.program, treeRoles(view, roles));
  const std::vector<RankedTile> tiles = registerTiles(view, roles);
  std::vector<TreeShape> taller;
  for (const RegisterTile tile :
       tiles | std::views::transform(&RankedTile::tile) | std::views::take(most))
    for (const bool panels : {false, true}) {
      if (panels && !walksColumns(view, roles, tile))
        continue;
      const TreeShape shape = cpuShape(view, roles, tree, tile, panels);
      add(out, tree, view, shape);
      if (tile == tiles.front().tile && !panels)
        taller = tallerShapes(view, roles, shape);
    }
  const size_t added = out.size();
  for (const TreeShape &shape : taller)
    add(out, tree, view, shape);
  return added;
}

Candidates cpuCandidates(const View &view) {
  Candidates out;
  const Roles roles = rolesOf(view);
  const int64_t rows = roles.row >= 0 ? view.opt(view.spatial[roles.row]) : 1;
  const int64_t columns = view.opt(view.spatial[roles.lane]);
  if ((rows == 1 || columns == 1) && sumsAlongMemory(view))
    return reductionCandidates(view);
  // Without rows only taps use again what a block copies to write its padding out: depthwise convolutions with strides
  // of 2 that read the image itself take 0.4 to 0.7 of the time.
  if (roles.row < 0)
    if (Candidates windows = windowCandidates(view); !windows.empty())
      return windows;
  constexpr size_t kTiles = 3;
  if (addTiles(out, view, roles, kTiles) < 2)
    for (Schedule &schedule : reductionCandidates(view))
      out.push_back(std::move(schedule));
  if (const std::optional<View> together = withRowsTogether(view, roles))
    addTiles(out, *together, rolesOf(*together), 1);
  return out;
}

/// A matrix, whose rows lie along the sum, times a vector: tiles of one row leave most of a device idle, and threads
/// along the sum read the matrix as it lies.
bool sumsRowsOfMatrix(const View &view) {
  return view.spatial.size() == 1 && std::ranges::any_of(view.reads, [&](const ReadInfo &read) {
           return read.stride(view.reduction.back()) == 1 && read.dependsOn(view.spatial[0]);
         });
}

Candidates gpuCandidates(const View &view) {
  Candidates out;
  if (sumsRowsOfMatrix(view))
    out = reductionCandidates(view);
  const ContractionRoles roles(view);
  TreeRoles all = {roles.outside, flat(roles.rows), flat(roles.columns), view.reduction};
  const TreeSpace thin(*view.program, all);
  if (!view.reduction.empty()) // axes of extent 1 are in no group
    all.sums = {flat(view.reduction)};
  const TreeSpace tree(*view.program, all);
  for (const TreeShape &shape : gpuShapes(view, roles))
    add(out, tree, view, shape);
  for (const TreeShape &shape : thinShapes(view, roles))
    add(out, thin, view, shape);
  // Nothing of a depthwise window is used by another lane but what the caches have: a tile would only be in the way.
  if (roles.rows.empty())
    for (Schedule &schedule : columnCandidates(view))
      out.push_back(std::move(schedule));
  return out;
}

} // namespace

bool isOneContraction(const ScheduledProgram &program) {
  const Equation &first = *program.equations[0];
  return !program.scan && first.kind == EquationKind::Reduction && first.states.empty() &&
         sharesFactor(first) && (program.equations.size() == 1 || isFinishedReduction(program));
}

Candidates contractionCandidates(const ScheduledProgram &program, const Target &target) {
  const View view = makeView(program, target, 0, program.equations.size() == 2 ? 1 : -1);
  if (view.spatial.empty())
    return reductionCandidates(view);
  return target.vectorLanes ? cpuCandidates(view) : gpuCandidates(view);
}

} // namespace fusec::tiling
