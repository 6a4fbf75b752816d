#include "Support/DimSolve.h"
#include "Support/DimLimits.h"
#include "Support/DimNode.h"

#include <algorithm>
#include <numeric>

namespace fusec {

using dim::Polynomial;
using dim::Term;

/// Divides all coefficients by what they share; false where one is INT64_MIN.
static bool divideByContent(Polynomial &p) {
  int64_t content = 0;
  for (const Term &t : p) {
    if (t.coefficient == INT64_MIN)
      return false;
    content = std::gcd(content, t.coefficient);
  }
  for (Term &t : p)
    t.coefficient /= content;
  return true;
}

/// Takes atoms that all terms have, and that are never 0, out of them.
static void cancelFactors(Polynomial &p, const std::vector<Symbol> &symbols) {
  const std::vector<DimExpr> candidates = p[0].atoms;
  for (const DimExpr &atom : candidates) {
    auto has = [&](const Term &t) {
      return std::find(t.atoms.begin(), t.atoms.end(), atom) != t.atoms.end();
    };
    if (atom.range(symbols).min < 1 || !std::all_of(p.begin(), p.end(), has))
      continue;
    for (Term &t : p)
      t.atoms.erase(std::find(t.atoms.begin(), t.atoms.end(), atom));
  }
}

static bool mentions(const DimExpr &e, SymbolId symbol) {
  std::vector<SymbolId> used;
  e.collectSymbols(used);
  return std::find(used.begin(), used.end(), symbol) != used.end();
}

/// The sum of these terms without term `left`, times -`sign`, where no symbol of that term is in another one.
static std::optional<DimExpr> isolated(const Polynomial &p, size_t left) {
  const Term &own = p[left];
  if (own.atoms.size() != 1 || own.atoms[0].op() != DimExpr::Op::Symbol ||
      (own.coefficient != 1 && own.coefficient != -1))
    return std::nullopt;
  DimExpr sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (i == left)
      continue;
    DimExpr term = -own.coefficient * p[i].coefficient;
    for (const DimExpr &atom : p[i].atoms) {
      if (mentions(atom, own.atoms[0].symbolId()))
        return std::nullopt;
      term = term * atom;
    }
    sum = sum + term;
  }
  if (isTooLarge(sum))
    return std::nullopt;
  return sum;
}

static bool isComputed(const DimExpr &e, const std::vector<Symbol> &symbols) {
  return e.op() == DimExpr::Op::Symbol &&
         symbols[static_cast<size_t>(e.symbolId())].definition != nullptr;
}

static bool mentionsComputed(const DimExpr &e, const std::vector<Symbol> &symbols) {
  std::vector<SymbolId> used;
  e.collectSymbols(used);
  return std::any_of(used.begin(), used.end(), [&](SymbolId s) {
    return symbols[static_cast<size_t>(s)].definition != nullptr;
  });
}

static bool subtracts(const DimExpr &e) {
  const Polynomial p = dim::polynomial(e);
  return std::any_of(p.begin(), p.end(), [](const Term &t) { return t.coefficient < 0; });
}

/// min(x, bound) = x says that bound - x >= 0, and likewise max.
static std::optional<DimExpr> boundOf(const DimExpr &extremum, const DimExpr &x) {
  if (extremum.op() != DimExpr::Op::Min && extremum.op() != DimExpr::Op::Max)
    return std::nullopt;
  for (size_t i : {0, 1})
    if (extremum.operands()[i] == x) {
      const DimExpr room = extremum.operands()[1 - i] - x;
      return extremum.op() == DimExpr::Op::Min ? room : room * DimExpr(-1);
    }
  return std::nullopt;
}

static std::optional<SymbolId> onlySymbol(const DimExpr &e) {
  std::vector<SymbolId> used;
  e.collectSymbols(used);
  return used.size() == 1 ? std::optional(used[0]) : std::nullopt;
}

constexpr int64_t kMostResidues = 64;

/// A number with which the remainders of all divisions in `e` repeat; nullopt where there is none, or only a large one.
static std::optional<int64_t> periodOf(const DimExpr &e) {
  int64_t period = 1;
  const bool divides = e.op() == DimExpr::Op::FloorDiv || e.op() == DimExpr::Op::CeilDiv ||
                       e.op() == DimExpr::Op::Mod;
  for (const DimExpr &operand : e.operands()) {
    const auto own = periodOf(operand);
    if (!own || (period = std::lcm(period, *own)) > kMostResidues)
      return std::nullopt;
  }
  if (!divides)
    return period;
  const DimExpr &divisor = e.operands()[1];
  if (!divisor.isConst() || divisor.constValue() < 1 || divisor.constValue() > kMostResidues)
    return std::nullopt;
  period *= divisor.constValue(); // what is divided may have been before
  return period <= kMostResidues ? std::optional(period) : std::nullopt;
}

