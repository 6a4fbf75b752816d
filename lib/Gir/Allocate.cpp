// allocate: offsets of Shared buffers.
//
// Statements are numbered in text order. A buffer is live from its first access to its last; a loop around some of
// its accesses widens that range to the whole loop where the value may come from an earlier iteration or from
// before the loop:
//
//   seq k in 3 {            0..4
//     %as[..] = ..          1     %as is written in full before it is read: live 1..2
//     .. %as[..] ..         2
//     %t[..] = ..           3     live 3..4; may take the bytes of %as
//     .. %t[..] ..          4
//   }
//
// Unit and Lane loops are one number each: no barrier can stand inside them that orders the units. Buffers with
// disjoint ranges share bytes; the barriers that this makes necessary are inserted afterwards. Largest buffers are
// placed first, each at the lowest offset that is free during its whole range.
#include "Gir/Passes.h"
#include "Gir/Syncs.h"
#include "Gir/Walk.h"

#include <algorithm>

namespace fusec {
namespace {

constexpr int64_t kAlignment = 128; // bytes: two cache lines of a CPU, one of a GPU

struct Range {
  int first = INT32_MAX, last = -1;
  bool empty() const { return last < first; }
  void include(int from, int to) {
    first = std::min(first, from);
    last = std::max(last, to);
  }
};

class Liveness {
public:
  explicit Liveness(const GirKernel &kernel)
      : kernel(kernel), ranges(kernel.buffers.size()), carries(kernel.buffers.size()) {}

  std::vector<Range> run() {
    for (const Phase &p : kernel.phases)
      list(p.body);
    closeOverLoops();
    return std::move(ranges);
  }

private:
  struct Access {
    BufferId buffer;
    bool write;
    int at;
    std::vector<NodeId> depends; // indices and predicates that decide which elements
  };

  bool isShared(BufferId b) const { return kernel.buffers[b].level == MemLevel::Shared; }

  void record(const Stmt &s, int at) {
    for (NodeId id : kernel.body.reachable(exprRoots(s))) {
      const Scalar &node = kernel.body[id];
      if ((node.op == ScalarOp::Read || node.op == ScalarOp::ReadIf) && isShared(node.index))
        access({node.index, false, at, {}});
    }
    if (!writesBuffer(s))
      return;
    for (BufferId b : {s.buffer, s.indexBuffer}) {
      if (b < 0 || !isShared(b))
        continue;
      if (s.kind != StmtKind::Store)
        access({b, false, at, {}});
      Access write{b, true, at, predicates};
      write.depends.insert(write.depends.end(), s.indices.begin(), s.indices.end());
      access(write);
    }
  }

  void access(Access a) {
    ranges[a.buffer].include(a.at, a.at);
    accesses.push_back(std::move(a));
  }

  void list(const std::vector<Stmt> &stmts) {
    for (const Stmt &s : stmts) {
      if (!atomic)
        ++now;
      size_t firstAccess = accesses.size();
      record(s, now);
      size_t firstInner = accesses.size();
      int from = now;
      bool before = atomic;
      atomic = atomic ||
               (s.kind == StmtKind::Loop && (s.loop == LoopKind::Unit || s.loop == LoopKind::Lane));
      if (s.kind == StmtKind::If || s.kind == StmtKind::While)
        predicates.push_back(s.predicate);
      list(s.body);
      list(s.elseBody);
      if (s.kind == StmtKind::If || s.kind == StmtKind::While)
        predicates.pop_back();
      atomic = before;
      bool repeats =
          s.kind == StmtKind::While ||
          (s.kind == StmtKind::Loop && (s.loop == LoopKind::Seq || s.loop == LoopKind::Unroll));
      if (repeats && !atomic)
        widen(s, firstAccess, firstInner, from);
    }
  }

  /// Accesses from `firstInner` on are inside the loop `s`, which began at `from`.
  void widen(const Stmt &s, size_t firstAccess, size_t firstInner, int from) {
    loops.push_back({from, now});
    for (BufferId b = 0; b < static_cast<BufferId>(kernel.buffers.size()); ++b) {
      if (ranges[b].empty() || ranges[b].last < from ||
          freshEachIteration(s, b, firstAccess, firstInner))
        continue;
      ranges[b].include(from, now);
      carries[b] = true;
    }
  }

