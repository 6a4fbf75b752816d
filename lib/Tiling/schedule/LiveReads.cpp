#include "Tiling/schedule/LiveReads.h"

#include <algorithm>
#include <set>

namespace fusec::tiling {

LiveReads::LiveReads(const Schedule &schedule, const std::vector<EquationFacts> &facts,
                     int equation, const std::vector<NodeId> &roots, bool operandsStand)
    : schedule(schedule), facts(facts), equation(equation), operandsStand(operandsStand),
      visited(facts[equation].equation.body.nodes.size()) {
  for (NodeId root : roots)
    visit(root, {});
}

void LiveReads::visit(NodeId id, const std::vector<NodeId> &guards) {
  if (visited[id])
    return;
  visited[id] = true;
  const Scalar &node = facts[equation].equation.body[id];
  if (node.op != ScalarOp::Read && node.op != ScalarOp::ReadIf) {
    for (NodeId arg : node.args)
      visit(arg, guards);
    return;
  }
  const int ordinal = facts[equation].ordinalOf(id);
  if (const Operand *operand = operandsStand ? operandOf(schedule, equation, ordinal) : nullptr) {
    operands.push_back(operand);
    return;
  }
  std::vector<NodeId> inside = guards;
  if (node.op == ScalarOp::ReadIf) {
    visit(node.args[0], guards);
    visit(node.args[1], guards);
    inside.push_back(node.args[0]);
  }
  if (levelOf(schedule, node.index) == MemLevel::Register && isMade(node.index))
    return;
  // What an address has beside its axes may be read too: a row that a constant index names.
  if (const auto &access = facts[equation].accesses[ordinal]; !access || !access->rests.empty())
    for (NodeId index : indexOperands(node))
      visit(index, inside);
  memory.push_back({id, std::move(inside)});
}

bool LiveReads::isMade(TensorId tensor) const {
  return std::any_of(facts.begin(), facts.end(), [&](const EquationFacts &of) {
    const std::vector<TensorId> &outputs = of.equation.outputs;
    return std::find(outputs.begin(), outputs.end(), tensor) != outputs.end();
  });
}

} // namespace fusec::tiling
