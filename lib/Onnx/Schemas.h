#pragma once
#include <climits>
#include <optional>
#include <string_view>

namespace fusec {

/// The opsets whose text of an operator has an attribute, both inclusive.
struct OpsetSpan {
  int first = 1, last = INT_MAX;
};

/// When operator `op` of the default domain has attribute `attribute`, after the onnx package's schemas; nullopt where
/// no opset has it.
std::optional<OpsetSpan> attributeSpan(std::string_view op, std::string_view attribute);

} // namespace fusec
