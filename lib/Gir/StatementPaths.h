#pragma once
#include "Gir/Gir.h"

#include <optional>
#include <unordered_map>
#include <utility>

namespace fusec {

/// A statement on the path from a phase's root to an inner statement.
struct PathStep {
  Stmt *stmt;
  size_t position;        // in its list
  bool otherwise = false; // the path goes on in elseBody
  int number, last; // text order numbers of the statement itself and of the last one inside it
  NodeId condition() const { return stmt->kind == StmtKind::Loop ? stmt->trip : stmt->predicate; }
};

/// A statement of a phase with its path from the root. Valid until a list of statements changes.
struct StatementPath {
  Stmt *stmt;
  std::vector<Stmt> *list; // in which it stands
  size_t position;
  int number, last;
  std::vector<PathStep> path; // outermost first
};
/// All statements of a phase, in text order: a site's number is its index.
std::vector<StatementPath> statementPathsOf(Phase &phase);

/// The number of statements that contain both sites, in the same branch if it is an If.
size_t commonDepth(const StatementPath &a, const StatementPath &b);
/// The text order numbers of the statement at `depth` on the site's path and of the last one inside it.
std::pair<int, int> extentAt(const StatementPath &site, size_t depth);
/// The loop of this kind around the site, if there is one.
const Stmt *loopAround(const StatementPath &site, LoopKind kind);
/// Whether a micro-kernel makes the site's loops. They hold a sum of products of what it reads, and nothing else.
bool isInMicroKernel(const StatementPath &site);

/// Pairs of a loop variable and the one that replaces it.
using Renaming = std::vector<std::pair<VarId, VarId>>;
VarId renamed(const Renaming &renaming, VarId var);
/// Copies expressions under other loop variables, so that they can be compared with others; reads lose their numbers.
/// Valid as long as the body's nodes keep their ids.
class Renamed {
public:
  Renamed(Body &body, Renaming renaming) : body(body), renaming(std::move(renaming)) {}
  /// The copy of `root`; shares nodes with the copies of earlier roots.
  NodeId of(NodeId root);

private:
  Body &body;
  const Renaming renaming;
  std::unordered_map<NodeId, NodeId> copies;
};
NodeId renamed(Body &body, NodeId root, const Renaming &renaming);
/// `root` with `to` in place of every `from`.
NodeId substituted(Body &body, NodeId root, NodeId from, NodeId to);
void substitute(Body &body, Stmt &stmt, NodeId from, NodeId to);

/// Pairs the loops around `from`, below the statements that contain both sites, with loops around `to`, such that each
/// thread that reaches `to` has reached `from` before with the same values of the paired loop variables, in the same
/// run of the statements that contain both. Loops are paired by kind and trip from the outside in; each If around
/// `from` needs an equal one around `to`. Returns nullopt if this cannot be shown, or if `from` does not come before
/// `to`.
std::optional<Renaming> reachesWithSameValues(GirKernel &kernel, const StatementPath &from,
                                              const StatementPath &to);

/// The nodes that are evaluated whenever the statement is executed, each before its operands. The indices of a ReadIf
/// are not among them.
std::vector<NodeId> alwaysEvaluated(const Body &body, const Stmt &stmt);

/// True if no read in `root` is of a buffer that the kernel may write.
bool isFixed(const GirKernel &kernel, NodeId root);
/// True if a statement from number `first` to `last`, other than `except`, writes the buffer.
bool isWritten(const std::vector<StatementPath> &sites, BufferId buffer, int first, int last,
               const Stmt *except = nullptr);
/// A hash of each node that ignores the names of loop variables: equal expressions under other names hash equally.
std::vector<uint64_t> shapeHashes(const GirKernel &kernel);

} // namespace fusec