/// For which remainders of its symbol `e` is 0: all, none, or those of the multiples of a number.
static DimEquation byResidues(const DimExpr &e) {
  using Kind = DimEquation::Kind;
  const auto symbol = onlySymbol(e);
  const auto period = periodOf(e);
  if (!symbol || !period || *period == 1)
    return {Kind::Open};
  std::vector<bool> isZero;
  for (int64_t r = 0; r < *period; ++r) {
    const DimExpr there = e.substitute([&](SymbolId s) {
      return std::optional(DimExpr::symbol(s) * DimExpr(*period) + DimExpr(r));
    });
    if (!there.isConst())
      return {Kind::Open};
    isZero.push_back(there.isConst(0));
  }
  const auto count = std::count(isZero.begin(), isZero.end(), true);
  if (count == 0 || count == *period)
    return {count == 0 ? Kind::Never : Kind::Always};
  const int64_t divisor = *period / count;
  for (int64_t r = 0; r < *period; ++r)
    if (isZero[static_cast<size_t>(r)] != (r % divisor == 0))
      return {Kind::Open};
  return {Kind::Multiple, *symbol, divisor};
}

static DimExpr combined(DimExpr::Op op, const DimExpr &a, const DimExpr &b) {
  using Op = DimExpr::Op;
  switch (op) {
  case Op::FloorDiv: return floorDiv(a, b);
  case Op::CeilDiv: return ceilDiv(a, b);
  case Op::Mod: return mod(a, b);
  case Op::Min: return min(a, b);
  default: return max(a, b);
  }
}

/// A polynomial over `symbol` / divisor, written as `symbol`, over that.
static DimExpr restored(const DimExpr &e, SymbolId symbol, int64_t divisor) {
  using Op = DimExpr::Op;
  const DimExpr whole = DimExpr::symbol(symbol), part = floorDiv(whole, DimExpr(divisor));
  auto again = [&](const DimExpr &operand) { return restored(operand, symbol, divisor); };
  if (e.isConst() || (e.op() == Op::Symbol && e != whole))
    return e;
  if (DimBuilder::isRaw(e)) {
    const DimExpr a = again(e.operands()[0]), b = again(e.operands()[1]);
    return e.op() == Op::Add ? a + b : a * b;
  }
  if (e.op() == Op::Add || e.op() == Op::Mul || e == whole) {
    DimExpr sum = 0;
    for (const Term &t : dim::polynomial(e)) {
      if (t.atoms.size() == 1 && t.atoms[0] == whole && t.coefficient != INT64_MIN) {
        const int64_t rest = std::abs(t.coefficient % divisor), sign = t.coefficient < 0 ? -1 : 1;
        sum = sum + whole * DimExpr(t.coefficient / divisor) +
              floorDiv(whole * DimExpr(rest), DimExpr(divisor)) * DimExpr(sign);
        continue;
      }
      int64_t coefficient = t.coefficient;
      DimExpr product = 1;
      for (const DimExpr &atom : t.atoms) {
        const bool divides = atom == whole && coefficient % divisor == 0;
        coefficient /= divides ? divisor : 1;
        product = product * (divides ? whole : atom == whole ? part : again(atom));
      }
      sum = sum + product * DimExpr(coefficient);
    }
    return sum;
  }
  return combined(e.op(), again(e.operands()[0]), again(e.operands()[1]));
}

DimExpr underDivisor(const DimExpr &e, SymbolId symbol, int64_t divisor) {
  if (!mentions(e, symbol))
    return e;
  const DimExpr parts = e.substitute([&](SymbolId s) {
    return s == symbol ? std::optional(DimExpr::symbol(s) * DimExpr(divisor)) : std::nullopt;
  });
  const DimExpr whole = restored(parts, symbol, divisor);
  return isTooLarge(whole) ? e : whole;
}

