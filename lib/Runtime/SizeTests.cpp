#include "Runtime/SizeTests.h"

#include "Runtime/DimBounds.h"

#include <algorithm>

namespace fusec::rt {

using bundle::DimCode;

namespace {

/// Where inputs have a size as a dimension of its own: the first of these places, or nothing.
std::optional<bundle::InferredDim::Place> placeOf(const bundle::Model &model, size_t size) {
  if (size >= model.symbols.size()) {
    const auto &places = model.inferred[size - model.symbols.size()].places;
    return places.empty() ? std::nullopt : std::optional(places.front());
  }
  const DimCode own = DimCode::symbol(static_cast<SymbolId>(size));
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const auto &shape = model.inputs[i].shape;
    if (auto at = std::find(shape.begin(), shape.end(), own); at != shape.end())
      return bundle::InferredDim::Place{static_cast<int32_t>(i),
                                        static_cast<int32_t>(at - shape.begin())};
  }
  return std::nullopt;
}

/// The first rule that values of symbols and inferred sizes break, of those whose sizes are all known; or null.
template <typename F>
const bundle::DimRule *firstBroken(const bundle::Model &model, const std::vector<int64_t> &values,
                                   F isKnown, Rules which) {
  auto areKnown = [&](const DimCode &code) {
    bool known = true;
    code.forEachSymbol([&](SymbolId s) { known = known && isKnown(static_cast<size_t>(s)); });
    return known;
  };
  for (const bundle::DimRule &rule : model.rules)
    if ((rule.tested || which == Rules::All) && areKnown(rule.left) && areKnown(rule.right) &&
        !holds(rule.kind, rule.left.evaluate(values), rule.right.evaluate(values)))
      return &rule;
  return nullptr;
}

std::vector<int64_t> valuesOf(const Sizes &sizes) {
  std::vector<int64_t> values;
  for (const std::optional<int64_t> &size : sizes)
    values.push_back(size.value_or(0));
  return values;
}

RuleSide sideOf(const bundle::Model &model, const DimCode &code, const Sizes &sizes) {
  std::vector<Symbol> names = model.symbols;
  for (const bundle::InferredDim &s : model.inferred)
    names.push_back({s.name});
  RuleSide side;
  side.text = code.str(names);
  side.isConst = code.isConst();
  side.value = code.evaluate(valuesOf(sizes));
  for (const DimCode::Instr &i : code.code) {
    if (i.op != DimCode::Op::Symbol)
      continue;
    const auto size = static_cast<size_t>(i.value);
    const std::string &name = names[size].name;
    if (std::find(side.sizes.begin(), side.sizes.end(), name) != side.sizes.end())
      continue;
    const auto place = placeOf(model, size);
    side.sizes.push_back(name);
    side.values.push_back(sizes[size]);
    side.places.push_back(place ? dimensionText(model.inputs[place->input].name, place->axis) : "");
  }
  return side;
}

} // namespace

Sizes sizesFromDims(const bundle::Model &model, const std::vector<int64_t> &dims) {
  std::vector<size_t> first; // of each input's dims
  size_t next = 0;
  for (const bundle::Value &input : model.inputs) {
    first.push_back(next);
    next += input.shape.size();
  }
  Sizes sizes(model.symbols.size() + model.inferred.size());
  for (size_t s = 0; s < sizes.size(); ++s)
    if (auto place = placeOf(model, s))
      sizes[s] = dims[first[place->input] + static_cast<size_t>(place->axis)];
  return sizes;
}

Sizes sizesFromSymbols(const bundle::Model &model, const std::vector<int64_t> &values) {
  Sizes sizes(values.begin(), values.end());
  for (const bundle::InferredDim &s : model.inferred)
    sizes.push_back(s.value.evaluate(values));
  for (const bundle::DataSize &d : model.dataSizes)
    sizes[static_cast<size_t>(d.symbol)] = std::nullopt;
  return sizes;
}

std::string brokenRule(const bundle::Model &model, const Sizes &sizes, Rules which) {
  const bundle::DimRule *rule = firstBroken(
      model, valuesOf(sizes), [&](size_t size) { return sizes[size].has_value(); }, which);
  return rule ? brokenText(model, *rule, sizes) : "";
}

std::string brokenText(const bundle::Model &model, const bundle::DimRule &rule,
                       const Sizes &sizes) {
  return fusec::brokenRule(rule.node, rule.op, rule.text, sideOf(model, rule.left, sizes),
                           sideOf(model, rule.right, sizes));
}

/// Whether none of them has an element.
static bool isEmpty(const std::vector<bundle::Value> &list, const std::vector<int64_t> &symbols) {
  return std::all_of(list.begin(), list.end(), [&](const bundle::Value &v) {
    return bundle::evaluateElements(v.type, v.shape, symbols) == 0;
  });
}

Admission admit(const bundle::Model &model, std::vector<int64_t> &values) {
  if (std::string problem = computeSymbols(values, model); !problem.empty())
    return {std::move(problem)};
  auto check = [&](const std::vector<int64_t> &all) {
    return checkSymbols(all, model.symbols, [&](size_t symbol) {
      const auto place = placeOf(model, symbol);
      return place ? " (" + dimensionText(model.inputs[place->input].name, place->axis) + ")" : "";
    });
  };
  Admission out{check(values)};
  // Rules that hold within the ranges say why others do not fit.
  const Rules which = out.problem.empty() ? Rules::Tested : Rules::All;
  out.runs = out.problem.empty() || !isEmpty(model.outputs, values) ||
             !check(withoutZeros(values, model.symbols)).empty();
  if (!out.runs)
    out.problem.clear();
  const size_t count = values.size();
  auto isKnown = [&](size_t size) {
    if (size >= count)
      return model.inferred[size - count].value.evaluate(values).has_value();
    return std::none_of(model.dataSizes.begin(), model.dataSizes.end(),
                        [&](const auto &d) { return static_cast<size_t>(d.symbol) == size; });
  };
  for (const bundle::InferredDim &s : model.inferred)
    values.push_back(s.value.evaluate(values).value_or(0));
  const bundle::DimRule *rule = firstBroken(model, values, isKnown, which);
  values.resize(count);
  if (rule)
    out.problem = brokenText(model, *rule, sizesFromSymbols(model, values));
  return out;
}

} // namespace fusec::rt
