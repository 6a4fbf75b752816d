// Copies whose lanes lie apart where they are stored, while the turns of a loop around them lie side by side: what a
// stage reads along the rows of memory and keeps along the columns, as attention does with the keys,
//
//   seq s in 32 {
//     seq round in 2 {
//       lane l in 16 { %s0[s + round*512 + l*32] = %k[s*384 + round*16 + l] }
//     }
//   }
//
// go in squares, of which the emitter turns the rows in registers (Codegen/Turns.cpp):
//
//   seq s in 2 {
//     seq round in 2 {
//       unroll row in 16 {
//         lane l in 16 { %s0[s*16 + row + round*512 + l*32] = %k[s*6144 + row*384 + round*16 + l] }
//       }
//     }
//   }
//
// Every element is stored as before, in another order: none is stored twice, since what turns, rounds and lanes store
// lies apart. That is asked of distances in Shared buffers, which are constants. Not handled: trips that no constant
// tells, those that few rows divide (rowsOfTurnedCopy), and several stores in a turn.
#include "Gir/Distance.h"
#include "Gir/Passes.h"
#include "Gir/StatementPaths.h"
#include "Gir/Walk.h"

#include <algorithm>

namespace fusec {
namespace {

class CopyTurner {
public:
  explicit CopyTurner(GirKernel &kernel) : kernel(kernel) {}

  bool run() {
    bool changed = false;
    forEachStmtOf(kernel, [&](Stmt &s) {
      const int64_t rows = rowsOf(s);
      if (rows > 1)
        turn(s, rows);
      changed = changed || rows > 1;
    });
    return changed;
  }

private:
  static bool isLoop(const Stmt &s, LoopKind kind) {
    return s.kind == StmtKind::Loop && s.loop == kind;
  }

  /// The Lane loop that is all that the copy's loop does in each turn, or in each round of one; null if it is none.
  static Stmt *lanesOf(Stmt &copy) {
    Stmt *inner = copy.body.size() == 1 ? &copy.body[0] : nullptr;
    if (inner && isLoop(*inner, LoopKind::Seq))
      inner = inner->body.size() == 1 ? &inner->body[0] : nullptr;
    return inner && isLoop(*inner, LoopKind::Lane) ? inner : nullptr;
  }

  /// How many turns of the loop make the rows of a square; 1 where it is no such copy.
  int64_t rowsOf(Stmt &s) {
    if (!isLoop(s, LoopKind::Seq) || kernel.body[s.trip].op != ScalarOp::Const)
      return 1;
    const Stmt *lanes = lanesOf(s);
    if (!lanes || dependsOn(kernel, s.body[0].trip, s.var) || !storesColumns(s, *lanes))
      return 1;
    return rowsOfTurnedCopy(kernel.body[s.trip].imm, kernel.lanes);
  }

  bool reads(const Stmt &s, BufferId buffer) const {
    return std::ranges::any_of(kernel.body.reachable(exprRoots(s)), [&](NodeId id) {
      const Scalar &node = kernel.body[id];
      return (node.op == ScalarOp::Read || node.op == ScalarOp::ReadIf) && node.index == buffer;
    });
  }

  /// Whether all that the lanes do is to store at one place, along columns and each at an element of its own, what does
  /// not hang on others. What data decide is no edge of a square.
  bool storesColumns(const Stmt &copy, const Stmt &lanes) const {
    const Stmt *store = nullptr;
    bool only = true;
    forEachStmt(lanes.body, [&](const Stmt &s) {
      if (s.kind == StmtKind::If)
        only = only && !readsAny(kernel.body, {s.predicate});
      else if (s.kind != StmtKind::Store)
        only = false;
      else if (!store)
        store = &s;
      else // the other half of an If
        only = only && s.buffer == store->buffer && s.indices == store->indices;
    });
    if (!only || !store || kernel.buffers[store->buffer].level != MemLevel::Shared ||
        readsAny(kernel.body, store->indices))
      return false;
    forEachStmt(lanes.body, [&](const Stmt &s) { only = only && !reads(s, store->buffer); });
    const auto distance = [&](VarId var) {
      const auto d = distanceOf(kernel, store->buffer, store->indices, var);
      return d && d->isConst() ? d->constValue() : 0;
    };
    const int64_t across = distance(lanes.var);
    const Stmt &round = copy.body[0];
    const bool areApart =
        round.loop == LoopKind::Lane || distance(round.var) >= across * kernel.lanes;
    return only && distance(copy.var) == 1 && across >= kernel.body[copy.trip].imm && areApart;
  }

  void turn(Stmt &copy, int64_t rows) {
    Body &body = kernel.body;
    const int64_t squares = body[copy.trip].imm / rows;
    Stmt row;
    row.kind = StmtKind::Loop;
    row.loop = LoopKind::Unroll;
    row.trip = body.index(rows);
    row.var = static_cast<VarId>(kernel.vars.size());
    kernel.vars.push_back({"row", LoopKind::Unroll});
    body.axisRanges.push_back({0, rows - 1, std::nullopt});
    const VarId square = static_cast<VarId>(kernel.vars.size());
    kernel.vars.push_back(kernel.vars[static_cast<size_t>(copy.var)]);
    body.axisRanges.push_back({0, squares - 1, std::nullopt});
    const NodeId place =
        body.binary(ScalarOp::Add, body.binary(ScalarOp::Mul, body.axis(square), body.index(rows)),
                    body.axis(row.var));
    Stmt &lanes = *lanesOf(copy);
    forEachStmt(lanes.body, [&](Stmt &s) { substitute(body, s, body.axis(copy.var), place); });
    copy.var = square;
    copy.trip = body.index(squares);
    row.body.push_back(std::move(lanes));
    lanes = std::move(row);
  }

  GirKernel &kernel;
};

} // namespace

int64_t rowsOfTurnedCopy(int64_t turns, int64_t lanes) {
  constexpr int64_t kFewest = 4; // not measured below
  for (int64_t rows = std::min(turns, lanes); rows >= kFewest; --rows)
    if (turns % rows == 0)
      return rows;
  return 1;
}

void turnCopies(GirKernel &kernel) {
  if (CopyTurner(kernel).run())
    simplify(kernel);
}

} // namespace fusec
