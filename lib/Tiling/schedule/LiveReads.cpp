#include "Tiling/schedule/LiveReads.h"

#include <algorithm>
#include <set>

namespace fusec::tiling {

MemLevel levelOf(const Schedule &schedule, TensorId tensor) {
  for (const EdgeLevel &edge : schedule.edges)
    if (edge.tensor == tensor)
      return edge.level;
  return MemLevel::Global;
}

const Operand *operandOf(const Schedule &schedule, int equation, int read) {
  for (const Operand &o : schedule.operands)
    if (o.equation == equation && o.read == read)
      return &o;
  return nullptr;
}

void setLevel(Schedule &schedule, TensorId tensor, MemLevel level) {
  std::erase_if(schedule.edges, [&](const EdgeLevel &edge) { return edge.tensor == tensor; });
  if (level != MemLevel::Global)
    schedule.edges.push_back({tensor, level});
}

std::vector<TensorId> valuesInside(const ExprProgram &pattern) {
  std::set<TensorId> made;
  for (const Equation *e : scheduledEquations(pattern))
    made.insert(e->outputs.begin(), e->outputs.end());
  if (const Equation *scan = scanOf(pattern))
    for (const ScanCarry &carry : scan->carries)
      made.insert(carry.previous);
  std::vector<TensorId> inside;
  for (TensorId t : made)
    if (pattern.tensors[t].kind == TensorKind::Temp)
      inside.push_back(t);
  return inside;
}

int producerOf(const std::vector<const Equation *> &equations, TensorId tensor) {
  for (size_t e = 0; e < equations.size(); ++e)
    if (std::count(equations[e]->outputs.begin(), equations[e]->outputs.end(), tensor) != 0)
      return static_cast<int>(e);
  return -1;
}

int ordinalOf(const Equation &equation, NodeId read) {
  const std::vector<NodeId> reads = readsOf(equation);
  return static_cast<int>(std::find(reads.begin(), reads.end(), read) - reads.begin());
}

std::optional<int64_t> namedElement(const Schedule &schedule,
                                    const std::vector<const TreeNode *> &loops, int maker,
                                    AxisId axis, const Equation &reader, NodeId read) {
  const AxisUse *use = schedule.axes[static_cast<size_t>(axis)].in(maker);
  if (!use || use->reduction || use->positions.size() != 1)
    return std::nullopt;
  auto isOver = [&](const TreeNode *node) { return node->isLoop && node->axis == axis; };
  const auto loop = std::find_if(loops.begin(), loops.end(), isOver);
  if (std::count_if(loops.begin(), loops.end(), isOver) != 1 || (*loop)->loop != LoopKind::Unroll ||
      (*loop)->step != 1)
    return std::nullopt;
  const std::vector<NodeId> indices = indexOperands(reader.body[read]);
  const auto position = static_cast<size_t>(use->positions[0]);
  if (position >= indices.size() || reader.body[indices[position]].op != ScalarOp::Const)
    return std::nullopt;
  return reader.body[indices[position]].imm;
}

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
