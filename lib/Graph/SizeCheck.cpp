#include "Graph/SizeCheck.h"

#include "Support/DimProgram.h"
#include "Support/DimSolve.h"
#include "Support/TunedSizes.h"

#include <algorithm>
#include <cmath>

namespace fusec {

std::vector<std::vector<int64_t>> sampleSymbols(const std::vector<Symbol> &symbols) {
  constexpr uint64_t kRounds = 12;
  std::vector<std::vector<int64_t>> list;
  for (uint64_t round = 0; round < (symbols.empty() ? 1 : kRounds); ++round) {
    std::vector<int64_t> values;
    uint64_t state = round * 0x9e3779b97f4a7c15u;
    for (const Symbol &s : symbols) {
      state = (state ^ (state >> 29)) * 0xbf58476d1ce4e5b9u + 1;
      if (s.definition) {
        values.push_back(s.definition->evaluate(values).value_or(s.min));
        continue;
      }
      int64_t last = s.max / s.divisor, first = s.min / s.divisor + (s.min % s.divisor != 0);
      int64_t spread = static_cast<int64_t>((state >> 33) % 61);
      int64_t multiple =
          round == 0 || (round == 1 && kindOf(s)) ? first
          : round == 1
              ? s.opt / s.divisor
              : std::min(last, first > last ? last : first + std::min(spread, last - first));
      values.push_back(multiple * s.divisor);
    }
    list.push_back(std::move(values));
  }
  return list;
}

bool sameSize(const DimExpr &a, const DimExpr &b, const std::vector<Symbol> &symbols) {
  if (a == b)
    return true;
  if (a.isConst() && b.isConst())
    return false;
  bool any = false;
  for (const std::vector<int64_t> &values : sampleSymbols(symbols)) {
    auto x = a.evaluate(values), y = b.evaluate(values);
    if (x && y && *x != *y)
      return false;
    any = any || (x && y);
  }
  return any;
}

DimExpr product(const Shape &shape, size_t begin, size_t end) {
  DimExpr p = 1;
  for (size_t d = begin; d < end; ++d)
    p = p * shape[d];
  return p;
}

Shape reducedShape(const Shape &in, const std::vector<int64_t> &axes, bool keep) {
  Shape out;
  for (size_t d = 0; d < in.size(); ++d) {
    bool gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
    if (!gone || keep)
      out.push_back(gone ? DimExpr(1) : in[d]);
  }
  return out;
}

bool SizeCheck::same(const DimExpr &a, const DimExpr &b) const {
  if (equality == Equality::Exact)
    return a == b;
  return sameSize(a, b, symbols) ||
         (!mustDiffer(a, b) && seenTo(SizeRule::Kind::Equal, a, b, "", Need::Tested));
}

bool SizeCheck::same(const Shape &a, const Shape &b) const {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [this](const DimExpr &x, const DimExpr &y) { return same(x, y); });
}

bool SizeCheck::mustDiffer(const DimExpr &a, const DimExpr &b) const {
  if (a.isConst() && b.isConst())
    return a != b;
  DimExpr::Range difference = (a - b).range(symbols);
  return difference.min > 0 || difference.max < 0;
}

Diagnostic SizeCheck::unequal(const DimExpr &a, const DimExpr &b, const std::string &what) const {
  const std::string text = what + " must be equal: ";
  if (mustDiffer(a, b))
    return misfit({Misfit::Kind::Operands, text + a.str(symbols) + " and " + b.str(symbols)});
  return misfit({Misfit::Kind::Unequal, text, {a, b}});
}

Status SizeCheck::sameDim(const DimExpr &a, const DimExpr &b, const std::string &what) const {
  if (same(a, b) ||
      (!mustDiffer(a, b) && seenTo(SizeRule::Kind::Equal, a, b, what + " must be equal")))
    return success();
  return unequal(a, b, what);
}

Status SizeCheck::sameCount(const DimExpr &a, const DimExpr &b) const {
  const std::string what = "the numbers of elements";
  // Samples say nothing of larger sizes: what a model says is proved, or tested in runs.
  const bool isSame = equality == Equality::Exact
                          ? solveEquality(a, b, symbols).kind == DimEquation::Kind::Always
                          : sameSize(a, b, symbols);
  if (isSame || (!mustDiffer(a, b) &&
                 seenTo(SizeRule::Kind::Equal, a, b, what + " must be equal", Need::Tested)))
    return success();
  return unequal(a, b, what);
}