  /// Every iteration writes the same elements, and all of them before it reads any.
  bool freshEachIteration(const Stmt &s, BufferId b, size_t firstAccess, size_t firstInner) const {
    if (s.kind == StmtKind::While || carries[b])
      return false;
    bool reads = false, writes = false, inOrder = true;
    for (size_t i = firstAccess; i < accesses.size(); ++i) {
      const Access &a = accesses[i];
      if (a.buffer != b)
        continue;
      if (i < firstInner)
        return false; // the loop's own trip count reads it
      reads = reads || !a.write;
      writes = writes || a.write;
      inOrder = inOrder && (!a.write || (!reads && independentOf(a.depends, s.var)));
    }
    return inOrder || !reads || !writes;
  }

  /// A value that is used both inside a loop and outside it lives through the whole loop.
  void closeOverLoops() {
    for (bool changed = true; changed;) {
      changed = false;
      for (Range &r : ranges)
        for (const Range &loop : loops) {
          bool apart = r.last < loop.first || loop.last < r.first;
          bool within = loop.first <= r.first && r.last <= loop.last;
          bool around = r.first <= loop.first && loop.last <= r.last;
          if (r.empty() || apart || within || around)
            continue;
          r.include(loop.first, loop.last);
          changed = true;
        }
    }
  }

  bool independentOf(const std::vector<NodeId> &roots, VarId var) const {
    for (NodeId id : kernel.body.reachable(roots)) {
      const Scalar &node = kernel.body[id];
      if (node.op == ScalarOp::Read || node.op == ScalarOp::ReadIf ||
          (node.op == ScalarOp::Axis && node.index == var))
        return false;
    }
    return true;
  }

  const GirKernel &kernel;
  std::vector<Range> ranges;
  std::vector<bool> carries; // some loop hands values of this buffer from one iteration to the next
  std::vector<Range> loops;
  std::vector<Access> accesses;
  std::vector<NodeId> predicates; // of the Ifs around the current statement
  int now = 0;
  bool atomic = false; // inside a Unit or Lane loop
};

int64_t sizeOf(const GirBuffer &b) {
  return numElements(b.shape).constValue() * sizeInBytes(b.type);
}

} // namespace

void allocate(GirKernel &kernel) {
  std::vector<Range> ranges = Liveness(kernel).run();
  std::vector<BufferId> order;
  for (BufferId b = 0; b < static_cast<BufferId>(kernel.buffers.size()); ++b)
    if (kernel.buffers[b].level == MemLevel::Shared)
      order.push_back(b);
  std::stable_sort(order.begin(), order.end(), [&](BufferId a, BufferId b) {
    return sizeOf(kernel.buffers[a]) > sizeOf(kernel.buffers[b]);
  });

  kernel.sharedBytes = 0;
  std::vector<BufferId> placed;
  for (BufferId b : order) {
    GirBuffer &buffer = kernel.buffers[b];
    std::vector<std::pair<int64_t, int64_t>> taken; // [begin, end) of buffers live at the same time
    for (BufferId other : placed) {
      bool together = !ranges[b].empty() && !ranges[other].empty() &&
                      ranges[b].first <= ranges[other].last &&
                      ranges[other].first <= ranges[b].last;
      int64_t begin = kernel.buffers[other].offsetBytes;
      if (together)
        taken.emplace_back(begin, begin + sizeOf(kernel.buffers[other]));
    }
    std::sort(taken.begin(), taken.end());
    int64_t offset = 0;
    for (auto [begin, end] : taken)
      if (offset < end && begin < offset + sizeOf(buffer))
        offset = (end + kAlignment - 1) / kAlignment * kAlignment;
    buffer.offsetBytes = offset;
    kernel.sharedBytes = std::max(kernel.sharedBytes, offset + sizeOf(buffer));
    placed.push_back(b);
  }

  insertSyncs(kernel, [&](BufferId a, BufferId b) {
    const GirBuffer &x = kernel.buffers[a], &y = kernel.buffers[b];
    return x.level == MemLevel::Shared && y.level == MemLevel::Shared &&
           x.offsetBytes < y.offsetBytes + sizeOf(y) && y.offsetBytes < x.offsetBytes + sizeOf(x);
  });
  canonicalise(kernel);
}

int64_t registerBytesPerLane(const GirKernel &kernel) {
  int64_t bytes = 0;
  for (const GirBuffer &b : kernel.buffers)
    if (b.level == MemLevel::Register)
      bytes += sizeOf(b);
  return bytes;
}

} // namespace fusec
