#pragma once
#include "Graph/Graph.h"

namespace fusec {

/// One attribute of an operator. `kind` is the index of its alternative in Attribute.
struct AttributeRule {
  std::string_view name;
  size_t kind;
  bool optional; // only ignore_index of the losses
};
/// All attributes that Ops.def lists for `op`.
std::vector<AttributeRule> attributeRules(OpKind op);

} // namespace fusec
