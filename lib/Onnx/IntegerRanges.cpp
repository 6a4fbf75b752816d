#include "Onnx/IntegerRanges.h"
#include "Onnx/KnownValues.h"
#include "Support/DimLimits.h"

#include <algorithm>

namespace fusec {

namespace {

bool isNoLess(const DimExpr &a, const DimExpr &b, const std::vector<Symbol> &symbols) {
  return (a - b).range(symbols).min >= 0;
}

/// The end of two ranges together, of which each may reach further; absent where sizes do not tell which.
std::optional<DimExpr> further(const std::optional<DimExpr> &a, const std::optional<DimExpr> &b,
                               bool upwards, const std::vector<Symbol> &symbols) {
  if (!a || !b)
    return std::nullopt;
  if (isNoLess(*a, *b, symbols))
    return upwards ? a : b;
  if (isNoLess(*b, *a, symbols))
    return upwards ? b : a;
  return std::nullopt;
}

class RangeFollower {
public:
  RangeFollower(const Graph &graph, const IntegerRanges &ranges, const Node &node)
      : graph(graph), ranges(ranges), node(node) {}

  /// The range of output `i`.
  IntegerRange run(size_t i) const {
    switch (node.op) {
    case OpKind::Identity: return operand(0);
    case OpKind::Transpose: return transposed();
    case OpKind::Reshape:
    case OpKind::Squeeze:
    case OpKind::Unsqueeze:
    case OpKind::Flatten:
    case OpKind::Expand:
    case OpKind::Tile:
    case OpKind::Slice:
    case OpKind::SliceDynamic:
    case OpKind::Split:
    case OpKind::Gather:
    case OpKind::GatherElements:
    case OpKind::GatherND: return ends(operand(0));
    case OpKind::Cast: return cast();
    case OpKind::Concat: return concatenated();
    case OpKind::Where: return together(1);
    case OpKind::ArgMax:
    case OpKind::ArgMin: return placesOf(node.intAttr("axis"));
    case OpKind::TopK: return i == 1 ? placesOf(node.intAttr("axis")) : ends(operand(0));
    case OpKind::Chosen: return placesOf(0);
    case OpKind::Add: return sum();
    case OpKind::Sub: return difference();
    case OpKind::Min:
      return {smaller(&IntegerRange::least, true), smaller(&IntegerRange::largest, false)};
    case OpKind::Max:
      return {larger(&IntegerRange::least, false), larger(&IntegerRange::largest, true)};
    case OpKind::Clip: return clipped();
    case OpKind::Mod: return remainder();
    default: return {};
    }
  }

private:
  IntegerRange operand(size_t i) const {
    return node.hasInput(i) ? rangeOf(graph, ranges, node.inputs[i]) : IntegerRange();
  }

  /// What holds of some of the elements.
  static IntegerRange ends(const IntegerRange &range) { return {range.least, range.largest}; }

  IntegerRange transposed() const {
    IntegerRange own = operand(0);
    const std::vector<int64_t> &perm = node.intsAttr("perm");
    own.axis = static_cast<size_t>(
        std::find(perm.begin(), perm.end(), static_cast<int64_t>(own.axis)) - perm.begin());
    return own;
  }

  IntegerRange concatenated() const {
    constexpr int64_t kMostParts = 8; // more than the axes of any tensor that is indexed
    IntegerRange all = together(0);
    all.axis = static_cast<size_t>(node.intAttr("axis"));
    const DimExpr &size = graph.value(node.outputs[0]).shape[all.axis];
    if (!size.isConst() || size.constValue() > kMostParts)
      return all;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const IntegerRange own = operand(i);
      const auto count =
          static_cast<size_t>(graph.value(node.inputs[i]).shape[all.axis].constValue());
      const bool areApart = own.axis == all.axis && own.parts.size() == count;
      for (size_t k = 0; k < count; ++k) {
        all.parts.push_back(areApart ? own.parts[k] : ends(own));
        if (count == 1) // the part is all of the operand
          all.parts.back().areReached = own.areReached;
      }
    }
    return all;
  }

  /// Numbers of fewer bits may wrap.
  IntegerRange cast() const {
    const DType from = graph.value(node.inputs[0]).type;
    if (from == DType::Bool)
      return {DimExpr(0), DimExpr(1)};
    return from == DType::I32 || graph.value(node.outputs[0]).type == DType::I64 ? operand(0)
                                                                                 : IntegerRange();
  }

  IntegerRange together(size_t first) const {
    IntegerRange all = operand(first);
    for (size_t i = first + 1; i < node.inputs.size(); ++i) {
      const IntegerRange next = operand(i);
      all = {further(all.least, next.least, false, graph.symbols),
             further(all.largest, next.largest, true, graph.symbols)};
    }
    return all;
  }

