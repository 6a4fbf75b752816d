#include "Onnx/FollowIndices.h"

#include "Onnx/FollowMovement.h"

#include <algorithm>
#include <span>

namespace fusec {

using Id = KnownValues::Id;
using Elements = KnownValues::Elements;
using Dims = std::vector<int64_t>;
using Op = DimProgram::Op;

namespace {

/// Elements that all places of a node may mean together.
constexpr int64_t kMostMeant = 4096;

/// What a scatter makes of an element and its update; nothing where that is the update.
std::optional<Op> reductionOf(const std::string &name) {
  if (name == "none")
    return std::nullopt;
  return name == "add" ? Op::Add : name == "mul" ? Op::Mul : name == "max" ? Op::Max : Op::Min;
}

class IndexFollower {
public:
  IndexFollower(KnownValues &values, const Node &node, Elements data)
      : values(values), numbers(values.numbers), node(node), data(std::move(data)), in(dimsOf(0)),
        out(staticDims(values.graph.value(node.outputs[0]).shape)) {}

  std::optional<Elements> run() {
    using enum OpKind;
    if (node.op == SliceDynamic)
      return slice();
    const auto index = elements(1);
    if (!index || (!areConstant(*index) &&
                   numElements(in) > kMostMeant / std::max<int64_t>(std::ssize(*index), 1)))
      return std::nullopt;
    switch (node.op) {
    case Gather: return gather(*index);
    case GatherElements: return gatherElements(*index);
    case GatherND: return gatherNd(*index);
    case ScatterElements: return scatterElements(*index);
    default: return scatterNd(*index);
    }
  }

private:
  std::optional<Elements> elements(size_t i) const {
    return node.hasInput(i) ? values.elements(node.inputs[i]) : std::nullopt;
  }
  Dims dimsOf(size_t i) const { return staticDims(values.graph.value(node.inputs[i]).shape); }
  static int64_t numElements(const Dims &dims) { return productOf(dims, 0, dims.size()); }

  bool areConstant(std::span<const Id> list) const {
    return std::all_of(list.begin(), list.end(), [&](Id x) { return numbers.constant(x); });
  }
  Id number(int64_t v) const { return numbers.integer(DType::I64, v); }
  std::optional<Id> apply(Op op, Id a, Id b) const {
    return numbers.apply(op, op >= Op::Equal ? DType::Bool : DType::I64, {a, b, -1});
  }
  std::optional<Id> select(Id condition, Id a, Id b) const {
    return numbers.apply(Op::Select, numbers.type(a), {condition, a, b});
  }
  std::optional<Id> both(Id a, Id b) const {
    return numbers.apply(Op::Min, DType::Bool, {a, b, -1});
  }

  /// `index` counted from the front of an axis of `size`.
  std::optional<Id> wrapped(Id index, int64_t size) const {
    const auto wide = numbers.cast(DType::I64, index);
    const auto isBehind = wide ? apply(Op::Less, *wide, number(0)) : std::nullopt;
    if (isBehind && numbers.constant(*isBehind) == 0)
      return wide;
    const auto more = isBehind ? apply(Op::Add, *wide, number(size)) : std::nullopt;
    return more ? select(*isBehind, *more, *wide) : std::nullopt;
  }
  std::optional<Id> isInside(Id place, int64_t size) const {
    const auto low = apply(Op::LessOrEqual, number(0), place),
               high = apply(Op::Less, place, number(size));
    return low && high ? both(*low, *high) : std::nullopt;
  }

  /// What `make` gives for the one of [begin, end) that `place` is: halved until one is left, so that the choices
  /// stay few levels deep.
  template <typename F>
  std::optional<Id> found(Id place, int64_t begin, int64_t end, F &&make) const {
    if (end - begin == 1)
      return make(begin);
    const int64_t middle = begin + (end - begin) / 2;
    const auto isLower = apply(Op::Less, place, number(middle));
    if (!isLower)
      return std::nullopt;
    if (const auto which = numbers.constant(*isLower))
      return *which ? found(place, begin, middle, make) : found(place, middle, end, make);
    const auto low = found(place, begin, middle, make), high = found(place, middle, end, make);
    return low && high ? select(*isLower, *low, *high) : std::nullopt;
  }

