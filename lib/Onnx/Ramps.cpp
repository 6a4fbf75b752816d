#include "Onnx/Ramps.h"
#include "Onnx/KnownValues.h"
#include "Support/DimLimits.h"

#include <algorithm>

namespace fusec {

namespace {

/// Shapes that differ in axes of one element alone list the same elements.
std::vector<size_t> longAxes(const Shape &shape) {
  std::vector<size_t> axes;
  for (size_t d = 0; d < shape.size(); ++d)
    if (!shape[d].isConst(1))
      axes.push_back(d);
  return axes;
}

class RampFollower {
public:
  RampFollower(const Graph &graph, const Ramps &ramps, const Node &node)
      : graph(graph), ramps(ramps), node(node), out(graph.value(node.outputs[0])) {}

  std::optional<Ramp> run() const {
    if (out.type != DType::I64 && out.type != DType::I32)
      return std::nullopt;
    std::optional<Ramp> ramp = follow();
    return ramp && !isTooLarge(ramp->first) ? ramp : std::nullopt;
  }

private:
  const Shape &shape(size_t i) const { return graph.value(node.inputs[i]).shape; }

  std::optional<Ramp> operand(size_t i) const {
    return node.hasInput(i) ? rampOf(graph, ramps, node.inputs[i]) : std::nullopt;
  }

  /// Operand `i`, along axes of the output: it is broadcast or repeated to that.
  std::optional<Ramp> spread(size_t i) const {
    std::optional<Ramp> own = operand(i);
    if (!own)
      return std::nullopt;
    Ramp all{own->first, std::vector<int64_t>(out.shape.size(), 0)};
    const size_t lead = out.shape.size() - own->steps.size();
    for (size_t d = 0; d < own->steps.size(); ++d)
      if (shape(i)[d] == out.shape[lead + d])
        all.steps[lead + d] = own->steps[d];
      else if (own->steps[d] != 0 && !shape(i)[d].isConst(1))
        return std::nullopt;
    return all;
  }

  std::optional<Ramp> range() const {
    const auto start = operand(0), delta = operand(2);
    if (!start || !delta || !delta->first.isConst())
      return std::nullopt;
    return Ramp{start->first, {delta->first.constValue()}};
  }

  std::optional<Ramp> sum(int64_t sign) const {
    auto a = spread(0);
    const auto b = spread(1);
    if (!a || !b)
      return std::nullopt;
    a->first = a->first + b->first * DimExpr(sign);
    for (size_t d = 0; d < a->steps.size(); ++d) {
      int64_t more;
      if (__builtin_mul_overflow(b->steps[d], sign, &more) ||
          __builtin_add_overflow(a->steps[d], more, &a->steps[d]))
        return std::nullopt;
    }
    return a;
  }

  std::optional<Ramp> product() const {
    auto a = spread(0), b = spread(1);
    if (!a || !b)
      return std::nullopt;
    auto isFixed = [](const Ramp &r) {
      return r.first.isConst() &&
             std::all_of(r.steps.begin(), r.steps.end(), [](int64_t s) { return s == 0; });
    };
    if (!isFixed(*b))
      std::swap(a, b);
    if (!isFixed(*b))
      return std::nullopt;
    const int64_t factor = b->first.constValue();
    a->first = a->first * DimExpr(factor);
    for (int64_t &step : a->steps)
      if (__builtin_mul_overflow(step, factor, &step))
        return std::nullopt;
    return a;
  }

  std::optional<Ramp> reshaped() const {
    const auto own = operand(0);
    if (!own)
      return std::nullopt;
    Ramp to{own->first, std::vector<int64_t>(out.shape.size(), 0)};
    const std::vector<size_t> before = longAxes(shape(0)), after = longAxes(out.shape);
    const bool isSame = std::equal(before.begin(), before.end(), after.begin(), after.end(),
                                   [&](size_t a, size_t b) { return shape(0)[a] == out.shape[b]; });
    for (size_t k = 0; isSame && k < before.size(); ++k)
      to.steps[after[k]] = own->steps[before[k]];
    const bool isFlat = std::all_of(before.begin(), before.end(),
                                    [&](size_t axis) { return own->steps[axis] == 0; });
    return isSame || isFlat ? std::optional(to) : std::nullopt;
  }

