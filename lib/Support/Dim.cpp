#include "Support/Dim.h"
#include "Support/DimNode.h"

#include <algorithm>
#include <numeric>

// The normal form is a polynomial: products are distributed over sums and equal monomials merged. Division and
// remainder first hand over what divides exactly:
//   floordiv(n*768 + h*64 + 65, 64)  ->  n*12 + h + 1
// A division by an expression that can be zero is simplified as if it were not: where the original has no
// value, the simplified form may have one.

namespace fusec {

using dim::fits;
using dim::Polynomial;
using dim::Term;
using dim::Wide;

static size_t mix(size_t h, size_t v) { return (h ^ v) * 0x9e3779b97f4a7c15ull + (h >> 29); }

DimExpr::DimExpr(int64_t value) {
  auto make = [](int64_t v) {
    Node n;
    n.value = v;
    n.hash = mix(1, static_cast<size_t>(v));
    return std::make_shared<const Node>(std::move(n));
  };
  // Most expressions are small constants: one node each, for the whole compiler.
  constexpr int64_t kFirst = -1, kCount = 1026;
  static const std::vector<std::shared_ptr<const Node>> small = [&] {
    std::vector<std::shared_ptr<const Node>> nodes;
    nodes.reserve(kCount);
    for (int64_t i = 0; i < kCount; ++i)
      nodes.push_back(make(kFirst + i));
    return nodes;
  }();
  node = value >= kFirst && value < kFirst + kCount ? small[static_cast<size_t>(value - kFirst)]
                                                    : make(value);
}

DimExpr DimExpr::symbol(SymbolId id) {
  Node n;
  n.op = Op::Symbol;
  n.value = id;
  n.hash = mix(2, static_cast<size_t>(id));
  return DimExpr(std::make_shared<const Node>(std::move(n)));
}

// All of them are one expression, which is equal to itself and cancels in differences. Nobody may compare or subtract
// sizes of which one may be too large before asking `isTooLarge`: importing a model refuses a size beyond
// kLargestSizeOfModel, far below, and what later stages make of sizes that passed stays below kLargestDim.
DimExpr DimBuilder::tooLarge() {
  static const DimExpr stands = [] {
    DimExpr::Node n;
    n.op = DimExpr::Op::FloorDiv;
    n.operands = {DimExpr(0), DimExpr(0)};
    n.tooLarge = true;
    return DimExpr(std::make_shared<const DimExpr::Node>(std::move(n)));
  }();
  return stands;
}

DimExpr DimBuilder::make(DimExpr::Op op, std::vector<DimExpr> operands, bool raw) {
  DimExpr::Node n;
  n.op = op;
  n.raw = raw;
  n.hash = mix(3 + static_cast<size_t>(op), raw);
  for (const DimExpr &e : operands) {
    n.hash = mix(n.hash, e.hash());
    n.size.depth = std::max(n.size.depth, node(e).size.depth);
    n.size.nodes += node(e).size.nodes;
    if (node(e).tooLarge || n.size.nodes > kLargestDim.nodes)
      return tooLarge();
  }
  const bool isNormal = !raw && (op == DimExpr::Op::Add || op == DimExpr::Op::Mul);
  n.size.depth += raw ? 2 : isNormal ? 0 : 1; // as their text has it
  if (n.size.depth > kLargestDim.depth)
    return tooLarge();
  n.operands = std::move(operands);
  return DimExpr(std::make_shared<const DimExpr::Node>(std::move(n)));
}

DimSize sizeOf(const DimExpr &e) { return DimBuilder::node(e).size; }

bool isTooLarge(const DimExpr &e, const DimSize &limit) {
  const auto &n = DimBuilder::node(e);
  return n.tooLarge || n.size.depth > limit.depth || n.size.nodes > limit.nodes;
}

bool DimExpr::isConst() const { return node->op == Op::Const; }
int64_t DimExpr::constValue() const {
  assert(isConst());
  return node->value;
}
DimExpr::Op DimExpr::op() const { return node->op; }
SymbolId DimExpr::symbolId() const {
  assert(node->op == Op::Symbol);
  return static_cast<SymbolId>(node->value);
}
const std::vector<DimExpr> &DimExpr::operands() const { return node->operands; }
size_t DimExpr::hash() const { return node->hash; }

bool DimExpr::operator==(const DimExpr &other) const {
  const Node &a = *node, &b = *other.node;
  return &a == &b || (a.hash == b.hash && a.op == b.op && a.raw == b.raw && a.value == b.value &&
                      a.operands == b.operands);
}

bool DimExpr::structurallyLess(const DimExpr &other) const {
  const Node &a = *node, &b = *other.node;
  if (&a == &b)
    return false;
  if (a.op != b.op)
    return a.op < b.op;
  if (a.raw != b.raw)
    return b.raw;
  if (a.value != b.value)
    return a.value < b.value;
  return std::lexicographical_compare(
      a.operands.begin(), a.operands.end(), b.operands.begin(), b.operands.end(),
      [](const DimExpr &x, const DimExpr &y) { return x.structurallyLess(y); });
}

// Constants, and what changes nothing, take no detour over polynomials.

DimExpr operator+(const DimExpr &a, const DimExpr &b) {
  if (a.isConst(0))
    return b;
  if (b.isConst(0))
    return a;
  if (int64_t value = 0;
      a.isConst() && b.isConst() && !__builtin_add_overflow(a.constValue(), b.constValue(), &value))
    return value;
  if (auto s = dim::sum(dim::polynomial(a), dim::polynomial(b)))
    return dim::fromPolynomial(*s);
  return DimBuilder::make(DimExpr::Op::Add, {a, b}, /*raw=*/true);
}

DimExpr operator-(const DimExpr &a, const DimExpr &b) { return a + b * DimExpr(-1); }

DimExpr operator*(const DimExpr &a, const DimExpr &b) {
  if (a.isConst(0) || b.isConst(1))
    return a;
  if (b.isConst(0) || a.isConst(1))
    return b;
  if (int64_t value = 0;
      a.isConst() && b.isConst() && !__builtin_mul_overflow(a.constValue(), b.constValue(), &value))
    return value;
  if (auto p = dim::product(dim::polynomial(a), dim::polynomial(b)))
    return dim::fromPolynomial(*p);
  return DimBuilder::make(DimExpr::Op::Mul, {a, b}, /*raw=*/true);
}

/// Moves whole multiples of `c` > 0 from `rest` to `quotient` (9*n = 8*n + n) and divides out what the remaining
/// coefficients share with c; c*quotient + rest keeps its floor quotient by c.
static void reduceByConstant(Polynomial &quotient, Polynomial &rest, int64_t &c) {
  Polynomial whole;
  for (const Term &t : rest)
    if (!t.atoms.empty() && t.coefficient / c != 0)
      whole.push_back({t.atoms, t.coefficient / c});
  if (auto q = dim::sum(quotient, whole)) {
    quotient = std::move(*q);
    for (Term &t : rest)
      if (!t.atoms.empty())
        t.coefficient %= c;
  }
  int64_t shared = c;
  for (const Term &t : rest)
    if (!t.atoms.empty())
      shared = std::gcd(shared, t.coefficient); // INT64_MIN: its gcd with c > 0 fits
  for (Term &t : rest)
    t.coefficient = static_cast<int64_t>(dim::floorDivide(t.coefficient, shared));
  c /= shared;
  if (!rest.empty() && rest.back().atoms.empty()) {
    int64_t k = rest.back().coefficient;
    int64_t times = static_cast<int64_t>(dim::floorDivide(k, c));
    if (auto q = dim::sum(quotient, times ? Polynomial{{{}, times}} : Polynomial{})) {
      quotient = std::move(*q);
      rest.back().coefficient = k - times * c;
    }
    if (rest.back().coefficient == 0)
      rest.pop_back();
  }
}

/// (floordiv(a, c) + k) / d, rounded down, is (a + k*c) / (c*d).
static std::optional<DimExpr> dividedOnce(const Polynomial &sum, int64_t divisor) {
  const bool hasConstant = sum.size() == 2 && sum[1].atoms.empty();
  if ((sum.size() != 1 && !hasConstant) || sum[0].atoms.size() != 1 || sum[0].coefficient != 1)
    return std::nullopt;
  const DimExpr &inner = sum[0].atoms[0];
  if (inner.op() != DimExpr::Op::FloorDiv || !inner.operands()[1].isConst() ||
      inner.operands()[1].constValue() <= 0)
    return std::nullopt;
  const int64_t first = inner.operands()[1].constValue(),
                constant = hasConstant ? sum[1].coefficient : 0;
  const Wide both = static_cast<Wide>(first) * divisor, more = static_cast<Wide>(first) * constant;
  if (!fits(both) || !fits(more))
    return std::nullopt;
  return floorDiv(inner.operands()[0] + DimExpr(static_cast<int64_t>(more)),
                  DimExpr(static_cast<int64_t>(both)));
}

DimExpr floorDiv(const DimExpr &a, const DimExpr &b) {
  if (b.isConst(0))
    return DimBuilder::make(DimExpr::Op::FloorDiv, {a, b});
  if (a.isConst() && b.isConst()) {
    Wide q = dim::floorDivide(a.constValue(), b.constValue());
    return fits(q) ? DimExpr(static_cast<int64_t>(q))
                   : DimBuilder::make(DimExpr::Op::FloorDiv, {a, b});
  }
  dim::Division d = dim::divide(dim::polynomial(a), dim::polynomial(b));
  DimExpr divisor = b;
  if (b.isConst() && b.constValue() > 0) {
    int64_t c = b.constValue();
    reduceByConstant(d.quotient, d.rest, c);
    divisor = c;
  }
  if (d.rest.empty())
    return dim::fromPolynomial(d.quotient);
  DimExpr rest = dim::fromPolynomial(d.rest);
  if (divisor.isConst(1))
    return dim::fromPolynomial(d.quotient) + rest;
  if (rest.isConst() && divisor.isConst()) // 0 < rest < divisor
    return dim::fromPolynomial(d.quotient) + floorDiv(rest, divisor);
  if (divisor.isConst() && divisor.constValue() > 0)
    if (auto once = dividedOnce(d.rest, divisor.constValue()))
      return dim::fromPolynomial(d.quotient) + *once;
  return dim::fromPolynomial(d.quotient) + DimBuilder::make(DimExpr::Op::FloorDiv, {rest, divisor});
}

DimExpr ceilDiv(const DimExpr &a, const DimExpr &b) {
  if (b.isConst(0))
    return DimBuilder::make(DimExpr::Op::CeilDiv, {a, b});
  if (b.isConst() && b.constValue() > 0) // one form for ceildiv(n, 8) and floordiv(n + 7, 8)
    return floorDiv(a + DimExpr(b.constValue() - 1), b);
  if (a.isConst() && b.isConst()) {
    Wide q = dim::ceilDivide(a.constValue(), b.constValue());
    return fits(q) ? DimExpr(static_cast<int64_t>(q))
                   : DimBuilder::make(DimExpr::Op::CeilDiv, {a, b});
  }
  dim::Division d = dim::divide(dim::polynomial(a), dim::polynomial(b));
  DimExpr whole = dim::fromPolynomial(d.quotient);
  if (d.rest.empty())
    return whole;
  return whole + DimBuilder::make(DimExpr::Op::CeilDiv, {dim::fromPolynomial(d.rest), b});
}

DimExpr mod(const DimExpr &a, const DimExpr &b) {
  if (b.isConst(0))
    return DimBuilder::make(DimExpr::Op::Mod, {a, b});
  if (a.isConst() && b.isConst())
    return static_cast<int64_t>(dim::floorModulo(a.constValue(), b.constValue()));
  Polynomial rest = dim::divide(dim::polynomial(a), dim::polynomial(b)).rest;
  if (b.isConst() && b.constValue() > 0)
    for (Term &t : rest)
      t.coefficient = static_cast<int64_t>(dim::floorModulo(t.coefficient, b.constValue()));
  DimExpr e = dim::fromPolynomial(rest);
  if (e.isConst())
    return e.isConst(0) ? e : b.isConst() ? mod(e, b) : DimBuilder::make(DimExpr::Op::Mod, {e, b});
  bool nested = e.op() == DimExpr::Op::Mod && b.isConst() && b.constValue() > 0 &&
                e.operands()[1].isConst() && e.operands()[1].constValue() > 0 &&
                e.operands()[1].constValue() % b.constValue() == 0;
  if (nested)
    return mod(e.operands()[0], b);
  return DimBuilder::make(DimExpr::Op::Mod, {e, b});
}

/// a <= b where that is known for all symbol values. Asked both ways: one of the differences may overflow.
static std::optional<bool> lessOrEqual(const DimExpr &a, const DimExpr &b) {
  if (a.isConst() && b.isConst())
    return a.constValue() <= b.constValue();
  if (DimExpr d = a - b; d.isConst())
    return d.constValue() <= 0;
  if (DimExpr d = b - a; d.isConst())
    return d.constValue() >= 0;
  return std::nullopt;
}

/// `e` as an extremum and what is added to it: max(n, 1) - 1 is max(n - 1, 0). What holds none is all rest.
static std::pair<DimExpr, DimExpr> extremumAndRest(DimExpr::Op op, const DimExpr &e) {
  if (e.op() != DimExpr::Op::Add || DimBuilder::isRaw(e))
    return {e, 0};
  const auto isExtremum = [&](const DimExpr &term) { return term.op() == op; };
  const auto &terms = e.operands();
  const auto at = std::find_if(terms.begin(), terms.end(), isExtremum);
  if (at == terms.end() || std::find_if(at + 1, terms.end(), isExtremum) != terms.end())
    return {e, 0};
  return {*at, e - *at};
}

/// Min and Max share everything but the choice between two operands with a known difference.
static DimExpr extremum(DimExpr::Op op, const DimExpr &a, const DimExpr &b) {
  std::vector<DimExpr> list;
  auto flatten = [&](const DimExpr &e) {
    auto [rest, more] = extremumAndRest(op, e);
    for (; rest.op() == op; rest = DimExpr(rest.operands()[0]))
      list.push_back(rest.operands()[1] + more);
    list.push_back(rest + more);
  };
  flatten(a);
  flatten(b);
  for (size_t i = 0; i < list.size(); ++i)
    for (size_t j = i + 1; j < list.size();) {
      std::optional<bool> firstIsLess = lessOrEqual(list[i], list[j]);
      if (!firstIsLess) {
        ++j;
        continue;
      }
      bool keepFirst = *firstIsLess == (op == DimExpr::Op::Min);
      if (!keepFirst)
        list[i] = list[j];
      list.erase(list.begin() + static_cast<long>(j));
    }
  std::sort(list.begin(), list.end(), [](const DimExpr &x, const DimExpr &y) {
    return x.isConst() != y.isConst() ? y.isConst() : x.structurallyLess(y);
  });
  DimExpr out = list[0];
  for (size_t i = 1; i < list.size(); ++i)
    out = DimBuilder::make(op, {out, list[i]});
  return out;
}

DimExpr min(const DimExpr &a, const DimExpr &b) { return extremum(DimExpr::Op::Min, a, b); }
DimExpr max(const DimExpr &a, const DimExpr &b) { return extremum(DimExpr::Op::Max, a, b); }

DimExpr DimExpr::substitute(const std::function<std::optional<DimExpr>(SymbolId)> &map) const {
  if (op() == Op::Const)
    return *this;
  if (op() == Op::Symbol) {
    auto replacement = map(symbolId());
    return replacement ? *replacement : *this;
  }
  DimExpr out = operands()[0].substitute(map);
  for (size_t i = 1; i < operands().size(); ++i) {
    DimExpr next = operands()[i].substitute(map);
    switch (op()) {
    case Op::Add: out = out + next; break;
    case Op::Mul: out = out * next; break;
    case Op::FloorDiv: out = floorDiv(out, next); break;
    case Op::CeilDiv: out = ceilDiv(out, next); break;
    case Op::Mod: out = mod(out, next); break;
    case Op::Min: out = fusec::min(out, next); break;
    case Op::Max: out = fusec::max(out, next); break;
    case Op::Const:
    case Op::Symbol: break;
    }
  }
  return out;
}

DimExpr numElements(const Shape &shape) {
  DimExpr n = 1;
  for (const DimExpr &d : shape)
    n = n * d;
  return n;
}

bool isStatic(const Shape &shape) {
  return std::all_of(shape.begin(), shape.end(), [](const DimExpr &d) { return d.isConst(); });
}

std::vector<int64_t> staticDims(const Shape &shape) {
  std::vector<int64_t> dims;
  for (const DimExpr &d : shape)
    dims.push_back(d.constValue());
  return dims;
}

} // namespace fusec
