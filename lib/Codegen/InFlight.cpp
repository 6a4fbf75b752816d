// Reads that are on their way at once. A GPU's thread waits where it uses what it read, so a loop of one read a turn
// waits for memory in each; ptxas unrolls such loops by itself, LLVM's AMDGPU back end does not. And each branch around
// a read is a wait for it, so that a read under a condition goes to a place of its own where the condition fails.
#include "Codegen/Emitter.h"
#include "Codegen/Unrolling.h"

#include "Gir/Walk.h"

#include <algorithm>

namespace fusec {

using llvm::Value;

/// Adds the reads of memory by these statements, each as often as one turn makes it: once for each value of the loops
/// `around` that its address depends on. False where something stands between them that they do not pass: a barrier, an
/// exchange, a loop that stays one.
bool Emitter::countReads(const std::vector<Stmt> &stmts, std::vector<Repeated> &around,
                         std::map<NodeId, int64_t> &reads) const {
  for (const Stmt &s : stmts) {
    const Scalar *trip = s.kind == StmtKind::Loop ? &kernel.body[s.trip] : nullptr;
    if (!trip && s.kind != StmtKind::If && s.kind != StmtKind::Store &&
        s.kind != StmtKind::Accumulate)
      return false;
    const bool repeats = trip && (s.loop == LoopKind::Unroll || s.loop == LoopKind::Seq);
    if (repeats && s.loop == LoopKind::Seq && !isShort(*trip))
      return false;
    std::vector<NodeId> open = exprRoots(s);
    for (std::set<NodeId> seen; !open.empty();) {
      const NodeId id = open.back();
      open.pop_back();
      if (!readsMemory[id] || !seen.insert(id).second)
        continue;
      const Scalar &node = kernel.body[id];
      open.insert(open.end(), node.args.begin(), node.args.end());
      if ((node.op != ScalarOp::Read && node.op != ScalarOp::ReadIf) ||
          kernel.buffers[node.index].level == MemLevel::Register)
        continue;
      std::set<VarId> vars;
      std::vector<NodeId> inside(node.args.begin(), node.args.end());
      for (std::set<NodeId> known; !inside.empty();) {
        const NodeId arg = inside.back();
        inside.pop_back();
        if (!known.insert(arg).second)
          continue;
        if (kernel.body[arg].op == ScalarOp::Axis)
          vars.insert(static_cast<VarId>(kernel.body[arg].index));
        inside.insert(inside.end(), kernel.body[arg].args.begin(), kernel.body[arg].args.end());
      }
      int64_t times = 1;
      for (const Repeated &loop : around)
        times *= vars.count(loop.var) != 0 ? loop.trip : 1;
      reads[id] = std::max(reads[id], times);
    }
    if (repeats)
      around.push_back({s.var, trip->imm});
    const bool passes = countReads(s.body, around, reads) && countReads(s.elseBody, around, reads);
    if (repeats)
      around.pop_back();
    if (!passes)
      return false;
  }
  return true;
}

/// Divisions of indices, dozens of instructions each, in one turn of these statements.
static int64_t countDivisions(const GirKernel &kernel, const std::vector<Stmt> &stmts) {
  std::set<NodeId> seen;
  forEachStmt(stmts, [&](const Stmt &s) {
    std::vector<NodeId> open = exprRoots(s);
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (!seen.insert(id).second)
        continue;
      open.insert(open.end(), kernel.body[id].args.begin(), kernel.body[id].args.end());
    }
  });
  return std::count_if(seen.begin(), seen.end(), [&](NodeId id) {
    const ScalarOp op = kernel.body[id].op;
    return op == ScalarOp::FloorDiv || op == ScalarOp::FloorMod;
  });
}

