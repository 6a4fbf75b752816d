#pragma once
// Where the statements of a tiling expression stand.
#include "Tiling/space/Expression.h"
#include "Tiling/space/Operands.h"

namespace fusec::tiling {

enum class StatementKind : uint8_t { Load, Compute, Store };

struct PlacedStatement {
  StatementKind kind = StatementKind::Compute;
  int equation = 0;
  int lastEquation = 0; // the last one that uses what a Load brings, or the same one
  int operand = -1;     // of a Load or Store
  int node = -1; // of the placement's tree: it runs for each tile of the loops around; -1: once
};

/// How long a tile of an operand is kept, from the Load or the equation that makes it to its last use.
struct TileLife {
  int operand = 0;
  std::vector<int> tileLoops; // all tiles of these loops are alive together
  std::vector<int> equations; // that run meanwhile
};

struct PlaceRules {
  /// Loops that run once are taken out first, so that statements rise past them (MCFuser, section III-B).
  bool dropLoopsThatRunOnce = true;
  /// Loads and stores stay inside the loops that blocks are bound to: no block uses what another one has loaded.
  bool stayInBlocks = false;
  /// A result is stored when its sums are complete; else tiles of partial sums leave, to come back.
  bool holdSums = false;
};

/// The statements of a tree: equations at the rightmost loop that they have, loads and stores at the rightmost loop of
/// the equation's path that their tensor moves along. `mhnk` becomes mh(n(k(LA,LB,CC),LD,CE),SE), and LA goes to m
/// where k runs once.
struct Placement {
  std::string whyNot; // why no order of statements is right, for people; empty where one is
  Expression tree;    // of the loops that run more than once, or of all
  std::vector<PlacedStatement> statements;
  std::vector<int> nodeOf; // by equation

  /// A loop or a statement inside a node.
  struct Item {
    int node = -1, statement = -1;
  };
  /// By node, and outside of all at the end: what stands in it, in the order in which it runs.
  std::vector<std::vector<Item>> items;
  /// By equation, for each node around it from outside: how many loops and computes stand in front of it there.
  std::vector<std::vector<int>> positions;

  std::vector<TileLife> lives;
  std::vector<std::vector<int>> loopsAround; // by node: its own and those around it, from outside

  /// None of -1.
  std::span<const int> around(int node) const;
  /// Loops around a statement that its tensor does not move along: what is moved again and again.
  std::vector<int> repeats(const PlacedStatement &statement, const SpaceOperands &operands) const;
};

/// `trips`: how often each loop runs, 1 or more.
Placement place(const SpaceOperands &operands, const BoundExpression &expression,
                std::span<const double> trips, const PlaceRules &rules = {});

/// "mh(n(k(LA,LB,CC),LD,CE),SE)", with the names of the tensors.
std::string print(const Placement &placement, const SpaceOperands &operands,
                  const ExprProgram &program);

} // namespace fusec::tiling
