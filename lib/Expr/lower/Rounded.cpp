// Which values of a graph decide between whole numbers. A quotient that is one place off is as good as any other until
// somebody takes its floor: then it is another bucket, another quantised number, another row of a table.
#include "Expr/lower/Lowering.h"

#include <algorithm>

namespace fusec::lower {
namespace {

/// Makes a whole number or a truth of a float.
bool decides(const Graph &graph, const Node &node) {
  using enum OpKind;
  switch (node.op) {
  case Ceil:
  case DynamicQuantizeLinear:
  case Floor:
  case Mod:
  case QuantizeLinear:
  case Round: return true;
  default: break;
  }
  const auto isOfFloats = [&](ValueId v) { return v != kNoValue && isFloat(graph.value(v).type); };
  const auto isOfOthers = [&](ValueId v) { return v != kNoValue && !isFloat(graph.value(v).type); };
  return std::any_of(node.inputs.begin(), node.inputs.end(), isOfFloats) &&
         std::any_of(node.outputs.begin(), node.outputs.end(), isOfOthers);
}

/// What is whole in its operands may stay whole in its result: movement, and the arithmetic around zero points, limits
/// and offsets.
bool passesOn(OpKind op) {
  using enum OpKind;
  switch (op) {
  case Abs:
  case Add:
  case Cast:
  case Clip:
  case Concat:
  case Div:
  case Expand:
  case Flatten:
  case Gather:
  case GatherElements:
  case GatherND:
  case Identity:
  case Max:
  case Min:
  case Mul:
  case Neg:
  case Pad:
  case Relu:
  case Reshape:
  case Slice:
  case Split:
  case Squeeze:
  case Sub:
  case Sum:
  case Tile:
  case Transpose:
  case Unsqueeze:
  case Where: return true;
  default: return false;
  }
}

void mark(const Graph &graph, const std::vector<Node> &nodes, std::vector<bool> &rounded) {
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    for (const Region &region : node->regions)
      mark(graph, region.nodes, rounded);
    const auto isRounded = [&](ValueId v) { return v != kNoValue && rounded[v]; };
    if (!decides(graph, *node) &&
        !(passesOn(node->op) && std::any_of(node->outputs.begin(), node->outputs.end(), isRounded)))
      continue;
    for (ValueId v : node->inputs)
      if (v != kNoValue)
        rounded[v] = true;
  }
}

} // namespace

std::vector<bool> roundedValues(const Graph &graph) {
  std::vector<bool> rounded(graph.values.size());
  mark(graph, graph.body.nodes, rounded);
  return rounded;
}

} // namespace fusec::lower
