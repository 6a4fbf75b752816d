// reuse-values: what a thread has computed dearly it does not compute again.
//
// Guarantees: of several computations of one value by one thread in different nests, with no store between to what
// it is computed from, the first one stays and the value waits in a register. Needs: simplify. Stands before
// merge-reads, which would keep the operands of a value that can be kept itself. Within one list of statements LLVM
// sees equal values, and it sees equal addresses everywhere; what it does not see is that two loops with a barrier
// between them go through the same values.
//
//   unit u { lane l { %s[] sum= exp(sub(%x[u*32 + l], %max[])) } }
//   ..
//   unit v { lane m { %y[v*32 + m] = div(exp(sub(%x[v*32 + m], %max[])), %s[]) } }
// becomes
//   unit u { lane l { %value.kept[] = exp(..); %s[] sum= %value.kept[] } }
//   ..
//   unit v { lane m { %y[v*32 + m] = div(%value.kept[], %s[]) } }
#include "Gir/Traffic.h"
#include "Gir/ValueCache.h"
#include "Gir/Walk.h"

#include "Expr/OpWeight.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

namespace fusec {
namespace {

// Instructions from which on a value is worth a register: those of an exp and its operand.
constexpr double kDear = 16;

class Reuser {
public:
  Reuser(GirKernel &kernel, const RewriteLimits &limits) : kernel(kernel), cache(kernel, limits) {}

  bool run() {
    return untilDone(kernel, [&](Phase &phase) { return once(phase); });
  }

private:
  struct Computation {
    int site;
    NodeId node;
    double weight = 0;
  };
  using ByHash = std::map<uint64_t, std::vector<Computation>>;

  double weightOf(NodeId root) const {
    double weight = 0;
    for (NodeId id : kernel.body.reachable({root}))
      weight += fusec::weightOf(kernel.body[id].op);
    return weight;
  }

  void computations(const StatementPath &site, const std::vector<uint64_t> &hashes, ByHash &found) {
    const Stmt &s = *site.stmt;
    for (NodeId id : alwaysEvaluated(kernel.body, s)) {
      const Scalar &node = kernel.body[id];
      // The product under a sum is no value: it is rounded with the sum.
      const bool isFactor = s.kind == StmtKind::Accumulate && id == s.value &&
                            node.op == ScalarOp::Mul && s.monoid == Monoid::Sum;
      if (isFactor || node.op == ScalarOp::Read || node.op == ScalarOp::ReadIf)
        continue;
      found[hashes[static_cast<size_t>(id)]].push_back({site.number, id});
    }
  }

  /// Drops what costs little to compute again. What is weighed takes all below it, so what has no like is not.
  void keepDear(ByHash &found) const {
    for (auto &[hash, alike] : found)
      if (alike.size() > 1)
        std::erase_if(alike, [&](Computation &c) { return (c.weight = weightOf(c.node)) < kDear; });
  }

  bool once(Phase &phase) {
    const std::vector<StatementPath> sites = statementPathsOf(phase);
    const std::vector<uint64_t> hashes = shapeHashes(kernel);
    ByHash alike;
    for (const StatementPath &site : sites)
      if (site.stmt->kind == StmtKind::Store || site.stmt->kind == StmtKind::Accumulate)
        computations(site, hashes, alike);
    keepDear(alike);
    std::vector<std::pair<double, CachedValue>>
        values; // the heaviest first: it holds the lighter ones
    for (const auto &[hash, list] : alike)
      for (size_t i = 0; i + 1 < list.size(); ++i)
        if (CachedValue value = valueOf(sites, list, i); !value.uses.empty())
          values.emplace_back(list[i].weight, std::move(value));
    std::ranges::sort(values, {}, [](const auto &value) {
      return std::tuple(-value.first, value.second.site, value.second.node);
    });
    return std::any_of(values.begin(), values.end(),
                       [&](const auto &value) { return cache.keep(sites, value.second); });
  }

  CachedValue valueOf(const std::vector<StatementPath> &sites, const std::vector<Computation> &list,
                      size_t first) {
    const StatementPath &from = sites[static_cast<size_t>(list[first].site)];
    CachedValue value{from.number, list[first].node, -1, false, {}};
    const std::vector<BufferId> operands = buffersRead(value.node);
    for (size_t i = first + 1; i < list.size(); ++i) {
      const StatementPath &to = sites[static_cast<size_t>(list[i].site)];
      if (from.list != to.list && isUnchanged(sites, from, to, operands))
        cache.addEqual(sites, value, to.number, list[i].node);
    }
    if (!value.uses.empty() && readsMore(sites, value))
      value.uses.clear();
    return value;
  }

  /// A statement that needs the value's operands for itself too reads them once more where the value is made, and as
  /// before where it is used.
  bool readsMore(const std::vector<StatementPath> &sites, const CachedValue &value) const {
    std::map<int, std::set<NodeId>> served; // site -> what the register stands for
    served[value.site] = {value.node};
    for (const CachedValue::Use &use : value.uses)
      served[use.site].insert(use.node);
    double more = timesInBlock(kernel, sites[static_cast<size_t>(value.site)]) *
                  globalReads({value.node}, {});
    for (const auto &[number, nodes] : served) {
      const StatementPath &site = sites[static_cast<size_t>(number)];
      const std::vector<NodeId> roots = exprRoots(*site.stmt);
      more += timesInBlock(kernel, site) * (globalReads(roots, nodes) - globalReads(roots, {}));
    }
    return more > 0;
  }

  /// Reads at or below the roots, without what `without` alone needs.
  double globalReads(std::vector<NodeId> open, const std::set<NodeId> &without) const {
    std::unordered_set<NodeId> seen(without.begin(), without.end());
    double reads = 0;
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (!seen.insert(id).second)
        continue;
      const Scalar &s = kernel.body[id];
      reads += (s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf) &&
               kernel.buffers[static_cast<size_t>(s.index)].level == MemLevel::Global;
      open.insert(open.end(), s.args.begin(), s.args.end());
    }
    return reads;
  }

  /// Each once.
  std::vector<BufferId> buffersRead(NodeId root) const {
    std::vector<BufferId> buffers;
    for (NodeId id : kernel.body.reachable({root}))
      if (const Scalar &s = kernel.body[id];
          (s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf) &&
          std::find(buffers.begin(), buffers.end(), s.index) == buffers.end())
        buffers.push_back(s.index);
    return buffers;
  }

  /// No buffer of `read` is stored to on the way, and both places see the same lane's registers.
  bool isUnchanged(const std::vector<StatementPath> &sites, const StatementPath &from,
                   const StatementPath &to, const std::vector<BufferId> &read) {
    const size_t depth = commonDepth(from, to);
    const bool inLanes = loopAround(from, LoopKind::Lane) != nullptr;
    return std::none_of(read.begin(), read.end(), [&](BufferId buffer) {
      const GirBuffer &b = kernel.buffers[static_cast<size_t>(buffer)];
      return (b.level == MemLevel::Register && b.perLane &&
              inLanes != (loopAround(to, LoopKind::Lane) != nullptr)) ||
             isWritten(sites, buffer, extentAt(from, depth).first, extentAt(to, depth).second);
    });
  }

  GirKernel &kernel;
  ValueCache cache;
};

} // namespace

bool reuseValues(GirKernel &kernel, const RewriteLimits &limits) {
  return Reuser(kernel, limits).run();
}

} // namespace fusec
