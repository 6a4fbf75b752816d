#include "Onnx/ComparedSizes.h"

#include <algorithm>

namespace fusec {

static bool isGiven(const DimExpr &size, const std::vector<Symbol> &symbols,
                    const ImportOptions &options) {
  return size.op() == DimExpr::Op::Symbol &&
         options.dims.count(symbols[static_cast<size_t>(size.symbolId())].name) != 0;
}

std::optional<std::pair<DimExpr, DimExpr>> comparedSizes(const Region &region, ValueId condition,
                                                         KnownValues &values,
                                                         const ImportOptions &options,
                                                         const std::string &node) {
  const auto maker = std::find_if(region.nodes.rbegin(), region.nodes.rend(), [&](const Node &n) {
    return n.op == OpKind::Equal && n.outputs[0] == condition;
  });
  if (maker == region.nodes.rend())
    return std::nullopt;
  const auto a = values.sizes(maker->inputs[0], node), b = values.sizes(maker->inputs[1], node);
  if (!a || !b || a->size() != 1 || b->size() != 1)
    return std::nullopt;
  const std::pair sizes(a->front(), b->front());
  if (isGiven(sizes.first, values.graph.symbols, options) ||
      isGiven(sizes.second, values.graph.symbols, options))
    return std::nullopt;
  return sizes;
}

} // namespace fusec
