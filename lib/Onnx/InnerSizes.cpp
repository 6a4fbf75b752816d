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
  for (const DimExpr &size : {ifTrue, ifFalse})
    if (std::set<SymbolId> seen; !isMonotone(size, seen) && !isLinear(size))
      return hasNoMost(size, output, axis);
  const DimExpr most = max(atBounds(ifTrue, outerGiven()), atBounds(ifFalse, outerGiven()));
  if (most.isConst(INT64_MAX))
    return hasNoMost(ifTrue + ifFalse, output, axis);
  found.push_back({ifTrue, ifFalse, most, output, axis});
  return found.size() - 1;
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
                          " in a branch, where the data tells it: it must rise or fall with each "
                          "size that is told, for what it is at most to be known",
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
