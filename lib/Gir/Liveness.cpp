// Live ranges of Shared and Register buffers.
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
// For Shared buffers Unit and Lane loops are one number each: no barrier can stand inside them that orders the units. A
// thread does their statements in order: for registers they are numbered like all others.
//
// Where both branches of an If write a buffer, as full and cut tiles do, it is not live from the one to the other. A
// Shared one has a range in each. For registers, the branches have the same numbers then, otherwise numbers of their
// own, since what one of them alone uses is not live in the other.
#include "Gir/Liveness.h"

#include "Gir/ResidentGrid.h"
#include "Gir/Walk.h"

#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace fusec {
namespace {

class Walker {
public:
  Walker(const GirKernel &kernel, MemLevel level)
      : kernel(kernel), level(level), carries(kernel.buffers.size()),
        beginsAnew(kernel.buffers.size()), leftBranch(kernel.buffers.size()) {
    out.buffers.resize(kernel.buffers.size());
  }

  Liveness run(std::span<const Phase> phases) {
    for (const Phase &p : phases)
      list(p.body);
    out.end = now + 2;
    const std::vector<bool> held = heldBuffers(kernel);
    for (size_t b = 0; b < held.size(); ++b)
      if (held[b] && isOurs(static_cast<BufferId>(b)))
        cover(static_cast<BufferId>(b), 0, now + 1);
    for (std::vector<LiveRange> &ranges : out.buffers)
      for (LiveRange &range : ranges)
        range = out.closeOverLoops(range);
    return std::move(out);
  }

private:
  struct Access {
    BufferId buffer;
    bool write;
    std::vector<NodeId> depends; // indices and predicates that decide which elements
  };
  using Element = std::pair<BufferId, std::vector<NodeId>>;
  /// What a list of statements does whichever way it goes.
  struct Flow {
    std::set<Element> needed; // read before it is written here
    std::map<Element, std::vector<VarId>>
        written; // and the loops around it, of those that it steps over
    std::set<std::pair<NodeId, Element>> guarded; // written where this predicate holds
    std::set<BufferId> whole;                     // every element is written
  };
  static constexpr VarId kUnknown =
      -1; // among the loops of what is written: not known to be all of them

  bool isOurs(BufferId b) const { return b >= 0 && kernel.buffers[b].level == level; }

  void include(BufferId b, int from, int to) {
    std::vector<LiveRange> &ranges = out.buffers[b];
    if (ranges.empty() || beginsAnew[b])
      ranges.emplace_back();
    else // what a branch has left is wanted behind the If
      for (const auto &[range, end] : leftBranch[b])
        ranges[range].include(end, end);
    leftBranch[b].clear();
    beginsAnew[b] = false;
    ranges.back().include(from, to);
  }

  /// One range for these points and all ranges that it meets.
  void cover(BufferId b, int from, int to) {
    LiveRange all;
    all.include(from, to);
    std::erase_if(out.buffers[b], [&](const LiveRange &range) {
      if (range.overlaps(all))
        all.include(range.first, range.last);
      return range.overlaps(all);
    });
    out.buffers[b].push_back(all);
    leftBranch[b].clear();
  }

  void record(const Stmt &s, Flow &flow) {
    for (Element &element : readsIn(s))
      read(std::move(element), flow);
    if (!writesBuffer(s))
      return;
    for (BufferId b : {s.buffer, s.indexBuffer}) {
      if (!isOurs(b))
        continue;
      if (s.kind != StmtKind::Store)
        read({b, s.indices}, flow);
      write(s, b, flow);
    }
  }

  std::vector<Element> readsIn(const Stmt &s) const {
    std::vector<Element> reads;
    for (NodeId id : kernel.body.reachable(exprRoots(s))) {
      const Scalar &node = kernel.body[id];
      if (node.op == ScalarOp::Read && isOurs(node.index))
        reads.push_back({node.index, node.args});
      else if (node.op == ScalarOp::ReadIf && isOurs(node.index))
        reads.push_back({node.index, {node.args.begin() + 2, node.args.end()}});
    }
    return reads;
  }

  static void need(const Element &element, Flow &flow) {
    if (flow.whole.count(element.first) == 0 && flow.written.count(element) == 0)
      flow.needed.insert(element);
  }

  void read(Element element, Flow &flow) {
    include(element.first, now, level == MemLevel::Shared ? now + 1 : now);
    accesses.push_back({element.first, false, {}});
    need(element, flow);
  }

  void write(const Stmt &s, BufferId b, Flow &flow) {
    include(b, level == MemLevel::Shared ? now : now + 1, now + 1);
    Access access{b, true, predicates};
    access.depends.insert(access.depends.end(), s.indices.begin(), s.indices.end());
    accesses.push_back(std::move(access));
    std::vector<VarId> loops;
    for (NodeId id : kernel.body.reachable(s.indices)) {
      const Scalar &node = kernel.body[id];
      if (node.op == ScalarOp::Read || node.op == ScalarOp::ReadIf)
        return; // another element the next time
      if (node.op == ScalarOp::Axis)
        loops.push_back(node.index);
    }
    for (NodeId index : s.indices)
      if (const ScalarOp op = kernel.body[index].op; op != ScalarOp::Axis && op != ScalarOp::Const)
        loops.push_back(kUnknown);
    addWritten({b, s.indices}, std::move(loops), flow);
  }

