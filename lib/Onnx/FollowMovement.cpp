#include "Onnx/FollowMovement.h"

#include <algorithm>

namespace fusec {

using Elements = KnownValues::Elements;
using Dims = std::vector<int64_t>;

int64_t productOf(const Dims &dims, size_t begin, size_t end) {
  int64_t p = 1;
  for (size_t d = begin; d < end; ++d)
    p *= dims[d];
  return p;
}

Dims coordinates(const Dims &dims, int64_t flat) {
  Dims at(dims.size());
  for (size_t d = dims.size(); d-- > 0; flat /= dims[d])
    at[d] = flat % dims[d];
  return at;
}

size_t flatIndex(const Dims &dims, const Dims &at) {
  int64_t flat = 0;
  for (size_t d = 0; d < dims.size(); ++d)
    flat = flat * dims[d] + at[d];
  return static_cast<size_t>(flat);
}

std::optional<int64_t> followedCount(const Value &v) {
  if (!isStatic(v.shape))
    return std::nullopt;
  int64_t count = 1;
  for (const DimExpr &d : v.shape)
    if (__builtin_mul_overflow(count, d.constValue(), &count))
      return std::nullopt;
  if (count > (isFloat(v.type) ? kMaxComputedElements : kMaxFollowedElements))
    return std::nullopt;
  return count;
}

size_t broadcastIndex(const Dims &dims, const Dims &to, int64_t flat) {
  int64_t index = 0, stride = 1;
  for (size_t k = 0; k < to.size(); ++k) {
    const int64_t size = to[to.size() - 1 - k], coordinate = flat % size;
    flat /= size;
    if (k >= dims.size())
      continue;
    const int64_t own = dims[dims.size() - 1 - k];
    index += own == 1 ? 0 : coordinate * stride;
    stride *= own;
  }
  return static_cast<size_t>(index);
}

std::vector<size_t> reducedPlaces(const Node &node, const Dims &dims) {
  Dims kept = dims;
  for (int64_t a : node.intsAttr("axes"))
    kept[static_cast<size_t>(a)] = 1;
  std::vector<size_t> places;
  for (int64_t flat = 0; flat < productOf(dims, 0, dims.size()); ++flat) {
    Dims at = coordinates(dims, flat);
    for (int64_t a : node.intsAttr("axes"))
      at[static_cast<size_t>(a)] = 0;
    places.push_back(flatIndex(kept, at));
  }
  return places;
}

namespace {

class Mover {
public:
  Mover(KnownValues &values, const Node &node)
      : values(values), graph(values.graph), node(node), out(graph.value(node.outputs[0])),
        dims(staticDims(out.shape)), count(productOf(dims, 0, dims.size())) {}

  std::optional<Elements> run() {
    using enum OpKind;
    const auto data = elements(0);
    if (!data || !isStatic(graph.value(node.inputs[0]).shape))
      return std::nullopt;
    in = staticDims(graph.value(node.inputs[0]).shape);
    switch (node.op) {
    case Expand:
    case Tile:
      return moved(*data, [&](const Dims &at) {
        Dims from(in.size());
        for (size_t d = 0; d < in.size(); ++d)
          from[d] = in[d] == 0 ? 0 : at[at.size() - in.size() + d] % in[d];
        return from;
      });
    case Transpose:
      return moved(*data, [&](const Dims &at) {
        Dims from(in.size());
        for (size_t d = 0; d < in.size(); ++d)
          from[static_cast<size_t>(node.intsAttr("perm")[d])] = at[d];
        return from;
      });
    case Slice: return slice(*data);
    case Concat: return concat();
    default: return data; // another shape
    }
  }

  std::vector<std::optional<Elements>> split() {
    std::vector<std::optional<Elements>> parts(node.outputs.size());
    const auto data = elements(0);
    if (!data)
      return parts;
    in = staticDims(graph.value(node.inputs[0]).shape);
    const auto axis = static_cast<size_t>(node.intAttr("axis"));
    int64_t begin = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto &part = graph.value(node.outputs[i]);
      if (!isStatic(part.shape))
        return parts;
      dims = staticDims(part.shape);
      count = productOf(dims, 0, dims.size());
      parts[i] = moved(*data, [&](Dims at) {
        at[axis] += begin;
        return at;
      });
      begin += dims[axis];
    }
    return parts;
  }

private:
  std::optional<Elements> elements(size_t i) const {
    return node.hasInput(i) ? values.elements(node.inputs[i]) : std::nullopt;
  }
  Dims dimsOf(size_t i) const { return staticDims(graph.value(node.inputs[i]).shape); }

  /// Each element of the output from where `from` says.
  template <typename F> Elements moved(const Elements &data, F from) const {
    Elements result;
    for (int64_t flat = 0; flat < count; ++flat)
      result.push_back(data[flatIndex(in, from(coordinates(dims, flat)))]);
    return result;
  }

  std::optional<Elements> slice(const Elements &data) const {
    const auto &axes = node.intsAttr("axes"), &steps = node.intsAttr("steps");
    Dims first(in.size(), 0), step(in.size(), 1);
    for (size_t i = 0; i < axes.size(); ++i) {
      const auto a = static_cast<size_t>(axes[i]);
      int64_t start = node.intsAttr("starts")[i];
      start += start < 0 ? in[a] : 0;
      first[a] = std::clamp<int64_t>(start, 0, std::max<int64_t>(in[a] - 1, 0));
      step[a] = steps[i];
    }
    return moved(data, [&](Dims at) {
      for (size_t d = 0; d < at.size(); ++d)
        at[d] = first[d] + at[d] * step[d];
      return at;
    });
  }

  std::optional<Elements> concat() const {
    const auto axis = static_cast<size_t>(node.intAttr("axis"));
    Elements result(static_cast<size_t>(count));
    int64_t begin = 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto part = elements(i);
      if (!part)
        return std::nullopt;
      const Dims own = dimsOf(i);
      for (size_t k = 0; k < part->size(); ++k) {
        Dims at = coordinates(own, static_cast<int64_t>(k));
        at[axis] += begin;
        result[flatIndex(dims, at)] = (*part)[k];
      }
      begin += own[axis];
    }
    return result;
  }

  KnownValues &values;
  const Graph &graph;
  const Node &node;
  const Value &out;
  Dims dims, in;
  int64_t count;
};

} // namespace

bool movesElements(OpKind op) {
  using enum OpKind;
  constexpr OpKind kMoving[] = {Identity, Reshape,   Squeeze, Unsqueeze, Flatten, Expand,
                                Tile,     Transpose, Slice,   Concat,    Split};
  return std::find(std::begin(kMoving), std::end(kMoving), op) != std::end(kMoving);
}

std::vector<std::optional<Elements>> followMovement(KnownValues &values, const Node &node) {
  std::vector<std::optional<Elements>> made(node.outputs.size());
  Mover mover(values, node);
  if (node.op == OpKind::Split)
    return mover.split();
  made[0] = mover.run();
  return made;
}

} // namespace fusec
