// Nodes that compute sizes from shapes, in the forms in which exporters write them.
#include "Reference/Random/Builder.h"

namespace fusec::random {

namespace {

using enum OpKind;
using Ints = std::vector<int64_t>;
using Op = DimExpr::Op;

/// Sizes are numbers of rank 0, as `x.shape[i]` becomes, or vectors of one element.
class SizeNodes {
public:
  SizeNodes(Builder &b, bool scalars) : b(b), scalars(scalars) {}

  ValueId one(const DimExpr &e) {
    if (e.isConst())
      return number(e.constValue());
    if (e.op() == Op::Symbol || b.rng.chance(60))
      if (ValueId v = read(e); v != kNoValue)
        return v;
    switch (e.op()) {
    case Op::Add: return sum(e);
    case Op::Mul: return fold(Mul, e);
    case Op::Min: return fold(Min, e);
    case Op::Max: return fold(Max, e);
    case Op::Mod:
      return b.addSizeNode(Mod, {one(e.operands()[0]), one(e.operands()[1])},
                           {{"fmod", int64_t(0)}}, {e});
    default: return quotient(e);
    }
  }

  ValueId list(const SymbolicDims &sizes) {
    std::vector<ValueId> parts;
    for (size_t d = 0; d < sizes.size();) {
      if (const auto [v, count] = readRow(sizes, d); v != kNoValue) {
        parts.push_back(v);
        d += count;
        continue;
      }
      ValueId v = one(sizes[d]);
      if (scalars)
        v = b.addSizeNode(Unsqueeze, {v}, {{"axes", Ints{0}}}, {sizes[d]});
      parts.push_back(v);
      ++d;
    }
    return parts.size() == 1 ? parts[0]
                             : b.addSizeNode(Concat, parts, {{"axis", int64_t(0)}}, sizes);
  }

private:
  Ints dims() const { return scalars ? Ints{} : Ints{1}; }
  ValueId number(int64_t v) { return b.addInts(dims(), {v}); }
  ValueId binary(OpKind op, ValueId x, ValueId y, const DimExpr &result) {
    return b.addSizeNode(op, {x, y}, {}, {result});
  }

  /// Elements [begin, end) of a value's shape.
  ValueId shapeOf(ValueId v, int64_t begin, int64_t end) {
    const SymbolicDims s = b.shape(v);
    const SymbolicDims part(s.begin() + begin, s.begin() + end);
    if (b.rng.chance(50))
      return b.addSizeNode(Shape, {v}, {{"start", begin}, {"end", end}}, part);
    const ValueId all = b.addSizeNode(Shape, {v}, {{"start", int64_t(0)}, {"end", b.rank(v)}}, s);
    return b.addSizeNode(
        Slice, {all},
        {{"starts", Ints{begin}}, {"ends", Ints{end}}, {"axes", Ints{0}}, {"steps", Ints{1}}},
        part);
  }

  /// The size, from the shape of a value that has it; kNoValue where there is none.
  ValueId read(const DimExpr &e) {
    struct Place {
      ValueId v;
      int64_t begin, end; // of dims whose product it is
    };
    std::vector<Place> places;
    for (ValueId v : b.pool)
      for (int64_t d = 0; d < b.rank(v); ++d) {
        DimExpr all = 1;
        for (int64_t end = d + 1; end <= b.rank(v); ++end) {
          all = all * b.shape(v)[size_t(end - 1)];
          if (all == e)
            places.push_back({v, d, end});
        }
      }
    if (places.empty())
      return kNoValue;
    const Place p = b.rng.pick(places);
    if (p.end - p.begin > 1) {
      const ValueId sizes = shapeOf(p.v, p.begin, p.end);
      return b.addSizeNode(ReduceProd, {sizes},
                           {{"axes", Ints{0}}, {"keepdims", int64_t(!scalars)}}, {e});
    }
    if (!scalars && b.rng.chance(60))
      return shapeOf(p.v, p.begin, p.end);
    const ValueId all =
        b.addSizeNode(Shape, {p.v}, {{"start", int64_t(0)}, {"end", b.rank(p.v)}}, b.shape(p.v));
    return b.addSizeNode(Gather, {all, number(p.begin)}, {{"axis", int64_t(0)}}, {e});
  }