  void addWritten(const Element &element, std::vector<VarId> loops, Flow &flow) const {
    const bool done = loops.empty();
    flow.written[element] = std::move(loops);
    if (done && coversAll(element.first, flow))
      flow.whole.insert(element.first);
  }

  /// The elements that are written come to all of the buffer: along a dimension either all or constant ones.
  bool coversAll(BufferId b, const Flow &flow) const {
    const Shape &shape = kernel.buffers[b].shape;
    std::map<std::vector<bool>, std::set<std::vector<int64_t>>>
        seen; // by the dimensions written in full
    for (auto it = flow.written.lower_bound({b, {}});
         it != flow.written.end() && it->first.first == b; ++it) {
      if (!it->second.empty())
        continue;
      std::vector<bool> full;
      std::vector<int64_t> constants;
      int64_t each = 1;
      for (size_t d = 0; d < shape.size(); ++d) {
        const Scalar &index = kernel.body[it->first.second[d]];
        full.push_back(index.op == ScalarOp::Axis);
        constants.push_back(full.back() ? 0 : index.imm);
        each *= full.back() ? shape[d].constValue() : 1;
      }
      auto &places = seen[full];
      places.insert(std::move(constants));
      if (static_cast<int64_t>(places.size()) * each == numElements(shape).constValue())
        return true;
    }
    return false;
  }

  /// Behind a loop or another list of statements.
  void follow(const Flow &inner, Flow &flow) const {
    for (const Element &element : inner.needed)
      need(element, flow);
  }

  /// What a loop that comes by at least once has written.
  void leave(const Stmt &loop, const Flow &inner, Flow &flow) const {
    flow.whole.insert(inner.whole.begin(), inner.whole.end());
    for (const auto &[element, around] : inner.written) {
      std::vector<VarId> loops = around;
      if (std::erase(loops, loop.var) > 0 && !stepsOverAll(loop, element))
        continue;
      addWritten(element, std::move(loops), flow);
    }
  }

  /// One dimension, all of it, and none besides.
  bool stepsOverAll(const Stmt &loop, const Element &element) const {
    const Shape &shape = kernel.buffers[element.first].shape;
    const Scalar &trip = kernel.body[loop.trip];
    int dimensions = 0;
    bool all = trip.op == ScalarOp::Const;
    for (size_t d = 0; d < shape.size(); ++d)
      if (!independentOf({element.second[d]}, loop.var)) {
        ++dimensions;
        all = all && trip.imm == shape[d].constValue();
      }
    return all && dimensions == 1;
  }

  Flow list(const std::vector<Stmt> &stmts) {
    Flow flow;
    for (const Stmt &s : stmts) {
      if (!atomic)
        now += 2;
      out.at.push_back(now);
      const size_t firstAccess = accesses.size();
      record(s, flow);
      if (s.kind == StmtKind::If)
        branches(s, flow);
      else if (s.kind == StmtKind::Loop || s.kind == StmtKind::While)
        loop(s, firstAccess, flow);
    }
    return flow;
  }

  std::set<BufferId> writtenByBoth(const Stmt &branches) const {
    std::set<BufferId> written, both;
    forEachStmt(branches.body, [&](const Stmt &s) {
      if (writesBuffer(s) && isOurs(s.buffer))
        written.insert(s.buffer);
    });
    forEachStmt(branches.elseBody, [&](const Stmt &s) {
      if (writesBuffer(s) && written.count(s.buffer) != 0)
        both.insert(s.buffer);
    });
    return both;
  }

  void branches(const Stmt &s, Flow &flow) {
    predicates.push_back(s.predicate);
    const int own = now;
    if (level == MemLevel::Register)
      now -= 2; // one number with what it guards: bounds that one branch tests shift nothing
    const int from = now;
    std::set<BufferId> both = writtenByBoth(s);
    // What holds a value from before may hold it through each branch. Of a value from an earlier iteration, the loop
    // takes care.
    if (level == MemLevel::Shared)
      std::erase_if(
          both, [&](BufferId b) { return atomic || !(out.buffers[b].empty() || beginsAnew[b]); });
    const Flow then = list(s.body);
    const int thenLast = now;
    std::map<BufferId, std::vector<std::pair<size_t, int>>> inThen; // what it leaves
    if (level == MemLevel::Register) {
      if (!both.empty())
        now = from;
    } else {
      if (!both.empty())
        now += 2; // the branch ends behind its loops
      for (BufferId b : both) {
        inThen[b] = std::exchange(leftBranch[b], {});
        inThen[b].emplace_back(out.buffers[b].size() - 1, now);
        beginsAnew[b] = true;
      }
    }
    const Flow otherwise = list(s.elseBody);
    for (const auto &[b, left] : inThen)
      leftBranch[b].insert(leftBranch[b].end(), left.begin(), left.end());
    now = std::max({now, thenLast, own});
    predicates.pop_back();
    for (const Element &element : then.needed)
      if (flow.guarded.count({s.predicate, element}) == 0)
        need(element, flow);
    follow(otherwise, flow);
    if (independentOf({s.predicate}, kUnknown)) // reads nothing: holds again
      for (const auto &[element, loops] : then.written)
        flow.guarded.insert({s.predicate, element});
    for (BufferId b : then.whole)
      if (otherwise.whole.count(b) != 0)
        flow.whole.insert(b);
    for (const auto &[element, loops] : then.written)
      if (const auto it = otherwise.written.find(element);
          it != otherwise.written.end() && it->second == loops)
        addWritten(element, loops, flow);
  }

