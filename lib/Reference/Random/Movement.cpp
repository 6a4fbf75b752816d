#include "Reference/Random/Builder.h"

namespace fusec::random {

namespace {

using enum OpKind;
using Ints = std::vector<int64_t>;

ValueId pickRanked(Builder &b) {
  return b.pick([&](ValueId v) { return b.rank(v) > 0; });
}

/// A value and one of its axes, which has `size` elements at least, and no more where it is not open.
struct IndexedAxis {
  ValueId x;
  int64_t axis, size;
};
std::optional<IndexedAxis> pickAxis(Builder &b) {
  auto usable = [&](ValueId v, int64_t d) { return b.isIndexable(b.shape(v)[size_t(d)]); };
  ValueId x = b.pick([&](ValueId v) {
    for (int64_t d = 0; d < b.rank(v); ++d)
      if (usable(v, d))
        return true;
    return false;
  });
  if (x == kNoValue)
    return std::nullopt;
  Ints axes;
  for (int64_t d = 0; d < b.rank(x); ++d)
    if (usable(x, d))
      axes.push_back(d);
  int64_t axis = b.rng.pick(axes);
  return IndexedAxis{x, axis, b.least(b.shape(x)[size_t(axis)])};
}

bool addTranspose(Builder &b) {
  ValueId x = pickRanked(b);
  if (x == kNoValue)
    return false;
  Ints perm;
  for (int64_t d = 0; d < b.rank(x); ++d)
    perm.insert(perm.begin() + b.rng.between(0, d), d);
  return move(b, Transpose, x, {}, {{"perm", perm}});
}

bool addSlice(Builder &b) {
  auto a = pickAxis(b);
  if (!a)
    return false;
  int64_t start = b.rng.below(a->size), end = b.rng.between(start, a->size),
          step = b.rng.between(1, 2);
  if (b.rng.chance(30)) { // backwards over all
    step = -step;
    start = a->size - 1;
    end = INT64_MIN;
  }
  return move(b, Slice, a->x, {},
              {{"starts", Ints{start}},
               {"ends", Ints{end}},
               {"axes", Ints{a->axis}},
               {"steps", Ints{step}}});
}

bool addConcat(Builder &b) {
  ValueId x = pickRanked(b);
  if (x == kNoValue)
    return false;
  int64_t axis = b.rng.below(b.rank(x));
  auto joins = [&](ValueId v) {
    if (b.type(v) != b.type(x) || b.rank(v) != b.rank(x))
      return false;
    for (int64_t d = 0; d < b.rank(x); ++d)
      if (d != axis && b.shape(v)[size_t(d)] != b.shape(x)[size_t(d)])
        return false;
    return true;
  };
  ValueId y = b.pick(joins);
  const Facts &f = b.facts[size_t(x)], &g = b.facts[size_t(y)];
  const Facts both{std::min(f.low, g.low), std::max(f.high, g.high), std::max(f.error, g.error)};
  return b.addNode(Concat, {x, y}, {{"axis", axis}}, both) != kNoValue;
}

bool addSplit(Builder &b) {
  auto a = pickAxis(b);
  if (!a || a->size < 2)
    return false;
  int64_t first = b.rng.between(1, a->size - 1);
  SymbolicDims s = b.shape(a->x), t = s;
  s[size_t(a->axis)] = first;
  t[size_t(a->axis)] = t[size_t(a->axis)] - DimExpr(first);
  ValueId sizes = addSizes(b, {s[size_t(a->axis)], t[size_t(a->axis)]});
  const Facts f = b.facts[size_t(a->x)];
  b.addNodes(Split, {a->x, sizes}, {{"axis", a->axis}}, {f, f}, {s, t});
  return true;
}

bool addReshape(Builder &b) {
  ValueId x = b.pick([&](ValueId v) { return isStatic(b.shape(v)); });
  if (x == kNoValue)
    return false;
  int64_t count = numElements(b.shape(x)).constValue();
  Ints dims;
  int64_t rest = count;
  while (rest > 1 && dims.size() < 4) {
    int64_t factor = b.rng.between(1, std::min<int64_t>(rest, 8));
    while (rest % factor != 0)
      --factor;
    dims.push_back(factor);
    rest /= factor;
  }
  dims.push_back(rest);
  SymbolicDims s(dims.begin(), dims.end());
  return move(b, Reshape, x, {b.addInts({int64_t(dims.size())}, dims)}, {}, {s});
}

bool addUnsqueeze(Builder &b) {
  ValueId x = b.pick([&](ValueId v) { return b.rank(v) < 6; });
  if (x == kNoValue)
    return false;
  int64_t axis = b.rng.between(0, b.rank(x));
  return move(b, Unsqueeze, x, {}, {{"axes", Ints{axis}}});
}

bool addSqueeze(Builder &b) {
  auto a = pickAxis(b);
  if (!a || !b.shape(a->x)[size_t(a->axis)].isConst(1))
    return false;
  return move(b, Squeeze, a->x, {}, {{"axes", Ints{a->axis}}});
}

bool addFlatten(Builder &b) {
  ValueId x = pickRanked(b);
  if (x == kNoValue)
    return false;
  return move(b, Flatten, x, {}, {{"axis", b.rng.between(0, b.rank(x))}});
}

bool addExpand(Builder &b) {
  ValueId x = b.pick([&](ValueId v) { return isStatic(b.shape(v)) && b.rank(v) < 6; });
  if (x == kNoValue)
    return false;
  Ints dims = staticDims(b.shape(x));
  for (int64_t &d : dims)
    if (d == 1 && b.rng.chance(50))
      d = b.rng.between(1, 4);
  dims.insert(dims.begin(), b.rng.between(1, 3));
  SymbolicDims s(dims.begin(), dims.end());
  return move(b, Expand, x, {b.addInts({int64_t(dims.size())}, dims)}, {}, {s});
}

bool addTile(Builder &b) {
  ValueId x = pickRanked(b);
  if (x == kNoValue)
    return false;
  Ints repeats;
  SymbolicDims s = b.shape(x);
  for (DimExpr &d : s) {
    repeats.push_back(b.rng.between(1, 2));
    d = d * repeats.back();
  }
  return move(b, Tile, x, {b.addInts({int64_t(repeats.size())}, repeats)}, {}, {s});
}

bool addPad(Builder &b) {
  auto a = pickAxis(b);
  if (!a)
    return false;
  std::string mode = b.rng.pick(std::vector<std::string>{"constant", "edge", "reflect", "wrap"});
  int64_t most = mode == "reflect" ? std::min<int64_t>(2, a->size - 1) : 2;
  auto rank = size_t(b.rank(a->x));
  Ints pads(2 * rank, 0);
  pads[size_t(a->axis)] = b.rng.between(0, most);
  pads[size_t(a->axis) + rank] = b.rng.between(mode == "constant" ? -1 : 0, most);
  return move(b, Pad, a->x, {}, {{"mode", mode}, {"pads", pads}}, {}, mode == "constant");
}

bool addGather(Builder &b) {
  auto a = pickAxis(b);
  if (!a)
    return false;
  Ints indices;
  for (int64_t i = b.rng.between(1, 5); i > 0; --i)
    indices.push_back(b.rng.between(-a->size, a->size - 1));
  return move(b, Gather, a->x, {b.addInts({int64_t(indices.size())}, indices)},
              {{"axis", a->axis}});
}

/// The sizes of all other axes; nullopt where one of them is open.
std::optional<Ints> dimsBeside(Builder &b, const IndexedAxis &a) {
  SymbolicDims s = b.shape(a.x);
  s[size_t(a.axis)] = 0;
  return isStatic(s) ? std::optional(staticDims(s)) : std::nullopt;
}

/// Indices of a whole static tensor, one for each element of `dims`, into an axis of `size`.
ValueId elementIndices(Builder &b, const Ints &dims, int64_t size) {
  Ints indices;
  for (int64_t i = checkedProduct(dims); i > 0; --i)
    indices.push_back(b.rng.between(-size, size - 1));
  return b.addInts(dims, indices);
}

bool addGatherElements(Builder &b) {
  auto a = pickAxis(b);
  std::optional<Ints> dims = a ? dimsBeside(b, *a) : std::nullopt;
  if (!dims)
    return false;
  (*dims)[size_t(a->axis)] = b.rng.between(1, 4);
  ValueId indices = elementIndices(b, *dims, a->size);
  return move(b, GatherElements, a->x, {indices}, {{"axis", a->axis}});
}

bool addScatterElements(Builder &b) {
  auto a = pickAxis(b);
  std::optional<Ints> dims = a ? dimsBeside(b, *a) : std::nullopt;
  if (!dims || b.type(a->x) == DType::Bool)
    return false;
  (*dims)[size_t(a->axis)] = b.rng.between(1, 3);
  ValueId updates = b.addConstant(b.type(a->x), *dims);
  bool integer = isInteger(b.type(a->x));
  std::string reduction =
      b.rng.pick(integer ? std::vector<std::string>{"none", "add", "mul", "max", "min"}
                         : std::vector<std::string>{"none", "max", "min"});
  const Facts &f = b.facts[size_t(a->x)];
  Facts out{std::min(f.low, -kInputRange), std::max(f.high, kInputRange), f.error};
  ValueId indices = elementIndices(b, *dims, a->size);
  b.addNode(ScatterElements, {a->x, indices, updates},
            {{"axis", a->axis}, {"reduction", reduction}}, out);
  return true;
}

bool addTopK(Builder &b) {
  auto a = pickAxis(b);
  if (!a || b.type(a->x) == DType::Bool ||
      (isFloat(b.type(a->x)) && !b.facts[size_t(a->x)].exact()))
    return false;
  int64_t k = b.rng.between(1, a->size);
  b.addNodes(TopK, {a->x, b.addInts({1}, {k})},
             {{"axis", a->axis}, {"largest", b.rng.below(2)}, {"sorted", int64_t(1)}},
             {b.facts[size_t(a->x)], {}});
  return true;
}

bool addTrilu(Builder &b) {
  ValueId x = b.pick([&](ValueId v) { return b.rank(v) >= 2; });
  if (x == kNoValue)
    return false;
  return move(b, Trilu, x, {b.addInts({}, {b.rng.between(-2, 2)})}, {{"upper", b.rng.below(2)}}, {},
              true);
}

bool addDepthToSpace(Builder &b) {
  ValueId x = b.pick([&](ValueId v) {
    const SymbolicDims &s = b.shape(v);
    return s.size() == 4 && s[1].isConst() && s[1].constValue() % 4 == 0 && s[1].constValue() > 0;
  });
  if (x == kNoValue)
    return false;
  return move(b, DepthToSpace, x, {},
              {{"blocksize", int64_t(2)}, {"mode", std::string(b.rng.chance(50) ? "DCR" : "CRD")}});
}

bool addOneHot(Builder &b) {
  ValueId x = b.pick([&](ValueId v) { return b.rank(v) < 4 && b.type(v) == DType::I64; });
  if (x == kNoValue)
    return false;
  int64_t axis = b.rng.between(0, b.rank(x)), depth = b.rng.between(1, 5);
  if (b.most(numElements(b.shape(x))) * depth > b.options.maxElements)
    return false;
  ValueId values = b.addConstant(DType::F32, {2});
  b.addNode(OneHot, {x, b.addInts({}, {depth}), values}, {{"axis", axis}},
            {-kInputRange, kInputRange, 0});
  return true;
}

} // namespace

bool move(Builder &b, OpKind op, ValueId x, std::vector<ValueId> more,
          std::map<std::string, Attribute> attributes, const std::vector<SymbolicDims> &shapes,
          bool withZero) {
  Facts f = b.facts[size_t(x)];
  if (withZero)
    f = {std::min(0.0, f.low), std::max(0.0, f.high), f.error};
  more.insert(more.begin(), x);
  return b.addNode(op, std::move(more), std::move(attributes), f, shapes) != kNoValue;
}

const std::vector<Attempt> &movementAttempts() {
  static const std::vector<Attempt> list = {
      addTranspose, addTranspose, addSlice,           addConcat,         addSplit,
      addReshape,   addUnsqueeze, addSqueeze,         addFlatten,        addExpand,
      addTile,      addPad,       addGather,          addGatherElements, addTopK,
      addTrilu,     addOneHot,    addScatterElements, addDepthToSpace};
  return list;
}

} // namespace fusec::random