Diagnostic SizeCheck::unlike(const Shape &given, const Shape &wanted,
                             const std::string &text) const {
  size_t open = given.size();
  bool fixed = given.size() != wanted.size();
  for (size_t d = 0; !fixed && d < given.size(); ++d) {
    fixed = mustDiffer(given[d], wanted[d]);
    if (open == given.size() && given[d] != wanted[d])
      open = d;
  }
  if (fixed || open == given.size())
    return misfit({Misfit::Kind::Operands, text});
  return misfit({Misfit::Kind::Unequal, text + "; ", {given[open], wanted[open]}});
}

Status SizeCheck::sameShape(const Shape &given, const Shape &wanted, const std::string &text,
                            Need need) const {
  if (same(given, wanted))
    return success();
  bool fits = given.size() == wanted.size();
  for (size_t d = 0; fits && d < given.size(); ++d)
    fits = same(given[d], wanted[d]) || !mustDiffer(given[d], wanted[d]);
  for (size_t d = 0; fits && d < given.size(); ++d)
    fits =
        same(given[d], wanted[d]) || seenTo(SizeRule::Kind::Equal, given[d], wanted[d], text, need);
  if (fits)
    return success();
  return unlike(given, wanted, text);
}

Diagnostic SizeCheck::indivisible(const DimExpr &size, int64_t divisor,
                                  const std::string &what) const {
  const std::string rule = what + " must be a multiple of " + std::to_string(divisor),
                    text = rule + "; it is " + size.str(symbols);
  if (size.isConst())
    return misfit({Misfit::Kind::Operands, text});
  return misfit({Misfit::Kind::Indivisible, text + ", which may be none", {size}, divisor, rule});
}

Status SizeCheck::multiple(const DimExpr &size, int64_t divisor, const std::string &what) const {
  if (size.divisibleBy(divisor, symbols) ||
      (!size.isConst() &&
       seenTo(SizeRule::Kind::Multiple, size, divisor,
              what + " must be a multiple of " + std::to_string(divisor), Need::Tested)))
    return success();
  return indivisible(size, divisor, what);
}

Diagnostic SizeCheck::tooSmall(const DimExpr &size, int64_t least, const std::string &what) const {
  const std::string rule = what + " must be at least " + std::to_string(least),
                    text = rule + "; it is " + size.str(symbols);
  if (size.range(symbols).max < least)
    return misfit({Misfit::Kind::Operands, text});
  return misfit({Misfit::Kind::TooSmall, text + ", which may be less", {size}, least, rule});
}

Status SizeCheck::atLeast(const DimExpr &size, int64_t least, const std::string &what) const {
  const DimExpr::Range range = size.range(symbols);
  if (range.min >= least ||
      (range.max >= least &&
       seenTo(SizeRule::Kind::AtLeast, size, least,
              what + " must be at least " + std::to_string(least), Need::Tested)))
    return success();
  return tooSmall(size, least, what);
}

Status SizeCheck::noLess(const DimExpr &size, const DimExpr &least, const std::string &text,
                         Need need) const {
  const DimExpr::Range room = (size - least).range(symbols);
  if ((room.min >= 0 && (need != Need::Noted || room.min == room.max)) ||
      (room.max >= 0 && seenTo(SizeRule::Kind::AtLeast, size, least, text, need)) || room.min >= 0)
    return success();
  return misfit({room.max < 0 ? Misfit::Kind::Operands : Misfit::Kind::Less,
                 text + "; these are " + size.str(symbols) + " and " + least.str(symbols),
                 {size, least}});
}

/// Whether `size` is the larger one of `part` and others.
static bool isLargestOf(const DimExpr &size, const DimExpr &part) {
  return size.op() == DimExpr::Op::Max &&
         std::any_of(size.operands().begin(), size.operands().end(),
                     [&](const DimExpr &o) { return o == part || isLargestOf(o, part); });
}

/// Whether one symbol at least decides about both: a run that fits all else then hardly makes one of them 1 alone.
static bool hangTogether(const DimExpr &a, const DimExpr &b) {
  std::vector<SymbolId> first, second;
  a.collectSymbols(first);
  b.collectSymbols(second);
  return std::find_first_of(first.begin(), first.end(), second.begin(), second.end()) !=
         first.end();
}

static bool mayBeOne(const DimExpr &size, const std::vector<Symbol> &symbols) {
  const DimExpr::Range r = size.range(symbols);
  return r.min <= 1 && r.max >= 1;
}

