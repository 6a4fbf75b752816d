// Nodes whose operands are computed from shapes.
#include "Reference/Random/Builder.h"

namespace fusec::random {

namespace {

using enum OpKind;
using Ints = std::vector<int64_t>;

struct OpenAxis {
  ValueId x;
  int64_t axis;
  DimExpr size; // at least 1
};
std::optional<OpenAxis> pickOpenAxis(Builder &b) {
  auto usable = [&](ValueId v, int64_t d) {
    const DimExpr &e = b.shape(v)[size_t(d)];
    return !e.isConst() && b.isIndexable(e);
  };
  auto axes = [&](ValueId v) {
    Ints found;
    for (int64_t d = 0; d < b.rank(v); ++d)
      if (usable(v, d))
        found.push_back(d);
    return found;
  };
  const ValueId x = b.pick([&](ValueId v) { return !axes(v).empty(); });
  if (x == kNoValue)
    return std::nullopt;
  const int64_t axis = b.rng.pick(axes(x));
  return OpenAxis{x, axis, b.shape(x)[size_t(axis)]};
}

/// Dims are joined, and what they are a multiple of is split off.
bool addReshape(Builder &b) {
  const ValueId x = b.pick([&](ValueId v) {
    return b.rank(v) > 0 && b.least(numElements(b.shape(v))) > 0 && !isStatic(b.shape(v));
  });
  if (x == kNoValue)
    return false;
  const SymbolicDims s = b.shape(x);
  SymbolicDims t;
  for (size_t d = 0; d < s.size();) {
    DimExpr size = s[d++];
    while (d < s.size() && b.rng.chance(40))
      size = size * s[d++];
    DimExpr part = b.rng.between(2, 4), rest = 1;
    bool splits = b.rng.chance(60);
    if (size.op() == DimExpr::Op::Mul) {
      const size_t which = size_t(b.rng.below(int64_t(size.operands().size())));
      for (size_t i = 0; i < size.operands().size(); ++i)
        (i == which ? part : rest) = i == which ? size.operands()[i] : rest * size.operands()[i];
    } else {
      splits = splits && size.divisibleBy(part.constValue(), b.graph.symbols);
      rest = floorDiv(size, part);
    }
    if (!splits) {
      t.push_back(size);
      continue;
    }
    t.push_back(part);
    t.push_back(rest);
    if (b.rng.chance(50))
      std::swap(t[t.size() - 1], t[t.size() - 2]);
  }
  if (b.rng.chance(20))
    t.insert(t.begin() + b.rng.between(0, int64_t(t.size())), DimExpr(1));
  if (t.size() > 6)
    return false;
  SymbolicDims wanted = t;
  for (size_t d = 0; d < t.size() && d < s.size(); ++d)
    if (t[d] == s[d] && b.rng.chance(30))
      wanted[d] = 0; // as it is
  if (b.rng.chance(50))
    wanted[size_t(b.rng.below(int64_t(t.size())))] = -1;
  return move(b, Reshape, x, {addSizes(b, wanted)}, {}, {t});
}

bool addExpand(Builder &b) {
  const ValueId x = b.pick([&](ValueId v) { return b.rank(v) < 5; });
  if (x == kNoValue)
    return false;
  SymbolicDims t = b.shape(x), wanted;
  for (DimExpr &d : t) {
    const bool keeps = !d.isConst(1) || b.rng.chance(40);
    wanted.push_back(keeps && b.rng.chance(30) ? DimExpr(1) : d);
    if (!keeps)
      wanted.back() = d = randomSize(b);
  }
  if (b.rng.chance(50)) {
    t.insert(t.begin(), randomSize(b));
    wanted.insert(wanted.begin(), t[0]);
  }
  if (wanted.empty() || !b.fits(t))
    return false;
  return move(b, Expand, x, {addSizes(b, wanted)}, {}, {t});
}

bool addTile(Builder &b) {
  const ValueId x = b.pick([&](ValueId v) { return b.rank(v) > 0; });
  if (x == kNoValue)
    return false;
  SymbolicDims t = b.shape(x), repeats(t.size(), DimExpr(1));
  const auto axis = size_t(b.rng.below(b.rank(x)));
  repeats[axis] = randomSize(b);
  t[axis] = t[axis] * repeats[axis];
  return b.fits(t) && move(b, Tile, x, {addSizes(b, repeats)}, {}, {t});
}

/// Where a slice begins or ends, from either side, inside the axis or beyond it.
DimExpr position(Builder &b, const DimExpr &size) {
  switch (b.rng.below(9)) {
  case 0: return 0;
  case 1: return b.rng.between(1, 3);
  case 2: return b.rng.between(-3, -1);
  case 3: return size;
  case 4: return size - DimExpr(1);
  case 5: return floorDiv(size, DimExpr(2));
  case 6: return DimExpr(0) - floorDiv(size + DimExpr(1), DimExpr(3)) - DimExpr(1);
  case 7: return min(size, DimExpr(b.rng.between(2, 20)));
  default: return randomSize(b);
  }
}

bool addSlice(Builder &b) {
  const auto a = pickOpenAxis(b);
  if (!a)
    return false;
  SymbolicDims starts, ends;
  Ints axes, steps;
  for (int64_t d = 0; d < b.rank(a->x); ++d) {
    if (d != a->axis && !b.rng.chance(20))
      continue;
    const DimExpr size = b.shape(a->x)[size_t(d)];
    axes.push_back(d);
    steps.push_back(b.rng.pick(Ints{1, 1, 1, 1, 2, 3, -1, -2}));
    const bool back = steps.back() < 0;
    starts.push_back(b.rng.chance(40) ? DimExpr(back ? -1 : 0) : position(b, size));
    ends.push_back(b.rng.chance(40) ? DimExpr(back ? INT64_MIN : INT64_MAX) : position(b, size));
  }
  if (isStatic(starts) && isStatic(ends))
    return move(b, Slice, a->x, {},
                {{"starts", staticDims(starts)},
                 {"ends", staticDims(ends)},
                 {"axes", axes},
                 {"steps", steps}});
  const ValueId from = addSizes(b, starts), to = addSizes(b, ends);
  const Ints count{int64_t(axes.size())};
  return move(b, SliceDynamic, a->x, {from, to, b.addInts(count, axes), b.addInts(count, steps)},
              {});
}

bool addSplit(Builder &b) {
  const auto a = pickOpenAxis(b);
  if (!a)
    return false;
  const DimExpr first =
      b.rng.chance(50) ? floorDiv(a->size, DimExpr(2)) : min(a->size, DimExpr(b.rng.between(1, 9)));
  SymbolicDims s = b.shape(a->x), t = s;
  s[size_t(a->axis)] = first;
  t[size_t(a->axis)] = a->size - first;
  const ValueId sizes = addSizes(b, {first, a->size - first});
  const Facts f = b.facts[size_t(a->x)];
  b.addNodes(Split, {a->x, sizes}, {{"axis", a->axis}}, {f, f}, {s, t});
  return true;
}

bool addTopK(Builder &b) {
  const auto a = pickOpenAxis(b);
  if (!a || b.type(a->x) == DType::Bool ||
      (isFloat(b.type(a->x)) && !b.facts[size_t(a->x)].exact()))
    return false;
  const DimExpr k = min(a->size, b.rng.chance(50) ? DimExpr(b.rng.between(1, 5)) : randomSize(b));
  SymbolicDims s = b.shape(a->x);
  s[size_t(a->axis)] = k;
  b.addNodes(TopK, {a->x, addSizes(b, {k})},
             {{"axis", a->axis}, {"largest", b.rng.below(2)}, {"sorted", int64_t(1)}},
             {b.facts[size_t(a->x)], {}}, {s, s});
  return true;
}

ValueId addRange(Builder &b, const DimExpr &size) {
  const ValueId limit = addSize(b, size);
  return b.addNode(Range, {b.addInts({}, {0}), limit, b.addInts({}, {1})}, {}, {}, {{size}});
}

bool addPositions(Builder &b) { return addRange(b, randomSize(b)) != kNoValue; }

/// At the end or in the middle of an axis, or along a part of it.
bool addGather(Builder &b) {
  const auto a = pickOpenAxis(b);
  if (!a)
    return false;
  ValueId indices = kNoValue;
  switch (b.rng.below(4)) {
  case 0: indices = addSize(b, a->size - DimExpr(1)); break;
  case 1: indices = addSizes(b, {floorDiv(a->size, DimExpr(2)), DimExpr(0) - a->size}); break;
  case 2: indices = addRange(b, min(a->size, randomSize(b))); break;
  default: indices = addRange(b, floorDiv(a->size + DimExpr(1), DimExpr(2)));
  }
  return move(b, Gather, a->x, {indices}, {{"axis", a->axis}});
}

bool addConstantOfShape(Builder &b) {
  SymbolicDims s;
  for (int64_t d = b.rng.between(1, 3); d > 0; --d)
    s.push_back(b.rng.chance(60) ? randomSize(b) : DimExpr(b.rng.between(1, 4)));
  if (!b.fits(s))
    return false;
  const double v = static_cast<double>(b.rng.between(-8, 8)) / 4;
  const DType t = b.rng.chance(60) ? DType::F32 : DType::I64;
  TensorValue one(t, {1});
  one.setNumber(0, t == DType::F32 ? v : std::floor(v));
  b.addNode(ConstantOfShape, {addSizes(b, s)}, {{"value", toConstant(one)}}, {v, v, 0}, {s});
  return true;
}

/// A size as a factor of elements: an average, a scale of scores.
bool addNumber(Builder &b) {
  const DimExpr size = randomSize(b);
  const Facts f{double(b.least(size)), double(b.most(size)), 0};
  if (f.high > magnitudeLimit(DType::F32))
    return false;
  b.addNode(Cast, {addSize(b, size)}, {{"to", DType::F32}, {"saturate", int64_t(1)}}, f);
  return true;
}

/// Two values of the graph, along an open size or not.
bool addMatMul(Builder &b) {
  auto isMatrix = [&](ValueId v) {
    const DType t = b.type(v);
    return b.rank(v) >= 2 && (isFloat(t) || (isInteger(t) && sizeInBytes(t) >= 4));
  };
  const ValueId x = b.pick(isMatrix);
  if (x == kNoValue)
    return false;
  const SymbolicDims s = b.shape(x);
  auto shapeWith = [&](ValueId v) -> std::optional<SymbolicDims> {
    const SymbolicDims &t = b.shape(v);
    auto made = b.broadcast({s.begin(), s.end() - 2}, {t.begin(), t.end() - 2});
    if (made)
      made->insert(made->end(), {s[s.size() - 2], t.back()});
    return made && b.fits(*made) ? made : std::nullopt;
  };
  const ValueId y = b.pick([&](ValueId v) {
    return b.type(v) == b.type(x) && isMatrix(v) && b.shape(v)[b.shape(v).size() - 2] == s.back() &&
           shapeWith(v);
  });
  if (y == kNoValue)
    return false;
  const auto made = product(b, b.type(x), b.facts[size_t(x)], b.facts[size_t(y)],
                            static_cast<double>(b.most(s.back())));
  return made && b.addNode(MatMul, {x, y}, {}, *made) != kNoValue;
}

} // namespace

DimExpr randomSize(Builder &b) {
  std::vector<DimExpr> sizes;
  for (size_t s = 0; s < b.graph.symbols.size(); ++s)
    sizes.push_back(DimExpr::symbol(static_cast<SymbolId>(s)));
  for (ValueId v : b.pool)
    for (const DimExpr &d : b.shape(v))
      if (!d.isConst() && b.least(d) > 0)
        sizes.push_back(d);
  const DimExpr size = b.rng.pick(sizes);
  switch (b.rng.below(12)) {
  case 0: return size + DimExpr(b.rng.between(1, 3));
  case 1: return floorDiv(size, DimExpr(b.rng.between(2, 3))) + DimExpr(1);
  case 2: return ceilDiv(size, DimExpr(b.rng.between(2, 4)));
  case 3: return min(size, DimExpr(b.rng.between(2, 9)));
  case 4: return max(size - DimExpr(b.rng.between(1, 5)), DimExpr(1));
  case 5: return size * DimExpr(2);
  case 6: return size + b.rng.pick(sizes);
  case 7: return mod(size, DimExpr(b.rng.between(3, 7))) + DimExpr(1);
  default: return size;
  }
}

const std::vector<Attempt> &openAttempts() {
  static const std::vector<Attempt> list = {addReshape,   addReshape, addExpand,          addTile,
                                            addSlice,     addSlice,   addSplit,           addTopK,
                                            addPositions, addGather,  addConstantOfShape, addNumber,
                                            addMatMul};
  return list;
}

} // namespace fusec::random
