#pragma once
#include "Expr/Expr.h"

#include <optional>
#include <string>
#include <vector>

namespace fusec {

enum class OpaqueOp : uint8_t {
#define FUSEC_OPAQUE_OP(name, text, inputs, outputs, attributes) name,
#include "Expr/OpaqueOps.def"
};
std::string_view name(OpaqueOp op);
std::optional<OpaqueOp> parseOpaqueOp(std::string_view text);

/// The rules of an Opaque equation that it breaks. Its tensors exist.
std::vector<std::string> checkOpaque(const Equation &equation, const ExprProgram &program);

} // namespace fusec