/// The size of two that are not 1 for all symbols, where one of them may be 1 for some. `toFirst`: it has to be `a`.
Result<DimExpr> SizeCheck::broadcast(const DimExpr &a, const DimExpr &b, bool toFirst) const {
  const std::string what = "the sizes to broadcast together", rule = what + " must be equal";
  if (same(a, b))
    return a;
  const bool first = !toFirst && mayBeOne(a, symbols) && !isLargestOf(a, b);
  const bool second = mayBeOne(b, symbols) && (toFirst || !isLargestOf(b, a));
  const bool isCase =
      a.op() == DimExpr::Op::Max || b.op() == DimExpr::Op::Max || !hangTogether(a, b);
  const DimExpr &one = first ? a : b, &other = first ? b : a;
  if (first != second && (isCase || other.isConst()) &&
      seenTo(SizeRule::Kind::Broadcast, one, other, rule + ", or the first of them 1",
             other.isConst() ? Need::Tested : Need::Case))
    return other;
  if (first && second && isCase && !mustDiffer(a, b) &&
      seenTo(SizeRule::Kind::Either, a, b, rule + ", or one of them 1", Need::Case)) {
    const DimExpr larger = max(a, b), less = min(a, b);
    return less.range(symbols).min > 0 ? larger : larger * min(less, DimExpr(1));
  }
  if ((first || second) && !mustDiffer(a, b) &&
      seenTo(SizeRule::Kind::Equal, a, b, rule + " where neither is fixed", Need::Likely))
    return a;
  // A fixed size needs no symbol to be solved.
  const bool isFixed = a.isConst() || b.isConst();
  const DimExpr &fixed = a.isConst() ? a : b;
  if (isFixed && !mustDiffer(a, b) &&
      (seenTo(SizeRule::Kind::Equal, a, b, rule) ||
       seenTo(SizeRule::Kind::Equal, a, b, rule, Need::Tested)))
    return fixed;
  FUSEC_CHECK(sameDim(a, b, what));
  return a;
}

Result<Shape> SizeCheck::broadcast(const std::vector<const Shape *> &shapes) const {
  size_t rank = 0;
  for (const Shape *s : shapes)
    rank = std::max(rank, s->size());
  Shape out(rank, DimExpr(1));
  for (const Shape *s : shapes)
    for (size_t d = 0; d < s->size(); ++d) {
      DimExpr &size = out[rank - s->size() + d];
      const DimExpr &own = (*s)[d];
      if (size.isConst(1)) {
        size = own;
      } else if (!own.isConst(1)) {
        FUSEC_TRY(size, broadcast(size, own, false));
      }
    }
  return out;
}

Status SizeCheck::broadcastsTo(const Shape &from, const Shape &to, const std::string &text) const {
  Shape reached = to;
  for (size_t d = 0; d < from.size() && from.size() <= to.size(); ++d) {
    DimExpr &size = reached[to.size() - from.size() + d];
    if (!from[d].isConst(1) && !size.isConst(1)) {
      FUSEC_TRY(size, broadcast(size, from[d], true));
    } else if (!from[d].isConst(1)) {
      size = from[d];
    }
  }
  return sameShape(to, from.size() <= to.size() ? reached : from, text);
}

Result<Shape> SizeCheck::matMul(const Shape &a, const Shape &b) const {
  if (a.empty() || b.empty())
    return misfit({Misfit::Kind::Operands, "a scalar cannot be multiplied as a matrix"});
  size_t rowsA = a.size() > 1, columnsB = b.size() > 1;
  FUSEC_CHECK(sameDim(a.back(), b[b.size() - 1 - columnsB], "the sizes to sum over"));
  Shape leadA(a.begin(), a.end() - 1 - static_cast<std::ptrdiff_t>(rowsA));
  Shape leadB(b.begin(), b.end() - 1 - static_cast<std::ptrdiff_t>(columnsB));
  FUSEC_TRY(Shape out, broadcast({&leadA, &leadB}));
  if (rowsA)
    out.push_back(a[a.size() - 2]);
  if (columnsB)
    out.push_back(b.back());
  return out;
}

