#pragma once
#include "Gir/Gir.h"

#include <optional>

namespace fusec {

/// Elements that a place in a buffer moves on by with each step of `var`; nullopt where they differ.
std::optional<DimExpr> distanceOf(const GirKernel &kernel, BufferId buffer,
                                  const std::vector<NodeId> &indices, VarId var);

} // namespace fusec
