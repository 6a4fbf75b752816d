// A symbol as the constant 1. Where a length is 1 its axis needs no loop, products of matrices become sums of rows and
// what is broadcast along it is read as it is:
//
//   reduction c [i:n, j:64; k:32] sum f32    %c = mul(%a[i, k], %b[k, j])     a contraction
// with n as 1
//   reduction c [i:1, j:64; k:32] sum f32    %c = mul(%a[0, k], %b[k, j])     64 sums: no factor is used twice
//
// Symbols with a most: what a row of unknown length makes goes to device memory, and one of 512 at most may lie in a
// block's own, as may the columns of a matrix that is copied closer.
//
//   reduction s [i:n; k:m] sum f32    %s = exp(%x[i, k])    m = 1..99999    a block has no room for m values
//                                                           m = 1..512      it has for 512
//
// What comes of both is right for these sizes alone. A search of schedules for all sizes never tries them: they are
// there for variants whose guards let no other size through, and they are verified to do so
// (Tiling/search/SizeVariants.h).
#include "Expr/SizeLimits.h"
#include "Expr/transforms/Walk.h"
#include "Support/TunedSizes.h"

#include <algorithm>

namespace fusec {

std::optional<ExprProgram> sizeOne(const ExprProgram &pattern, int64_t choice) {
  if (choice < 1 || choice > static_cast<int64_t>(pattern.symbols.size()))
    return std::nullopt;
  const auto one = static_cast<SymbolId>(choice - 1);
  ExprProgram program = pattern;
  Symbol &symbol = program.symbols[static_cast<size_t>(one)];
  if (symbol.min > 1 || symbol.max < 1 || symbol.divisor != 1)
    return std::nullopt;
  symbol.min = symbol.opt = symbol.max = 1;
  bool isUsed = false, isPossible = true;
  auto fix = [&](DimExpr &size) {
    std::vector<SymbolId> used;
    size.collectSymbols(used);
    if (std::find(used.begin(), used.end(), one) == used.end())
      return;
    isUsed = true;
    size = size.substitute(
        [&](SymbolId s) { return s == one ? std::optional(DimExpr(1)) : std::nullopt; });
    isPossible = isPossible && size.range(program.symbols).max >= 0;
  };
  for (Tensor &tensor : program.tensors)
    for (DimExpr &size : tensor.shape)
      fix(size);
  if (!isPossible) // the rules of sizes let no run have it: n - 5, say
    return std::nullopt;
  forEachEquation(program.items, [&](Equation &e, const DimExpr *steps) {
    for (Axis &axis : e.axes)
      fix(axis.extent);
    fix(e.steps);
    for (Scalar &node : e.body.nodes) {
      if (node.op != ScalarOp::Dim)
        continue;
      fix(node.dim);
      if (node.dim.isConst())
        node = {.op = ScalarOp::Const,
                .type = node.type,
                .args = {},
                .imm = node.dim.constValue(),
                .dim = {}};
    }
    if (e.kind != EquationKind::Scan && e.kind != EquationKind::Opaque)
      rebuild(e, program.symbols, steps, {});
    compact(e);
  });
  if (!isUsed)
    return std::nullopt;
  return program;
}

std::string whereText(const std::vector<SizeLimit> &limits, const std::vector<Symbol> &symbols) {
  std::string text;
  for (const SizeLimit &limit : limits) {
    text += (text.empty() ? "" : ", ") +
            nameToText(symbols[static_cast<size_t>(limit.symbol)].name) + " = " +
            std::to_string(limit.least);
    if (limit.most != limit.least)
      text += ".." + std::to_string(limit.most);
  }
  return text;
}

bool allAllow(const std::vector<SizeLimit> &limits, const std::vector<int64_t> &values) {
  return std::ranges::all_of(limits, [&](const SizeLimit &limit) {
    return limit.allows(values[static_cast<size_t>(limit.symbol)]);
  });
}

std::vector<SymbolId> symbolsOf(const ExprProgram &pattern) {
  std::vector<SymbolId> used;
  for (const Item &item : pattern.items)
    if (const auto *e = std::get_if<Equation>(&item.value))
      collectSymbols(*e, used);
  std::ranges::sort(used);
  return used;
}

/// Takes the sizes out of a symbol's range that are not from `least` to `most`; false where none is left.
static bool narrow(Symbol &symbol, int64_t least, int64_t most) {
  const auto multiples = [&](const DimExpr &count) { return count.constValue() * symbol.divisor; };
  const DimExpr divisor(symbol.divisor);
  if (least > INT64_MAX - symbol.divisor)
    return false;
  if (least > symbol.min)
    symbol.min = multiples(ceilDiv(DimExpr(least), divisor));
  if (most < symbol.max)
    symbol.max = multiples(floorDiv(DimExpr(most), divisor));
  if (symbol.min > symbol.max)
    return false;
  if (isFavoured(symbol))
    symbol.opt = std::clamp(symbol.opt, symbol.min, symbol.max);
  return true;
}

std::optional<ExprProgram> within(const ExprProgram &program,
                                  const std::vector<SizeLimit> &limits) {
  std::optional<ExprProgram> made = program;
  for (const SizeLimit &limit : limits)
    if (limit.least == 1 && limit.most == 1) {
      made = sizeOne(*made, int64_t{limit.symbol} + 1);
      if (!made)
        return std::nullopt;
    } else if (!std::ranges::binary_search(symbolsOf(*made), limit.symbol) ||
               !narrow(made->symbols[static_cast<size_t>(limit.symbol)], limit.least, limit.most)) {
      return std::nullopt;
    }
  return made;
}

ExprProgram beyond(const ExprProgram &program, const std::vector<SizeLimit> &limits) {
  ExprProgram made = program;
  if (limits.size() != 1 || limits[0].most == INT64_MAX)
    return made;
  Symbol larger = made.symbols[static_cast<size_t>(limits[0].symbol)];
  if (limits[0].least <= larger.min && narrow(larger, limits[0].most + 1, larger.max))
    made.symbols[static_cast<size_t>(limits[0].symbol)] = larger;
  return made;
}

std::optional<ExprProgram> sizeMost(const ExprProgram &pattern, int64_t most) {
  ExprProgram program = pattern;
  bool limits = false;
  for (SymbolId s : symbolsOf(pattern)) {
    Symbol &symbol = program.symbols[static_cast<size_t>(s)];
    if (symbol.max <= most)
      continue;
    if (!narrow(symbol, symbol.min, most))
      return std::nullopt;
    limits = true;
  }
  return limits ? std::optional(std::move(program)) : std::nullopt;
}

std::vector<Guard> guardsOf(const SizeLimit &limit, const std::vector<Symbol> &symbols) {
  const DimExpr size = DimExpr::symbol(limit.symbol);
  std::vector<Guard> guards = {{DimExpr(limit.most) - size}};
  if (symbols[static_cast<size_t>(limit.symbol)].min < limit.least)
    guards.push_back({size - DimExpr(limit.least)});
  return guards;
}

std::vector<Guard> guardsOf(const std::vector<SizeLimit> &limits,
                            const std::vector<Symbol> &symbols) {
  std::vector<Guard> guards;
  for (const SizeLimit &limit : limits)
    for (Guard &guard : guardsOf(limit, symbols))
      guards.push_back(std::move(guard));
  return guards;
}

std::vector<SizeLimit> sizeLimits(const ExprProgram &pattern,
                                  const std::vector<Rewrite> &rewrites) {
  std::vector<SizeLimit> limits;
  auto add = [&](SymbolId s, int64_t least, int64_t most) {
    const Symbol &symbol = pattern.symbols[static_cast<size_t>(s)];
    const bool isKnown = std::ranges::any_of(limits, [&](const SizeLimit &known) {
      return known.symbol == s && least <= known.least && known.most <= most;
    });
    if (!isKnown && (symbol.min < least || symbol.max > most))
      limits.push_back({s, std::max(symbol.min, least), most});
  };
  for (const Rewrite &rewrite : rewrites)
    if (rewrite.alternative == kSizeOne)
      add(static_cast<SymbolId>(rewrite.choice - 1), 1, 1);
    else if (rewrite.alternative == kSizeMost)
      for (SymbolId s : symbolsOf(pattern))
        add(s, INT64_MIN, rewrite.choice);
  return limits;
}

} // namespace fusec
