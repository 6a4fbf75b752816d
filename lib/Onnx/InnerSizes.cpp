#include "Onnx/InnerSizes.h"

#include "Onnx/DimTools.h"
#include "Onnx/GraphBuilder.h"

#include <algorithm>

namespace fusec {

InnerSizes::InnerSizes(NodeImporter &n) : n(n), around(n.graphBuilder().dataSizes.size()) {}

bool InnerSizes::areIn(const std::vector<SymbolId> &used) const {
  const std::vector<SymbolId> &all = n.graphBuilder().dataSizes;
  return std::any_of(all.begin() + static_cast<std::ptrdiff_t>(around), all.end(),
                     [&](SymbolId s) { return std::ranges::count(used, s) != 0; });
}

bool InnerSizes::hasInner(const DimExpr &size) const {
  std::vector<SymbolId> used;
  size.collectSymbols(used);
  return areIn(used);
}

Result<size_t> InnerSizes::of(const DimExpr &ifTrue, const DimExpr &ifFalse, size_t output,
                              size_t axis) {
  const auto known = std::ranges::find_if(found, [&](const InnerSize &size) {
    return size.ifTrue == ifTrue && size.ifFalse == ifFalse;
  });
  if (known != found.end())
    return static_cast<size_t>(known - found.begin());
  const auto first = mostOf(ifTrue), second = mostOf(ifFalse);
  for (const auto &[size, most] : {std::pair(&ifTrue, &first), {&ifFalse, &second}})
    if (!*most || (*most)->isConst(INT64_MAX))
      return hasNoMost(*size, output, axis);
  found.push_back({ifTrue, ifFalse, max(*first, *second), output, axis});
  return found.size() - 1;
}

/// The most that a size may be that branches tell, over symbols around the If; nothing where it is not known.
std::optional<DimExpr> InnerSizes::mostOf(const DimExpr &size) const {
  if (std::set<SymbolId> seen; isMonotone(size, seen) || isLinear(size))
    return atBounds(size, outerGiven());
  const auto bounds = boundsOf(size);
  return bounds ? std::optional(bounds->most) : std::nullopt;
}

/// Bounds of what neither rises nor falls with an inner size, as a remainder, from those of its parts, each for itself.
std::optional<InnerSizes::Bounds> InnerSizes::boundsOf(const DimExpr &size) const {
  if (!hasInner(size))
    return Bounds{size, size};
  if (size.op() == DimExpr::Op::Symbol)
    return Bounds{n.symbols()[static_cast<size_t>(size.symbolId())].min,
                  atBounds(size, outerGiven())};
  std::optional<Bounds> all;
  for (const DimExpr &part : size.operands()) {
    const auto own = boundsOf(part);
    if (!own)
      return std::nullopt;
    all = all ? combined(size.op(), *all, *own) : own;
    if (!all)
      return std::nullopt;
  }
  return all;
}

/// Nothing where a factor or what is divided may be negative, or a divisor 0.
std::optional<InnerSizes::Bounds> InnerSizes::combined(DimExpr::Op op, const Bounds &a,
                                                       const Bounds &b) const {
  const auto leastOf = [&](const Bounds &of) { return of.least.range(n.symbols()).min; };
  const bool isQuotient = leastOf(a) >= 0 && leastOf(b) >= 1;
  switch (op) {
  case DimExpr::Op::Add: return Bounds{a.least + b.least, a.most + b.most};
  case DimExpr::Op::Min: return Bounds{min(a.least, b.least), min(a.most, b.most)};
  case DimExpr::Op::Max: return Bounds{max(a.least, b.least), max(a.most, b.most)};
  case DimExpr::Op::Mul:
    if (b.least.isConst() && b.least == b.most && b.least.constValue() < 0)
      return Bounds{a.most * b.least, a.least * b.least};
    if (leastOf(a) < 0 || leastOf(b) < 0)
      return std::nullopt;
    return Bounds{a.least * b.least, a.most * b.most};
  case DimExpr::Op::FloorDiv:
    if (!isQuotient)
      return std::nullopt;
    return Bounds{floorDiv(a.least, b.most), floorDiv(a.most, b.least)};
  case DimExpr::Op::CeilDiv:
    if (!isQuotient)
      return std::nullopt;
    return Bounds{ceilDiv(a.least, b.most), ceilDiv(a.most, b.least)};
  default: break;
  }
  if (leastOf(b) < 1)
    return std::nullopt;
  const DimExpr largest = b.most - DimExpr(1);
  return Bounds{0, leastOf(a) < 0 ? largest : min(a.most, largest)};
}

/// Whether the size falls or rises with each inner one, so that atBounds is its most: where one stands once, and not
/// below a remainder.
bool InnerSizes::isMonotone(const DimExpr &size, std::set<SymbolId> &seen) const {
  if (size.op() == DimExpr::Op::Symbol)
    return !areIn({size.symbolId()}) || seen.insert(size.symbolId()).second;
  return !hasInner(size) || (size.op() != DimExpr::Op::Mod &&
                             std::ranges::all_of(size.operands(), [&](const DimExpr &part) {
                               return isMonotone(part, seen);
                             }));
}

/// Whether the size is linear in each inner one, as that of the taken branch of an If inside is in its condition: its
/// most lies where each is at a bound, which hangs on none of the others.
bool InnerSizes::isLinear(const DimExpr &size) const {
  if (!hasInner(size))
    return true;
  const auto &parts = size.operands();
  if (size.op() == DimExpr::Op::Symbol)
    return !hasInner(*n.symbols()[static_cast<size_t>(size.symbolId())].bound);
  if (size.op() == DimExpr::Op::Mul)
    for (size_t i = 0; i < parts.size(); ++i)
      if (hasInner(parts[i]) && (parts[i].op() != DimExpr::Op::Symbol ||
                                 std::count(parts.begin(), parts.end(), parts[i]) > 1))
        return false;
  return (size.op() == DimExpr::Op::Mul || size.op() == DimExpr::Op::Add) &&
         std::ranges::all_of(parts, [&](const DimExpr &part) { return isLinear(part); });
}

Diagnostic InnerSizes::hasNoMost(const DimExpr &size, size_t output, size_t axis) const {
  Shape told;
  for (SymbolId s : symbolsOf({size}))
    if (areIn({s}))
      told.push_back(DimExpr::symbol(s));
  return n.needsFixed("dimension " + std::to_string(axis) + " of output " + std::to_string(output) +
                          " is " + size.str(n.symbols()) +
                          " in a branch, where the data tells it: for what it is at most to be "
                          "known, no factor of it may be negative, and no divisor 0",
                      told);
}

/// The symbols, where a size that was told before the If is as good as one of an input.
std::vector<Symbol> InnerSizes::outerGiven() const {
  std::vector<Symbol> symbols = n.symbols();
  for (size_t i = 0; i < around; ++i)
    symbols[static_cast<size_t>(n.graphBuilder().dataSizes[i])].bound.reset();
  return symbols;
}

} // namespace fusec
