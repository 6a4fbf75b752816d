// simplify: drops what does nothing.
//
// The expressions are made again with the ranges of the loops around them known, which decides predicates such as
// `8*m + 8 <= 96` with m < 12. Loops of one iteration give their variable the value 0. Register and Shared buffers
// that are never read go, and the stores to them with them.
#include "Gir/Passes.h"
#include "Gir/Walk.h"

#include <algorithm>
#include <functional>

namespace fusec {
namespace {

class Simplifier {
public:
  explicit Simplifier(GirKernel &kernel) : kernel(kernel), old(std::move(kernel.body)) {
    kernel.body = Body();
    kernel.body.symbolTable = kernel.symbols;
    kernel.body.axisRanges.assign(kernel.vars.size(), IndexRange{0, INT64_MAX, std::nullopt});
    isZero.resize(kernel.vars.size());
    made.assign(old.nodes.size(), kNoNode);
  }

  void run() {
    if (kernel.resident >= 0)
      kernel.body.axisRanges[kernel.resident] = {0, 1, std::nullopt};
    if (kernel.rounds)
      kernel.body.axisRanges[kernel.rounds->var] =
          rangeOfExtent(kernel.rounds->count, kernel.symbols);
    for (Phase &p : kernel.phases) {
      for (const Phase::Block &b : p.blocks) {
        kernel.body.axisRanges[b.var] = rangeOfExtent(b.trip, kernel.symbols);
        isZero[b.var] = b.trip.isConst(1);
      }
      std::erase_if(p.blocks, [&](const Phase::Block &b) { return b.trip.isConst(1); });
      p.body = list(std::move(p.body));
    }
  }

private:
  std::vector<Stmt> list(std::vector<Stmt> stmts) {
    std::vector<Stmt> out;
    auto splice = [&](std::vector<Stmt> inner) {
      for (Stmt &s : inner)
        out.push_back(std::move(s));
    };
    for (Stmt &s : stmts) {
      for (NodeId *ref : exprRefs(s))
        *ref = remake(*ref);
      if (s.kind == StmtKind::Loop) {
        if (!loop(s, splice))
          continue;
      } else if (s.kind == StmtKind::If || s.kind == StmtKind::While) {
        const Scalar predicate = kernel.body[s.predicate];
        bool known = predicate.op == ScalarOp::Const;
        if (s.kind == StmtKind::If && known) {
          splice(list(std::move(predicate.imm ? s.body : s.elseBody)));
          continue;
        }
        if (known && !predicate.imm)
          continue;
        s.body = list(std::move(s.body));
        s.elseBody = list(std::move(s.elseBody));
        if (s.kind == StmtKind::If && s.body.empty()) {
          if (s.elseBody.empty())
            continue;
          s.predicate = kernel.body.unary(ScalarOp::Not, s.predicate);
          s.body.swap(s.elseBody);
        }
      }
      out.push_back(std::move(s));
    }
    return out;
  }

  /// False when nothing or only the loop's body (spliced) is left.
  template <typename F> bool loop(Stmt &s, F &splice) {
    const Scalar trip = kernel.body[s.trip];
    bool constant = trip.op == ScalarOp::Const;
    // Also loops over the whole tiles of sizes that are all smaller.
    if (kernel.body.rangeOf(s.trip).max <= 0)
      return false;
    isZero[s.var] = constant && trip.imm == 1;
    kernel.body.axisRanges[s.var] = rangeOfTrip(kernel, s.trip);
    std::vector<Stmt> inner = list(std::move(s.body));
    if (inner.empty())
      return false;
    if (isZero[s.var]) {
      if (!s.kernel.empty() && inner.size() == 1 && inner[0].kind == StmtKind::Loop)
        inner[0].kernel = s.kernel; // what is left of the product
      splice(std::move(inner));
      return false;
    }
    s.body = std::move(inner);
    return true;
  }