  /// Two sizes or more from `first` on that some value has in a row. A 0 is none: it may stand for something else, as
  /// in the target of Reshape, which no shape says.
  std::pair<ValueId, size_t> readRow(const SymbolicDims &sizes, size_t first) {
    if (b.rng.chance(50))
      return {kNoValue, 0};
    for (ValueId v : b.pool)
      for (size_t d = 0; d < b.shape(v).size(); ++d) {
        const SymbolicDims &s = b.shape(v);
        size_t count = 0;
        while (first + count < sizes.size() && d + count < s.size() &&
               sizes[first + count] == s[d + count] && !s[d + count].isConst(0))
          ++count;
        if (count > 1 && !isStatic({s.begin() + int64_t(d), s.begin() + int64_t(d + count)}))
          return {shapeOf(v, int64_t(d), int64_t(d + count)), count};
      }
    return {kNoValue, 0};
  }

  ValueId fold(OpKind op, const DimExpr &e) {
    DimExpr so = e.operands()[0];
    ValueId v = one(so);
    for (size_t i = 1; i < e.operands().size(); ++i) {
      const DimExpr &next = e.operands()[i];
      so = op == Mul ? so * next : op == Min ? min(so, next) : max(so, next);
      v = binary(op, v, one(next), so);
    }
    return v;
  }

  /// Terms with a negative factor are subtracted.
  ValueId sum(const DimExpr &e) {
    DimExpr so = 0;
    ValueId v = kNoValue;
    auto isNegative = [](const DimExpr &t) {
      const DimExpr &factor = t.op() == Op::Mul ? t.operands().back() : t;
      return factor.isConst() && factor.constValue() < 0;
    };
    for (bool negative : {false, true})
      for (const DimExpr &t : e.operands()) {
        if (isNegative(t) != negative)
          continue;
        so = so + t;
        const ValueId term = one(negative ? t * DimExpr(-1) : t);
        if (negative)
          v = binary(Sub, v == kNoValue ? number(0) : v, term, so);
        else
          v = v == kNoValue ? term : binary(Add, v, term, so);
      }
    return v;
  }

  ValueId cast(ValueId v, DType to, const SymbolicDims &known) {
    return b.addSizeNode(Cast, {v}, {{"to", to}, {"saturate", int64_t(1)}}, known);
  }

  ValueId quotient(const DimExpr &e) {
    const bool up = e.op() == Op::CeilDiv;
    const DimExpr &size = e.operands()[0], &by = e.operands()[1];
    const DimExpr::Range r = size.range(b.graph.symbols);
    // f32 has 24 bits; Div of integers rounds towards zero.
    const bool isSmall = r.min > -(1 << 20) && r.max < (1 << 20);
    if (r.min < 0 || (isSmall && b.rng.chance(40))) {
      const ValueId x = cast(one(size), DType::F32, {}), y = cast(one(by), DType::F32, {});
      const ValueId exact = b.addSizeNode(Div, {x, y}, {}, {});
      return cast(b.addSizeNode(up ? Ceil : Floor, {exact}, {}, {}), DType::I64, {e});
    }
    const DimExpr from = up ? size + by - DimExpr(1) : size;
    if (!from.isConst() && b.rng.chance(30)) { // what divides it, divided
      const ValueId x = one(from), y = one(by);
      const ValueId rest = b.addSizeNode(Mod, {x, y}, {{"fmod", int64_t(0)}}, {mod(from, by)});
      return binary(Div, binary(Sub, x, rest, from - mod(from, by)), y, e);
    }
    return binary(Div, one(from), one(by), e);
  }

  Builder &b;
  bool scalars;
};

} // namespace

ValueId addSizes(Builder &b, const SymbolicDims &sizes) {
  if (isStatic(sizes))
    return b.addInts({static_cast<int64_t>(sizes.size())}, staticDims(sizes));
  return SizeNodes(b, b.rng.chance(50)).list(sizes);
}

ValueId addSize(Builder &b, const DimExpr &size) { return SizeNodes(b, true).one(size); }

} // namespace fusec::random
