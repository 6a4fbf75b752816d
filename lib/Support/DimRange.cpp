#include "Support/DimNode.h"
#include "Support/TunedSizes.h"

#include <algorithm>
#include <numeric>

// Values, bounds and divisors of expressions under given or possible symbol values. Intermediates are 128 bits
// wide, so that a normal form such as a*a - b*b has a value wherever (a + b)*(a - b) fits 64 bits.

namespace fusec {

using dim::Wide;
using dim::WideRange;

namespace dim {

static Wide clampWide(std::optional<Wide> v, bool negative) {
  return v ? *v : negative ? 1 - dim::kWideLimit : dim::kWideLimit - 1;
}
WideRange addRanges(WideRange a, WideRange b) {
  return {clampWide(dim::add(a.min, b.min), a.min < 0),
          clampWide(dim::add(a.max, b.max), a.max < 0)};
}
WideRange multiplyRanges(WideRange a, WideRange b) {
  WideRange r{dim::kWideLimit, -dim::kWideLimit};
  for (Wide x : {a.min, a.max})
    for (Wide y : {b.min, b.max}) {
      Wide v = clampWide(dim::multiply(x, y), (x < 0) != (y < 0));
      r = {std::min(r.min, v), std::max(r.max, v)};
    }
  return r;
}

WideRange divideRanges(WideRange a, WideRange b, Wide (*divide)(Wide, Wide)) {
  WideRange r{dim::kWideLimit, -dim::kWideLimit};
  for (Wide y : {b.min, b.max, Wide(-1), Wide(1)}) {
    if (y == 0 || y < b.min || y > b.max)
      continue;
    for (Wide x : {a.min, a.max}) {
      Wide v = divide(x, y);
      r = {std::min(r.min, v), std::max(r.max, v)};
    }
  }
  return r.min > r.max ? WideRange{INT64_MIN, INT64_MAX} : r;
}

WideRange moduloRange(WideRange a, WideRange b) {
  bool unchanged = a.min >= 0 && b.min > 0 && a.max < b.min;
  if (unchanged)
    return a;
  WideRange r{b.min < 0 ? b.min + 1 : 0, b.max > 0 ? b.max - 1 : 0};
  if (a.min >= 0 && b.min > 0)
    r.max = std::min(r.max, a.max);
  return r;
}

} // namespace dim

namespace {

std::optional<Wide> evaluateWide(const DimExpr &e, const std::vector<int64_t> &symbols) {
  using Op = DimExpr::Op;
  if (e.op() == Op::Const)
    return e.constValue();
  if (e.op() == Op::Symbol) {
    SymbolId id = e.symbolId();
    if (id < 0 || static_cast<size_t>(id) >= symbols.size())
      return std::nullopt;
    return symbols[static_cast<size_t>(id)];
  }
  std::optional<Wide> value = evaluateWide(e.operands()[0], symbols);
  for (size_t i = 1; value && i < e.operands().size(); ++i) {
    std::optional<Wide> next = evaluateWide(e.operands()[i], symbols);
    if (!next)
      return std::nullopt;
    Wide a = *value, b = *next;
    bool divides = e.op() == Op::FloorDiv || e.op() == Op::CeilDiv || e.op() == Op::Mod;
    if (divides && b == 0)
      return std::nullopt;
    switch (e.op()) {
    case Op::Add: value = dim::add(a, b); break;
    case Op::Mul: value = dim::multiply(a, b); break;
    case Op::FloorDiv: value = dim::floorDivide(a, b); break;
    case Op::CeilDiv: value = dim::ceilDivide(a, b); break;
    case Op::Mod: value = dim::floorModulo(a, b); break;
    case Op::Min: value = std::min(a, b); break;
    case Op::Max: value = std::max(a, b); break;
    case Op::Const:
    case Op::Symbol: break;
    }
  }
  return value;
}

/// Bounds of an expression and of what it consists of.
class Ranges {
public:
  explicit Ranges(const std::vector<Symbol> &symbols) : symbols(symbols) {}
  WideRange of(const DimExpr &e);

private:
  const std::vector<Symbol> &symbols;
  /// Bounds of sums that are looked at as fractions, which looks at other sums far down in them.
  std::vector<std::pair<DimExpr, WideRange>> known;
};

/// A sum as one of fractions: floordiv(a, c) is a / c and a rest. What several quotients have in common cancels.
class SumOfFractions {
public:
  bool add(const DimExpr &e, Wide num, Wide den, int depth = 0) {
    constexpr int kMostDepth = 8;
    for (const dim::Term &t : dim::polynomial(e)) {
      const Wide factor = num * t.coefficient; // of 24 bits or fewer, and 63
      if (t.atoms.empty()) {
        rest.push_back({factor, factor, den});
        continue;
      }
      const DimExpr &atom = t.atoms[0];
      const bool isQuotient = t.atoms.size() == 1 && atom.op() == DimExpr::Op::FloorDiv &&
                              atom.operands()[1].isConst() && depth < kMostDepth;
      const int64_t divisor = isQuotient ? atom.operands()[1].constValue() : 0;
      if (divisor < 1 || divisor > kLargest || den * divisor > kLargest) {
        terms.push_back({t.atoms, factor, den});
        continue;
      }
      const Wide end = -factor * (divisor - 1);
      rest.push_back({std::min<Wide>(end, 0), std::max<Wide>(end, 0), den * divisor});
      if (factor > kLargest || factor < -kLargest ||
          !add(atom.operands()[0], factor, den * divisor, depth + 1))
        return false;
    }
    return true;
  }

