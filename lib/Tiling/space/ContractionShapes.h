#pragma once
#include "Tiling/candidates/RegisterTiles.h"
#include "Tiling/space/TreeBuilder.h"

namespace fusec::tiling {

/// The tree of one contraction on a CPU with this register tile: how much of it a block has. `panels`: blocks copy what
/// lanes read.
TreeShape cpuShape(const View &view, const Roles &roles, const TreeSpace &tree, RegisterTile tile,
                   bool panels);
/// Shapes with more rows a block, largest first, where blocks bring what their rows share in again from beyond a core's
/// own caches: each does so once for all its rows. None where these caches hold it.
std::vector<TreeShape> tallerShapes(const View &view, const Roles &roles, TreeShape shape);

/// On a GPU: tiles of both operands through shared memory, one register tile a thread. The sum is one axis.
std::vector<TreeShape> gpuShapes(const View &view, const ContractionRoles &roles);
/// On a GPU: for products of a few rows with a large matrix (ThinTrees.cpp); none for others.
std::vector<TreeShape> thinShapes(const View &view, const ContractionRoles &roles);

} // namespace fusec::tiling