Result<std::map<char, DimExpr>>
SizeCheck::einsum(const std::vector<std::string> &terms, const std::vector<const Shape *> &shapes,
                  const std::function<std::string(char)> &called) const {
  std::map<char, DimExpr> sizes;
  for (size_t i = 0; i < terms.size(); ++i)
    for (size_t d = 0; d < terms[i].size(); ++d) {
      const char letter = terms[i][d];
      const DimExpr &own = (*shapes[i])[d];
      const std::string what = "the sizes of " + called(letter);
      auto [it, isNew] = sizes.emplace(letter, own);
      if (size_t first = terms[i].find(letter); first < d)
        FUSEC_CHECK(sameDim((*shapes[i])[first], own, what));
      else if (it->second.isConst(1))
        it->second = own;
      else if (!isNew && !own.isConst(1))
        FUSEC_CHECK(sameDim(it->second, own, what));
    }
  return sizes;
}

Status SizeCheck::quantParameter(const Shape &given, const DimExpr &count,
                                 const std::string &name) const {
  if (numElements(given).isConst(1))
    return success();
  return sameShape(given, {count},
                   name + " must be one number or have the shape [" + count.str(symbols) + "]");
}

Status SizeCheck::sideParameter(const Shape &given, const Shape &product, bool rows,
                                const std::string &name) const {
  if (given.size() >= 2) {
    // Only if it is this form are its sizes asked for.
    auto all = SizeCheck(symbols, equality, report).broadcast({&given, &product});
    if (all.ok() && same(*all, product) && given[given.size() - (rows ? 1 : 2)].isConst(1))
      return success();
  } else if (product.size() >= 2) {
    return quantParameter(given, product[product.size() - (rows ? 2 : 1)], name);
  }
  return quantParameter(given, DimExpr(1), name);
}

Result<DimExpr> SizeCheck::windowCount(const DimExpr &size, int64_t extent, int64_t stride,
                                       int64_t padBegin, int64_t padEnd, bool ceilMode) const {
  DimExpr padded = size + DimExpr(padBegin + padEnd), room = padded - DimExpr(extent);
  if (room.isConst() && room.constValue() < 0)
    return misfit({Misfit::Kind::Operands, "the window of " + std::to_string(extent) +
                                               " is larger than the padded size " +
                                               padded.str(symbols)});
  FUSEC_CHECK(noLess(padded, DimExpr(extent),
                     "the padded size must hold the window of " + std::to_string(extent)));
  if (!ceilMode)
    return floorDiv(room, DimExpr(stride)) + DimExpr(1);
  // A window that would start in the padding at the end does not count.
  return min(ceilDiv(room, DimExpr(stride)) + DimExpr(1),
             ceilDiv(size + DimExpr(padBegin), DimExpr(stride)));
}

/// min(v, bound), simplified where the ranges decide.
static DimExpr smaller(const DimExpr &v, const DimExpr &bound, const std::vector<Symbol> &symbols) {
  if (v.isConst() && v.constValue() > int64_t(1) << 60)
    return bound;
  auto r = (bound - v).range(symbols);
  if (r.min >= 0)
    return v;
  return r.max <= 0 ? bound : min(v, bound);
}

/// max(v, 0), likewise.
static DimExpr atLeastZero(const DimExpr &v, const std::vector<Symbol> &symbols) {
  auto r = v.range(symbols);
  if (r.min >= 0)
    return v;
  return r.max <= 0 ? DimExpr(0) : max(v, DimExpr(0));
}

static bool isFarInFront(const DimExpr &v) {
  return v.isConst() && v.constValue() < -(int64_t(1) << 60);
}

/// A start or end counted from the front.
static DimExpr fromFront(const DimExpr &v, const DimExpr &size,
                         const std::vector<Symbol> &symbols) {
  auto r = v.range(symbols);
  if (r.min >= 0)
    return v;
  if (r.max < 0)
    return v + size;
  const DimExpr isNegative = floorDiv(v, DimExpr(int64_t(1) << 62)) * DimExpr(-1); // 1 or 0
  return v + isNegative * size;
}

