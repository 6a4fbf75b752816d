#pragma once
#include "Expr/Expr.h"

namespace fusec {

/// Equations side by side as one, along a spatial axis of constant extents: each one's points keep their values. What
/// all of them read at the same place is read once; what differs is chosen by the place on the axis.
class Joined {
public:
  /// `members`: pairwise `alike`, with all other axes equally long. They are read while this is made.
  Joined(const std::vector<const Equation *> &members, const std::vector<Symbol> &symbols,
         int axis);

  Equation equation;           // the first member's name and outputs
  std::vector<int64_t> starts; // of each member along the axis, and the end
  int choices = 0;             // reads and constants that depend on the member

private:
  NodeId shifted(size_t member, NodeId id);
  NodeId inside(size_t member);
  NodeId merged(const std::vector<NodeId> &at);
  NodeId chosen(const std::vector<NodeId> &at, const std::vector<NodeId> &values);

  const std::vector<const Equation *> &members;
  const int axis;
  std::map<std::vector<NodeId>, NodeId> known;
};

/// Values that are equal but for what is read and where, and for constants.
bool alike(const Body &a, NodeId x, const Body &b, NodeId y);
/// The value depends on a tensor.
bool hasRead(const Body &body, NodeId id);

} // namespace fusec
