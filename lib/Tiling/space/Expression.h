#pragma once
// Tiling expressions: which loops of a LoopSpace are nested in each other, and which follow each other.
#include "Expr/LoopSpace.h"
#include "Support/Hash.h"
#include "Support/Result.h"

#include <compare>
#include <span>
#include <string>
#include <vector>

namespace fusec::tiling {

/// MCFuser's tiling expression (section III-A), an ordered tree: `mn(k,h)` has the loops k and h one behind the other
/// in each tile of m and n. Equations that walk a loop one after the other each have it on a path of their own: in
/// `m(nk,hn)`, n. No path has a loop twice. Where the equations stand follows from it (Place.h).
struct Expression {
  struct Node {
    int loop = 0;
    int parent = -1; // among the nodes; -1: none
    auto operator<=>(const Node &) const = default;
  };
  std::vector<Node>
      nodes; // each in front of those inside it, and they in front of its next sibling

  auto operator<=>(const Expression &) const = default;

  bool isInside(int node, int around) const; // or the node itself; all are inside -1
  /// The nodes around a node and itself, from outside; none of -1.
  std::vector<int> path(int node) const;
  /// The innermost node that both are inside; -1: none.
  int commonNode(int a, int b) const;
  std::vector<int> children(int node) const; // of -1: the roots
  /// Without these loops: what was inside stays where they were.
  Expression without(std::span<const int> loops) const;
};

Hash128 hash(const Expression &expression);

/// These loops inside each other: a deep tree.
Expression nested(std::span<const int> loops);
/// The loops around the tree.
Expression around(std::span<const int> loops, const Expression &inner);
/// The trees one behind the other.
Expression inTurn(std::span<const Expression> parts);
/// Siblings in the order of the equations that they hold, so that equal trees compare equal.
Expression canonical(const Expression &expression, const LoopSpace &space);

/// By equation: the node whose tiles it runs for; -1: outside of all. Its path has the equation's loops, as far as they
/// stand in the tree, and ends with one of them: the rightmost related loop. Where several do, it is the first one
/// behind what the equation reads, but for maps of inputs, which stand as near to their readers as they can. A map of
/// sums stands further inside where those are. -2: no path has all of its loops.
std::vector<int> standingNodes(const Expression &expression, const LoopSpace &space);
/// Whether the value is there for a reader in that node: the loops that its maker reduces have ended.
bool isMadeFor(const Expression &expression, const LoopSpace &space, int maker, int makerNode,
               int readerNode);

/// An expression with the loops that blocks of the grid are bound to taken out of it and put in front: MCFuser's
/// sub-tiling expression (section III-C, rule 1). Expressions that give the same are one candidate.
struct BoundExpression {
  std::vector<int> blocks; // ascending
  Expression inner;

  auto operator<=>(const BoundExpression &) const = default;
  /// The blocks around what is inside them.
  Expression whole() const { return around(blocks, inner); }
};

/// Binds the rows of all equations, and of the other loops that no equation reduces those that stand outside of all
/// reducing loops or inside all of them: in between they choose what is computed again, and a loop beside a reducing
/// one shares what that made.
BoundExpression bindBlocks(const Expression &expression, const LoopSpace &space);

/// Whether a loop that an equation reduces stands around a loop of its result: then a block holds several tiles of
/// partial sums, of a value that stays inside (section III-C, rule 2).
bool holdsPartialSums(const BoundExpression &expression, const LoopSpace &space);

// Text. Loops have the names of the space, numbered where several have the same one: side by side if each is one
// letter, else with blanks between. A point stands for equations between the loops of a node.

std::vector<std::string> loopNames(const LoopSpace &space);
/// "mn(k,h)", "mhnk".
std::string print(const Expression &expression, const LoopSpace &space);
/// What is inside the blocks stands in parentheses: "mh(n(k,.))", "m(n(k,h))".
std::string print(const BoundExpression &expression, const LoopSpace &space);
/// Reads either; points follow from the loops.
Result<Expression> parseExpression(std::string_view text, const LoopSpace &space);

} // namespace fusec::tiling
