// Finds the values of a graph that decide between whole numbers. A quotient that is one place off is as good as any
// other until somebody takes its floor: then it is another bucket, another quantised number, another row of a table.
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

/// A whole operand tells nothing of its result: transcendental functions, averages, products with weights. All others
/// (movement, extrema, the arithmetic around zero points, limits and offsets) may leave whole what is whole.
bool blends(OpKind op) {
  using enum OpKind;
  switch (op) {
  case Acos:
  case Acosh:
  case Asin:
  case Asinh:
  case Atan:
  case Atanh:
  case AveragePool:
  case BatchNormalization:
  case Celu:
  case Conv:
  case ConvTranspose:
  case Cos:
  case Cosh:
  case Det:
  case Einsum:
  case Elu:
  case Erf:
  case Exp:
  case Gelu:
  case Gemm:
  case GlobalAveragePool:
  case GlobalLpPool:
  case GroupNormalization:
  case GRU:
  case HardSigmoid:
  case HardSwish:
  case InstanceNormalization:
  case LayerNormalization:
  case Log:
  case LogSoftmax:
  case LpNormalization:
  case LpPool:
  case LRN:
  case LSTM:
  case MatMul:
  case MeanVarianceNormalization:
  case Mish:
  case NegativeLogLikelihoodLoss:
  case Reciprocal:
  case ReduceL2:
  case ReduceLogSum:
  case ReduceLogSumExp:
  case ReduceMean:
  case RMSNormalization:
  case RNN:
  case Selu:
  case Sigmoid:
  case Sin:
  case Sinh:
  case Softmax:
  case SoftmaxCrossEntropyLoss:
  case Softplus:
  case Softsign:
  case Sqrt:
  case Swish:
  case Tan:
  case Tanh: return true;
  default: return false;
  }
}

void mark(const Graph &graph, const std::vector<Node> &nodes, std::vector<bool> &rounded) {
  const auto isRounded = [&](ValueId v) { return v != kNoValue && rounded[v]; };
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    // What regions yield is read behind them and by their next trips, what they are given in them.
    for (const Region &region : node->regions) {
      for (ValueId v : region.outputs)
        rounded[v] = true;
      mark(graph, region.nodes, rounded);
    }
    const bool asksForWhole =
        !blends(node->op) && std::any_of(node->outputs.begin(), node->outputs.end(), isRounded);
    if (node->regions.empty() && !decides(graph, *node) && !asksForWhole)
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
