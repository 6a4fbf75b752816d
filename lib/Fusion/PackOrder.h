#pragma once
#include "Fusion/CutPattern.h"
#include "Fusion/Legality.h"
#include "Support/Hash.h"

namespace fusec {

/// The order of a kernel's equations in its pattern. Parts that do not need each other have no order among them: they
/// are sorted by what they compute, so that the pattern does not depend on the order in which the model lists them.
class PackOrder {
public:
  PackOrder(const FusionContext &context, const SearchGraph &region)
      : context(context), region(region), known(region.vertices.size()) {}

  /// The equations of a kernel with these phases.
  Group group(const VertexSets &phases);

private:
  std::vector<const Equation *> order(const std::vector<int> &vertices);
  const Hash128 &canonical(int vertex);

  const FusionContext &context;
  const SearchGraph &region;
  std::vector<std::optional<Hash128>> known; // by vertex: hash of its canonical text
};

} // namespace fusec
