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
// Every element is stored as before, in another order. Not handled: trips that no constant tells, and those that few
// rows divide (rowsOfTurnedCopy).
#include "Gir/Distance.h"
#include "Gir/Passes.h"
#include "Gir/StatementPaths.h"
#include "Gir/Walk.h"

#include <algorithm>
#include <set>

namespace fusec {
namespace {

class CopyTurner {
public:
  explicit CopyTurner(GirKernel &kernel) : kernel(kernel) {}

  bool run() {
    for (Phase &phase : kernel.phases)
      visit(phase.body);
    return changed;
  }

private:
  void visit(std::vector<Stmt> &stmts) {
    for (Stmt &s : stmts) {
      visit(s.body);
      visit(s.elseBody);
      if (const int64_t rows = rowsOf(s); rows > 1)
        turn(s, rows);
    }
  }

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
    if (!lanes || dependsOn(kernel, s.body[0].trip, s.var) || !storesColumns(*lanes, s.var))
      return 1;
    return rowsOfTurnedCopy(kernel.body[s.trip].imm, kernel.lanes);
  }

  /// Whether all that the lanes do is to store along columns what they do not read.
  bool storesColumns(const Stmt &lanes, VarId turn) const {
    bool only = true;
    std::set<BufferId> stored, read;
    forEachStmt(lanes.body, [&](const Stmt &s) {
      std::set<BufferId> own;
      for (NodeId id : kernel.body.reachable(exprRoots(s)))
        if (const Scalar &node = kernel.body[id];
            node.op == ScalarOp::Read || node.op == ScalarOp::ReadIf)
          own.insert(node.index);
      if (s.kind != StmtKind::Store) { // what data decide is no edge of a square
        only = only && s.kind == StmtKind::If && own.empty();
        return;
      }
      read.merge(own);
      stored.insert(s.buffer);
      const auto along = distanceOf(kernel, s.buffer, s.indices, turn),
                 across = distanceOf(kernel, s.buffer, s.indices, lanes.var);
      only = only && kernel.buffers[s.buffer].level != MemLevel::Register && along && across &&
             along->isConst(1) && !across->isConst(0) && !across->isConst(1);
    });
    return only && !stored.empty() &&
           std::ranges::none_of(stored, [&](BufferId id) { return read.contains(id); });
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
    changed = true;
  }

  GirKernel &kernel;
  bool changed = false;
};

} // namespace

int64_t rowsOfTurnedCopy(int64_t turns, int64_t lanes) {
  constexpr int64_t kFewest = 4; // below that a square saves no stores
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