  void loop(const Stmt &s, size_t firstAccess, Flow &flow) {
    const bool isWhile = s.kind == StmtKind::While;
    const bool inOrder = isWhile || s.loop == LoopKind::Seq || s.loop == LoopKind::Unroll;
    const size_t firstInner = accesses.size();
    const int from = now;
    const bool before = atomic;
    atomic = atomic || (!inOrder && level == MemLevel::Shared);
    const bool surely = !isWhile && kernel.body.rangeOf(s.trip).min >= 1;
    if (!surely)
      predicates.push_back(isWhile ? s.predicate : s.trip);
    Flow inner = list(s.body);
    if (!surely)
      predicates.pop_back();
    if (isWhile) {
      for (Element &element : readsIn(s)) // after each iteration too
        need(element, inner);
    }
    atomic = before;
    if (inOrder && !atomic)
      widen(s, firstAccess, firstInner, from, inner);
    follow(inner, flow);
    if (surely)
      leave(s, inner, flow);
  }

  /// Accesses from `firstInner` on are inside the loop `s`, which began at `from`.
  void widen(const Stmt &s, size_t firstAccess, size_t firstInner, int from, const Flow &inner) {
    out.loops.push_back({from, now + 1});
    std::set<BufferId> needed;
    for (const Element &element : inner.needed)
      needed.insert(element.first);
    for (BufferId b : needed) {
      if (freshEachIteration(s, b, firstAccess, firstInner))
        continue;
      cover(b, from, now + 1);
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
  const MemLevel level;
  Liveness out;
  std::vector<bool> carries; // some loop hands values of this buffer from one iteration to the next
  std::vector<bool>
      beginsAnew; // by buffer: in this branch of an If nothing has used it, in the other one something
  /// By buffer, ranges in branches before the last one, and where these end.
  std::vector<std::vector<std::pair<size_t, int>>> leftBranch;
  std::vector<Access> accesses;
  std::vector<NodeId>
      predicates; // around the current statement, and trips of loops that it may not reach
  int now = 0;
  bool atomic =
      false; // inside a Unit or Lane loop, between whose statements nothing orders the units
};

} // namespace

LiveRange Liveness::closeOverLoops(LiveRange range) const {
  for (bool changed = !range.empty(); changed;) {
    changed = false;
    for (const LiveRange &loop : loops) {
      const bool within = loop.first <= range.first && range.last <= loop.last;
      const bool around = range.first <= loop.first && loop.last <= range.last;
      if (!range.overlaps(loop) || within || around)
        continue;
      range.include(loop.first, loop.last);
      changed = true;
    }
  }
  return range;
}

std::vector<double> Liveness::registersAt(const GirKernel &kernel, BufferId except) const {
  std::vector<HeldRegisters> held;
  for (size_t b = 0; b < buffers.size(); ++b)
    if (const GirBuffer &buffer = kernel.buffers[b];
        buffer.level == MemLevel::Register && static_cast<BufferId>(b) != except)
      for (const LiveRange &range : buffers[b])
        held.push_back(
            {range, double(registersFor(numElements(buffer.shape).constValue(), buffer.type))});
  return heldAt(held, end);
}

std::vector<double> heldAt(const std::vector<HeldRegisters> &held, int end) {
  std::vector<double> sums(static_cast<size_t>(end) + 1);
  for (const auto &[range, registers] : held) {
    if (range.empty())
      continue;
    sums[static_cast<size_t>(range.first)] += registers;
    sums[static_cast<size_t>(range.last) + 1] -= registers;
  }
  std::partial_sum(sums.begin(), sums.end(), sums.begin());
  return sums;
}

Liveness livenessOf(const GirKernel &kernel, std::span<const Phase> phases, MemLevel level) {
  return Walker(kernel, level).run(phases);
}

int64_t registersFor(int64_t elements, DType type) {
  return elements * std::max<int64_t>(1, sizeInBytes(type) / 4);
}

} // namespace fusec
