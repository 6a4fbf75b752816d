#pragma once
#include "Expr/Expr.h"

#include <optional>

namespace fusec {

/// A read as one of a copy: where in it, and how the copy's elements come from the tensor. The coordinates in their
/// natural order: the tensor's dimensions, in the place of one whose index is looked up those of the index.
struct View {
  TensorId tensor = -1;
  std::vector<NodeId> at; // in the reader's body, one a coordinate of the copy
  Shape extents;          // of the coordinates
  bool gathers = false;
};
/// Nothing where no copy serves the read.
std::optional<View> viewOf(const ExprProgram &program, const Body &body, const Scalar &read);

/// The copy's coordinates as its dimensions, outermost first.
using Order = std::vector<int>;
Order naturalOrder(size_t rank);
/// The order in which the reader's lanes, along its last spatial axis, find neighbours: coordinates are sorted by the
/// last spatial axis that they go along. The natural order where lanes do not move.
Order wantedOrder(const Equation &reader, const View &view);

/// The map that makes the copy, without its name and its output.
Equation copyEquation(const ExprProgram &program, const Equation &reader, const Scalar &read,
                      const View &view, const Order &order);
/// The indices of a read that has a view as those of its copy.
std::vector<NodeId> placesInCopy(const Body &body, const Scalar &read, const Order &order);

} // namespace fusec