DimExpr replaceParts(const DimExpr &e, const std::vector<std::pair<DimExpr, DimExpr>> &pairs) {
  using Op = DimExpr::Op;
  if (e.isConst())
    return e;
  if (e.op() == Op::Symbol) {
    const auto at =
        std::find_if(pairs.begin(), pairs.end(), [&](const auto &pair) { return pair.first == e; });
    return at == pairs.end() ? e : at->second;
  }
  if (DimBuilder::isRaw(e)) {
    const DimExpr a = replaceParts(e.operands()[0], pairs),
                  b = replaceParts(e.operands()[1], pairs);
    return e.op() == Op::Add ? a + b : a * b;
  }
  if (e.op() == Op::Add || e.op() == Op::Mul) {
    DimExpr sum = 0;
    for (const Term &t : dim::polynomial(e)) {
      DimExpr product = t.coefficient;
      for (const DimExpr &atom : t.atoms)
        product = product * replaceParts(atom, pairs);
      sum = sum + product;
    }
    return sum;
  }
  const DimExpr own =
      combined(e.op(), replaceParts(e.operands()[0], pairs), replaceParts(e.operands()[1], pairs));
  for (const auto &[from, to] : pairs)
    if (own == from)
      return to;
  return own;
}

/// Never falls as its symbols rise, all of which are at least 0.
static bool isRising(const DimExpr &e) {
  using Op = DimExpr::Op;
  switch (e.op()) {
  case Op::Const:
  case Op::Symbol: return true;
  case Op::FloorDiv:
  case Op::CeilDiv: {
    const DimExpr &divisor = e.operands()[1];
    return divisor.isConst() && divisor.constValue() > 0 && isRising(e.operands()[0]);
  }
  case Op::Min:
  case Op::Max: return isRising(e.operands()[0]) && isRising(e.operands()[1]);
  case Op::Mod: return false;
  case Op::Add:
  case Op::Mul: break;
  }
  if (DimBuilder::isRaw(e))
    return false;
  for (const Term &t : dim::polynomial(e))
    if (!t.atoms.empty() && (t.coefficient < 0 || t.atoms.size() > 1 || !isRising(t.atoms.front())))
      return false;
  return true;
}

