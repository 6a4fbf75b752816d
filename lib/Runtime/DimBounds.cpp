#include "Runtime/DimBounds.h"

#include "Runtime/FpEnvironment.h"
#include "Support/DimProgram.h"

#include <algorithm>

namespace fusec::rt {

namespace {

using bundle::DimCode;
using Wide = __int128;

int64_t saturate(Wide v) {
  return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : static_cast<int64_t>(v);
}

DimBounds combine(DimCode::Op op, DimBounds a, DimBounds b) {
  using Op = DimCode::Op;
  switch (op) {
  case Op::Add:
    return {saturate(Wide{a.min} + b.min),
            a.max == INT64_MAX || b.max == INT64_MAX ? INT64_MAX : saturate(Wide{a.max} + b.max)};
  case Op::Mul: {
    const Wide p[] = {Wide{a.min} * b.min, Wide{a.min} * b.max, Wide{a.max} * b.min,
                      Wide{a.max} * b.max};
    return {saturate(*std::min_element(p, p + 4)), saturate(*std::max_element(p, p + 4))};
  }
  case Op::FloorDiv:
  case Op::CeilDiv: {
    if (b.min < 1)
      return {0, INT64_MAX};
    const int64_t up = op == Op::CeilDiv ? 1 : 0;
    return {a.min >= 0 ? a.min / b.max : a.min / b.min - 1, a.max == INT64_MAX ? INT64_MAX
                                                            : a.max >= 0       ? a.max / b.min + up
                                                                               : 0};
  }
  case Op::Mod: return {0, b.max == INT64_MAX ? INT64_MAX : std::max<int64_t>(b.max - 1, 0)};
  case Op::Min: return {std::min(a.min, b.min), std::min(a.max, b.max)};
  default: return {std::max(a.min, b.min), std::max(a.max, b.max)};
  }
}

/// "size 'n'" or, of one that the model computes, "size 'n' (i64(x/2)) of node 'm'".
std::string sizeText(const Symbol &s, const std::vector<Symbol> &symbols) {
  std::string text = "size '" + s.name + "'";
  if (s.definition)
    text += " (" + s.definition->str(symbols) + ") of node '" + s.definition->node + "'";
  return text;
}

/// Symbols of `code` that have no value yet.
std::vector<int32_t> unknownIn(const DimCode &code, const std::vector<bool> &known) {
  std::vector<int32_t> out;
  for (const DimCode::Instr &i : code.code)
    if (i.op == DimCode::Op::Symbol && !known[i.value] &&
        std::find(out.begin(), out.end(), i.value) == out.end())
      out.push_back(static_cast<int32_t>(i.value));
  return out;
}

bool hasOneValue(const Symbol &s) {
  return s.max / s.divisor == s.min / s.divisor + (s.min % s.divisor != 0);
}

/// Smallest value of symbol `s` for which `code` reaches `target`; the largest possible when it never does.
int64_t bisect(const DimCode &code, int32_t s, int64_t target, std::vector<int64_t> values,
               const Symbol &symbol) {
  int64_t low = symbol.min, high = std::min(symbol.max, int64_t{1} << 40);
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    values[s] = middle;
    std::optional<int64_t> v = code.evaluate(values);
    if (!v || *v >= target)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

} // namespace

DimBounds boundsOf(const DimCode &dim, const std::vector<Symbol> &symbols) {
  std::vector<DimBounds> stack;
  for (const DimCode::Instr &i : dim.code) {
    if (i.op == DimCode::Op::Const) {
      stack.push_back({i.value, i.value});
    } else if (i.op == DimCode::Op::Symbol) {
      stack.push_back({symbols[i.value].min, symbols[i.value].max});
    } else {
      const DimBounds b = stack.back();
      stack.pop_back();
      stack.back() = combine(i.op, stack.back(), b);
    }
  }
  return {std::max<int64_t>(stack.back().min, 0), std::max<int64_t>(stack.back().max, 0)};
}

std::optional<std::vector<int64_t>> solveSymbols(const std::vector<const DimCode *> &exprs,
                                                 const std::vector<int64_t> &dims,
                                                 const std::vector<std::string> &places,
                                                 const bundle::Model &model, std::string &problem) {
  const std::vector<Symbol> &symbols = model.symbols;
  const size_t given = bundle::numGiven(model);
  std::vector<int64_t> values(given, 0);
  std::vector<bool> known(given, false);
  for (size_t i = 0; i < exprs.size(); ++i) // the plain ones first: they need no assumption
    if (exprs[i]->code.size() == 1 && exprs[i]->code[0].op == DimCode::Op::Symbol) {
      values[exprs[i]->code[0].value] = dims[i];
      known[exprs[i]->code[0].value] = true;
    }
  for (size_t s = 0; s < given; ++s)
    if (!known[s] && hasOneValue(symbols[s])) {
      values[s] = symbols[s].max - symbols[s].max % symbols[s].divisor;
      known[s] = true;
    }
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t i = 0; i < exprs.size(); ++i) {
      const std::vector<int32_t> unknown = unknownIn(*exprs[i], known);
      if (unknown.size() != 1)
        continue;
      const int32_t s = unknown.front();
      values[s] = bisect(*exprs[i], s, dims[i], values, symbols[s]);
      known[s] = progress = true;
    }
  }
  for (size_t s = 0; s < given; ++s)
    if (!known[s]) {
      problem = "size '" + symbols[s].name +
                "' does not follow from the inputs' shapes: its value must be given by its name";
      return std::nullopt;
    }
  for (size_t i = 0; i < exprs.size(); ++i) {
    std::optional<int64_t> v = exprs[i]->evaluate(values);
    if (!v || *v != dims[i]) {
      const bool fixed = exprs[i]->code.size() == 1 && exprs[i]->code[0].op == DimCode::Op::Const;
      problem = places[i] + " is " + (v ? std::to_string(*v) : "not computable") +
                (fixed ? "" : " ('" + exprs[i]->str(symbols) + "')") + ", given is " +
                std::to_string(dims[i]);
      return std::nullopt;
    }
  }
  return values;
}

