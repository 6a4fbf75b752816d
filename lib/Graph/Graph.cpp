#include "Graph/Graph.h"
#include "Support/TypeText.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace fusec {

static constexpr OpInfo kOps[] = {
#define FUSEC_OP(name, ...) {#name, __VA_ARGS__},
#include "Graph/Ops.def"
};

const OpInfo &info(OpKind op) {
  assert(static_cast<size_t>(op) < std::size(kOps));
  return kOps[static_cast<size_t>(op)];
}

std::optional<OpKind> parseOpKind(std::string_view name) {
  // Sorted once: names are looked up for every node of a text dump.
  static const auto sorted = [] {
    std::array<uint16_t, std::size(kOps)> order;
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = static_cast<uint16_t>(i);
    std::sort(order.begin(), order.end(),
              [](uint16_t a, uint16_t b) { return kOps[a].name < kOps[b].name; });
    return order;
  }();
  auto it = std::lower_bound(sorted.begin(), sorted.end(), name,
                             [](uint16_t a, std::string_view n) { return kOps[a].name < n; });
  if (it == sorted.end() || kOps[*it].name != name)
    return std::nullopt;
  return static_cast<OpKind>(*it);
}

template <typename T> static const T &attribute(const Node &node, std::string_view key) {
  auto it = node.attributes.find(std::string(key));
  assert(it != node.attributes.end() && "attribute is missing: the verifier checks presence");
  const T *value = std::get_if<T>(&it->second);
  assert(value && "attribute has another type");
  return *value;
}

int64_t Node::intAttr(std::string_view key) const { return attribute<int64_t>(*this, key); }
double Node::floatAttr(std::string_view key) const { return attribute<double>(*this, key); }
const std::string &Node::stringAttr(std::string_view key) const {
  return attribute<std::string>(*this, key);
}
const std::vector<int64_t> &Node::intsAttr(std::string_view key) const {
  return attribute<std::vector<int64_t>>(*this, key);
}
bool Node::hasAttr(std::string_view key) const { return attributes.count(std::string(key)) != 0; }

ValueId Graph::addValue(Value v) {
  values.push_back(std::move(v));
  return static_cast<ValueId>(values.size() - 1);
}

std::string typeText(const Value &v, const std::vector<Symbol> &symbols) {
  return typeText(v.type, v.shape, symbols);
}

std::optional<SymbolId> sizedSymbol(const Graph &graph, const Node &node) {
  const std::string &wanted = node.stringAttr("symbol");
  for (size_t s = 0; s < graph.symbols.size(); ++s)
    if (graph.symbols[s].name == wanted && graph.symbols[s].isDataDependent())
      return static_cast<SymbolId>(s);
  return std::nullopt;
}

std::vector<SymbolId> symbolsIn(const Value &value) {
  std::vector<SymbolId> used;
  for (const auto *sizes : {&value.shape, &value.known})
    for (const DimExpr &size : *sizes)
      size.collectSymbols(used);
  return used;
}

} // namespace fusec
