#pragma once
#include "Gir/Rewrite.h"
#include "Gir/Sites.h"

#include <map>

namespace fusec {

/// A value that a thread has at one place and needs again at others.
struct KeptValue {
  int site;             // where it is computed or read first
  NodeId node;          // among that statement's expressions
  BufferId source = -1; // the buffer whose element it is; -1: a computed value
  bool stored = false;  // what the statement stores: another value in each iteration of each loop
  struct Use {
    int site;
    NodeId node;
    Renaming renaming; // of the loops around `site` (see covers)
  };
  std::vector<Use> uses;
};

/// Gives values a place with the thread that has them: a register for each iteration of the loops between, which are
/// unrolled for that; or else, for elements of Global buffers, Shared memory that only this thread touches.
class Keeper {
public:
  Keeper(GirKernel &kernel, const RewriteLimits &limits) : kernel(kernel), limits(limits) {}

  /// Adds the use if it may be served with this value: where reads have numbers, all those that it saves are wanted.
  bool addUse(const std::vector<Site> &sites, KeptValue &value, KeptValue::Use use);
  /// Adds what stands at a later place if the thread that has the value comes there (covers) and finds the same
  /// expression under the names of the first place's loops.
  void addEqual(const std::vector<Site> &sites, KeptValue &value, int site, NodeId node);
  /// False, and the kernel as it was, where there is no room. The sites hold no longer where it was done.
  bool keep(const std::vector<Site> &sites, const KeptValue &value);

private:
  struct Saved {
    int64_t read, from; // 0: has no number
  };
  /// A condition or loop on the way to a place, without what changes when statements are inserted.
  struct Around {
    bool isLoop, otherwise;
    int32_t what; // variable of the loop, predicate of the If
    bool operator==(const Around &) const = default;
  };
  /// A buffer made here, and where it is filled.
  struct Place {
    BufferId buffer, source;
    std::vector<VarId> loops;
    std::vector<std::vector<Around>> filled;
  };
  NodeId copyOf(NodeId node, const Renaming &renaming);
  std::vector<NodeId> memoryReads(const std::vector<NodeId> &roots) const;
  std::vector<Saved> savedBy(const std::vector<Site> &sites, const KeptValue &value,
                             const KeptValue::Use &use);
  const KeptRead *wanted(const Saved &saved) const;
  std::optional<MemLevel> wantedLevel(const std::vector<Site> &sites, const KeptValue &value);
  void note(const std::vector<Site> &sites, const KeptValue &value, MemLevel level);
  std::vector<VarId> loopsBetween(const std::vector<Site> &sites, const KeptValue &value) const;
  bool fitsRegisters(const std::vector<Site> &sites, const KeptValue &value,
                     const std::vector<VarId> &loops, BufferId other) const;
  BufferId registerPlace(const std::vector<Site> &sites, const KeptValue &value,
                         const std::vector<VarId> &loops);
  BufferId sharedPlace(const std::vector<Site> &sites, const KeptValue &value,
                       const std::vector<VarId> &loops);
  BufferId placeFor(const std::vector<Site> &sites, const KeptValue &value,
                    const std::vector<VarId> &loops);
  NodeId element(BufferId place, const Site &at, const std::vector<VarId> &loops,
                 const Renaming &renaming);
  void apply(const std::vector<Site> &sites, const KeptValue &value, BufferId place,
             const std::vector<VarId> &loops);
  const Stmt *loopOf(const Site &site, VarId var) const;

  GirKernel &kernel;
  const RewriteLimits &limits;
  std::vector<Place> places;
  std::map<Renaming, Renamed> copies;
};

/// `once` changes one thing in a phase, or says that there is nothing left: called until then for each phase. True if
/// anything changed.
template <typename F> bool untilDone(GirKernel &kernel, const F &once) {
  bool changed = false;
  for (Phase &phase : kernel.phases)
    while (once(phase))
      changed = true;
  return changed;
}

} // namespace fusec
