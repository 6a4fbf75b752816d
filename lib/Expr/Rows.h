#pragma once
#include "Expr/Expr.h"

#include <vector>

namespace fusec {

/// Axis positions over which a group of equations runs row by row: each equation has them among its spatial axes, with
/// the same extents, and every value that one equation of the group makes and another reads is read in its own row
/// (index d of the read is axis d alone). A block that owns a row then needs nothing that another block makes: the
/// one-relies-on-one part of Souffle's relations (section 5.1), taken over the whole group. Axes of extent 1 are no
/// rows. Ascending; empty where the equations share no rows, or are no maps and reductions.
std::vector<int> commonRows(const std::vector<const Equation *> &equations);

/// True for a map over the spatial domain of `reduction` that reads its result at its own point alone (and reads it):
/// the map can end the reduction's loops, with the sum still in registers.
bool finishesReduction(const Equation &reduction, const Equation &map);

} // namespace fusec
