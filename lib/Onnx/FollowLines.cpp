#include "Onnx/FollowLines.h"

#include "Onnx/FollowMovement.h"

#include <algorithm>

namespace fusec {

using Id = KnownValues::Id;
using Elements = KnownValues::Elements;
using Dims = std::vector<int64_t>;
using Op = DimProgram::Op;

namespace {

/// A line whose order ranges do not tell has so many elements at most: each takes a choice for every one in front.
constexpr size_t kMostCompared = 16;

/// The lines of a tensor along one of its axes.
class Lines {
public:
  Lines(const Dims &dims, size_t axis) : extent(dims[axis]) {
    for (size_t d = 0; d < dims.size(); ++d)
      if (d != axis)
        (d < axis ? outer : inner) *= dims[d];
  }

  int64_t count() const { return outer * inner; }
  size_t at(int64_t line, int64_t place) const {
    return static_cast<size_t>((line / inner * extent + place) * inner + line % inner);
  }

  const int64_t extent;

private:
  int64_t outer = 1, inner = 1;
};

class LineFollower {
public:
  LineFollower(KnownValues &values, const Node &node)
      : numbers(values.numbers), graph(values.graph), node(node),
        data(values.elements(node.inputs[0]).value_or(Elements())),
        other(node.hasInput(1) ? values.elements(node.inputs[1]).value_or(Elements()) : Elements()),
        type(graph.value(node.inputs[0]).type) {}

  std::vector<std::optional<Elements>> run() const {
    using enum OpKind;
    switch (node.op) {
    case CumSum: return {running(Op::Add)};
    case CumProd: return {running(Op::Mul)};
    case TopK: return ordered(dimsOf(node.outputs[0])[axis()], node.intAttr("largest") != 0, false);
    case ReduceProd: return {reduced(Op::Mul)};
    case ReduceMax: return {reduced(Op::Max)};
    case ReduceMin: return {reduced(Op::Min)};
    case ReduceSum:
    case ReduceMean:
    case ReduceL1:
    case ReduceSumSquare: return {reduced(Op::Add)};
    default: return {ordered(1, node.op == ArgMax, node.intAttr("select_last_index") != 0)[1]};
    }
  }

private:
  struct Entry {
    Id value, place;
  };

  Dims dimsOf(ValueId id) const { return staticDims(graph.value(id).shape); }
  size_t axis() const { return static_cast<size_t>(node.intAttr("axis")); }
  Id number(int64_t v) const {
    return isFloat(type) ? numbers.real(type, static_cast<double>(v)) : numbers.integer(type, v);
  }
  std::optional<Id> apply(Op op, Id a, Id b) const { return numbers.apply(op, type, {a, b, -1}); }

  std::optional<Elements> running(Op op) const {
    const Dims dims = dimsOf(node.inputs[0]);
    const auto axis = other.empty() ? std::nullopt : numbers.constant(other.front());
    if (!axis || data.empty())
      return std::nullopt;
    const Lines lines(dims, static_cast<size_t>(*axis < 0 ? *axis + std::ssize(dims) : *axis));
    const bool isExclusive = node.intAttr("exclusive") != 0;
    Elements made(data.size());
    for (int64_t line = 0; line < lines.count(); ++line) {
      std::optional<Id> before, sum;
      for (int64_t step = 0; step < lines.extent; ++step) {
        const size_t at = lines.at(line, node.intAttr("reverse") ? lines.extent - 1 - step : step);
        before = sum ? sum : number(op == Op::Mul);
        sum = sum ? apply(op, *sum, data[at]) : data[at];
        if (!sum)
          return std::nullopt;
        made[at] = isExclusive ? *before : *sum;
      }
    }
    return made;
  }

  /// What a reduction takes of an element.
  std::optional<Id> part(Id x) const {
    if (node.op == OpKind::ReduceSumSquare)
      return apply(Op::Mul, x, x);
    if (node.op != OpKind::ReduceL1)
      return x;
    const auto minus = apply(Op::Mul, x, number(-1));
    return minus ? apply(Op::Max, x, *minus) : std::nullopt;
  }

  /// Over all axes of a reduction, in the order of the elements.
  std::optional<Elements> reduced(Op op) const {
    if (data.empty() && !followedCount(graph.value(node.inputs[0])))
      return std::nullopt;
    const std::vector<size_t> places = reducedPlaces(node, dimsOf(node.inputs[0]));
    if (data.size() != places.size())
      return std::nullopt;
    std::vector<std::optional<Id>> found(
        static_cast<size_t>(*followedCount(graph.value(node.outputs[0]))));
    for (size_t i = 0; i < data.size(); ++i) {
      std::optional<Id> &r = found[places[i]];
      const auto x = part(data[i]);
      r = x && r ? apply(op, *r, *x) : x;
      if (!r)
        return std::nullopt;
    }
    Elements made;
    for (std::optional<Id> &r : found) {
      const bool isEmpty = !r;
      if (isEmpty && (op == Op::Max || op == Op::Min || node.op == OpKind::ReduceMean))
        return std::nullopt;
      if (isEmpty)
        r = number(op == Op::Mul);
      else if (node.op == OpKind::ReduceMean)
        r = apply(Op::Div, *r, number(static_cast<int64_t>(data.size() / found.size())));
      if (!r)
        return std::nullopt;
      made.push_back(*r);
    }
    return made;
  }

