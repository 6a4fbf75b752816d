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

/// What commonRows asks of an equation, for those who ask of many groups.
struct RowFacts {
  const Equation *equation = nullptr;
  /// Each tensor that it reads, with bit d set where every read of it has axis d as its index d.
  std::vector<std::pair<TensorId, uint64_t>> ownRows;
};
RowFacts rowFacts(const Equation &equation);
std::vector<int> commonRows(const std::vector<const RowFacts *> &group);

/// Why `map` cannot end the loops of `reduction` with its result still in registers, for people; empty if it can: it is
/// a map over the same spatial domain and reads the result at its own point alone.
std::string whyNotFinishing(const Equation &reduction, const Equation &map);
inline bool finishesReduction(const Equation &reduction, const Equation &map) {
  return reduction.kind == EquationKind::Reduction && map.kind == EquationKind::Map &&
         whyNotFinishing(reduction, map).empty();
}

} // namespace fusec
