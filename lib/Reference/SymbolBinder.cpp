#include "Reference/SymbolBinder.h"

#include "Support/DimProgram.h"

namespace fusec {

bool SymbolBinder::set(SymbolId id, int64_t value) {
  const Symbol &s = (*symbols)[static_cast<size_t>(id)];
  if (value < s.min || value > s.max || (s.divisor > 1 && value % s.divisor != 0))
    return false;
  known[static_cast<size_t>(id)] = value;
  return true;
}

std::optional<int64_t> SymbolBinder::evaluate(const DimExpr &e) const {
  std::vector<SymbolId> used;
  e.collectSymbols(used);
  for (SymbolId s : used)
    if (!known[static_cast<size_t>(s)])
      return std::nullopt;
  std::vector<int64_t> values(known.size());
  for (size_t i = 0; i < known.size(); ++i)
    values[i] = known[i].value_or(0);
  return e.evaluate(values);
}

/// Takes e for linear in its unknown symbol, solves, and checks the solution: dims such as n*2 + 1.
bool SymbolBinder::solveFor(SymbolId id, const DimExpr &e, int64_t value) {
  auto at = [&](int64_t v) {
    known[static_cast<size_t>(id)] = v;
    return evaluate(e);
  };
  auto zero = at(0), one = at(1);
  known[static_cast<size_t>(id)] = std::nullopt;
  if (!zero || !one || *one == *zero || (value - *zero) % (*one - *zero) != 0)
    return true; // not determined by this dim
  int64_t solution = (value - *zero) / (*one - *zero);
  if (at(solution) != value) {
    known[static_cast<size_t>(id)] = std::nullopt;
    return true;
  }
  return set(id, solution);
}

bool SymbolBinder::bind(const Shape &shape, const std::vector<int64_t> &dims, bool solve) {
  if (shape.size() != dims.size())
    return false;
  for (size_t d = 0; d < dims.size(); ++d) {
    const DimExpr &e = shape[d];
    if (e.op() == DimExpr::Op::Symbol && !known[static_cast<size_t>(e.symbolId())]) {
      if (!set(e.symbolId(), dims[d]))
        return false;
      continue;
    }
    if (auto v = evaluate(e)) {
      if (*v != dims[d])
        return false;
      continue;
    }
    if (!solve)
      continue;
    std::vector<SymbolId> used;
    e.collectSymbols(used);
    SymbolId unknown = -1;
    int count = 0;
    for (SymbolId s : used)
      if (!known[static_cast<size_t>(s)]) {
        unknown = s;
        ++count;
      }
    if (count == 1 && !solveFor(unknown, e, dims[d]))
      return false;
  }
  return true;
}

std::optional<SymbolId> SymbolBinder::define() {
  std::vector<int64_t> values;
  for (size_t s = 0; s < known.size(); ++s) {
    if (const auto &definition = (*symbols)[s].definition; definition && !known[s]) {
      const auto id = static_cast<SymbolId>(s);
      const std::optional<int64_t> value = definition->evaluate(values);
      if (!value || !set(id, *value))
        return id;
    }
    if (!known[s])
      break;
    values.push_back(*known[s]);
  }
  return std::nullopt;
}

} // namespace fusec