  /// Values and places of the first `count` elements of each line, the smallest or `largest` ones in front. Equal ones
  /// stand as they do in the line, with `lastInFront` the other way round.
  std::vector<std::optional<Elements>> ordered(int64_t count, bool largest,
                                               bool lastInFront) const {
    const Lines lines(dimsOf(node.inputs[0]), axis());
    Dims dims = dimsOf(node.inputs[0]);
    dims[axis()] = count;
    const Lines to(dims, axis());
    Elements values(static_cast<size_t>(to.count() * count)), places = values;
    if (data.empty())
      return {std::nullopt, std::nullopt};
    for (int64_t line = 0; line < lines.count(); ++line) {
      std::vector<Entry> list;
      for (int64_t i = 0; i < lines.extent; ++i)
        list.push_back({data[lines.at(line, i)], numbers.integer(DType::I64, i)});
      for (int64_t i = 0; i < count; ++i) {
        if (!bringInFront(list, static_cast<size_t>(i), largest, lastInFront))
          return {std::nullopt, std::nullopt};
        values[to.at(line, i)] = list[static_cast<size_t>(i)].value;
        places[to.at(line, i)] = list[static_cast<size_t>(i)].place;
      }
    }
    return {std::move(values), std::move(places)};
  }

  /// What belongs at `front` of the entries from there on, the others behind it in their order.
  bool bringInFront(std::vector<Entry> &list, size_t front, bool largest, bool lastInFront) const {
    for (size_t i = list.size() - 1; i > front; --i) {
      Entry &a = list[i - 1], &b = list[i];
      const auto isBehind =
          numbers.apply(lastInFront ? Op::LessOrEqual : Op::Less, DType::Bool,
                        {largest ? a.value : b.value, largest ? b.value : a.value, -1});
      if (!isBehind || (list.size() > kMostCompared && !numbers.constant(*isBehind)))
        return false;
      for (Id Entry::*part : {&Entry::value, &Entry::place}) {
        const DType own = numbers.type(a.*part);
        const auto first = numbers.apply(Op::Select, own, {*isBehind, b.*part, a.*part}),
                   second = numbers.apply(Op::Select, own, {*isBehind, a.*part, b.*part});
        if (!first || !second)
          return false;
        a.*part = *first;
        b.*part = *second;
      }
    }
    return true;
  }

  HostNumbers &numbers;
  const Graph &graph;
  const Node &node;
  const Elements data, other; // of the operands; empty where they are not known
  const DType type;
};

bool isReduction(OpKind op) {
  using enum OpKind;
  constexpr OpKind kReductions[] = {ReduceL1,   ReduceMax, ReduceMean,     ReduceMin,
                                    ReduceProd, ReduceSum, ReduceSumSquare};
  return std::find(std::begin(kReductions), std::end(kReductions), op) != std::end(kReductions);
}

} // namespace

bool goesAlongLines(OpKind op) {
  using enum OpKind;
  return isReduction(op) || op == CumSum || op == CumProd || op == TopK || op == ArgMax ||
         op == ArgMin;
}

std::vector<std::optional<Elements>> followLines(KnownValues &values, const Node &node) {
  std::vector<std::optional<Elements>> none(node.outputs.size());
  const int64_t most = isReduction(node.op) ? kMaxFollowedElements : kMaxComputedElements;
  auto mayBeFollowed = [&](ValueId id) {
    return id == kNoValue || followedCount(values.graph.value(id)).value_or(INT64_MAX) <= most;
  };
  auto isConstant = [&](ValueId id) { return id == kNoValue || values.graph.value(id).constant; };
  if (!std::all_of(node.inputs.begin(), node.inputs.end(), mayBeFollowed) ||
      !std::all_of(node.outputs.begin(), node.outputs.end(), mayBeFollowed) ||
      (isFloat(values.graph.value(node.inputs[0]).type) &&
       std::all_of(node.inputs.begin(), node.inputs.end(), isConstant)))
    return none; // constants are the evaluator's
  auto made = LineFollower(values, node).run();
  made.resize(node.outputs.size());
  return made;
}

} // namespace fusec