  /// Nothing where denominators have too much in common.
  std::optional<WideRange> range(Ranges &ranges) const;

private:
  static constexpr int64_t kLargest = int64_t(1) << 24;
  struct Part {
    std::vector<DimExpr> atoms;
    Wide num, den;
  };
  struct Rest {
    Wide min, max, den;
  };
  std::vector<Part> terms;
  std::vector<Rest> rest;
};

std::optional<WideRange> SumOfFractions::range(Ranges &ranges) const {
  Wide common = 1;
  auto widen = [&](Wide den) {
    common = common / std::gcd(static_cast<int64_t>(common), static_cast<int64_t>(den)) * den;
    return common <= kLargest;
  };
  for (const Part &p : terms)
    if (!widen(p.den))
      return std::nullopt;
  for (const Rest &r : rest)
    if (!widen(r.den))
      return std::nullopt;
  std::vector<Part> merged;
  for (const Part &p : terms) {
    const std::optional<Wide> num = dim::multiply(p.num, common / p.den);
    const auto same = std::find_if(merged.begin(), merged.end(),
                                   [&](const Part &o) { return o.atoms == p.atoms; });
    if (!num)
      return std::nullopt;
    if (same == merged.end())
      merged.push_back({p.atoms, *num, common});
    else
      same->num += *num;
  }
  WideRange sum{0, 0};
  for (const Rest &r : rest)
    sum =
        dim::addRanges(sum, dim::multiplyRanges({r.min, r.max}, {common / r.den, common / r.den}));
  for (const Part &p : merged) {
    WideRange r{p.num, p.num};
    for (const DimExpr &atom : p.atoms)
      if (p.num != 0)
        r = dim::multiplyRanges(r, ranges.of(atom));
    sum = dim::addRanges(sum, r);
  }
  return WideRange{dim::ceilDivide(sum.min, common), dim::floorDivide(sum.max, common)};
}

/// Whether fractions may say more of a sum than its terms do.
bool hasQuotients(const DimExpr &e) {
  if (e.op() != DimExpr::Op::Add || DimBuilder::isRaw(e) || e.operands().size() > 8)
    return false;
  int open = 0;
  bool found = false;
  for (const DimExpr &t : e.operands()) {
    open += !t.isConst();
    found = found || t.op() == DimExpr::Op::FloorDiv ||
            (t.op() == DimExpr::Op::Mul && t.operands().size() == 2 &&
             t.operands()[0].op() == DimExpr::Op::FloorDiv);
  }
  return found && open > 1;
}

WideRange Ranges::of(const DimExpr &e) {
  using Op = DimExpr::Op;
  if (e.op() == Op::Const)
    return {e.constValue(), e.constValue()};
  if (e.op() == Op::Symbol) {
    auto id = static_cast<size_t>(e.symbolId());
    if (id >= symbols.size())
      return {INT64_MIN, INT64_MAX};
    return {symbols[id].min, symbols[id].max};
  }
  const bool asFractions = hasQuotients(e);
  if (asFractions)
    for (const auto &[sum, range] : known)
      if (sum == e)
        return range;
  WideRange r = of(e.operands()[0]);
  for (size_t i = 1; i < e.operands().size(); ++i) {
    WideRange n = of(e.operands()[i]);
    switch (e.op()) {
    case Op::Add: r = dim::addRanges(r, n); break;
    case Op::Mul: r = dim::multiplyRanges(r, n); break;
    case Op::FloorDiv: r = dim::divideRanges(r, n, dim::floorDivide); break;
    case Op::CeilDiv: r = dim::divideRanges(r, n, dim::ceilDivide); break;
    case Op::Mod: r = dim::moduloRange(r, n); break;
    case Op::Min: r = {std::min(r.min, n.min), std::min(r.max, n.max)}; break;
    case Op::Max: r = {std::max(r.min, n.min), std::max(r.max, n.max)}; break;
    case Op::Const:
    case Op::Symbol: break;
    }
  }
  if (asFractions) {
    if (SumOfFractions sum; sum.add(e, 1, 1))
      if (const auto tighter = sum.range(*this))
        r = {std::max(r.min, tighter->min), std::min(r.max, tighter->max)};
    known.emplace_back(e, r);
  }
  return r;
}

/// A divisor of `m` > 0 that also divides every value of `e`.
int64_t commonDivisor(const DimExpr &e, int64_t m, const std::vector<Symbol> &symbols) {
  using Op = DimExpr::Op;
  switch (e.op()) {
  case Op::Const: return std::gcd(e.constValue() % m, m);
  case Op::Symbol: {
    auto id = static_cast<size_t>(e.symbolId());
    if (id >= symbols.size())
      return 1;
    const Symbol &s = symbols[id];
    return std::gcd(s.min == s.max ? s.min : s.divisor, m);
  }
  case Op::Mul: {
    int64_t found = 1;
    for (const DimExpr &factor : e.operands())
      found *= commonDivisor(factor, m / found, symbols);
    return found;
  }
  case Op::FloorDiv:
  case Op::CeilDiv: {
    const DimExpr &a = e.operands()[0], &b = e.operands()[1];
    if (!b.isConst() || b.constValue() <= 0)
      return 1;
    Wide scaled = static_cast<Wide>(m) * b.constValue();
    bool exact = dim::fits(scaled) && a.divisibleBy(static_cast<int64_t>(scaled), symbols);
    return exact ? m : 1;
  }
  case Op::Add:
  case Op::Mod:
  case Op::Min:
  case Op::Max: {
    int64_t found = m;
    for (const DimExpr &operand : e.operands())
      found = commonDivisor(operand, found, symbols);
    return found;
  }
  }
  return 1;
}

} // namespace

std::optional<int64_t> DimExpr::evaluate(const std::vector<int64_t> &symbols) const {
  std::optional<Wide> v = evaluateWide(*this, symbols);
  if (!v || !dim::fits(*v))
    return std::nullopt;
  return static_cast<int64_t>(*v);
}

DimExpr::Range DimExpr::range(const std::vector<Symbol> &symbols) const {
  WideRange r = Ranges(symbols).of(*this);
  auto clamp = [](Wide v) {
    return static_cast<int64_t>(std::clamp(v, Wide(INT64_MIN), Wide(INT64_MAX)));
  };
  return {clamp(r.min), clamp(r.max)};
}

bool DimExpr::divisibleBy(int64_t m, const std::vector<Symbol> &symbols) const {
  assert(m > 0);
  return commonDivisor(*this, m, symbols) == m;
}

static void collect(const DimExpr &e, std::vector<SymbolId> &out) {
  if (e.op() == DimExpr::Op::Symbol)
    out.push_back(e.symbolId());
  for (const DimExpr &operand : e.operands())
    collect(operand, out);
}

void DimExpr::collectSymbols(std::vector<SymbolId> &out) const {
  collect(*this, out);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
}

Symbol dataDependentSymbol(std::string name, const DimExpr &bound,
                           const std::vector<Symbol> &symbols) {
  const int64_t most = std::max<int64_t>(bound.range(symbols).max, 0);
  return {std::move(name), 0, static_cast<int64_t>(SymbolKind::Any), most, 1, nullptr, bound};
}

DimExpr atBounds(const DimExpr &size, const std::vector<Symbol> &symbols) {
  std::vector<SymbolId> used;
  size.collectSymbols(used);
  const auto last = std::find_if(used.rbegin(), used.rend(), [&](SymbolId s) {
    return symbols[static_cast<size_t>(s)].isDataDependent();
  });
  if (last == used.rend())
    return size;
  const Symbol &symbol = symbols[static_cast<size_t>(*last)];
  auto with = [&](const DimExpr &value) {
    return size.substitute(
        [&](SymbolId s) { return s == *last ? std::optional(value) : std::nullopt; });
  };
  const DimExpr &bound = *symbol.bound;
  const DimExpr least = with(symbol.min), most = with(bound.range(symbols).max <= symbol.max
                                                          ? bound
                                                          : min(bound, DimExpr(symbol.max)));
  const DimExpr::Range gain = (most - least).range(symbols);
  // Other data sizes, also those in the bound, are in front of it.
  return atBounds(gain.min >= 0 ? most : gain.max <= 0 ? least : max(least, most), symbols);
}

} // namespace fusec
