#pragma once
#include "Onnx/Import.h"
#include "Onnx/KnownValues.h"

namespace fusec {

/// The two sizes of which a node of the region makes a condition that they are equal, for `node`; nothing where the
/// user gives one of them.
std::optional<std::pair<DimExpr, DimExpr>> comparedSizes(const Region &region, ValueId condition,
                                                         KnownValues &values,
                                                         const ImportOptions &options,
                                                         const std::string &node);

} // namespace fusec