std::optional<LeastValue> leastValue(const DimExpr &e, int64_t least,
                                     const std::vector<Symbol> &symbols) {
  const auto symbol = onlySymbol(e);
  if (!symbol || !isRising(e))
    return std::nullopt;
  const Symbol &s = symbols[static_cast<size_t>(*symbol)];
  std::vector<int64_t> values(symbols.size(), 0);
  auto reaches = [&](int64_t v) {
    values[static_cast<size_t>(*symbol)] = v;
    const auto there = e.evaluate(values);
    return !there || *there >= least;
  };
  int64_t low = s.min, high = std::min(s.max, int64_t(1) << 40);
  if (low > high || !reaches(high))
    return std::nullopt;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (reaches(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return LeastValue{*symbol, low};
}

static bool contains(const DimExpr &e, const DimExpr &part) {
  return e == part || std::any_of(e.operands().begin(), e.operands().end(),
                                  [&](const DimExpr &operand) { return contains(operand, part); });
}

/// The polynomial is 0 where one of its terms, no symbol of inputs, is what the others are. Computed symbols go first:
/// the next import may compute another one in its place, and nothing else may hang on it then.
static DimEquation byPart(const Polynomial &p, const std::vector<Symbol> &symbols) {
  DimEquation best{DimEquation::Kind::Open};
  auto isBetter = [&](const DimExpr &part) {
    if (best.kind == DimEquation::Kind::Open)
      return true;
    const bool computed = isComputed(part, symbols), known = isComputed(best.part, symbols);
    if (computed && known)
      return part.symbolId() > best.part.symbolId();
    return computed == known ? best.part.structurallyLess(part) : computed;
  };
  for (size_t i = 0; i < p.size(); ++i) {
    const Term &own = p[i];
    if (own.atoms.size() != 1 || DimBuilder::isRaw(own.atoms[0]) ||
        (own.atoms[0].op() == DimExpr::Op::Symbol && !isComputed(own.atoms[0], symbols)) ||
        (own.coefficient != 1 && own.coefficient != -1))
      continue;
    DimExpr rest = 0;
    for (size_t k = 0; k < p.size(); ++k)
      if (k != i)
        rest = rest + dim::fromPolynomial({p[k]}) * DimExpr(-own.coefficient);
    if (contains(rest, own.atoms[0]) || isTooLarge(rest))
      continue;
    if (isBetter(own.atoms[0]))
      best = {DimEquation::Kind::Part, -1, rest, own.atoms[0]};
  }
  return best;
}

DimEquation solveEquality(const DimExpr &left, const DimExpr &right,
                          const std::vector<Symbol> &symbols) {
  using Kind = DimEquation::Kind;
  if (left == right)
    return {Kind::Always};
  const DimExpr difference = left - right;
  if (isTooLarge(left) || isTooLarge(right) || isTooLarge(difference))
    return {Kind::Open};
  Polynomial p = dim::polynomial(difference);
  if (p.empty())
    return {Kind::Always};
  const DimExpr::Range range = difference.range(symbols);
  if (range.min > 0 || range.max < 0)
    return {Kind::Never};
  if (range.min == 0 && range.max == 0)
    return {Kind::Always};
  for (auto [extremum, x] : {std::pair(&left, &right), std::pair(&right, &left)})
    if (auto room = boundOf(*extremum, *x))
      return {Kind::AtLeast, -1, *room};
  if (!divideByContent(p))
    return {Kind::Open};
  cancelFactors(p, symbols);
  // What is left may be a constant, or the same range may tell more of it.
  DimExpr reduced = 0;
  for (const Term &t : p)
    reduced = reduced + dim::fromPolynomial({t});
  const DimExpr::Range rest = reduced.range(symbols);
  if (rest.min > 0 || rest.max < 0)
    return {Kind::Never};
  DimEquation best{Kind::Open};
  for (size_t i = 0; i < p.size(); ++i) {
    std::optional<DimExpr> value = isolated(p, i);
    if (!value || isComputed(p[i].atoms[0], symbols) || mentionsComputed(*value, symbols))
      continue;
    const SymbolId symbol = p[i].atoms[0].symbolId();
    const bool isFirst = best.kind == Kind::Open;
    const bool isPlainer = !isFirst && subtracts(best.value) && !subtracts(*value);
    const bool isLater =
        !isFirst && subtracts(best.value) == subtracts(*value) && symbol > best.symbol;
    if (isFirst || isPlainer || isLater)
      best = {Kind::Solved, symbol, *value};
  }
  // 3*n = 128 has no solution, whose coefficients share nothing that 128 has not.
  if (best.kind == Kind::Open && p.size() == 2 && p[1].atoms.empty() && p[0].atoms.size() == 1 &&
      p[0].atoms[0].op() == DimExpr::Op::Symbol && p[0].coefficient != 1 && p[0].coefficient != -1)
    return {Kind::Never};
  if (best.kind == Kind::Open)
    best = byResidues(reduced);
  return best.kind == Kind::Open ? byPart(p, symbols) : best;
}

/// max(n, m) - n >= 0: a largest one is at least each of what it is chosen from, a smallest one at most.
static bool isAtLeastByOne(const DimExpr &e, int64_t least, const std::vector<Symbol> &symbols) {
  for (const Term &t : dim::polynomial(e)) {
    if (t.atoms.size() != 1 ||
        t.atoms[0].op() != (t.coefficient > 0 ? DimExpr::Op::Max : DimExpr::Op::Min))
      continue;
    for (const DimExpr &one : t.atoms[0].operands())
      if ((e + (one - t.atoms[0]) * DimExpr(t.coefficient)).range(symbols).min >= least)
        return true;
  }
  return false;
}

bool isAlwaysAtLeast(const DimExpr &e, int64_t least, const std::vector<Symbol> &symbols) {
  if (isAtLeastByOne(e, least, symbols))
    return true;
  const auto symbol = onlySymbol(e);
  const auto period = periodOf(e);
  if (!symbol || !period)
    return false;
  const int64_t from = symbols[static_cast<size_t>(*symbol)].min;
  std::vector<int64_t> values(symbols.size(), 0);
  for (int64_t r = 0; r < *period; ++r) {
    const DimExpr there = e.substitute([&](SymbolId s) {
      return std::optional(DimExpr::symbol(s) * DimExpr(*period) + DimExpr(r));
    });
    values[static_cast<size_t>(*symbol)] = (from - r + *period - 1) / *period;
    const auto first = there.evaluate(values);
    if (!isRising(there) || !first || *first < least)
      return false;
  }
  return true;
}

std::optional<LinearDim> asLinear(const DimExpr &e) {
  const Polynomial p = dim::polynomial(e);
  const bool hasConstant = p.size() == 2 && p[1].atoms.empty();
  if (p.empty() || (p.size() != 1 && !hasConstant) || p[0].atoms.size() != 1 ||
      p[0].atoms[0].op() != DimExpr::Op::Symbol)
    return std::nullopt;
  return LinearDim{p[0].atoms[0].symbolId(), p[0].coefficient, hasConstant ? p[1].coefficient : 0};
}

} // namespace fusec
