#include "Tiling/schedule/LiveReads.h"

namespace fusec::tiling {

LiveReads::LiveReads(const BoundSchedule &bound, int equation, const std::vector<NodeId> &roots,
                     bool operandsStand)
    : bound(bound), equation(equation), operandsStand(operandsStand),
      visited(bound.equation(equation).body.nodes.size()) {
  for (NodeId root : roots)
    visit(root, {});
}

void LiveReads::visit(NodeId id, const std::vector<NodeId> &guards) {
  if (visited[id])
    return;
  visited[id] = true;
  const Scalar &node = bound.equation(equation).body[id];
  if (node.op != ScalarOp::Read && node.op != ScalarOp::ReadIf) {
    for (NodeId arg : node.args)
      visit(arg, guards);
    return;
  }
  const int ordinal = bound.facts(equation).ordinalOf(id);
  if (const Operand *operand = operandsStand ? bound.operand(equation, ordinal) : nullptr) {
    operands.push_back(operand);
    return;
  }
  std::vector<NodeId> inside = guards;
  if (node.op == ScalarOp::ReadIf) {
    visit(node.args[0], guards);
    visit(node.args[1], guards);
    inside.push_back(node.args[0]);
  }
  if (bound.level(node.index) == MemLevel::Register && bound.producer(node.index) >= 0)
    return;
  // What an address has beside its axes may be read too: a row that a constant index names.
  if (const auto &access = bound.facts(equation).accesses[ordinal];
      !access || !access->rests.empty())
    for (NodeId index : indexOperands(node))
      visit(index, inside);
  memory.push_back({id, std::move(inside)});
}

} // namespace fusec::tiling
