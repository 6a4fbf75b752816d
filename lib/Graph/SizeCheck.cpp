#include "Graph/SizeCheck.h"

#include "Support/DimProgram.h"
#include "Support/DimSolve.h"
#include "Support/TunedSizes.h"

#include <algorithm>

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
          round == 0 || (round == 1 && !isFavoured(s)) ? first
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
  return equality == Equality::Exact ? a == b : sameSize(a, b, symbols);
}

bool SizeCheck::sameInRuns(const Shape &a, const Shape &b) const {
  auto isSame = [this](const DimExpr &x, const DimExpr &y) {
    return same(x, y) || (equality == Equality::Sampled && !mustDiffer(x, y) &&
                          seenTo(SizeRule::Kind::Equal, x, y, "", Need::Tested));
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), isSame);
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
  if (room.min >= 0 || (room.max >= 0 && seenTo(SizeRule::Kind::AtLeast, size, least, text, need)))
    return success();
  return misfit({room.max < 0 ? Misfit::Kind::Operands : Misfit::Kind::Less,
                 text + "; these are " + size.str(symbols) + " and " + least.str(symbols),
                 {size, least}});
}

} // namespace fusec
