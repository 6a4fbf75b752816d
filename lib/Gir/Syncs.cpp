// insertSyncs: barriers between the threads of a block.
//
// Two accesses conflict when they may touch the same bytes, one of them writes, and different threads may do them.
// Within one run of a Lane loop the lanes are independent of each other, and so are the units within one run of a
// Unit loop: that is what these loops promise (the interpreter checks it). So a barrier is needed exactly between
// conflicting accesses of different runs:
//
//   seq k in 3 {                 accesses of the body, first to last
//     unit u { lane l { %as[..] = .. } }         writes %as
//     unit u { lane l { .. %as[..] .. } }        reads %as
//   }
// becomes
//   seq k in 3 {
//     unit u { lane l { %as[..] = .. } }
//     sync block                                 read after write
//     unit u { lane l { .. %as[..] .. } }
//     sync block                                 the next iteration's write after this read
//   }
//
// Every list of statements is walked once. Its summary says which accesses can be reached from its start without
// crossing a barrier (head), which reach its end without one (tail), and whether a path without a barrier leads
// through. A barrier goes in front of a statement whose head conflicts with what is pending, and to the end of a
// loop whose tail conflicts with its head; to the start where what comes before the loop conflicts too.
//
// A thread that reads only what it wrote itself needs no barrier: an element whose flat index gives the lane as
// index mod lanes, and the unit as (index div lanes) mod units, belongs to that thread wherever it is accessed.
//
// Stores that meet stores need a barrier only where a value is overwritten by another thread. That cannot be for a
// Global buffer, whose elements are stored once between reads, nor for one Store statement in several iterations:
// kernels are not made so, and the interpreter reports one that is. The stores of full tiles and of cut ones are made
// of one statement: a buffer's n-th store in the one branch of an If and that in the other count as one.
//
// A Signal reads what all threads have stored, a Wait stores what other blocks have: with barriers like any access.
//
// Not handled: distinct elements at different indices (a conflict is assumed per buffer).
#include "Gir/Syncs.h"

#include "Gir/Passes.h"
#include "Gir/Scope.h"
#include "Gir/Walk.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace fusec {
namespace {

struct Access {
  BufferId buffer = -1;
  bool write = false;
  int statement = -1;                    // which of the buffer's Stores, for writes
  int unitRun = -1, laneRun = -1;        // number of the Unit and Lane loop around it; -1: none
  bool ownUnit = false, ownLane = false; // the element's index names the thread
  bool byStore =
      false; // done by the storing thread alone; other reads outside the loops are done by all
  bool unitSynced =
      false; // a Sync of Unit scope lies between it and the end of the list in question

