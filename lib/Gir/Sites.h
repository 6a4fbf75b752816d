#pragma once
#include "Gir/Gir.h"

#include <optional>
#include <unordered_map>
#include <utility>

namespace fusec {

/// A statement around another one, and what the inner one runs under.
struct PathStep {
  Stmt *stmt;
  size_t position;        // in its list
  bool otherwise = false; // the way goes on in elseBody
  int number, last;       // of the statement itself and of the last one inside it, in text order
  NodeId condition() const { return stmt->kind == StmtKind::Loop ? stmt->trip : stmt->predicate; }
};

/// A statement of a phase and the way to it. Valid until a list of statements changes.
struct Site {
  Stmt *stmt;
  std::vector<Stmt> *list; // in which it stands
  size_t position;
  int number, last;
  std::vector<PathStep> path; // outermost first
};
/// All statements of a phase, in text order: a site's number is its index.
std::vector<Site> sitesOf(Phase &phase);

/// Number of statements that lie around both (in one branch, where that is an If).
size_t commonDepth(const Site &a, const Site &b);
/// Numbers of the statement at `depth` on the way to the site: its own and the last one inside.
std::pair<int, int> extentAt(const Site &site, size_t depth);
/// The loop of this kind around the site, if there is one.
const Stmt *loopAround(const Site &site, LoopKind kind);

/// Loop variable -> the one that stands for it elsewhere.
using Renaming = std::vector<std::pair<VarId, VarId>>;
VarId renamed(const Renaming &renaming, VarId var);
/// Copies of expressions under other names, to be compared with others: reads have no numbers in them. Valid as long as
/// the body's nodes keep their ids.
class Renamed {
public:
  Renamed(Body &body, Renaming renaming) : body(body), renaming(std::move(renaming)) {}
  /// What was copied for an earlier root is not copied again.
  NodeId of(NodeId root);

private:
  Body &body;
  const Renaming renaming;
  std::unordered_map<NodeId, NodeId> copies;
};
NodeId renamed(Body &body, NodeId root, const Renaming &renaming);
/// `root` with `to` for every `from`.
NodeId substituted(Body &body, NodeId root, NodeId from, NodeId to);
void substitute(Body &body, Stmt &stmt, NodeId from, NodeId to);

/// Loops between the common surroundings and `from`, paired with loops around `to` such that each thread that comes to
/// `to` with values of the latter has been, in the same run of what surrounds both, at `from` with these values of the
/// former. Pairs are made from the outside in, by kind and trip; an If around `from` has its like around `to`. Nullopt
/// where that cannot be shown, and where `from` does not stand before `to`.
std::optional<Renaming> covers(GirKernel &kernel, const Site &from, const Site &to);

/// Nodes that are evaluated whenever the statement is reached, each before its operands: not the
/// indices of a ReadIf.
std::vector<NodeId> alwaysEvaluated(const Body &body, const Stmt &stmt);

/// Nothing below `root` reads what the kernel may write.
bool isFixed(const GirKernel &kernel, NodeId root);
/// A statement from `first` to `last`, other than `except`, writes the buffer.
bool isWritten(const std::vector<Site> &sites, BufferId buffer, int first, int last,
               const Stmt *except = nullptr);
/// Equal for expressions that differ in the names of their loop variables alone.
std::vector<uint64_t> shapeHashes(const GirKernel &kernel);

} // namespace fusec
