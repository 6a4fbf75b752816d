// Outside Unit loops all units read what the first one stores. No barrier can stand in a Lane loop, so one in which
// that happens is taken apart; a loop inside it goes outside:
//
//   lane l { seq i in 3 { %s[l] = ..; %r[] sum= %s[l] } }
// becomes
//   seq i in 3 { lane l { %s[l] = .. }  lane l { %r[] sum= %s[l] } }
//
// Not handled: units that read in a branch or loop of a Lane loop what the first one stores there, where the lanes do
// not go the same way.
#include "Gir/Syncs.h"

#include "Gir/Walk.h"

#include <algorithm>
#include <set>

namespace fusec {
namespace {

class Splitter {
public:
  Splitter(GirKernel &kernel, const std::function<bool(BufferId, BufferId)> &overlap)
      : kernel(kernel), overlap(overlap), varies(laneVarying(kernel)) {}

  void split(std::vector<Stmt> &stmts) {
    std::vector<Stmt> out;
    for (Stmt &s : stmts) {
      if (s.kind == StmtKind::Loop && s.loop == LoopKind::Lane) {
        for (Stmt &part : partsOf(std::move(s)))
          out.push_back(std::move(part));
        continue;
      }
      if (s.kind != StmtKind::Loop || s.loop != LoopKind::Unit) {
        split(s.body);
        split(s.elseBody);
      }
      out.push_back(std::move(s));
    }
    stmts = std::move(out);
  }

private:
  /// Buffers that all units read, and those that the first one stores to.
  struct Touched {
    std::set<BufferId> read, stored;
  };

  void touch(const Stmt &s, Touched &touched) const {
    for (NodeId id : kernel.body.reachable(exprRoots(s)))
      if (const Scalar &node = kernel.body[id];
          (node.op == ScalarOp::Read || node.op == ScalarOp::ReadIf) &&
          isSynchronised(kernel, node.index))
        touched.read.insert(node.index);
    if (writesBuffer(s))
      for (BufferId b : {s.buffer, s.indexBuffer})
        if (b >= 0 && isSynchronised(kernel, b))
          touched.stored.insert(b);
    for (const auto *inner : {&s.body, &s.elseBody})
      for (const Stmt &t : *inner)
        touch(t, touched);
  }

  bool meet(const Touched &a, const Touched &b) const {
    auto readsStored = [&](const Touched &reads, const Touched &stores) {
      return std::any_of(reads.read.begin(), reads.read.end(), [&](BufferId r) {
        return std::any_of(stores.stored.begin(), stores.stored.end(),
                           [&](BufferId s) { return r == s || overlap(r, s); });
      });
    };
    return readsStored(a, b) || readsStored(b, a);
  }

  /// Lane loops one behind the other for one, in none of which a unit reads what another one stores.
  std::vector<Stmt> partsOf(Stmt lanes) const {
    std::vector<Stmt> out, body = std::move(lanes.body);
    lanes.body.clear();
    Stmt part = lanes;
    Touched before;
    auto end = [&] {
      if (!part.body.empty())
        out.push_back(std::move(part));
      part = lanes;
      before = {};
    };
    for (Stmt &s : body) {
      Touched own;
      touch(s, own);
      const bool inside = (s.kind == StmtKind::Loop && !varies[s.trip]) ||
                          (s.kind == StmtKind::If && !varies[s.predicate]);
      if (inside && meet(own, own)) {
        end();
        for (auto *inner : {&s.body, &s.elseBody}) {
          Stmt once = lanes;
          once.body = std::move(*inner);
          *inner = once.body.empty() ? std::vector<Stmt>() : partsOf(std::move(once));
        }
        out.push_back(std::move(s));
        continue;
      }
      if (meet(before, own))
        end();
      before.read.merge(own.read);
      before.stored.merge(own.stored);
      part.body.push_back(std::move(s));
    }
    end();
    return out;
  }

  const GirKernel &kernel;
  const std::function<bool(BufferId, BufferId)> &overlap;
  const std::vector<bool> varies; // expressions, from lane to lane
};

} // namespace

bool isSynchronised(const GirKernel &kernel, BufferId b) {
  const GirBuffer &buffer = kernel.buffers[static_cast<size_t>(b)];
  return buffer.level == MemLevel::Shared || (buffer.level == MemLevel::Global && buffer.written);
}

void splitLanes(GirKernel &kernel, const std::function<bool(BufferId, BufferId)> &overlap) {
  Splitter splitter(kernel, overlap);
  for (Phase &phase : kernel.phases)
    splitter.split(phase.body);
}

} // namespace fusec
