#pragma once
// The tiling expressions that a loop space has.
#include "Tiling/space/Expression.h"

namespace fusec::tiling {

/// The loops in every order, nested: MCFuser's deep tiling. With `outer` those stand outside of the others in all of
/// them, in this order.
std::vector<Expression> deepTrees(const LoopSpace &space, std::span<const int> outer = {});

/// Trees with siblings somewhere, in which each loop stands once: MCFuser's flat tiling for any number of equations.
/// Loops that no equation has together may follow each other; where there are several sets of such loops, some may be
/// nested all the same. Sorted.
std::vector<Expression> flatTrees(const LoopSpace &space, std::span<const int> outer = {});

/// The tree that Chimera's block execution order means (section IV-B): a loop stands around those equations alone that
/// have it, since a private loop of one moves nothing of another. The equations have those loops together that stand
/// in front of the first one that some of them lack; then they walk their own, one after the other.
Expression blockOrder(std::span<const int> order, const LoopSpace &space);

} // namespace fusec::tiling
