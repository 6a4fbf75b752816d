#pragma once
#include "Graph/Constant.h"
#include "Support/Dim.h"
#include "Support/Text.h"

namespace fusec {

/// "{1, 2, 3}" for at most 16 elements, else "digest <hex>" with the data put into `store`.
std::string constantDataText(const ConstantRef &constant, ConstantStore *store);
/// Inverse, for a constant (or what `what` calls it) of the given type and shape, which must be fixed.
Result<ConstantRef> parseConstantData(TextReader &in, DType type, const Shape &shape,
                                      const ConstantStore &store, const char *what = "a constant");

} // namespace fusec
