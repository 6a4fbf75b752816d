#pragma once
#include "Graph/Graph.h"

namespace fusec {

/// One attribute of an operator, as its row in Ops.def has it.
struct AttributeRule {
  std::string_view name;
  size_t kind;                         // index of its alternative in Attribute
  bool optional;                       // may be absent
  std::vector<std::string_view> words; // of a string: what it may be; empty: anything
  std::optional<Attribute>
      fallback; // what it is where an ONNX node leaves it out; none: the importer decides
};
/// All attributes of `op`, in the order of its row.
const std::vector<AttributeRule> &attributeRules(OpKind op);

} // namespace fusec
