// What is known about the values of index nodes: numeric ranges, symbolic bounds and exact quotients.
#include "Expr/IndexAlgebra.h"

#include <algorithm>

namespace fusec {
namespace {

constexpr int64_t kLow = INT64_MIN, kHigh = INT64_MAX; // "unbounded" on either side

int64_t saturatingAdd(int64_t a, int64_t b, bool upper) {
  int64_t limit = upper ? kHigh : kLow, r;
  if (a == limit || b == limit)
    return limit;
  return __builtin_add_overflow(a, b, &r) ? (a > 0 ? kHigh : kLow) : r;
}

int64_t saturatingMul(int64_t a, int64_t b) {
  int64_t r;
  if (a == 0 || b == 0)
    return 0;
  bool negative = (a < 0) != (b < 0);
  if (a == kLow || a == kHigh || b == kLow || b == kHigh || __builtin_mul_overflow(a, b, &r))
    return negative ? kLow : kHigh;
  return r;
}

int64_t floorDivide(int64_t a, int64_t b) { // b > 0
  if (a == kLow || a == kHigh)
    return a;
  return a / b - (a % b < 0);
}

IndexRange make(int64_t min, int64_t max) { return {min, max, std::nullopt}; }

IndexRange productRange(const IndexRange &a, const IndexRange &b) {
  int64_t p[] = {saturatingMul(a.min, b.min), saturatingMul(a.min, b.max),
                 saturatingMul(a.max, b.min), saturatingMul(a.max, b.max)};
  return make(*std::min_element(p, p + 4), *std::max_element(p, p + 4));
}

IndexRange typeRange(DType t) {
  switch (t) {
  case DType::Bool: return make(0, 1);
  case DType::I8: return make(INT8_MIN, INT8_MAX);
  case DType::I16: return make(INT16_MIN, INT16_MAX);
  case DType::I32: return make(INT32_MIN, INT32_MAX);
  case DType::U8: return make(0, UINT8_MAX);
  case DType::U16: return make(0, UINT16_MAX);
  case DType::U32: return make(0, UINT32_MAX);
  default: return make(kLow, kHigh);
  }
}

IndexRange dimRange(const DimExpr &d, const std::vector<Symbol> &symbols) {
  auto r = d.range(symbols);
  return make(r.min, r.max);
}

/// A product of factors with a coefficient.
struct Monomial {
  int64_t coefficient;
  std::vector<DimExpr> factors;
};

std::vector<Monomial> monomials(const DimExpr &d) {
  std::vector<Monomial> out;
  auto one = [&](const DimExpr &term) {
    Monomial m{1, {}};
    auto factor = [&](const DimExpr &f) {
      if (f.isConst())
        m.coefficient *= f.constValue();
      else
        m.factors.push_back(f);
    };
    if (term.op() == DimExpr::Op::Mul)
      for (const DimExpr &f : term.operands())
        factor(f);
    else
      factor(term);
    out.push_back(std::move(m));
  };
  if (d.op() == DimExpr::Op::Add)
    for (const DimExpr &term : d.operands())
      one(term);
  else
    one(d);
  return out;
}

std::optional<DimExpr> exactQuotient(const Monomial &a, const Monomial &d) {
  if (d.coefficient == 0 || a.coefficient % d.coefficient != 0)
    return std::nullopt;
  std::vector<DimExpr> left = a.factors;
  for (const DimExpr &f : d.factors) {
    auto it = std::find(left.begin(), left.end(), f);
    if (it == left.end())
      return std::nullopt;
    left.erase(it);
  }
  DimExpr q = a.coefficient / d.coefficient;
  for (const DimExpr &f : left)
    q = q * f;
  return q;
}

} // namespace

std::optional<DimExpr> exactQuotient(const DimExpr &a, const DimExpr &d) {
  if (d.isConst(1))
    return a;
  if (a.isConst() && d.isConst()) {
    if (d.constValue() == 0 || d.constValue() == -1 || a.constValue() % d.constValue() != 0)
      return std::nullopt;
    return DimExpr(a.constValue() / d.constValue());
  }
  if (a.isConst(0))
    return a;
  auto numerator = monomials(a), divisor = monomials(d);
  if (divisor.size() == 1) {
    DimExpr q = 0;
    for (const Monomial &m : numerator) {
      auto part = exactQuotient(m, divisor[0]);
      if (!part)
        return std::nullopt;
      q = q + *part;
    }
    return q;
  }
  // Long division: a quotient of two terms must leave fewer terms.
  for (const Monomial &m : numerator) {
    auto part = exactQuotient(m, divisor[0]);
    if (!part)
      continue;
    DimExpr rest = a - *part * d;
    if (rest.isConst(0))
      return part;
    if (monomials(rest).size() >= numerator.size())
      continue;
    if (auto more = exactQuotient(rest, d))
      return *part + *more;
  }
  return std::nullopt;
}

IndexRange rangeOfExtent(const DimExpr &extent, const std::vector<Symbol> &symbols) {
  auto r = extent.range(symbols);
  IndexRange out{0, r.max == kHigh ? kHigh : std::max<int64_t>(r.max - 1, 0), std::nullopt};
  if (!extent.isConst())
    out.extent = extent;
  return out;
}

IndexRange Body::rangeOf(NodeId id) const {
  auto sameRange = [](const IndexRange &a, const IndexRange &b) {
    return a.min == b.min && a.max == b.max;
  };
  if (rangeCacheAxes.size() != axisRanges.size() ||
      !std::equal(axisRanges.begin(), axisRanges.end(), rangeCacheAxes.begin(), sameRange)) {
    rangeCacheAxes = axisRanges;
    rangeKnown.clear();
  }
  rangeKnown.resize(nodes.size());
  rangeCache.resize(nodes.size());
  if (rangeKnown[id])
    return rangeCache[id];
  const Scalar &s = nodes[id];
  auto of = [&](size_t i) { return rangeOf(s.args[i]); };
  IndexRange r = typeRange(s.type);
  switch (s.op) {
  case ScalarOp::Const: r = make(s.imm, s.imm); break;
  case ScalarOp::Axis:
    if (static_cast<size_t>(s.index) < axisRanges.size())
      r = axisRanges[s.index];
    break;
  case ScalarOp::Step: r = stepRange; break;
  case ScalarOp::Dim: r = dimRange(s.dim, symbolTable); break;
  case ScalarOp::Add:
  case ScalarOp::Sub: {
    IndexRange a = of(0), b = of(1);
    bool sub = s.op == ScalarOp::Sub;
    if (sub)
      b = productRange(b, make(-1, -1));
    r = make(saturatingAdd(a.min, b.min, false), saturatingAdd(a.max, b.max, true));
    break;
  }
  case ScalarOp::Neg: r = productRange(of(0), make(-1, -1)); break;
  case ScalarOp::Mul: r = productRange(of(0), of(1)); break;
  case ScalarOp::FloorDiv: {
    IndexRange a = of(0), b = of(1);
    if (b.min >= 1) {
      int64_t most = b.max == kHigh ? kHigh : b.max;
      r = make(a.min >= 0 ? floorDivide(a.min, most) : floorDivide(a.min, b.min),
               a.max >= 0 ? floorDivide(a.max, b.min) : floorDivide(a.max, most));
      if (a.min >= 0 && a.min == kHigh)
        r.min = 0;
    }
    break;
  }
  case ScalarOp::FloorMod: {
    IndexRange a = of(0), b = of(1);
    if (b.min >= 1) {
      r = make(0, b.max == kHigh ? kHigh : b.max - 1);
      if (a.min >= 0 && a.max < b.min)
        r = a;
      else if (a.min >= 0)
        r.max = std::min(r.max, a.max);
    }
    break;
  }
  case ScalarOp::Min: {
    IndexRange a = of(0), b = of(1);
    r = make(std::min(a.min, b.min), std::min(a.max, b.max));
    break;
  }
  case ScalarOp::Max: {
    IndexRange a = of(0), b = of(1);
    r = make(std::max(a.min, b.min), std::max(a.max, b.max));
    break;
  }
  case ScalarOp::Select: {
    IndexRange a = of(1), b = of(2);
    r = make(std::min(a.min, b.min), std::max(a.max, b.max));
    break;
  }
  case ScalarOp::Cast:
    if (!isFloat(nodes[s.args[0]].type) && s.type != DType::Bool) {
      IndexRange a = of(0);
      if (nodes[s.args[0]].type != DType::U64 && a.min >= r.min && a.max <= r.max)
        r = a;
    }
    break;
  default: break;
  }
  // A narrower type than i64 wraps: then only the type's own range holds.
  if (s.type != DType::I64 && isInteger(s.type)) {
    IndexRange t = typeRange(s.type);
    if (r.min < t.min || r.max > t.max)
      r = t;
  }
  rangeKnown.resize(nodes.size());
  rangeCache.resize(nodes.size());
  rangeKnown[id] = true;
  rangeCache[id] = r;
  return r;
}

bool IndexAlgebra::isPositive(const DimExpr &d) {
  if (d.isConst())
    return d.constValue() >= 1;
  return d.range(body.symbolTable).min >= 1;
}

bool IndexAlgebra::positiveConstant(NodeId id, DimExpr &value) {
  const Scalar &s = body[id];
  if (s.op != ScalarOp::Const && s.op != ScalarOp::Dim)
    return false;
  value = s.op == ScalarOp::Const ? DimExpr(s.imm) : s.dim;
  return isPositive(value);
}

/// Inclusive symbolic bound of an atom.
std::optional<DimExpr> IndexAlgebra::bound(NodeId atom, bool upper) {
  const Scalar &s = body[atom];
  IndexRange r = body.rangeOf(atom);
  if (upper) {
    const auto leafExtent =
        s.op == ScalarOp::Axis && static_cast<size_t>(s.index) < body.axisRanges.size()
            ? body.axisRanges[s.index].extent
        : s.op == ScalarOp::Step ? body.stepRange.extent
                                 : std::nullopt;
    if (leafExtent)
      return *leafExtent - 1;
    DimExpr d;
    if (s.op == ScalarOp::FloorMod && positiveConstant(s.args[1], d) && !d.isConst())
      return d - 1;
    if (s.op == ScalarOp::FloorDiv && positiveConstant(s.args[1], d) && r.max == kHigh) {
      DimExpr most = 0;
      LinearForm f = linear(s.args[0]);
      most = f.constant;
      for (const auto &t : f.terms) {
        auto c = t.coefficient.range(body.symbolTable);
        auto b = c.min >= 0   ? bound(t.atom, true)
                 : c.max <= 0 ? bound(t.atom, false)
                              : std::nullopt;
        if (!b)
          return std::nullopt;
        most = most + t.coefficient * *b;
      }
      // floor(most / d) written so that exact multiples cancel: (q*d - 1) floordiv d = q - 1.
      if (auto q = exactQuotient(most + 1, d))
        return *q - 1;
      return floorDiv(most, d);
    }
  }
  int64_t v = upper ? r.max : r.min;
  if (v == kLow || v == kHigh)
    return std::nullopt;
  return DimExpr(v);
}

bool IndexAlgebra::provablyNonNegative(const LinearForm &f) {
  // Numerically first: cheap, and it knows ranges that no expression shows.
  int64_t least = f.constant.range(body.symbolTable).min;
  bool symbolic = !f.constant.isConst();
  for (const auto &t : f.terms) {
    auto c = t.coefficient.range(body.symbolTable);
    IndexRange r = body.rangeOf(t.atom);
    least = saturatingAdd(least, productRange(make(c.min, c.max), r).min, false);
    const Scalar &s = body[t.atom];
    symbolic |= !t.coefficient.isConst() || r.max == kHigh || s.op != ScalarOp::Axis ||
                static_cast<size_t>(s.index) >= body.axisRanges.size() ||
                body.axisRanges[s.index].extent.has_value();
  }
  if (least >= 0)
    return true;
  if (!symbolic)
    return false;
  DimExpr lowest = f.constant;
  for (const auto &t : f.terms) {
    auto c = t.coefficient.range(body.symbolTable);
    auto b = c.min >= 0 ? bound(t.atom, false) : c.max <= 0 ? bound(t.atom, true) : std::nullopt;
    if (!b)
      return false;
    lowest = lowest + t.coefficient * *b;
  }
  return lowest.range(body.symbolTable).min >= 0;
}

bool IndexAlgebra::holdsData(NodeId id) {
  const Scalar &s = body[id];
  switch (s.op) {
  case ScalarOp::Const:
  case ScalarOp::Dim:
  case ScalarOp::Axis:
  case ScalarOp::Step: return false;
  case ScalarOp::Add:
  case ScalarOp::Sub:
  case ScalarOp::Mul:
  case ScalarOp::Neg:
  case ScalarOp::FloorDiv:
  case ScalarOp::FloorMod:
  case ScalarOp::Min:
  case ScalarOp::Max:
    for (NodeId a : s.args)
      if (holdsData(a))
        return true;
    return false;
  default: return true;
  }
}

/// Whether intermediate results of the sum might leave int64: never for pure index arithmetic.
bool IndexAlgebra::mayWrap(const LinearForm &f) {
  if (f.terms.size() <= 1 && f.constant.isConst(0) &&
      (f.terms.empty() || f.terms[0].coefficient.isConst(1)))
    return false;
  int64_t most = 0;
  for (const auto &t : f.terms) {
    if (!holdsData(t.atom))
      continue;
    IndexRange r = body.rangeOf(t.atom);
    if (r.min == kLow || r.max == kHigh || !t.coefficient.isConst())
      return true;
    IndexRange p = productRange(r, make(t.coefficient.constValue(), t.coefficient.constValue()));
    most = saturatingAdd(most, std::max(p.max, p.min == kLow ? kHigh : -p.min), true);
  }
  return most >= kHigh / 2; // the index part is far below 2^62
}

} // namespace fusec
