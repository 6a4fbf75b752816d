#pragma once
#include "Expr/Body.h"

namespace fusec {

/// The node of `body` that `s` is equal to, bit for bit and for all inputs (NaN payloads apart), if a rule
/// knows a simpler one or a commuted twin exists; else kNoNode.
NodeId simplifyScalar(Body &body, const Scalar &s);

} // namespace fusec
