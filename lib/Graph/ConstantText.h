#pragma once
#include "Graph/Constant.h"
#include "Support/Text.h"

namespace fusec {

/// "{1, 2, 3}" for at most 16 elements, else "digest <hex>" with the data put into `store`.
std::string constantDataText(const ConstantRef &constant, ConstantStore *store);
/// Inverse, for a constant of the given type and dims.
Result<ConstantRef> parseConstantData(TextReader &in, DType type, std::vector<int64_t> dims,
                                      const ConstantStore &store);

} // namespace fusec
