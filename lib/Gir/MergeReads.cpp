// merge-reads: what a thread has read from Global memory it does not read again.
//
// Guarantees: of several reads of one element by one thread, with no store to the buffer between, the first one stays;
// the value waits in registers, or in Shared memory that this thread alone touches (ValueCache.h). A row that three
// nests of a LayerNorm go through is read once. Needs: simplify, whose expressions are in normal form. Stands before
// insertSyncs, since Shared buffers may come and go.
//
// A read whose place other reads say is kept where it saves as many as those, which are then done again.
//
// Example: see ValueCache.cpp. Two reads meet where their loops pair up by kind and trip, and their indices are equal
// once the loop variables have the same names (StatementPaths.h, reachesWithSameValues): a nest that goes through a row
// in another order, or with other threads, reads it again.
#include "Gir/ValueCache.h"

#include <algorithm>
#include <map>

namespace fusec {
namespace {

class Merger {
public:
  Merger(GirKernel &kernel, const RewriteLimits &limits) : kernel(kernel), cache(kernel, limits) {}

  bool run() {
    return untilDone(kernel, [&](Phase &phase) { return once(phase); });
  }

private:
  struct Read {
    int site;
    NodeId node;
  };

  /// Reads that happen whenever their statement is reached, of places that do not depend on what is written.
  void reads(const Stmt &s, int number, const std::vector<uint64_t> &hashes,
             std::map<uint64_t, std::vector<Read>> &found) {
    for (NodeId id : alwaysEvaluated(kernel.body, s)) {
      const Scalar &node = kernel.body[id];
      if ((node.op != ScalarOp::Read && node.op != ScalarOp::ReadIf) ||
          kernel.buffers[static_cast<size_t>(node.index)].level != MemLevel::Global)
        continue;
      if (std::all_of(node.args.begin(), node.args.end(),
                      [&](NodeId a) { return isFixed(kernel, a); }))
        found[hashes[static_cast<size_t>(id)]].push_back({number, id});
    }
  }

  bool once(Phase &phase) {
    const std::vector<StatementPath> sites = statementPathsOf(phase);
    const std::vector<uint64_t> hashes = shapeHashes(kernel);
    std::map<uint64_t, std::vector<Read>> alike;
    for (const StatementPath &site : sites)
      if (site.stmt->kind == StmtKind::Store || site.stmt->kind == StmtKind::Accumulate)
        reads(*site.stmt, site.number, hashes, alike);
    std::vector<CachedValue> values;
    for (const auto &[hash, list] : alike)
      for (size_t i = 0; i + 1 < list.size(); ++i)
        if (CachedValue value = valueOf(sites, list, i);
            !value.uses.empty() && value.uses.size() >= readsBelow(value.node))
          values.push_back(std::move(value));
    // In the kernel's own order: that of hashes changes with the numbers of buffers, and with them what a kernel of
    // several phases keeps of each.
    std::ranges::sort(values, {}, [](const CachedValue &v) { return std::pair(v.site, v.node); });
    return std::any_of(values.begin(), values.end(),
                       [&](const CachedValue &value) { return cache.keep(sites, value); });
  }

  /// Reads that say where this one is: the statement that keeps it does them once more. They may be kept themselves
  /// first, and are Global no longer then.
  size_t readsBelow(NodeId node) const {
    size_t below = 0;
    for (NodeId id : kernel.body.reachable(kernel.body[node].args)) {
      const Scalar &s = kernel.body[id];
      below += (s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf) &&
               kernel.buffers[static_cast<size_t>(s.index)].level == MemLevel::Global;
    }
    return below;
  }

  CachedValue valueOf(const std::vector<StatementPath> &sites, const std::vector<Read> &list,
                      size_t first) {
    const StatementPath &from = sites[static_cast<size_t>(list[first].site)];
    const BufferId buffer = kernel.body[list[first].node].index;
    CachedValue value{list[first].site, list[first].node, buffer, false, {}};
    for (size_t i = first + 1; i < list.size(); ++i) {
      const StatementPath &to = sites[static_cast<size_t>(list[i].site)];
      const size_t depth = commonDepth(from, to);
      if (!isWritten(sites, buffer, extentAt(from, depth).first, extentAt(to, depth).second))
        cache.addEqual(sites, value, list[i].site, list[i].node);
    }
    return value;
  }

  GirKernel &kernel;
  ValueCache cache;
};

} // namespace

bool mergeReads(GirKernel &kernel, const RewriteLimits &limits) {
  return Merger(kernel, limits).run();
}

} // namespace fusec