/// Tells LLVM's unroller (Pipeline.cpp), which makes a loop for what is left over too, how many turns of a loop become
/// one. `back`: its branch back.
void Emitter::takeTurnsAtOnce(const Stmt &loop, llvm::BranchInst &back) const {
  // Code grows by as much, and the time that LLVM takes for it: 256 statements are four steps of a large tile.
  constexpr int64_t kMostTurns = 16, kMostStatements = 256, kMostDivisions = 16, kLeastReads = 4;
  const int64_t wanted = hooks.readsInFlight();
  std::map<NodeId, int64_t> reads;
  std::vector<Repeated> around;
  if (wanted == 0 || !countReads(loop.body, around, reads) || reads.empty())
    return;
  int64_t ofTurn = 0;
  for (const auto &[id, times] : reads)
    ofTurn += times;
  const int64_t statements =
      std::max<int64_t>(emittedStatements(kernel, loop.body, kMostStatements), 1);
  int64_t turns = 1;
  const int64_t divisions = countDivisions(kernel, loop.body);
  while (turns < kMostTurns && turns * ofTurn < wanted &&
         2 * turns * statements <= kMostStatements &&
         (2 * turns * divisions <= kMostDivisions || turns * ofTurn < kLeastReads))
    turns *= 2;
  if (turns == 1)
    return;
  auto *count = llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), turns);
  auto *option = llvm::MDNode::get(context, {llvm::MDString::get(context, "llvm.loop.unroll.count"),
                                             llvm::ConstantAsMetadata::get(count)});
  auto *node = llvm::MDNode::getDistinct(context, {nullptr, option});
  node->replaceOperandWith(0, node);
  back.setMetadata(llvm::LLVMContext::MD_loop, node);
}

/// True if a ReadIf is emitted as a load that always happens: it reads memory, and neither its other value nor its
/// address depends on a read.
bool Emitter::readsAnyway(const Scalar &s) const {
  if (!safePlace || kernel.buffers[s.index].level == MemLevel::Register)
    return false;
  return std::none_of(s.args.begin() + 1, s.args.end(), [&](NodeId a) { return hasRead(a); });
}

bool Emitter::readsRegisters(NodeId id) const {
  const std::vector<NodeId> nodes = kernel.body.reachable({id});
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId node) {
    const Scalar &s = kernel.body[node];
    return (s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf) &&
           kernel.buffers[s.index].level == MemLevel::Register;
  });
}

/// Emits an If without a branch: its store always happens, with the value that the predicate selects, or its sum keeps
/// its value if the predicate fails. Returns false and emits nothing if it has to be a branch.
bool Emitter::emitChosen(const Stmt &s, const Predicate &p) {
  if (!threads || !safePlace || s.body.size() != 1)
    return false;
  if (s.elseBody.size() == 1)
    return emitChosenStore(s, p);
  const Stmt &only = s.body[0];
  if (!s.elseBody.empty() || only.kind != StmtKind::Accumulate || only.indexBuffer >= 0 ||
      kernel.buffers[only.buffer].level != MemLevel::Register || !hasRead(only.value) ||
      readsRegisters(only.value))
    return false;
  // Elsewhere the index may be outside of the buffer where the predicate fails.
  for (const Val &index : evalAll(only.indices))
    if (!llvm::isa<llvm::ConstantInt>(index.v))
      return false;
  const std::vector<Cached> saved = cache; // what is read here holds under the predicate only
  guard = keepUnless = p.lanes.v;
  emit(only);
  guard = keepUnless = nullptr;
  cache = saved;
  return true;
}

/// if p { x[i] = value } else { x[i] = other }
bool Emitter::emitChosenStore(const Stmt &s, const Predicate &p) {
  const Stmt &then = s.body[0], &otherwise = s.elseBody[0];
  if (then.kind != StmtKind::Store || otherwise.kind != StmtKind::Store ||
      then.buffer != otherwise.buffer || then.indices != otherwise.indices ||
      !hasRead(then.value) || hasRead(otherwise.value) || readsRegisters(then.value) ||
      readsRegisters(otherwise.value) || kernel.buffers[then.buffer].level == MemLevel::Register)
    return false;
  const std::vector<Val> indices = evalAll(then.indices);
  const std::vector<Cached> saved = cache;
  guard = p.lanes.v;
  const Val value = eval(then.value);
  guard = nullptr;
  cache = saved;
  Value *chosen = b.CreateSelect(p.lanes.v, value.v, eval(otherwise.value).v);
  emitByWriter(kernel.buffers[then.buffer], [&] { store(then.buffer, indices, {chosen}); });
  return true;
}

} // namespace fusec
