#include "Fusion/PackOrder.h"

#include <algorithm>

namespace fusec {

const Hash128 &PackOrder::canonical(int vertex) {
  std::optional<Hash128> &hash = known[vertex];
  if (!hash)
    hash = hash128(canonicalText(*region.vertices[vertex].equation, context.program));
  return *hash;
}

std::vector<const Equation *> PackOrder::order(const std::vector<int> &vertices) {
  VertexSets parts = vertices.size() > 1 ? connectedParts(region, vertices) : VertexSets{vertices};
  if (parts.size() < 2)
    return equationsOf(region, vertices);
  std::vector<std::pair<std::string, size_t>> keys;
  for (const std::vector<int> &part : parts) {
    std::string key;
    for (int v : part)
      key += canonical(v).hex();
    keys.push_back({std::move(key), keys.size()});
  }
  std::sort(keys.begin(), keys.end());
  std::vector<const Equation *> order;
  for (const auto &[key, part] : keys)
    for (const Equation *e : equationsOf(region, parts[part]))
      order.push_back(e);
  return order;
}

Group PackOrder::group(const VertexSets &phases) {
  Group group;
  for (const std::vector<int> &phase : phases) {
    if (!group.equations.empty())
      group.phaseStarts.push_back(static_cast<int>(group.equations.size()));
    for (const Equation *e : order(phase))
      group.equations.push_back(e);
  }
  return group;
}

} // namespace fusec