std::string computeSymbols(std::vector<int64_t> &values, const bundle::Model &model) {
  if (values.size() == model.symbols.size())
    return {};
  FpEnvironment environment;
  while (const std::optional<SymbolId> open = computeDefined(model.symbols, values)) {
    const Symbol &symbol = model.symbols[static_cast<size_t>(*open)];
    const auto size = std::find_if(model.dataSizes.begin(), model.dataSizes.end(),
                                   [&](const bundle::DataSize &d) { return d.symbol == *open; });
    if (size == model.dataSizes.end())
      return sizeText(symbol, model.symbols) + " cannot be computed for these shapes";
    const std::optional<int64_t> bound = size->bound.evaluate(values);
    if (!bound || *bound < 0)
      return "under these shapes size '" + symbol.name + "', which depends on data, has no bound";
    const int64_t most = std::min(*bound, symbol.max);
    values.push_back(most - most % symbol.divisor);
  }
  return {};
}

std::vector<int64_t> withoutZeros(std::vector<int64_t> values, const std::vector<Symbol> &symbols) {
  for (size_t s = 0; s < symbols.size(); ++s)
    if (values[s] == 0)
      values[s] = symbols[s].min;
  return values;
}

std::string checkSymbols(const std::vector<int64_t> &values, const std::vector<Symbol> &symbols,
                         const std::function<std::string(size_t)> &placeOf) {
  for (size_t s = 0; s < symbols.size(); ++s) {
    const Symbol &x = symbols[s];
    if (values[s] < x.min || values[s] > x.max || values[s] % x.divisor != 0)
      return (x.definition ? sizeText(x, symbols) : "'" + x.name + "'") + " is " +
             std::to_string(values[s]) + placeOf(s) + ", allowed are " + std::to_string(x.min) +
             (x.max == INT64_MAX ? " and more" : " to " + std::to_string(x.max)) +
             (x.divisor > 1 ? " in multiples of " + std::to_string(x.divisor) : "");
  }
  return {};
}

} // namespace fusec::rt