  /// The element at `at`, where `places`, counted from the front, stand for the axes from `first` on.
  std::optional<Id> read(Dims at, size_t first, std::span<const Id> places) const {
    if (places.empty())
      return data[flatIndex(in, at)];
    const int64_t size = in[first];
    const auto inside = size > 0 ? isInside(places[0], size) : std::nullopt;
    if (!inside || numbers.constant(*inside) == 0)
      return std::nullopt;
    const auto value = found(places[0], 0, size, [&](int64_t p) {
      at[first] = p;
      return read(at, first + 1, places.subspan(1));
    });
    return value ? select(*inside, *value, numbers.none(numbers.type(*value))) : std::nullopt;
  }
  /// As read(), of indices, which may count from the end.
  std::optional<Id> named(Dims at, size_t first, std::span<const Id> indices) const {
    Elements places;
    for (size_t i = 0; i < indices.size(); ++i) {
      const auto place = wrapped(indices[i], in[first + i]);
      if (!place)
        return std::nullopt;
      places.push_back(*place);
    }
    return read(std::move(at), first, places);
  }

  /// All elements of the output.
  template <typename F> std::optional<Elements> each(F make) const {
    Elements made;
    for (int64_t flat = 0; flat < numElements(out); ++flat) {
      const auto v = make(coordinates(out, flat));
      if (!v)
        return std::nullopt;
      made.push_back(*v);
    }
    return made;
  }

  std::optional<Elements> gather(const Elements &index) const {
    const auto axis = static_cast<size_t>(node.intAttr("axis"));
    const Dims own = dimsOf(1);
    return each([&](const Dims &at) {
      const auto begin = at.begin() + static_cast<std::ptrdiff_t>(axis);
      const auto end = begin + std::ssize(own);
      Dims from(at.begin(), begin);
      from.push_back(0);
      from.insert(from.end(), end, at.end());
      return named(from, axis, {&index[flatIndex(own, Dims(begin, end))], 1});
    });
  }

  std::optional<Elements> gatherElements(const Elements &index) const {
    return each([&](const Dims &at) {
      return named(at, static_cast<size_t>(node.intAttr("axis")), {&index[flatIndex(out, at)], 1});
    });
  }

  std::optional<Elements> gatherNd(const Elements &index) const {
    const Dims own = dimsOf(1);
    const auto batch = static_cast<size_t>(node.intAttr("batch_dims")), tuples = own.size() - 1,
               count = static_cast<size_t>(own.back());
    return each([&](const Dims &at) {
      const auto rest = at.begin() + static_cast<std::ptrdiff_t>(tuples);
      Dims from(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(batch)),
          tuple(at.begin(), rest);
      from.resize(batch + count);
      from.insert(from.end(), rest, at.end());
      tuple.push_back(0);
      return named(from, batch, std::span(index).subspan(count ? flatIndex(own, tuple) : 0, count));
    });
  }

  /// The first element of each axis, and a step for each further one; an element that there is lies inside.
  std::optional<Elements> slice() const {
    const auto starts = elements(1), axes = elements(3), steps = elements(4);
    if (!starts || (node.hasInput(3) && !axes) || (node.hasInput(4) && !steps) ||
        numElements(in) > kMostMeant / std::max<int64_t>(numElements(out), 1))
      return std::nullopt;
    std::vector<std::optional<Id>> first(in.size()), step(in.size());
    for (size_t i = 0; i < starts->size(); ++i) {
      const auto axis = axes ? numbers.constant((*axes)[i]) : static_cast<int64_t>(i);
      if (!axis)
        return std::nullopt;
      const auto a = static_cast<size_t>(*axis < 0 ? *axis + std::ssize(in) : *axis);
      const auto start = wrapped((*starts)[i], in[a]);
      const auto low = start ? apply(Op::Max, *start, number(0)) : std::nullopt;
      first[a] = low ? apply(Op::Min, *low, number(std::max<int64_t>(in[a] - 1, 0))) : low;
      step[a] = steps ? numbers.cast(DType::I64, (*steps)[i]) : number(1);
      if (!first[a] || !step[a])
        return std::nullopt;
    }
    return each([&](const Dims &at) -> std::optional<Id> {
      Elements places;
      for (size_t d = 0; d < at.size(); ++d) {
        const auto more = step[d] ? apply(Op::Mul, *step[d], number(at[d])) : number(at[d]);
        const auto place = more && first[d] ? apply(Op::Add, *first[d], *more) : more;
        if (!place)
          return std::nullopt;
        places.push_back(*place);
      }
      return read(at, 0, places);
    });
  }

