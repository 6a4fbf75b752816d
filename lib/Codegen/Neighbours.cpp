// Turns of an Unroll loop whose elements lie side by side,
//
//   lane x in 32 { unroll i in 4 {
//     %y[x*4 + i] = add(%a[x*4 + i], %b[0]) } }
//
// are one access of 16 bytes: a GPU serves it in the time of one of 4, and a thread has four times as much on its way.
// Loads come with the first turn of a group, stores with the last one. The places of a group are a multiple of its size
// and those behind it, in every iteration of the loops around: seen from the expressions alone (TurnsOfGroup). So a
// test against a bound that is a multiple of the size says the same of all of them.
//
// A load is earlier than the text says, and a store later: the loop writes nothing that it reads so, and stores to
// a buffer that it takes together by one statement, without loops of its own.
#include "Codegen/Neighbours.h"

#include "Codegen/Unrolling.h"
#include "Expr/TurnsOfGroup.h"
#include "Gir/Walk.h"

#include <algorithm>
#include <set>

namespace fusec {

namespace {

/// The accesses of one Unroll loop's turns.
class NeighbourSearch {
public:
  NeighbourSearch(const GirKernel &kernel, const Stmt &loop)
      : kernel(kernel), loop(loop), trip(kernel.body[loop.trip].imm) {}

  std::optional<Neighbours> find() {
    const auto progress = [this](int64_t size) {
      return [this, size](int32_t var) { return var == loop.var ? Progress{1, size} : Progress{}; };
    };
    for (int64_t size = 2; size <= kWidestAccess && trip % size == 0; size *= 2)
      groups.emplace(
          size, TurnsOfGroup(kernel.body, kernel.symbols, size, progress(size),
                             [this](const Scalar &read) { return writes.contains(read.index); }));
    if (groups.empty())
      return std::nullopt;
    const std::vector<Stmt> *body = conditionOf();
    if (!collect(*body, false))
      return std::nullopt;
    for (const Access &access : accesses)
      if (const int64_t size = turnsOf(access); size > 1) {
        found.accesses[{access.stmt, access.read}] = size;
        found.together = std::max(found.together, size);
      }
    if (found.accesses.empty())
      return std::nullopt;
    return found;
  }

private:
  struct Access {
    const Stmt *stmt;
    NodeId read;   // kNoNode: the store
    bool repeated; // loops inside of a turn are around it
  };

  /// Finds the turns' Lane loop and their If; gives what is inside of both.
  const std::vector<Stmt> *conditionOf() {
    const std::vector<Stmt> *body = &loop.body;
    const auto only = [&] { return body->size() == 1 ? &body->front() : nullptr; };
    if (const Stmt *s = only(); s && s->kind == StmtKind::Loop && s->loop == LoopKind::Lane) {
      found.lane = s;
      body = &s->body;
    }
    if (const Stmt *s = only(); s && s->kind == StmtKind::If && s->elseBody.empty()) {
      found.condition = s;
      body = &s->body;
    }
    return body;
  }

  /// False where something stands in the loop that does not come once a turn, in order.
  bool collect(const std::vector<Stmt> &stmts, bool repeated) {
    for (const Stmt &s : stmts) {
      if (s.kind == StmtKind::Loop && s.kernel.empty() &&
          (s.loop == LoopKind::Unroll || s.loop == LoopKind::Lane)) {
        if (!collect(s.body, repeated || s.loop == LoopKind::Unroll))
          return false;
        continue;
      }
      if (s.kind != StmtKind::Store && s.kind != StmtKind::Accumulate)
        return false;
      for (NodeId id : certainReads(kernel.body, exprRoots(s)))
        accesses.push_back({&s, id, repeated});
      for (NodeId id : kernel.body.reachable(exprRoots(s)))
        if (const ScalarOp op = kernel.body[id].op; op == ScalarOp::Read || op == ScalarOp::ReadIf)
          readFrom.insert(kernel.body[id].index);
      if (s.kind == StmtKind::Store)
        accesses.push_back({&s, kNoNode, repeated});
      else if (s.indexBuffer >= 0)
        ++writes[s.indexBuffer];
      ++writes[s.buffer];
    }
    return true;
  }

  /// Turns that one such access serves; 1: none but its own.
  int64_t turnsOf(const Access &access) {
    const bool stores = access.read == kNoNode;
    const BufferId id = stores ? access.stmt->buffer : kernel.body[access.read].index;
    const GirBuffer &buffer = kernel.buffers[id];
    if (buffer.level == MemLevel::Register || buffer.shape.size() != 1)
      return 1;
    if (stores ? writes[id] > 1 || readFrom.count(id) != 0 || access.repeated : writes[id] > 0)
      return 1;
    const auto bytes = static_cast<int64_t>(sizeInBytes(buffer.type));
    if (buffer.level == MemLevel::Shared && buffer.offsetBytes % kWidestAccess != 0)
      return 1;
    int64_t widest = 1;
    for (auto &[size, turns] : groups)
      if (size * bytes <= kWidestAccess && servesAll(access, turns))
        widest = size;
    return widest;
  }

  bool servesAll(const Access &access, TurnsOfGroup &turns) {
    if (found.condition && !turns.isSame(found.condition->predicate))
      return false;
    NodeId index = kNoNode;
    if (access.read == kNoNode) {
      index = access.stmt->indices.front();
    } else {
      const Scalar &read = kernel.body[access.read];
      index = read.args.back();
      if (read.op == ScalarOp::ReadIf && !turns.isSame(read.args[0]))
        return false;
    }
    return turns.liesTogether(turns.of(index));
  }

  const GirKernel &kernel;
  const Stmt &loop;
  const int64_t trip;
  std::map<int64_t, TurnsOfGroup> groups; // by size
  std::vector<Access> accesses;
  std::set<BufferId> readFrom;
  std::map<BufferId, int> writes; // statements that write to it
  Neighbours found;
};

} // namespace

std::optional<Neighbours> neighboursOf(const GirKernel &kernel, const Stmt &loop) {
  return NeighbourSearch(kernel, loop).find();
}

} // namespace fusec
