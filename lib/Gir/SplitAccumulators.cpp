// split-accumulators: a sum over a row waits for itself. Where a reduction's loop is unrolled, each copy of its body
// gets a partial result of its own:
//
//   acc[] = 0                                 acc[] = 0; part[0] = 0; part[1] = 0
//   seq k in 8 {                              seq k in 8 {
//     unroll u in 2 {                           unroll u in 2 {
//       lane l in 16 { acc[] sum= .. }   ->       lane l in 16 { part[u] sum= .. }
//     }                                         }
//   }                                         }
//                                             lane l in 16 { acc[] sum= part[0]; acc[] sum= part[1] }
//   lanereduce sum acc[]                      lanereduce sum acc[]
#include "Gir/Passes.h"
#include "Gir/Walk.h"

#include <algorithm>

namespace fusec {
namespace {

// Partial results live in registers beside all else: more would not fit, and fewer already hide an addition.
constexpr int64_t kMostParts = 8;

class Splitter {
public:
  explicit Splitter(GirKernel &kernel) : kernel(kernel) {}
  void list(std::vector<Stmt> &stmts) {
    for (size_t i = 0; i < stmts.size(); ++i) {
      list(stmts[i].body);
      list(stmts[i].elseBody);
      if (stmts[i].kind == StmtKind::LaneReduce)
        i += split(stmts, i);
    }
  }

private:
  /// Splits what ends in the LaneReduce at `last`. Returns the number of statements put before it.
  size_t split(std::vector<Stmt> &stmts, size_t last) {
    const Stmt reduce = stmts[last];
    const GirBuffer total = kernel.buffers[reduce.buffer];
    if (reduce.indexBuffer >= 0 || isArgMonoid(reduce.monoid) || !total.perLane ||
        !total.shape.empty())
      return 0;
    size_t first = last;
    while (first > 0 &&
           !(stmts[first - 1].kind == StmtKind::Store && stmts[first - 1].buffer == reduce.buffer))
      --first;
    std::vector<Stmt> inner(stmts.begin() + static_cast<ptrdiff_t>(first),
                            stmts.begin() + static_cast<ptrdiff_t>(last));
    if (first == 0 || !onlyAccumulates(inner, reduce))
      return 0;
    const auto part = static_cast<BufferId>(kernel.buffers.size());
    const int64_t parts = redirect(inner, reduce, part, nullptr);
    if (parts == 0)
      return 0;
    kernel.buffers.push_back(total);
    kernel.buffers.back().name += "_part";
    kernel.buffers.back().shape = {parts};

    const size_t before = stmts.size();
    std::copy(inner.begin(), inner.end(), stmts.begin() + static_cast<ptrdiff_t>(first));
    stmts.insert(stmts.begin() + static_cast<ptrdiff_t>(last), merge(reduce, part, parts));
    const std::vector<Stmt> begun = begin(reduce, part, parts);
    stmts.insert(stmts.begin() + static_cast<ptrdiff_t>(first), begun.begin(), begun.end());
    return stmts.size() - before;
  }

  /// Nothing here reads the total or writes it otherwise.
  bool onlyAccumulates(const std::vector<Stmt> &stmts, const Stmt &reduce) const {
    bool good = true;
    forEachStmt(stmts, [&](const Stmt &s) {
      if (writesBuffer(s) && (s.buffer == reduce.buffer || s.indexBuffer == reduce.buffer))
        good = good && s.kind == StmtKind::Accumulate && s.monoid == reduce.monoid &&
               s.indexBuffer < 0;
      for (NodeId id : kernel.body.reachable(exprRoots(s))) {
        const Scalar &node = kernel.body[id];
        good = good && !((node.op == ScalarOp::Read || node.op == ScalarOp::ReadIf) &&
                         node.index == reduce.buffer);
      }
    });
    return good;
  }

  /// Accumulates inside unrolled loops go to the parts. Returns how many parts they need.
  int64_t redirect(std::vector<Stmt> &stmts, const Stmt &reduce, BufferId part,
                   const Stmt *unrolled) {
    int64_t parts = 0;
    for (Stmt &s : stmts) {
      if (s.kind == StmtKind::Accumulate && s.buffer == reduce.buffer && unrolled) {
        s.buffer = part;
        s.indices = {kernel.body.axis(unrolled->var)};
        parts = std::max(parts, kernel.body[unrolled->trip].imm);
      }
      const Stmt *around = unrolled;
      if (s.kind == StmtKind::Loop && s.loop == LoopKind::Unroll)
        around = kernel.body[s.trip].imm <= kMostParts ? &s : nullptr;
      parts = std::max({parts, redirect(s.body, reduce, part, around),
                        redirect(s.elseBody, reduce, part, around)});
    }
    return parts;
  }

  std::vector<Stmt> begin(const Stmt &reduce, BufferId part, int64_t parts) {
    std::vector<Stmt> list;
    for (int64_t i = 0; i < parts; ++i) {
      Stmt s;
      s.kind = StmtKind::Store;
      s.buffer = part;
      s.indices = {kernel.body.index(i)};
      s.value = identityOf(kernel.body, reduce.monoid, kernel.buffers[part].type);
      list.push_back(std::move(s));
    }
    return list;
  }

  Stmt merge(const Stmt &reduce, BufferId part, int64_t parts) {
    Stmt lane;
    lane.kind = StmtKind::Loop;
    lane.loop = LoopKind::Lane;
    lane.var = static_cast<VarId>(kernel.vars.size());
    kernel.vars.push_back({"lane", LoopKind::Lane});
    lane.trip = kernel.body.index(kernel.lanes);
    for (int64_t i = 0; i < parts; ++i) {
      Stmt s;
      s.kind = StmtKind::Accumulate;
      s.buffer = reduce.buffer;
      s.monoid = reduce.monoid;
      s.value = kernel.body.read(part, kernel.buffers[part].type, {kernel.body.index(i)});
      lane.body.push_back(std::move(s));
    }
    return lane;
  }

  GirKernel &kernel;
};

} // namespace

void splitAccumulators(GirKernel &kernel) {
  canonicalise(kernel); // every loop has a variable of its own
  Splitter splitter(kernel);
  for (Phase &phase : kernel.phases)
    splitter.list(phase.body);
  canonicalise(kernel);
}

} // namespace fusec
