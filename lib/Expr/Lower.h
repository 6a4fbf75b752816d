#pragma once
#include "Expr/Expr.h"
#include "Graph/Graph.h"

namespace fusec {

/// A verified Graph as tensor equations. Composite operators are decomposed here: nothing behind this
/// stage knows an ONNX operator by name. Everything that has no equations is reported at once, each entry
/// an UnsupportedOp, UnsupportedType or UnsupportedShape diagnostic that names the ONNX node.
Result<ExprProgram> lowerGraph(const Graph &graph);

/// Whether the operator has equations.
bool hasLowering(OpKind op);

} // namespace fusec
