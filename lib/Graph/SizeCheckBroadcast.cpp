// Sizes of operands that broadcast: which of two is 1 may be for a run to say.
#include "Graph/SizeCheck.h"

#include <algorithm>
#include <set>

namespace fusec {

/// The larger one of sizes that broadcast together, without the factor that is 0 where one of them is and else 1;
/// another size as it is.
static const DimExpr &withoutEmptyCase(const DimExpr &size) {
  const auto &parts = size.operands();
  if (size.op() != DimExpr::Op::Mul || parts.size() != 2)
    return size;
  for (size_t i = 0; i < 2; ++i) {
    const auto &factor = parts[1 - i].operands();
    if (parts[i].op() == DimExpr::Op::Max && parts[1 - i].op() == DimExpr::Op::Min &&
        std::any_of(factor.begin(), factor.end(), [](const DimExpr &o) { return o.isConst(1); }))
      return parts[i];
  }
  return size;
}

/// Whether `size` is the larger one of sizes that broadcast together.
static bool isLargest(const DimExpr &size) {
  return withoutEmptyCase(size).op() == DimExpr::Op::Max;
}

/// Whether `part` is one of these.
static bool isLargestOf(const DimExpr &size, const DimExpr &part) {
  const auto &parts = withoutEmptyCase(size).operands();
  return isLargest(size) && std::any_of(parts.begin(), parts.end(), [&](const DimExpr &o) {
           return o == part || isLargestOf(o, part);
         });
}

static std::set<SymbolId> symbolsOf(const DimExpr &size) {
  std::vector<SymbolId> used;
  size.collectSymbols(used);
  return {used.begin(), used.end()};
}

/// Whether one symbol at least decides about both: a run that fits all else then hardly makes one of them 1 alone.
static bool hangTogether(const DimExpr &a, const DimExpr &b) {
  const std::set<SymbolId> first = symbolsOf(a), second = symbolsOf(b);
  return std::ranges::any_of(first, [&](SymbolId s) { return second.contains(s); });
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
  const bool isCase = isLargest(a) || isLargest(b) || !hangTogether(a, b);
  const auto byCase = [&](Need need) -> std::optional<DimExpr> {
    const DimExpr &one = first ? a : b, &other = first ? b : a;
    if (first != second &&
        seenTo(SizeRule::Kind::Broadcast, one, other, rule + ", or the first of them 1",
               other.isConst() ? Need::Tested : need))
      return other;
    if (!first || !second || mustDiffer(a, b) ||
        !seenTo(SizeRule::Kind::Either, a, b, rule + ", or one of them 1", need))
      return std::nullopt;
    const DimExpr larger = max(a, b), less = min(a, b);
    return less.range(symbols).min > 0 ? larger : larger * min(less, DimExpr(1));
  };
  if (isCase)
    if (const std::optional<DimExpr> size = byCase(Need::Case))
      return *size;
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
  const Status equal = sameDim(a, b, what);
  // No symbol makes n and min(n, m) equal, and one of them may be 1 alone.
  if (!equal.ok() && symbolsOf(a) != symbolsOf(b))
    if (const std::optional<DimExpr> size = byCase(Need::Unlikely))
      return *size;
  FUSEC_CHECK(equal);
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
                  const std::string &kept, const std::function<std::string(char)> &called) const {
  std::map<char, DimExpr> sizes;
  for (size_t i = 0; i < terms.size(); ++i)
    for (size_t d = 0; d < terms[i].size(); ++d) {
      const char letter = terms[i][d];
      const DimExpr &own = (*shapes[i])[d];
      const std::string what = "the sizes of " + called(letter);
      auto [it, isNew] = sizes.emplace(letter, own);
      DimExpr &size = it->second;
      if (size_t first = terms[i].find(letter); first < d) {
        FUSEC_CHECK(sameDim((*shapes[i])[first], own, what));
      } else if (size.isConst(1)) {
        size = own;
      } else if (!isNew && !own.isConst(1)) {
        if (kept.find(letter) == std::string::npos || mustDiffer(size, own)) {
          FUSEC_CHECK(sameDim(size, own, what));
        } else {
          FUSEC_TRY(size, broadcast(size, own, false));
        }
      }
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
    if (all.ok() && sameInRuns(*all, product) && given[given.size() - (rows ? 1 : 2)].isConst(1))
      return success();
  } else if (product.size() >= 2) {
    return quantParameter(given, product[product.size() - (rows ? 2 : 1)], name);
  }
  return quantParameter(given, DimExpr(1), name);
}

} // namespace fusec