Result<SliceBounds> SizeCheck::slice(const DimExpr &size, const DimExpr &start, const DimExpr &end,
                                     int64_t step) const {
  if (step == 0)
    return misfit({Misfit::Kind::Value, "a step is 0"});
  auto place = [&](const DimExpr &v) {
    return isFarInFront(v) ? DimExpr(0) : atLeastZero(fromFront(v, size, symbols), symbols);
  };
  if (step > 0) {
    const DimExpr first = place(start), last = smaller(place(end), size, symbols);
    // A start beyond the end leaves nothing, clamped or not; not clamped, the size stands in the length once.
    DimExpr length = atLeastZero(last - first, symbols);
    return SliceBounds{smaller(first, size, symbols), last,
                       step == 1 ? length : ceilDiv(length, DimExpr(step))};
  }
  if (!isStatic({size, start, end})) {
    const DimExpr back = size - DimExpr(1), first = smaller(place(start), back, symbols);
    const DimExpr stop = isFarInFront(end) ? DimExpr(-1) : fromFront(end, size, symbols);
    const DimExpr last =
        smaller(stop.range(symbols).min >= -1 ? stop : max(stop, DimExpr(-1)), back, symbols);
    const DimExpr length = atLeastZero(first - last, symbols);
    const int64_t by = step == INT64_MIN ? INT64_MAX : -step;
    return SliceBounds{atLeastZero(first, symbols), last,
                       by == 1 ? length : ceilDiv(length, DimExpr(by))};
  }
  // By the operator's text the start is clamped to [0, size-1] and the end to [-1, size-1].
  auto backward = [s = size.constValue()](int64_t v, int64_t low) {
    return std::clamp<int64_t>(v < 0 ? std::max(v, -s - 1) + s : v, low, s - 1);
  };
  int64_t from = backward(start.constValue(), size.isConst(0) ? -1 : 0),
          to = backward(end.constValue(), -1);
  // -(from - to) / step, written so that no step overflows
  uint64_t span = from > to ? static_cast<uint64_t>(from - to) : 0;
  uint64_t stride = static_cast<uint64_t>(-(step + 1)) + 1;
  return SliceBounds{std::max<int64_t>(from, 0), to,
                     static_cast<int64_t>(span ? (span - 1) / stride + 1 : 0)};
}

/// The common scale of all axes that a policy other than stretch asks for.
static double commonScale(const Shape &in, const ResizeSizes &how) {
  double common = 0;
  for (size_t i = 0; i < how.axes.size(); ++i) {
    const double scale = static_cast<double>((*how.sizes)[i]) /
                         static_cast<double>(in[static_cast<size_t>(how.axes[i])].constValue());
    common = i == 0                       ? scale
             : how.policy == "not_larger" ? std::min(common, scale)
                                          : std::max(common, scale);
  }
  return common;
}

Result<Shape> SizeCheck::resized(const Shape &in, const ResizeSizes &how) const {
  const size_t count = how.axes.size();
  auto wrong = [&](const char *text) { return misfit({Misfit::Kind::Operands, text}); };
  auto badValue = [&](const char *text) { return misfit({Misfit::Kind::Value, text}); };
  auto has = [](const ConstantRef &c, size_t numbers) {
    return c && static_cast<size_t>(c->numElements()) == numbers;
  };
  auto number = [](const ConstantRef &c, size_t i) { return c->floatAt(static_cast<int64_t>(i)); };
  if (how.sizes ? how.sizes->size() != count : !has(how.scales, count))
    return wrong(how.sizes ? "one size for each axis is needed"
                           : "one scale for each axis is needed");
  if (how.isCrop && !has(how.roi, 2 * count))
    return wrong("tf_crop_and_resize needs a roi with two values for each axis");
  for (size_t i = 0; i < count; ++i)
    if (const DimExpr &d = in[static_cast<size_t>(how.axes[i])];
        !d.isConst() && (how.sizes || number(how.scales, i) != 1.0))
      return misfit({Misfit::Kind::NotFixed, "the axes to resize must have fixed sizes", {d}});
  const bool keepsAspect = how.policy != "stretch";
  const double common = how.sizes && keepsAspect ? commonScale(in, how) : 0;
  Shape out = in;
  for (size_t i = 0; i < count; ++i) {
    DimExpr &d = out[static_cast<size_t>(how.axes[i])];
    if (!d.isConst())
      continue;
    const double own = static_cast<double>(d.constValue());
    double size = 0;
    if (how.sizes) {
      size = keepsAspect ? std::floor(common * own + 0.5) : static_cast<double>((*how.sizes)[i]);
    } else {
      const double scale = number(how.scales, i);
      const double part = how.isCrop ? number(how.roi, i + count) - number(how.roi, i) : 1;
      size = std::floor(own * part * scale);
      if (!(scale > 0) || !(size >= 0) || size > 1e12)
        return badValue("a scale must be positive and finite");
    }
    if (!(size >= 0 && size <= static_cast<double>(int64_t(1) << 40)))
      return badValue("an output size is out of range");
    d = DimExpr(static_cast<int64_t>(size));
  }
  return out;
}

} // namespace fusec
