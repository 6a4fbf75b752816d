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

/// Each of the sizes with the place that it comes from.
std::vector<RunSize> unknownSizes(const bundle::Model &model) {
  std::vector<RunSize> sizes(model.symbols.size() + model.inferred.size());
  for (size_t s = 0; s < sizes.size(); ++s)
    if (auto place = placeOf(model, s))
      sizes[s].place = dimensionText(model.inputs[place->input].name, place->axis);
  return sizes;
}

} // namespace

std::vector<Symbol> namesOf(const bundle::Model &model) {
  std::vector<Symbol> names = model.symbols;
  for (const bundle::InferredDim &s : model.inferred)
    names.push_back({s.name});
  return names;
}

std::vector<RunSize> sizesFromDims(const bundle::Model &model, const std::vector<int64_t> &dims) {
  std::vector<size_t> first; // of each input's dims
  size_t next = 0;
  for (const bundle::Value &input : model.inputs) {
    first.push_back(next);
    next += input.shape.size();
  }
  std::vector<RunSize> sizes = unknownSizes(model);
  for (size_t s = 0; s < sizes.size(); ++s)
    if (auto place = placeOf(model, s))
      sizes[s].value = dims[first[place->input] + static_cast<size_t>(place->axis)];
  return sizes;
}

std::vector<RunSize> sizesFromSymbols(const bundle::Model &model,
                                      const std::vector<int64_t> &values) {
  std::vector<RunSize> sizes = unknownSizes(model);
  for (size_t s = 0; s < values.size(); ++s)
    sizes[s].value = values[s];
  for (size_t s = 0; s < model.inferred.size(); ++s)
    sizes[values.size() + s].value = model.inferred[s].value.evaluate(values);
  for (const bundle::DataSize &d : model.dataSizes)
    sizes[static_cast<size_t>(d.symbol)].value = std::nullopt;
  return sizes;
}

std::string admit(const bundle::Model &model, std::vector<int64_t> &values) {
  if (std::string problem = computeSymbols(values, model); !problem.empty())
    return problem;
  std::string problem = checkSymbols(values, model.symbols, [&](size_t symbol) {
    const auto place = placeOf(model, symbol);
    return place ? " (" + dimensionText(model.inputs[place->input].name, place->axis) + ")" : "";
  });
  // Rules that hold within the ranges say why others do not fit.
  const bool all = !problem.empty();
  const size_t count = values.size();
  auto isKnown = [&](SymbolId size) {
    if (const auto at = static_cast<size_t>(size); at >= count)
      return model.inferred[at - count].value.evaluate(values).has_value();
    return std::none_of(model.dataSizes.begin(), model.dataSizes.end(),
                        [&](const bundle::DataSize &d) { return d.symbol == size; });
  };
  for (const bundle::InferredDim &s : model.inferred)
    values.push_back(s.value.evaluate(values).value_or(0));
  const bundle::DimRule *rule = firstBroken(model.rules, values, isKnown, all);
  values.resize(count);
  return rule ? brokenText(*rule, namesOf(model), sizesFromSymbols(model, values)) : problem;
}

} // namespace fusec::rt
