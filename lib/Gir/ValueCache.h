#pragma once
#include "Gir/Rewrite.h"
#include "Gir/StatementPaths.h"

#include <map>

namespace fusec {

/// A value that a thread computes or reads at one statement and needs again at others.
struct CachedValue {
  int site;             // where it is computed or read first
  NodeId node;          // among that statement's expressions
  BufferId source = -1; // the buffer whose element it is; -1: a computed value
  bool stored = false;  // the statement stores it: each iteration of each loop has its own value
  struct Use {
    int site;
    NodeId node;
    Renaming
        renaming; // from the loops around the first `site` to those around this one (reachesWithSameValues)
  };
  std::vector<Use> uses;
};

/// Keeps values for their later uses by the same thread: in one register for each iteration of the loops between, which
/// are unrolled for that, or, if no register is free and it is an element of a Global buffer, in Shared memory that
/// only this thread accesses.
class ValueCache {
public:
  ValueCache(GirKernel &kernel, const RewriteLimits &limits) : kernel(kernel), limits(limits) {}

  /// Adds the use if the value may serve it: if reads have numbers, all reads that this saves must be wanted. What
  /// micro-kernels read they read.
  bool addUse(const std::vector<StatementPath> &sites, CachedValue &value, CachedValue::Use use);
  /// Adds node `node` of a later site as a use if the thread that has the value reaches that site
  /// (reachesWithSameValues) and the expressions are equal under the names of the first site's loops.
  void addEqual(const std::vector<StatementPath> &sites, CachedValue &value, int site, NodeId node);
  /// Keeps the value and replaces its uses. Returns false and leaves the kernel as it is if neither registers nor
  /// shared memory suffice. If it returns true, `sites` is no longer valid.
  bool keep(const std::vector<StatementPath> &sites, const CachedValue &value);

private:
  struct Saved {
    int64_t read, from; // numbers of reads; 0: none
  };
  /// A condition or loop on a site's path, without what changes when statements are inserted.
  struct Around {
    bool isLoop, otherwise;
    int32_t what; // variable of the loop, predicate of the If
    bool operator==(const Around &) const = default;
  };
  /// A buffer that holds kept values, and the paths at which it is filled.
  struct Place {
    BufferId buffer, source;
    std::vector<VarId> loops;
    std::vector<std::vector<Around>> filled;
  };
  NodeId copyOf(NodeId node, const Renaming &renaming);
  std::vector<NodeId> memoryReads(const std::vector<NodeId> &roots) const;
  std::vector<Saved> savedBy(const std::vector<StatementPath> &sites, const CachedValue &value,
                             const CachedValue::Use &use);
  const KeptRead *wanted(const Saved &saved) const;
  std::optional<MemLevel> wantedLevel(const std::vector<StatementPath> &sites,
                                      const CachedValue &value);
  void note(const std::vector<StatementPath> &sites, const CachedValue &value, MemLevel level);
  std::vector<VarId> loopsBetween(const std::vector<StatementPath> &sites,
                                  const CachedValue &value) const;
  bool fitsRegisters(const std::vector<StatementPath> &sites, const CachedValue &value,
                     const std::vector<VarId> &loops, BufferId other) const;
  BufferId registerPlace(const std::vector<StatementPath> &sites, const CachedValue &value,
                         const std::vector<VarId> &loops);
  BufferId sharedPlace(const std::vector<StatementPath> &sites, const CachedValue &value,
                       const std::vector<VarId> &loops);
  BufferId placeFor(const std::vector<StatementPath> &sites, const CachedValue &value,
                    const std::vector<VarId> &loops);
  NodeId element(BufferId place, const StatementPath &at, const std::vector<VarId> &loops,
                 const Renaming &renaming);
  void apply(const std::vector<StatementPath> &sites, const CachedValue &value, BufferId place,
             const std::vector<VarId> &loops);
  const Stmt *loopOf(const StatementPath &site, VarId var) const;

  GirKernel &kernel;
  const RewriteLimits &limits;
  std::vector<Place> places;
  std::map<Renaming, Renamed> copies;
};

/// Calls `once` for each phase until it returns false; it changes one thing in the phase if it can. Returns true if
/// anything changed.
template <typename F> bool untilDone(GirKernel &kernel, const F &once) {
  bool changed = false;
  for (Phase &phase : kernel.phases)
    while (once(phase))
      changed = true;
  return changed;
}

} // namespace fusec