  std::optional<Ramp> transposed() const {
    const auto own = operand(0);
    if (!own)
      return std::nullopt;
    Ramp to{own->first, {}};
    for (int64_t axis : node.intsAttr("perm"))
      to.steps.push_back(own->steps[static_cast<size_t>(axis)]);
    return to;
  }

  std::optional<Ramp> sliced(const std::vector<DimExpr> &starts, const std::vector<int64_t> &axes,
                             const std::vector<int64_t> &steps) const {
    auto own = operand(0);
    if (!own || starts.size() != axes.size() || steps.size() != axes.size())
      return std::nullopt;
    for (size_t k = 0; k < axes.size(); ++k) {
      const auto axis = static_cast<size_t>(axes[k]);
      int64_t &step = own->steps[axis];
      if (step == 0)
        continue;
      // A start beyond the end leaves nothing.
      if (steps[k] < 1 || starts[k].range(graph.symbols).min < 0)
        return std::nullopt;
      own->first = own->first + starts[k] * DimExpr(step);
      if (__builtin_mul_overflow(step, steps[k], &step))
        return std::nullopt;
    }
    return own;
  }

  std::optional<Ramp> slice() const {
    const std::vector<int64_t> &starts = node.intsAttr("starts");
    return sliced({starts.begin(), starts.end()}, node.intsAttr("axes"), node.intsAttr("steps"));
  }

  /// Constants among the operands of a slice; `standard` where there are none.
  std::optional<std::vector<int64_t>> numbers(size_t i, std::vector<int64_t> standard) const {
    if (!node.hasInput(i))
      return standard;
    return allConstants(knownElements(graph.value(node.inputs[i])));
  }

  std::optional<Ramp> sliceDynamic() const {
    const auto starts = knownElements(graph.value(node.inputs[1]));
    if (!starts)
      return std::nullopt;
    std::vector<int64_t> all;
    for (size_t d = 0; d < starts->size(); ++d)
      all.push_back(static_cast<int64_t>(d));
    auto axes = numbers(3, all);
    const auto steps = numbers(4, std::vector<int64_t>(starts->size(), 1));
    if (!axes || !steps)
      return std::nullopt;
    for (int64_t &axis : *axes)
      axis += axis < 0 ? static_cast<int64_t>(out.shape.size()) : 0;
    return sliced(*starts, *axes, *steps);
  }

  std::optional<Ramp> follow() const {
    switch (node.op) {
    case OpKind::Range: return range();
    case OpKind::Identity: return operand(0);
    case OpKind::Cast: return operand(0);
    case OpKind::Add: return sum(1);
    case OpKind::Sub: return sum(-1);
    case OpKind::Mul: return product();
    case OpKind::Reshape:
    case OpKind::Squeeze:
    case OpKind::Unsqueeze:
    case OpKind::Flatten: return reshaped();
    case OpKind::Transpose: return transposed();
    case OpKind::Expand:
    case OpKind::Tile: return spread(0);
    case OpKind::Slice: return slice();
    case OpKind::SliceDynamic: return sliceDynamic();
    default: return std::nullopt;
    }
  }

  const Graph &graph;
  const Ramps &ramps;
  const Node &node;
  const Value &out;
};

} // namespace

std::optional<Ramp> rampOf(const Graph &graph, const Ramps &ramps, ValueId id) {
  if (auto found = ramps.find(id); found != ramps.end())
    return found->second;
  const Value &v = graph.value(id);
  const bool isOne = v.constant ? v.constant->numElements() == 1 : v.known.size() == 1;
  const auto elements = isOne ? knownElements(v) : std::nullopt;
  if (!elements)
    return std::nullopt;
  return Ramp{elements->front(), std::vector<int64_t>(v.shape.size(), 0)};
}

std::optional<Ramp> followRamp(const Graph &graph, const Ramps &ramps, const Node &node) {
  return RampFollower(graph, ramps, node).run();
}

std::pair<DimExpr, DimExpr> endsOf(const Ramp &ramp, const Shape &shape) {
  DimExpr least = ramp.first, largest = ramp.first;
  for (size_t d = 0; d < shape.size(); ++d) {
    DimExpr &end = ramp.steps[d] < 0 ? least : largest;
    end = end + (shape[d] - DimExpr(1)) * DimExpr(ramp.steps[d]);
  }
  return {least, largest};
}

} // namespace fusec