  auto key() const {
    return std::tie(buffer, write, statement, unitRun, laneRun, ownUnit, ownLane, byStore,
                    unitSynced);
  }
  bool operator<(const Access &o) const { return key() < o.key(); }
  bool operator==(const Access &o) const { return key() == o.key(); }
};
using Accesses = std::vector<Access>;

void merge(Accesses &into, const Accesses &more) {
  into.insert(into.end(), more.begin(), more.end());
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

struct Summary {
  Accesses head, tail;
  bool passes = true;     // there is a path without a Sync of Block scope
  bool passesUnit = true; // there is a path without any Sync
};

class Inserter {
public:
  Inserter(GirKernel &kernel, const std::function<bool(BufferId, BufferId)> &overlap)
      : kernel(kernel), overlap(overlap) {}

  void run() {
    for (Phase &p : kernel.phases)
      list(p.body);
  }

private:
  static void markSynced(Accesses &accesses) {
    for (Access &a : accesses)
      a.unitSynced = true;
  }

  /// `firstRun`: runs with this number and above are other runs of the same loop, not the same run.
  Scope between(const Access &a, const Access &b, int firstRun) const {
    if ((!a.write && !b.write) || (a.buffer != b.buffer && !overlap(a.buffer, b.buffer)))
      return Scope::Lane;
    bool same = a.buffer == b.buffer;
    if (a.write && b.write && same &&
        (a.statement == b.statement || kernel.buffers[a.buffer].level == MemLevel::Global))
      return Scope::Lane;
    // Stores outside the loops are all done by the first thread; what they read may be read by all of them.
    auto oneThread = [&](int runA, int runB, bool ownA, bool ownB) {
      if (runA == -1 && runB == -1)
        return a.byStore && b.byStore && a.write && b.write;
      return (runA == runB && runA < firstRun) || (same && ownA && ownB);
    };
    bool sameUnit = kernel.units == 1 || oneThread(a.unitRun, b.unitRun, a.ownUnit, b.ownUnit);
    bool sameLane = kernel.lanes == 1 || oneThread(a.laneRun, b.laneRun, a.ownLane, b.ownLane);
    // Within a phase elements belong to a block: the verifier sees to it.
    return scopeOf({true, sameUnit, sameLane || a.unitSynced || b.unitSynced});
  }

  Scope between(const Accesses &before, const Accesses &after, int firstRun) const {
    Scope need = Scope::Lane;
    for (const Access &a : before)
      for (const Access &b : after)
        need = std::max(need, between(a, b, firstRun));
    return need;
  }

  Stmt syncFor(Scope need) const {
    Stmt s;
    s.kind = StmtKind::Sync;
    bool block = need == Scope::Block || (kernel.units == 1 && unitRun == -1);
    s.scope = block && unitRun == -1 ? SyncScope::Block : SyncScope::Unit;
    return s;
  }

  static void append(Summary &sum, const Summary &next) {
    if (sum.passes) {
      Accesses head = next.head;
      if (!sum.passesUnit)
        markSynced(head);
      merge(sum.head, head);
    }
    if (!next.passes)
      sum.tail.clear();
    else if (!next.passesUnit)
      markSynced(sum.tail);
    merge(sum.tail, next.tail);
    sum.passes = sum.passes && next.passes;
    sum.passesUnit = sum.passesUnit && next.passesUnit;
  }

  static Summary ofSync(SyncScope scope) { return {{}, {}, scope != SyncScope::Block, false}; }

  /// At least one iteration for certain.
  bool runsOnce(const Stmt &loop) const {
    return loop.kind == StmtKind::Loop && kernel.body.rangeOf(loop.trip).min >= 1;
  }

  Summary list(std::vector<Stmt> &stmts) {
    Summary sum;
    std::vector<Stmt> out;
    auto push = [&](Stmt s, const Summary &summary) {
      append(sum, summary);
      out.push_back(std::move(s));
    };
    for (Stmt &s : stmts) {
      int firstRun = nextRun;
      Summary child = statement(s);
      bool repeats =
          s.kind == StmtKind::While ||
          (s.kind == StmtKind::Loop && (s.loop == LoopKind::Seq || s.loop == LoopKind::Unroll));
      Scope carried = repeats ? between(child.tail, child.head, firstRun) : Scope::Lane;
      if (carried != Scope::Lane && laneRun == -1) {
        // What a predicate or a trip count reads is read before the body's start.
        Summary header;
        expressions(s, header);
        bool first = header.head.empty() && between(sum.tail, child.head, INT32_MAX) != Scope::Lane;
        Stmt sync = syncFor(carried);
        Summary inside = ofSync(sync.scope);
        if (first) {
          append(inside, child);
          child = inside;
        } else {
          append(child, inside);
        }
        s.body.insert(first ? s.body.begin() : s.body.end(), std::move(sync));
      }
      Scope need = between(sum.tail, child.head, INT32_MAX);
      if (need != Scope::Lane && laneRun == -1) {
        Stmt sync = syncFor(need);
        Summary summary = ofSync(sync.scope);
        push(std::move(sync), summary);
      }
      if (repeats && !runsOnce(s))
        child.passes = child.passesUnit = true;
      push(std::move(s), child);
    }
    stmts = std::move(out);
    return sum;
  }

  Summary statement(Stmt &s) {
    Summary sum;
    expressions(s, sum);
    switch (s.kind) {
    case StmtKind::Sync: return ofSync(s.scope);
    case StmtKind::If: {
      std::map<BufferId, int> counted = stores;
      Summary then = list(s.body);
      std::swap(stores, counted);
      Summary otherwise = list(s.elseBody);
      for (auto [buffer, count] : counted)
        stores[buffer] = std::max(stores[buffer], count);
      merge(then.head, otherwise.head);
      merge(then.tail, otherwise.tail);
      then.passes = then.passes || otherwise.passes;
      then.passesUnit = then.passesUnit || otherwise.passesUnit;
      append(sum, then);
      return sum;
    }
    case StmtKind::While: append(sum, list(s.body)); return sum;
    case StmtKind::Loop: {
      int saved = unitRun, savedLane = laneRun;
      VarId savedVar = unitVar, savedLaneVar = laneVar;
      if (s.loop == LoopKind::Unit) {
        unitRun = nextRun++;
        unitVar = s.var;
      } else if (s.loop == LoopKind::Lane) {
        laneRun = nextRun++;
        laneVar = s.var;
      }
      append(sum, list(s.body));
      unitRun = saved;
      laneRun = savedLane;
      unitVar = savedVar;
      laneVar = savedLaneVar;
      return sum;
    }
    default: return sum;
    }
  }

  /// Accesses of the statement itself.
  void expressions(const Stmt &s, Summary &sum) {
    Accesses accesses;
    // What only the storing thread uses is read by it alone.
    bool byStore = writesBuffer(s) && kernel.buffers[s.buffer].level != MemLevel::Register;
    for (NodeId id : kernel.body.reachable(exprRoots(s))) {
      Scalar node = kernel.body[id];
      if (node.op != ScalarOp::Read && node.op != ScalarOp::ReadIf)
        continue;
      size_t first = node.op == ScalarOp::ReadIf ? 2 : 0;
      add(accesses, node.index, false, byStore,
          {node.args.begin() + static_cast<long>(first), node.args.end()});
    }
    if (writesBuffer(s)) {
      for (BufferId b : {s.buffer, s.indexBuffer}) {
        if (b < 0)
          continue;
        ++stores[b];
        add(accesses, b, true, true, s.indices);
        if (s.kind == StmtKind::Accumulate)
          add(accesses, b, false, true, s.indices);
      }
    }
    if (s.kind == StmtKind::Signal || s.kind == StmtKind::Wait)
      for (BufferId b = 0; b < kernel.numParams(); ++b)
        add(accesses, b, s.kind == StmtKind::Wait, true, {});
    merge(sum.head, accesses);
    merge(sum.tail, accesses);
  }

  void add(Accesses &accesses, BufferId buffer, bool write, bool byStore,
           std::vector<NodeId> indices) {
    if (!isSynchronised(kernel, buffer))
      return;
    Access a{buffer,  write, write ? stores[buffer] : -1, unitRun, laneRun, false, false,
             byStore, false};
    if (indices.size() == 1 && laneVar >= 0) {
      Body &body = kernel.body;
      NodeId lanes = body.index(kernel.lanes), units = body.index(kernel.units);
      a.ownLane = body.binary(ScalarOp::FloorMod, indices[0], lanes) == body.axis(laneVar);
      a.ownUnit = unitVar >= 0 && body.binary(ScalarOp::FloorMod,
                                              body.binary(ScalarOp::FloorDiv, indices[0], lanes),
                                              units) == body.axis(unitVar);
    }
    accesses.push_back(a);
  }

  GirKernel &kernel;
  const std::function<bool(BufferId, BufferId)> &overlap;
  std::map<BufferId, int> stores; // so far, of each buffer
  int nextRun = 0, unitRun = -1, laneRun = -1;
  VarId unitVar = -1, laneVar = -1;
};

} // namespace

void insertSyncs(GirKernel &kernel, const std::function<bool(BufferId, BufferId)> &overlap) {
  setRanges(kernel);
  if (kernel.units > 1)
    splitLanes(kernel, overlap);
  Inserter(kernel, overlap).run();
}

void insertSyncs(GirKernel &kernel) {
  insertSyncs(kernel, [](BufferId, BufferId) { return false; });
  canonicalise(kernel);
}

} // namespace fusec
