#pragma once
#include "Onnx/Import.h"

#include <string_view>

namespace fusec {

/// A tensor written as text: a number ("16000", "-1.5e3", "inf", "true"), which has rank 0, or nested lists of them
/// ("[1,2]", "[[1,2],[3,4]]"). Integers are exact; a number that the type does not hold is an error, rounding of floats
/// is not. `where`: the place for messages.
Result<ConstantRef> readValueText(std::string_view text, DType type, const Limits &limits,
                                  const std::string &where);

} // namespace fusec