  /// Places along an axis of the first operand.
  IntegerRange placesOf(int64_t axis) const {
    return {DimExpr(0), graph.value(node.inputs[0]).shape[static_cast<size_t>(axis)] - DimExpr(1)};
  }

  IntegerRange sum() const {
    const IntegerRange a = operand(0), b = operand(1);
    auto add = [](const std::optional<DimExpr> &x, const std::optional<DimExpr> &y) {
      return x && y ? std::optional(*x + *y) : std::nullopt;
    };
    return {add(a.least, b.least), add(a.largest, b.largest)};
  }

  IntegerRange difference() const {
    const IntegerRange a = operand(0), b = operand(1);
    auto subtract = [](const std::optional<DimExpr> &x, const std::optional<DimExpr> &y) {
      return x && y ? std::optional(*x - *y) : std::nullopt;
    };
    return {subtract(a.least, b.largest), subtract(a.largest, b.least)};
  }

  using End = std::optional<DimExpr> IntegerRange::*;
  /// The smallest of this end of all operands; without `all` known ones suffice for an upper bound.
  std::optional<DimExpr> smaller(End end, bool all) const { return extreme(end, all, false); }
  std::optional<DimExpr> larger(End end, bool all) const { return extreme(end, all, true); }
  std::optional<DimExpr> extreme(End end, bool all, bool upwards) const {
    std::optional<DimExpr> found;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const IntegerRange own = operand(i);
      if (!(own.*end)) {
        if (all)
          return std::nullopt;
        continue;
      }
      const auto next = found ? further(found, own.*end, upwards, graph.symbols) : own.*end;
      if (!next && all)
        return std::nullopt;
      found = next ? next : found; // any of them is a bound
    }
    return found;
  }

  /// Bounds are in order: others make no index.
  IntegerRange clipped() const {
    const IntegerRange x = operand(0), least = operand(1), largest = operand(2);
    return {node.hasInput(1) ? least.least : x.least,
            node.hasInput(2) ? largest.largest : x.largest};
  }

  /// By a number above 0: of its sign.
  IntegerRange remainder() const {
    const IntegerRange by = operand(1);
    if (node.intAttr("fmod") != 0 || !by.least || !by.largest ||
        by.least->range(graph.symbols).min < 1)
      return {};
    return {DimExpr(0), *by.largest - DimExpr(1)};
  }

  const Graph &graph;
  const IntegerRanges &ranges;
  const Node &node;
};

bool isIndex(DType t) { return t == DType::I64 || t == DType::I32; }

} // namespace

IntegerRange rangeOf(const Graph &graph, const IntegerRanges &ranges, ValueId id) {
  if (auto found = ranges.find(id); found != ranges.end())
    return found->second;
  const Value &v = graph.value(id);
  IntegerRange all;
  if (v.constant && isIndex(v.type) && v.constant->numElements() > 0) {
    int64_t least = INT64_MAX, largest = INT64_MIN;
    for (int64_t i = 0; i < v.constant->numElements(); ++i) {
      least = std::min(least, v.constant->intAt(i));
      largest = std::max(largest, v.constant->intAt(i));
    }
    if (!isTooLarge(DimExpr(least)) && !isTooLarge(DimExpr(largest)))
      all = {DimExpr(least), DimExpr(largest)};
    return all;
  }
  for (size_t i = 0; i < v.known.size(); ++i) {
    const IntegerRange own{v.known[i], v.known[i]};
    all = i == 0 ? own
                 : IntegerRange{further(all.least, own.least, false, graph.symbols),
                                further(all.largest, own.largest, true, graph.symbols)};
  }
  return all;
}

void followRanges(const Graph &graph, IntegerRanges &ranges, const Node &node) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.hasOutput(i) || !isIndex(graph.value(node.outputs[i]).type))
      continue;
    IntegerRange own = RangeFollower(graph, ranges, node).run(i);
    for (std::optional<DimExpr> *end : {&own.least, &own.largest})
      if (*end && isTooLarge(**end))
        end->reset();
    if (own.least || own.largest || !own.parts.empty())
      ranges.emplace(node.outputs[i], std::move(own));
  }
}

bool areWithin(const IntegerRange &range, const DimExpr &size, const std::vector<Symbol> &symbols) {
  return range.least && range.largest && isNoLess(*range.least, size * DimExpr(-1), symbols) &&
         isNoLess(size, *range.largest + DimExpr(1), symbols);
}

} // namespace fusec