  /// Makes of the elements whose coordinates from `first` on are `indices`, those in front and behind as in `at`, what
  /// the update says.
  bool write(Dims at, size_t first, std::span<const Id> indices, Id update) {
    const auto reduction = reductionOf(node.stringAttr("reduction"));
    std::optional<Id> areInside = numbers.integer(DType::Bool, 1);
    Elements places;
    for (size_t i = 0; i < indices.size() && areInside; ++i) {
      const auto place = wrapped(indices[i], in[first + i]);
      const auto inside = place ? isInside(*place, in[first + i]) : std::nullopt;
      areInside = inside ? both(*areInside, *inside) : std::nullopt;
      places.push_back(place.value_or(-1));
    }
    if (!areInside || numbers.constant(*areInside) == 0)
      return false;
    const auto begin = in.begin() + static_cast<std::ptrdiff_t>(first);
    const Dims sizes(begin, begin + std::ssize(indices));
    Dims only;
    for (size_t i = 0; i < places.size() && areConstant(places); ++i)
      only.push_back(*numbers.constant(places[i]));
    const int64_t count = only.empty() ? numElements(sizes) : 1;
    for (int64_t flat = 0; flat < count; ++flat) {
      const Dims meant = only.empty() ? coordinates(sizes, flat) : only;
      std::copy(meant.begin(), meant.end(), at.begin() + static_cast<std::ptrdiff_t>(first));
      Id &own = data[flatIndex(in, at)];
      std::optional<Id> isIt = numbers.integer(DType::Bool, 1);
      for (size_t i = 0; i < meant.size() && isIt; ++i) {
        const auto same = apply(Op::Equal, places[i], number(meant[i]));
        isIt = same ? both(*isIt, *same) : std::nullopt;
      }
      const auto value =
          reduction ? numbers.apply(*reduction, numbers.type(own), {own, update, -1}) : update;
      const auto made = isIt && value ? select(*isIt, *value, own) : std::nullopt;
      const auto kept = made ? select(*areInside, *made, numbers.none(numbers.type(own))) : made;
      if (!kept)
        return false;
      own = *kept;
    }
    return true;
  }

  std::optional<Elements> scatterElements(const Elements &index) {
    const auto updates = elements(2);
    if (!updates)
      return std::nullopt;
    const Dims own = dimsOf(2);
    const auto axis = static_cast<size_t>(node.intAttr("axis"));
    for (size_t k = 0; k < updates->size(); ++k)
      if (!write(coordinates(own, static_cast<int64_t>(k)), axis, {&index[k], 1}, (*updates)[k]))
        return std::nullopt;
    return data;
  }

  std::optional<Elements> scatterNd(const Elements &index) {
    const auto updates = elements(2);
    if (!updates)
      return std::nullopt;
    const Dims own = dimsOf(1);
    const auto count = static_cast<size_t>(own.back());
    const Dims slice(in.begin() + own.back(), in.end());
    const auto width = static_cast<size_t>(numElements(slice));
    for (size_t k = 0; k < updates->size(); ++k) {
      Dims at(count);
      const Dims within = coordinates(slice, static_cast<int64_t>(k % width));
      at.insert(at.end(), within.begin(), within.end());
      if (!write(at, 0, std::span(index).subspan(k / width * count, count), (*updates)[k]))
        return std::nullopt;
    }
    return data;
  }

  KnownValues &values;
  HostNumbers &numbers;
  const Node &node;
  Elements data; // the operand's; a scatter changes them into the output's
  const Dims in, out;
};

} // namespace

bool takesPlaces(OpKind op) {
  using enum OpKind;
  constexpr OpKind kTaking[] = {Gather,          GatherElements, GatherND,
                                ScatterElements, ScatterND,      SliceDynamic};
  return std::find(std::begin(kTaking), std::end(kTaking), op) != std::end(kTaking);
}

std::optional<Elements> followIndices(KnownValues &values, const Node &node) {
  auto data = values.elements(node.inputs[0]);
  return data ? IndexFollower(values, node, std::move(*data)).run() : std::nullopt;
}

} // namespace fusec