  NodeId remake(NodeId root) {
    for (NodeId id : old.reachable({root})) {
      if (made[id] != kNoNode)
        continue;
      Scalar s = old[id];
      for (NodeId &a : s.args)
        a = made[a];
      made[id] = s.op == ScalarOp::Axis && isZero[s.index] ? kernel.body.index(0)
                                                           : kernel.body.add(std::move(s));
    }
    return made[root];
  }

  GirKernel &kernel;
  Body old;
  std::vector<NodeId> made; // node of `old` -> node of the new body
  std::vector<bool> isZero; // variables of loops of one iteration
};

/// Buffers that some expression or somebody else reads.
std::vector<bool> readBuffers(const GirKernel &kernel) {
  std::vector<bool> read(kernel.buffers.size());
  for (size_t b = 0; b < read.size(); ++b)
    read[b] = kernel.buffers[b].level == MemLevel::Global && !kernel.buffers[b].scratch;
  std::vector<NodeId> roots;
  forEachStmtOf(kernel, [&](const Stmt &s) {
    for (NodeId r : exprRoots(s))
      roots.push_back(r);
  });
  for (NodeId id : kernel.body.reachable(roots))
    if (kernel.body[id].op == ScalarOp::Read || kernel.body[id].op == ScalarOp::ReadIf)
      read[kernel.body[id].index] = true;
  // The value and the index of a tuple monoid stay together.
  forEachStmtOf(kernel, [&](const Stmt &s) {
    if (s.indexBuffer >= 0 && (read[s.buffer] || read[s.indexBuffer]))
      read[s.buffer] = read[s.indexBuffer] = true;
  });
  return read;
}

bool eraseWrites(std::vector<Stmt> &stmts, const std::vector<bool> &read) {
  auto isDead = [&](Stmt &s) {
    bool changed = eraseWrites(s.body, read);
    changed = eraseWrites(s.elseBody, read) || changed;
    if (changed && s.body.empty() && s.elseBody.empty())
      return true;
    return writesBuffer(s) && !read[s.buffer];
  };
  return std::erase_if(stmts, isDead) > 0;
}

/// Only `used` buffers stay; the others are named by dead nodes alone.
void keepBuffers(GirKernel &kernel, const std::vector<bool> &used) {
  std::vector<BufferId> renumbered(used.size(), -1);
  std::vector<GirBuffer> kept;
  for (size_t b = 0; b < used.size(); ++b)
    if (used[b]) {
      renumbered[b] = static_cast<BufferId>(kept.size());
      kept.push_back(std::move(kernel.buffers[b]));
    }
  kernel.buffers = std::move(kept);
  Body body;
  body.axisRanges = kernel.body.axisRanges;
  body.symbolTable = kernel.body.symbolTable;
  std::vector<NodeId> copy;
  for (Scalar s : kernel.body.nodes) {
    for (NodeId &a : s.args)
      a = copy[a];
    if (s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf)
      s.index = std::max(renumbered[s.index], 0); // dead nodes may name dead buffers
    copy.push_back(body.addExact(std::move(s)));
  }
  kernel.body = std::move(body);
  forEachStmtOf(kernel, [&](Stmt &s) {
    for (NodeId *ref : exprRefs(s))
      *ref = copy[*ref];
    if (s.buffer >= 0)
      s.buffer = renumbered[s.buffer];
    if (s.indexBuffer >= 0)
      s.indexBuffer = renumbered[s.indexBuffer];
  });
}

void dropDeadBuffers(GirKernel &kernel) {
  for (;;) {
    std::vector<bool> read = readBuffers(kernel);
    bool changed = false;
    for (Phase &p : kernel.phases)
      changed = eraseWrites(p.body, read) || changed;
    if (!changed)
      break;
  }
  std::vector<bool> used = readBuffers(kernel);
  for (size_t b = 0; b < used.size(); ++b) // the arguments of a launch are counted
    used[b] = used[b] || kernel.buffers[b].level == MemLevel::Global;
  keepBuffers(kernel, used);
}

void eraseCounting(std::vector<Stmt> &stmts, const std::function<bool(const Stmt &)> &idle) {
  std::erase_if(stmts, [&](Stmt &s) {
    const bool surrounds = !s.body.empty() || !s.elseBody.empty();
    eraseCounting(s.body, idle);
    eraseCounting(s.elseBody, idle);
    return idle(s) || (surrounds && s.body.empty() && s.elseBody.empty());
  });
}

/// A phase that stores nothing has nothing to tell: its counters go, and those that nobody waits for.
void dropIdleCounters(GirKernel &kernel) {
  std::vector<CounterId> renumbered(kernel.counters.size(), -1);
  std::vector<bool> awaited(kernel.counters.size());
  for (Phase &p : kernel.phases) {
    bool stores = false;
    forEachStmt(p.body, [&](const Stmt &s) { stores = stores || writesBuffer(s); });
    if (stores)
      forEachStmt(p.body, [&](const Stmt &s) {
        if (s.kind == StmtKind::Signal)
          renumbered[s.counter] = 0;
      });
    else
      eraseCounting(p.body, [](const Stmt &s) { return s.counter >= 0; });
  }
  forEachStmtOf(kernel, [&](const Stmt &s) {
    if (s.kind == StmtKind::Wait)
      awaited[s.counter] = true;
  });
  std::vector<GirCounters> kept;
  for (size_t c = 0; c < renumbered.size(); ++c)
    if (renumbered[c] == 0 && awaited[c]) {
      renumbered[c] = static_cast<CounterId>(kept.size());
      kept.push_back(std::move(kernel.counters[c]));
    } else {
      renumbered[c] = -1;
    }
  kernel.counters = std::move(kept);
  for (Phase &p : kernel.phases)
    eraseCounting(p.body,
                  [&](Stmt const &s) { return s.counter >= 0 && renumbered[s.counter] < 0; });
  forEachStmtOf(kernel, [&](Stmt &s) {
    if (s.counter >= 0)
      s.counter = renumbered[s.counter];
  });
}

/// A kernel keeps one phase even where it does nothing.
void dropEmptyPhases(GirKernel &kernel) {
  std::vector<Phase> kept;
  std::optional<Rounds> rounds;
  bool waiting = true; // no barrier since the phase that was kept last
  for (size_t p = 0; p < kernel.phases.size(); ++p) {
    const bool again = kernel.rounds && p >= kernel.rounds->first && p < kernel.rounds->last;
    waiting = waiting && kernel.phases[p].waiting;
    if (kernel.phases[p].body.empty())
      continue;
    kernel.phases[p].waiting = waiting && !kept.empty();
    waiting = true;
    if (again && !rounds) {
      rounds = kernel.rounds;
      rounds->first = kept.size();
    }
    kept.push_back(std::move(kernel.phases[p]));
    if (again)
      rounds->last = kept.size();
  }
  if (kept.empty())
    kept.push_back(std::move(kernel.phases.front()));
  kernel.phases = std::move(kept);
  kernel.rounds = std::move(rounds);
}

} // namespace

std::vector<bool> dropUnusedScratch(GirKernel &kernel) {
  std::vector<bool> accessed(kernel.buffers.size());
  std::vector<NodeId> roots;
  forEachStmtOf(kernel, [&](const Stmt &s) {
    for (NodeId r : exprRoots(s))
      roots.push_back(r);
    for (BufferId b : {s.buffer, s.indexBuffer})
      if (b >= 0)
        accessed[b] = true;
  });
  for (NodeId id : kernel.body.reachable(roots))
    if (kernel.body[id].op == ScalarOp::Read || kernel.body[id].op == ScalarOp::ReadIf)
      accessed[kernel.body[id].index] = true;
  for (size_t b = 0; b < accessed.size(); ++b)
    accessed[b] = accessed[b] || !kernel.buffers[b].scratch;
  keepBuffers(kernel, accessed);
  canonicalise(kernel);
  return accessed;
}

void simplify(GirKernel &kernel) {
  canonicalise(kernel); // every loop has a variable of its own
  Simplifier(kernel).run();
  dropDeadBuffers(kernel);
  if (!kernel.counters.empty())
    dropIdleCounters(kernel);
  dropEmptyPhases(kernel);
  canonicalise(kernel);
}

} // namespace fusec
