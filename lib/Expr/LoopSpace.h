#pragma once
#include "Expr/Expr.h"

#include <string>
#include <vector>

namespace fusec {

/// One loop for several axes: a value that is read at the reader's own point along an axis makes the maker's axis and
/// the reader's the same loop. The axes of one equation are different loops.
struct SpaceLoop {
  std::string name;           // of its first axis
  DimExpr extent;             // of all of them
  std::vector<int> positions; // by equation: its axis, or -1
};

/// A read of a value that another equation of the group makes.
struct InsideRead {
  int maker = 0, reader = 0; // equations of the group
  TensorId tensor = -1;
  NodeId read = kNoNode; // in the reader's body
  /// By dimension of the tensor: whether the reader reads at its own point of the maker's loop there. Along others it
  /// needs what the maker makes at other points too.
  std::vector<bool> own;
};

/// The loops of a group of maps and reductions, given in an order in which they can run: Chimera's independent loops
/// (section IV-A: a chain of two matrix products has four, not six) and MCFuser's cross-tile loops (section III-A). For
///
///   reduction c [m, n; k] sum  %c = mul(%a[m, k], %b[k, n])
///   reduction e [m, h; n] sum  %e = mul(%c[m, n], %d[n, h])
///
/// they are m and n, which both equations have, k of c alone and h of e alone. Axes of extent 1 have no loop.
struct LoopSpace {
  std::vector<const Equation *> equations;
  std::vector<SpaceLoop> loops;
  std::vector<std::vector<int>> loopOf; // by equation and axis: its loop, or -1
  std::vector<InsideRead> reads;
  /// Loops that are spatial in all equations, and along which every value inside is read at its own point: a block that
  /// owns some of their points needs nothing that another block makes. In the order of the first equation's axes.
  std::vector<int> rows;

  /// Whether the loop reduces in that equation; false where the equation does not have it.
  bool reduces(int loop, int equation) const {
    return loops[static_cast<size_t>(loop)].positions[static_cast<size_t>(equation)] >=
           equations[static_cast<size_t>(equation)]->numSpatial;
  }
};

LoopSpace loopSpace(const std::vector<const Equation *> &equations);

/// Why one of the equations has no place among other nests of loops, for people; empty where all may have one.
std::string whyNoNest(const LoopSpace &space);

/// Why no tree of loops holds all equations, contractions among them, with rows of several blocks, for people: "e reads
/// c at other points than its own along m, their only common loop". Empty where there is one.
std::string whyNoTree(const LoopSpace &space);

} // namespace fusec
