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

/// The one symbol of `code` that has no value yet; nothing where there is none, or more than one.
std::optional<size_t> unknownIn(const DimCode &code, const std::vector<bool> &known) {
  std::optional<size_t> found;
  bool more = false;
  code.forEachSymbol([&](SymbolId id) {
    const auto s = static_cast<size_t>(id);
    if (known[s] || s == found)
      return;
    more = found.has_value();
    found = s;
  });
  return more ? std::nullopt : found;
}

bool hasOneValue(const Symbol &s) {
  return s.max / s.divisor == s.min / s.divisor + (s.min % s.divisor != 0);
}

/// Gives symbol `s` the smallest value for which `code` reaches `target`; the largest possible when it never does.
void bisect(const DimCode &code, size_t s, int64_t target, std::vector<int64_t> &values,
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
  values[s] = low;
}

} // namespace

DimBounds boundsOf(const DimCode &dim, const std::vector<DimBounds> &symbols) {
  DimBounds stack[DimCode::kMaxStack];
  size_t depth = 0;
  for (const DimCode::Instr &i : dim.code) {
    if (i.op == DimCode::Op::Const) {
      stack[depth++] = {i.value, i.value};
    } else if (i.op == DimCode::Op::Symbol) {
      stack[depth++] = symbols[static_cast<size_t>(i.value)];
    } else {
      --depth;
      stack[depth - 1] = combine(i.op, stack[depth - 1], stack[depth]);
    }
  }
  return {std::max<int64_t>(stack[0].min, 0), std::max<int64_t>(stack[0].max, 0)};
}

std::vector<DimBounds> boundsOf(const std::vector<Symbol> &symbols) {
  std::vector<DimBounds> out;
  for (const Symbol &s : symbols)
    out.push_back({s.min, s.max});
  return out;
}

SymbolSolver::SymbolSolver(const bundle::Model &of) : model(&of) {
  for (size_t i = 0; i < of.inputs.size(); ++i)
    for (size_t axis = 0; axis < of.inputs[i].shape.size(); ++axis)
      dims.push_back(
          {&of.inputs[i].shape[axis], static_cast<int32_t>(i), static_cast<int32_t>(axis)});
  std::vector<bool> known(bundle::numGiven(of), false);
  auto add = [&](Step step) {
    known[step.symbol] = true;
    steps.push_back(step);
  };
  for (size_t d = 0; d < dims.size(); ++d) // the plain ones first: they need no assumption
    if (dims[d].code->isSymbol())
      add({static_cast<size_t>(dims[d].code->code[0].value), d, true, false});
  for (size_t s = 0; s < known.size(); ++s)
    if (!known[s] && hasOneValue(of.symbols[s]))
      add({s, 0, false, true});
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t d = 0; d < dims.size(); ++d)
      if (const std::optional<size_t> s = unknownIn(*dims[d].code, known)) {
        add({*s, d, false, false});
        progress = true;
      }
  }
  for (size_t s = 0; s < known.size(); ++s)
    if (!known[s])
      open.push_back(s);
}

std::string SymbolSolver::solve(const std::vector<int64_t> &given,
                                std::vector<int64_t> &values) const {
  const std::vector<Symbol> &symbols = model->symbols;
  values.assign(bundle::numGiven(*model), 0);
  for (const Step &step : steps) {
    const Symbol &symbol = symbols[step.symbol];
    if (step.isPlain)
      values[step.symbol] = given[step.dim];
    else if (step.hasOneValue)
      values[step.symbol] = symbol.max - symbol.max % symbol.divisor;
    else
      bisect(*dims[step.dim].code, step.symbol, given[step.dim], values, symbol);
  }
  if (!open.empty())
    return "size '" + symbols[open.front()].name +
           "' does not follow from the inputs' shapes: its value must be given by its name";
  for (size_t d = 0; d < dims.size(); ++d) {
    const DimCode &code = *dims[d].code;
    const std::optional<int64_t> v = code.evaluate(values);
    if (v == given[d])
      continue;
    const std::string &input = model->inputs[static_cast<size_t>(dims[d].input)].name;
    return dimensionText(input, dims[d].axis) + " is " +
           (v ? std::to_string(*v) : "not computable") +
           (code.isConst() ? "" : " ('" + code.str(symbols) + "')") + ", given is " +
           std::to_string(given[d]);
  }
  return "";
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
