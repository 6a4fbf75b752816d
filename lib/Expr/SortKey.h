#pragma once
#include "Expr/Body.h"

namespace fusec {

/// Integer type in which elements of `type` are compared when they are put in order.
DType sortKeyType(DType type);
/// A number of type sortKeyType that is the larger, the earlier the value comes: the largest first, or the smallest. A
/// NaN is larger than every number, both zeros are equal.
NodeId sortKey(Body &body, NodeId value, bool largestFirst);
int64_t largestKey(DType keyType);
int64_t smallestKey(DType keyType);

} // namespace fusec
