#include "Graph/Passes.h"

#include <algorithm>
#include <unordered_map>

namespace fusec {
namespace {

void append(std::string &key, const void *data, size_t size) {
  key.append(static_cast<const char *>(data), size);
}
void append(std::string &key, int64_t v) { append(key, &v, sizeof v); }
void append(std::string &key, double v) { append(key, &v, sizeof v); } // by bits: -0.0 is not 0.0
void append(std::string &key, const std::string &v) {
  append(key, static_cast<int64_t>(v.size()));
  key += v;
}
void append(std::string &key, DType v) { append(key, static_cast<int64_t>(v)); }
void append(std::string &key, const ConstantRef &v) { append(key, v->digest.hex()); }
template <typename T> void append(std::string &key, const std::vector<T> &list) {
  append(key, static_cast<int64_t>(list.size()));
  for (const T &v : list)
    append(key, v);
}

/// Equal for nodes that compute the same outputs; empty for nodes that have none such.
std::string keyOf(const Graph &g, const Node &n) {
  if (!n.regions.empty())
    return "";
  std::string key;
  append(key, static_cast<int64_t>(n.op));
  for (ValueId id : n.inputs) {
    const ConstantRef c = constantOf(g, id);
    append(key, c ? c->digest.hex() : std::string());
    append(key, static_cast<int64_t>(c ? 0 : id));
  }
  append(key, static_cast<int64_t>(n.outputs.size()));
  for (ValueId id : n.outputs)
    append(key, id == kNoValue ? std::string() : typeText(g.value(id), g.symbols));
  for (const auto &[name, value] : n.attributes) {
    append(key, name);
    append(key, static_cast<int64_t>(value.index()));
    std::visit([&](const auto &v) { append(key, v); }, value);
  }
  return key;
}

class Merger {
public:
  explicit Merger(Graph &graph)
      : g(graph), replacement(graph.values.size(), kNoValue), isOutput(graph.values.size(), false) {
    for (ValueId id : g.body.outputs)
      isOutput[static_cast<size_t>(id)] = true;
  }

  void region(Region &r) {
    std::unordered_map<std::string, size_t> seen;
    std::vector<Node> kept;
    for (Node &n : r.nodes) {
      for (ValueId &id : n.inputs)
        id = resolve(id);
      for (Region &inner : n.regions)
        region(inner);
      std::string key = keyOf(g, n);
      auto it = key.empty() ? seen.end() : seen.find(key);
      if (it != seen.end() && !makesOutput(n)) {
        for (size_t i = 0; i < n.outputs.size(); ++i)
          if (n.outputs[i] != kNoValue)
            replacement[static_cast<size_t>(n.outputs[i])] = kept[it->second].outputs[i];
        continue;
      }
      if (!key.empty())
        seen.emplace(std::move(key), kept.size());
      kept.push_back(std::move(n));
    }
    r.nodes = std::move(kept);
    for (ValueId &id : r.outputs)
      id = resolve(id);
  }

private:
  ValueId resolve(ValueId id) const {
    return id == kNoValue || replacement[static_cast<size_t>(id)] == kNoValue
               ? id
               : replacement[static_cast<size_t>(id)];
  }
  /// A graph output keeps the value that carries its name.
  bool makesOutput(const Node &n) const {
    return std::any_of(n.outputs.begin(), n.outputs.end(), [&](ValueId id) {
      return id != kNoValue && isOutput[static_cast<size_t>(id)];
    });
  }

  Graph &g;
  std::vector<ValueId> replacement;
  std::vector<bool> isOutput;
};

} // namespace

Result<Graph> eliminateCommonSubexpressions(Graph graph, const GraphPassOptions &) {
  Merger(graph).region(graph.body);
  computeCaptures(graph);
  return graph;
}

} // namespace fusec
