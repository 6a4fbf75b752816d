#include "Support/DimNode.h"

#include <algorithm>

namespace fusec::dim {

namespace {

constexpr size_t kMostTerms = 1024; // of a sum: as many as a size of a model may have symbols
constexpr size_t kMostTermsOfProduct = 256;
constexpr int64_t kMostNodesOfProduct = 1024; // written out, each factor of a term
constexpr int kMaxDivisionSteps = 64;

bool exprLess(const DimExpr &a, const DimExpr &b) { return a.structurallyLess(b); }

/// Graded order, so that long division ends: more atoms first, then structural, constants last.
bool termLess(const Term &a, const Term &b) {
  if (a.atoms.size() != b.atoms.size())
    return a.atoms.size() > b.atoms.size();
  return std::lexicographical_compare(a.atoms.begin(), a.atoms.end(), b.atoms.begin(),
                                      b.atoms.end(), exprLess);
}

/// Merges equal terms of a sorted list.
std::optional<Polynomial> merged(const Polynomial &list) {
  Polynomial out;
  for (size_t i = 0; i < list.size();) {
    Wide total = 0;
    size_t j = i;
    for (; j < list.size() && list[j].atoms == list[i].atoms; ++j)
      total += list[j].coefficient;
    if (!fits(total) || out.size() == kMostTerms)
      return std::nullopt;
    if (total != 0)
      out.push_back({list[i].atoms, static_cast<int64_t>(total)});
    i = j;
  }
  return out;
}

std::optional<Polynomial> normalise(Polynomial list) {
  std::stable_sort(list.begin(), list.end(), termLess);
  return merged(list);
}

int64_t nodesOf(const Polynomial &p) {
  int64_t nodes = 0;
  for (const Term &t : p)
    for (const DimExpr &atom : t.atoms)
      nodes += sizeOf(atom).nodes;
  return nodes;
}

bool isConstant(const Polynomial &p) { return p.empty() || (p.size() == 1 && p[0].atoms.empty()); }

/// The monomial a / b, if b divides a.
std::optional<Term> divideTerm(const Term &a, const Term &b) {
  if (b.coefficient == 0 || (a.coefficient == INT64_MIN && b.coefficient == -1) ||
      a.coefficient % b.coefficient != 0)
    return std::nullopt;
  Term quotient{{}, a.coefficient / b.coefficient};
  size_t j = 0;
  for (const DimExpr &atom : a.atoms) {
    if (j < b.atoms.size() && atom == b.atoms[j])
      ++j;
    else
      quotient.atoms.push_back(atom);
  }
  if (j != b.atoms.size())
    return std::nullopt;
  return quotient;
}

std::optional<Polynomial> negated(Polynomial p) {
  for (Term &t : p) {
    if (t.coefficient == INT64_MIN)
      return std::nullopt;
    t.coefficient = -t.coefficient;
  }
  return p;
}

} // namespace

Polynomial polynomial(const DimExpr &e) {
  auto term = [](const DimExpr &t) -> Term {
    if (t.isConst())
      return {{}, t.constValue()};
    if (t.op() != DimExpr::Op::Mul || DimBuilder::isRaw(t))
      return {{t}, 1};
    Term out{t.operands(), 1};
    if (out.atoms.back().isConst()) {
      out.coefficient = out.atoms.back().constValue();
      out.atoms.pop_back();
    }
    return out;
  };
  Polynomial out;
  if (e.op() == DimExpr::Op::Add && !DimBuilder::isRaw(e))
    for (const DimExpr &t : e.operands())
      out.push_back(term(t));
  else if (!e.isConst(0))
    out.push_back(term(e));
  return out;
}

DimExpr fromPolynomial(const Polynomial &terms) {
  std::vector<DimExpr> operands;
  for (const Term &t : terms) {
    std::vector<DimExpr> factors = t.atoms;
    if (factors.empty() || t.coefficient != 1)
      factors.push_back(t.coefficient);
    operands.push_back(
        factors.size() == 1 ? factors[0] : DimBuilder::make(DimExpr::Op::Mul, std::move(factors)));
  }
  if (operands.empty())
    return 0;
  return operands.size() == 1 ? operands[0]
                              : DimBuilder::make(DimExpr::Op::Add, std::move(operands));
}

std::optional<Polynomial> sum(const Polynomial &a, const Polynomial &b) {
  Polynomial all;
  all.reserve(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all), termLess);
  return merged(all);
}

std::optional<Polynomial> product(const Polynomial &a, const Polynomial &b) {
  // Each factor stands once for each term of the other: sums of many symbols stay as written.
  if (!isConstant(a) && !isConstant(b) &&
      (a.size() * b.size() > kMostTermsOfProduct ||
       nodesOf(a) * static_cast<int64_t>(b.size()) + nodesOf(b) * static_cast<int64_t>(a.size()) >
           kMostNodesOfProduct))
    return std::nullopt;
  Polynomial all;
  for (const Term &x : a)
    for (const Term &y : b) {
      Wide c = static_cast<Wide>(x.coefficient) * y.coefficient;
      if (!fits(c))
        return std::nullopt;
      Term t{{}, static_cast<int64_t>(c)};
      std::merge(x.atoms.begin(), x.atoms.end(), y.atoms.begin(), y.atoms.end(),
                 std::back_inserter(t.atoms), exprLess);
      all.push_back(std::move(t));
    }
  return normalise(std::move(all));
}

Division divide(const Polynomial &a, const Polynomial &b) {
  Division d{{}, a};
  if (b.empty())
    return d;
  if (b.size() == 1) {
    Polynomial rest;
    for (const Term &t : a) {
      if (auto q = divideTerm(t, b[0]))
        d.quotient.push_back(std::move(*q));
      else
        rest.push_back(t);
    }
    // Dividing keeps terms distinct but not their order when atoms drop out of the middle.
    if (auto q = normalise(d.quotient))
      return {std::move(*q), std::move(rest)};
    return {{}, a};
  }
  // Long division by a sum is used only when nothing remains.
  Polynomial rest = a, quotient;
  for (int step = 0; step < kMaxDivisionSteps && !rest.empty(); ++step) {
    auto q = divideTerm(rest[0], b[0]);
    if (!q)
      return d;
    auto taken = product({*q}, b);
    auto minus = taken ? negated(*taken) : std::nullopt;
    auto next = minus ? sum(rest, *minus) : std::nullopt;
    if (!next)
      return d;
    quotient.push_back(std::move(*q));
    rest = std::move(*next);
  }
  if (rest.empty())
    if (auto q = normalise(std::move(quotient)))
      return {std::move(*q), {}};
  return d;
}

} // namespace fusec::dim
