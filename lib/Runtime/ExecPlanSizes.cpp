// Sizes that a run computes. Between the steps that tell them, the list of steps falls into segments; what a segment's
// launches need - variants, grids, sizes of tensors and their places in the second arena - is worked out when the step
// in front of it has told the last size that they depend on. Each such step has a block of the arena of its own, which
// only grows: what another step's tensors hold stays where it is.
#include "Runtime/Error.h"
#include "Runtime/ExecPlan.h"
#include "Runtime/SizeTests.h"
#include "Support/DataTests.h"

#include <algorithm>

namespace fusec::rt {

/// What symbols may be in a run under the shapes set.
void ExecPlan::setBounds() {
  const bundle::Model &model = *outline.model;
  ruleValues = symbolValues;
  for (const bundle::InferredDim &s : model.inferred)
    ruleValues.push_back(s.value.evaluate(symbolValues).value_or(0));
  bounds.clear();
  for (int64_t value : symbolValues)
    bounds.push_back({value, value});
  for (size_t s = 1; s < segments.size(); ++s) {
    const auto symbol = static_cast<size_t>(outline.segments[s].step->symbol);
    bounds[symbol] = {model.symbols[symbol].min, model.symbols[symbol].max};
  }
  for (size_t s = 1; s < segments.size(); ++s) {
    const PlanOutline::Segment &of = outline.segments[s];
    int64_t &most = bounds[static_cast<size_t>(of.step->symbol)].max;
    most = std::min(most, boundsOf(of.size->bound, bounds).max);
  }
}

fusert_status ExecPlan::testRules(size_t segment) const {
  const bundle::Model &model = *outline.model;
  for (const bundle::DimRule *rule : outline.segments[segment].rules) {
    if (fusec::holds(rule->kind, rule->left.evaluate(ruleValues), rule->right.evaluate(ruleValues)))
      continue;
    std::vector<RunSize> known = sizesFromSymbols(model, symbolValues);
    for (size_t i = 1; i <= segment; ++i) {
      const auto symbol = static_cast<size_t>(outline.segments[i].step->symbol);
      known[symbol].value = symbolValues[symbol];
    }
    return fail(FUSERT_OUT_OF_RANGE, brokenText(*rule, namesOf(model), known));
  }
  return FUSERT_OK;
}

fusert_status ExecPlan::mostSizedBytes(size_t &bytes) {
  bytes = 0;
  for (size_t s = 1; s < segments.size(); ++s) {
    FUSERT_TRY(workOut(s));
    bytes += segments[s].memory.totalBytes;
  }
  return FUSERT_OK;
}

int64_t ExecPlan::mostBytes(int32_t tensor) const {
  const bundle::Tensor &t = outline.program->tensors[static_cast<size_t>(tensor)];
  int64_t bytes = sizeInBytes(t.type);
  bool fits = true, empty = false;
  for (const bundle::DimCode &d : t.shape) {
    const int64_t most = boundsOf(d, bounds).max;
    empty = empty || most == 0;
    fits = fits && !__builtin_mul_overflow(bytes, most, &bytes);
  }
  return empty ? 0 : fits ? bytes : INT64_MAX;
}

fusert_status ExecPlan::setSize(size_t number, int64_t value, SizedMemory &memory) {
  const PlanOutline::Segment &of = outline.segments[number];
  const auto s = static_cast<size_t>(of.step->symbol);
  const Symbol &symbol = outline.model->symbols[s];
  const int64_t most = std::min(of.size->bound.evaluate(symbolValues).value_or(0), symbol.max);
  if (of.size->testsData() && value > 0)
    return fail(FUSERT_OUT_OF_RANGE,
                "node '" + of.size->test->node + "': " + brokenText(of.size->test->kind, value));
  changes += value != symbolValues[s];
  symbolValues[s] = ruleValues[s] = value;
  FUSERT_TRY(testRules(number)); // the node that needs the size to be so says more than a range
  if (value < symbol.min || value > most || value % symbol.divisor != 0)
    return fail(FUSERT_OUT_OF_RANGE, "size '" + symbol.name + "' is " + std::to_string(value) +
                                         " with this data (step '" + of.step->name +
                                         "'), allowed are " + std::to_string(symbol.min) + " to " +
                                         std::to_string(most) + " under the shapes set");
  Segment &segment = segments[number];
  if (segment.seen != changes) {
    segment.seen = 0;
    FUSERT_TRY(workOut(number));
    segment.seen = changes;
  }
  void *base = nullptr;
  if (segment.memory.totalBytes > 0)
    FUSERT_TRY(memory.arena(number, segment.memory.totalBytes, &base));
  for (size_t i = 0; i < of.temps.size(); ++i)
    addresses[of.temps[i]] = base && isUsed[of.temps[i]]
                                 ? static_cast<char *>(base) + segment.memory.offsets[i]
                                 : nullptr;
  for (int32_t t : of.outputs)
    FUSERT_TRY(memory.output(t, tensorBytes[t], &addresses[t]));
  bindLaunches(number);
  return FUSERT_OK;
}

} // namespace fusec::rt
