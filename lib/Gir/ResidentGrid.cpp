#include "Gir/ResidentGrid.h"

#include "Gir/Walk.h"

namespace fusec {

namespace {

/// Calls `visit` for each buffer of a block's own that a statement touches, and says whether all blocks are resident
/// there.
template <typename F>
void forEachOwn(const GirKernel &kernel, const std::vector<Stmt> &stmts, bool resident,
                const F &visit) {
  auto touch = [&](BufferId b) {
    if (b >= 0 && kernel.buffers[static_cast<size_t>(b)].level != MemLevel::Global)
      visit(b, resident);
  };
  for (const Stmt &s : stmts) {
    touch(s.buffer);
    touch(s.indexBuffer);
    for (NodeId id : kernel.body.reachable(exprRoots(s)))
      if (const Scalar &node = kernel.body[id];
          node.op == ScalarOp::Read || node.op == ScalarOp::ReadIf)
        touch(node.index);
    const bool tested = s.kind == StmtKind::If && isResidentTest(kernel, s.predicate);
    forEachOwn(kernel, s.body, resident || tested, visit);
    forEachOwn(kernel, s.elseBody, resident, visit);
  }
}

} // namespace

NodeId residentTest(GirKernel &kernel) {
  return kernel.body.binary(ScalarOp::Eq, kernel.body.axis(kernel.resident), kernel.body.index(1));
}

bool isResidentTest(const GirKernel &kernel, NodeId predicate) {
  const Scalar &test = kernel.body[predicate];
  if (kernel.resident < 0 || test.op != ScalarOp::Eq)
    return false;
  const Scalar &variable = kernel.body[test.args[0]], &one = kernel.body[test.args[1]];
  return variable.op == ScalarOp::Axis && variable.index == kernel.resident &&
         one.op == ScalarOp::Const && one.imm == 1;
}

std::vector<bool> heldBuffers(const GirKernel &kernel) {
  std::vector<bool> held(kernel.buffers.size());
  if (kernel.resident < 0)
    return held;
  std::vector<int> lastPhase(kernel.buffers.size(), -1);
  for (size_t p = 0; p < kernel.phases.size(); ++p)
    forEachOwn(kernel, kernel.phases[p].body, false, [&](BufferId b, bool resident) {
      int &last = lastPhase[static_cast<size_t>(b)];
      if (!resident)
        return;
      if (last >= 0 && last != static_cast<int>(p))
        held[static_cast<size_t>(b)] = true;
      last = static_cast<int>(p);
    });
  return held;
}

std::vector<std::string> heldProblems(const GirKernel &kernel) {
  const std::vector<bool> held = heldBuffers(kernel);
  std::vector<bool> loose(kernel.buffers.size()), uneven(kernel.buffers.size());
  std::vector<std::optional<DimExpr>> blocks(kernel.buffers.size());
  for (const Phase &phase : kernel.phases)
    forEachOwn(kernel, phase.body, false, [&](BufferId id, bool resident) {
      const auto b = static_cast<size_t>(id);
      if (!held[b])
        return;
      if (!resident)
        loose[b] = true;
      if (!blocks[b])
        blocks[b] = gridSize(phase);
      uneven[b] = uneven[b] || *blocks[b] != gridSize(phase);
    });
  std::vector<std::string> problems;
  for (size_t b = 0; b < loose.size(); ++b) {
    if (uneven[b])
      problems.push_back("phases that share a block's own buffer have as many blocks; %" +
                         kernel.buffers[b].name + " is touched by different numbers of them");
    if (loose[b])
      problems.push_back("what outlives its phase is touched where all blocks are resident; %" +
                         kernel.buffers[b].name + " is touched elsewhere too");
  }
  return problems;
}

} // namespace fusec
