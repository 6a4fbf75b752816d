// Sizes that a run computes. Between the steps that tell them, the list of steps falls into segments; what a segment's
// launches need - variants, grids, sizes of tensors and their places in the second arena - is worked out when the step
// in front of it has told the last size that they depend on. Each such step has a block of the arena of its own, which
// only grows: what another step's tensors hold stays where it is.
#include "Runtime/DimBounds.h"
#include "Runtime/Error.h"
#include "Runtime/ExecPlan.h"
#include "Runtime/SizeTests.h"

#include <algorithm>

namespace fusec::rt {

void ExecPlan::findSizes(const std::vector<bundle::Step> &steps) {
  for (const bundle::Step &s : steps) {
    if (s.kind == bundle::StepKind::Size) {
      sizeNumber[static_cast<size_t>(s.symbol)] = static_cast<int32_t>(sizes.size());
      Size &size = sizes.emplace_back();
      size.step = &s;
      for (const bundle::DataSize &d : model->content.dataSizes)
        if (d.symbol == s.symbol)
          size.bound = &d.bound;
    }
    findSizes(s.thenSteps);
    findSizes(s.elseSteps);
  }
}

void ExecPlan::findSizes() {
  sizes.clear();
  sizeNumber.assign(model->content.symbols.size(), -1);
  sizeOf.assign(program->tensors.size(), -1);
  findSizes(program->steps);
  if (sizes.empty())
    return;
  findRules();
  for (size_t t = 0; t < program->tensors.size(); ++t) {
    const bundle::Tensor &x = program->tensors[t];
    sizeOf[t] = lastSize(x.shape);
    if (sizeOf[t] < 0)
      continue;
    Size &size = sizes[static_cast<size_t>(sizeOf[t])];
    if (x.kind == bundle::TensorKind::Output)
      size.outputs.push_back(static_cast<int32_t>(t));
    else if (x.firstStep >= 0)
      size.temps.push_back(static_cast<int32_t>(t));
  }
}

void ExecPlan::findRules() {
  ruleValues.clear();
  for (const bundle::DimRule &rule : model->content.rules)
    if (const int32_t last = std::max(lastSize(rule.left), lastSize(rule.right)); last >= 0)
      sizes[static_cast<size_t>(last)].rules.push_back(&rule);
  if (std::all_of(sizes.begin(), sizes.end(), [](const Size &s) { return s.rules.empty(); }))
    return;
  ruleValues = symbolValues;
  for (const bundle::InferredDim &s : model->content.inferred)
    ruleValues.push_back(s.value.evaluate(symbolValues).value_or(0));
}

fusert_status ExecPlan::testRules(const Size &size, size_t index) const {
  for (const bundle::DimRule *rule : size.rules) {
    if (fusec::holds(rule->kind, rule->left.evaluate(ruleValues), rule->right.evaluate(ruleValues)))
      continue;
    Sizes known = sizesFromSymbols(model->content, symbolValues);
    for (size_t i = 0; i <= index; ++i) {
      const auto symbol = static_cast<size_t>(sizes[i].step->symbol);
      known[symbol] = symbolValues[symbol];
    }
    return fail(FUSERT_OUT_OF_RANGE, brokenText(model->content, *rule, known));
  }
  return FUSERT_OK;
}

int32_t ExecPlan::lastSize(const bundle::DimCode &code) const {
  int32_t last = -1;
  for (const bundle::DimCode::Instr &i : code.code)
    if (i.op == bundle::DimCode::Op::Symbol && static_cast<size_t>(i.value) < sizeNumber.size())
      last = std::max(last, sizeNumber[static_cast<size_t>(i.value)]);
  return last;
}

int32_t ExecPlan::lastSize(const std::vector<bundle::DimCode> &list) const {
  int32_t last = -1;
  for (const bundle::DimCode &code : list)
    last = std::max(last, lastSize(code));
  return last;
}

int32_t ExecPlan::lastSize(const bundle::Step &step) const {
  int32_t last = -1;
  if (sizes.empty())
    return last;
  for (const bundle::Variant &v : step.variants) {
    const bundle::Kernel &kernel = program->kernels[static_cast<size_t>(v.kernel)];
    for (const bundle::Guard &g : v.guards)
      last = std::max(last, lastSize(g.value));
    for (int32_t t : v.arguments)
      last = std::max(last, sizeOf[static_cast<size_t>(t)]);
    for (SymbolId d : kernel.dims)
      last = std::max(last, sizeNumber[static_cast<size_t>(d)]);
    last = std::max({last, lastSize(kernel.grids), lastSize(kernel.rounds)});
  }
  return last;
}

fusert_status ExecPlan::mostSizedBytes(size_t &bytes) {
  bytes = 0;
  for (Size &size : sizes) {
    FUSERT_TRY(workOut(size));
    bytes += size.bytes;
  }
  return FUSERT_OK;
}

int64_t ExecPlan::mostBytes(int32_t tensor) const {
  std::vector<Symbol> ranges = model->content.symbols;
  for (size_t s = 0; s < ranges.size(); ++s)
    if (sizeNumber[s] < 0)
      ranges[s].min = ranges[s].max = symbolValues[s];
  for (const Size &size : sizes) {
    Symbol &symbol = ranges[static_cast<size_t>(size.step->symbol)];
    symbol.max = std::min(symbol.max, boundsOf(*size.bound, ranges).max);
  }
  const bundle::Tensor &t = program->tensors[static_cast<size_t>(tensor)];
  int64_t bytes = sizeInBytes(t.type);
  bool fits = true, empty = false;
  for (const bundle::DimCode &d : t.shape) {
    const int64_t most = boundsOf(d, ranges).max;
    empty = empty || most == 0;
    fits = fits && !__builtin_mul_overflow(bytes, most, &bytes);
  }
  return empty ? 0 : fits ? bytes : INT64_MAX;
}

fusert_status ExecPlan::setSize(size_t index, int64_t value, SizedMemory &memory) {
  Size &size = sizes[index];
  const auto s = static_cast<size_t>(size.step->symbol);
  const Symbol &symbol = model->content.symbols[s];
  const int64_t most = std::min(size.bound->evaluate(symbolValues).value_or(0), symbol.max);
  if (value < symbol.min || value > most || value % symbol.divisor != 0)
    return fail(FUSERT_OUT_OF_RANGE, "size '" + symbol.name + "' is " + std::to_string(value) +
                                         " with this data (step '" + size.step->name +
                                         "'), allowed are " + std::to_string(symbol.min) + " to " +
                                         std::to_string(most) + " under the shapes set");
  changes += value != symbolValues[s];
  symbolValues[s] = value;
  if (!ruleValues.empty())
    ruleValues[s] = value;
  FUSERT_TRY(testRules(size, index));
  if (size.seen != changes) {
    size.seen = 0;
    FUSERT_TRY(workOut(size));
    size.seen = changes;
  }
  void *base = nullptr;
  if (size.bytes > 0)
    FUSERT_TRY(memory.arena(index, size.bytes, &base));
  for (size_t i = 0; i < size.temps.size(); ++i)
    addresses[size.temps[i]] = base ? static_cast<char *>(base) + size.offsets[i] : nullptr;
  for (int32_t t : size.outputs)
    FUSERT_TRY(memory.output(t, tensorBytes[t], &addresses[t]));
  for (const Size::Launched &l : size.launches)
    for (size_t i = 0; i < l.variant->arguments.size(); ++i)
      launches[static_cast<size_t>(l.number)].buffers[i] = addresses[l.variant->arguments[i]];
  return FUSERT_OK;
}

fusert_status ExecPlan::workOut(Size &size) {
  for (const auto *tensors : {&size.temps, &size.outputs})
    for (int32_t t : *tensors)
      FUSERT_TRY(evaluateBytes(t));
  FUSERT_TRY(pack(size.temps, size.offsets, size.bytes));
  for (Size::Launched &l : size.launches) {
    l.variant = &variantOf(*l.step);
    FUSERT_TRY(resolve(*l.variant, launches[static_cast<size_t>(l.number)]));
  }
  return FUSERT_OK;
}

} // namespace fusec::rt
