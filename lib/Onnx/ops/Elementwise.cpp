#include "Onnx/Compose.h"
#include "Onnx/OpTable.h"

#include <cmath>

// Element-wise operators: one operand, or several with multidirectional broadcast. Before opset 7 the
// binary ones broadcast only with `broadcast=1`, the second operand aligned at `axis`.

namespace fusec {
namespace {

OpKind kindOf(const NodeImporter &n) { return *parseOpKind(n.op()); }

Status needFloat(NodeImporter &n) {
  if (!isFloat(n.type(0)))
    return n.mismatch("the operand must have a float type");
  return success();
}

Status unary(NodeImporter &n) {
  n.ignore("consumed_inputs"); // a memory hint of opset 1
  return n.finish(kindOf(n), {n.id(0)}, {}, {{n.type(0), n.shape(0)}});
}

Status floatUnary(NodeImporter &n) {
  FUSEC_CHECK(needFloat(n));
  return unary(n);
}

Status numericUnary(NodeImporter &n) {
  if (n.type(0) == DType::Bool)
    return n.mismatch("the operand must be a number");
  return unary(n);
}

Status withAttributes(NodeImporter &n, Attributes attrs) {
  FUSEC_CHECK(needFloat(n));
  n.ignore("consumed_inputs");
  return n.finish(kindOf(n), {n.id(0)}, std::move(attrs), {{n.type(0), n.shape(0)}});
}

/// The default of a float attribute is a float32 constant in the operator's text.
double f32(float v) { return static_cast<double>(v); }

Status celu(NodeImporter &n) { return withAttributes(n, {{"alpha", n.attrFloat("alpha", 1.0)}}); }
Status leakyRelu(NodeImporter &n) {
  return withAttributes(n, {{"alpha", n.attrFloat("alpha", f32(0.01f))}});
}
Status hardSigmoid(NodeImporter &n) {
  return withAttributes(
      n, {{"alpha", n.attrFloat("alpha", f32(0.2f))}, {"beta", n.attrFloat("beta", 0.5)}});
}
Status selu(NodeImporter &n) {
  bool old = n.opset() < 6;
  return withAttributes(
      n, {{"alpha", n.attrFloat("alpha", old ? f32(1.6732f) : f32(1.67326319217681884765625f))},
          {"gamma", n.attrFloat("gamma", old ? f32(1.0507f) : f32(1.05070102214813232421875f))}});
}
Status shrink(NodeImporter &n) {
  if (n.type(0) == DType::Bool)
    return n.mismatch("the operand must be a number");
  return n.finish(OpKind::Shrink, {n.id(0)},
                  {{"bias", n.attrFloat("bias", 0.0)}, {"lambd", n.attrFloat("lambd", 0.5)}},
                  {{n.type(0), n.shape(0)}});
}
Status gelu(NodeImporter &n) {
  std::string mode = n.attrString("approximate", "none");
  if (mode != "none" && mode != "tanh")
    return n.fail(Diag::BadAttribute, "approximate is '" + mode + "'; 'none' or 'tanh' is needed");
  return withAttributes(n, {{"approximate", mode}});
}

Status isInf(NodeImporter &n) {
  FUSEC_CHECK(needFloat(n));
  return n.finish(OpKind::IsInf, {n.id(0)},
                  {{"detect_negative", n.attrInt("detect_negative", 1)},
                   {"detect_positive", n.attrInt("detect_positive", 1)}},
                  {{DType::Bool, n.shape(0)}});
}
Status isNaN(NodeImporter &n) {
  FUSEC_CHECK(needFloat(n));
  return n.finish(OpKind::IsNaN, {n.id(0)}, {}, {{DType::Bool, n.shape(0)}});
}

Status boolUnary(NodeImporter &n) {
  if (n.type(0) != DType::Bool)
    return n.mismatch("the operand must be bool");
  return unary(n);
}
Status integerUnary(NodeImporter &n) {
  if (!isInteger(n.type(0)))
    return n.mismatch("the operand must be an integer");
  return unary(n);
}

Status identity(NodeImporter &n) {
  // Constants pass through; other values keep a node until eliminate-identities removes it.
  if (n.in(0).constant) {
    n.result(0, n.id(0));
    return success();
  }
  return unary(n);
}

/// Aligns the second operand of an opset 1-6 binary operator.
Result<ValueId> alignedSecond(NodeImporter &n) {
  int64_t broadcast = n.attrInt("broadcast", 0);
  int64_t axis = n.attrInt("axis", -1);
  n.ignore("consumed_inputs");
  if (!broadcast) {
    if (n.shape(0) != n.shape(1))
      return n.mismatch("operands must have equal shapes where broadcast is not set", n.shape(1),
                        n.shape(0));
    return n.id(1);
  }
  if (!n.hasAttribute("axis"))
    return n.id(1); // aligned at the last axis, as later opsets do
  if (axis < 0)
    axis += n.rank(0);
  if (axis < 0 || axis + n.rank(1) > n.rank(0))
    return n.mismatch("axis " + std::to_string(axis) + " does not fit the operands");
  Shape shape = n.shape(1);
  shape.insert(shape.end(), static_cast<size_t>(n.rank(0) - axis - n.rank(1)), DimExpr(1));
  return n.reshape(n.id(1), std::move(shape));
}

Status binaryOf(NodeImporter &n, std::optional<DType> resultType, Attributes attrs = {}) {
  if (n.type(0) != n.type(1))
    return n.mismatch("the operands must have one type");
  ValueId second = n.id(1);
  if (n.opset() < 7 && (n.hasAttribute("broadcast") || n.hasAttribute("axis"))) {
    FUSEC_TRY(second, alignedSecond(n));
  }
  n.ignore("consumed_inputs");
  FUSEC_TRY(Shape shape, n.broadcast({&n.shape(0), &n.shapeOf(second)}));
  return n.finish(kindOf(n), {n.id(0), second}, std::move(attrs),
                  {{resultType.value_or(n.type(0)), std::move(shape)}});
}

Status arithmetic(NodeImporter &n) {
  if (n.type(0) == DType::Bool)
    return n.mismatch("the operands must be numbers");
  return binaryOf(n, std::nullopt);
}
Status mod(NodeImporter &n) {
  int64_t fmod = n.attrInt("fmod", 0);
  if (fmod != 0 && fmod != 1)
    return n.fail(Diag::BadAttribute, "fmod is " + std::to_string(fmod) + "; 0 or 1 is needed");
  if (n.type(0) == DType::Bool || (isFloat(n.type(0)) && !fmod && n.opset() < 28))
    return n.mismatch("the operands must be integers, or fmod must be 1 (before opset 28)");
  return binaryOf(n, std::nullopt, {{"fmod", fmod}});
}
Status comparison(NodeImporter &n) {
  if (n.type(0) == DType::Bool && n.op() != "Equal")
    return n.mismatch("the operands must be numbers");
  return binaryOf(n, DType::Bool);
}
Status logical(NodeImporter &n) {
  if (n.type(0) != DType::Bool)
    return n.mismatch("the operands must be bool");
  return binaryOf(n, DType::Bool);
}
Status bitwise(NodeImporter &n) {
  if (!isInteger(n.type(0)))
    return n.mismatch("the operands must be integers");
  return binaryOf(n, std::nullopt);
}
Status bitShift(NodeImporter &n) {
  std::string direction = n.attrString("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return n.fail(Diag::BadAttribute, "direction is '" + direction + "'; LEFT or RIGHT is needed");
  if (!isInteger(n.type(0)) || (isSigned(n.type(0)) && n.opset() < 28))
    return n.mismatch(n.opset() < 28 ? "the operands must be unsigned integers (before opset 28)"
                                     : "the operands must be integers");
  return binaryOf(n, std::nullopt, {{"direction", direction}});
}

Status pow(NodeImporter &n) {
  if (n.type(0) == DType::Bool || n.type(1) == DType::Bool)
    return n.mismatch("the operands must be numbers");
  ValueId second = n.id(1);
  if (n.opset() < 7 && n.hasAttribute("broadcast")) {
    FUSEC_TRY(second, alignedSecond(n));
  }
  FUSEC_TRY(Shape shape, n.broadcast({&n.shape(0), &n.shapeOf(second)}));
  return n.finish(OpKind::Pow, {n.id(0), second}, {}, {{n.type(0), std::move(shape)}});
}

Status prelu(NodeImporter &n) {
  if (n.type(0) != n.type(1))
    return n.mismatch("the operands must have one type");
  ValueId slope = n.id(1);
  n.ignore("consumed_inputs");
  // Opsets before 7 take one slope a channel and align it at axis 1.
  if (n.opset() < 7 && n.rank(1) == 1 && n.rank(0) > 2) {
    Shape shape = n.shape(1);
    shape.insert(shape.end(), static_cast<size_t>(n.rank(0) - 2), DimExpr(1));
    slope = n.reshape(slope, std::move(shape));
  }
  FUSEC_TRY(Shape shape, n.broadcast({&n.shape(0), &n.shapeOf(slope)}));
  if (shape != n.shape(0))
    return n.mismatch("the slope must broadcast to the data's shape", n.shape(0), shape);
  return n.finish(OpKind::PRelu, {n.id(0), slope}, {}, {{n.type(0), std::move(shape)}});
}

Status variadic(NodeImporter &n) {
  std::vector<const Shape *> shapes;
  for (size_t i = 0; i < n.numInputs(); ++i) {
    if (!n.has(i))
      return n.fail(Diag::BadGraph, "input " + std::to_string(i) + " has no name");
    if (n.type(i) != n.type(0) || n.type(i) == DType::Bool)
      return n.mismatch("the operands must be numbers of one type");
    shapes.push_back(&n.shape(i));
  }
  n.ignore("consumed_inputs");
  FUSEC_TRY(Shape shape, n.broadcast(shapes));
  return n.finish(kindOf(n), n.ids(), {}, {{n.type(0), std::move(shape)}});
}

Status where(NodeImporter &n) {
  if (n.type(0) != DType::Bool || n.type(1) != n.type(2))
    return n.mismatch("the condition must be bool and both operands of one type");
  FUSEC_TRY(Shape shape, n.broadcast({&n.shape(0), &n.shape(1), &n.shape(2)}));
  return n.finish(OpKind::Where, n.ids(), {}, {{n.type(1), std::move(shape)}});
}

Status clip(NodeImporter &n) {
  if (n.type(0) == DType::Bool)
    return n.mismatch("the operand must be a number");
  std::vector<ValueId> in{n.id(0)};
  if (n.opset() < 11) {
    n.ignore("consumed_inputs");
    bool low = n.hasAttribute("min"), high = n.hasAttribute("max");
    double lowest = n.attrFloat("min", 0.0), highest = n.attrFloat("max", 0.0);
    in.push_back(low ? n.scalarValue(n.type(0), lowest) : kNoValue);
    in.push_back(high ? n.scalarValue(n.type(0), highest) : kNoValue);
  } else {
    for (size_t i = 1; i < 3; ++i) {
      const char *text = "min and max must be scalars of the operand's type";
      if (n.has(i) && n.type(i) != n.type(0))
        return n.mismatch(text);
      if (n.has(i))
        FUSEC_CHECK(n.oneElement(i, text));
      in.push_back(n.has(i) ? n.reshape(n.id(i), {}) : kNoValue);
    }
  }
  while (in.back() == kNoValue)
    in.pop_back();
  if (in.size() == 1)
    return n.finish(OpKind::Identity, {n.id(0)}, {}, {{n.type(0), n.shape(0)}});
  return n.finish(OpKind::Clip, std::move(in), {}, {{n.type(0), n.shape(0)}});
}

Status dropout(NodeImporter &n) {
  n.ignore("ratio");
  n.ignore("seed");
  n.ignore("consumed_inputs");
  if (n.opset() < 7 && n.attrInt("is_test", 0) == 0)
    return n.unsupported("dropout in training mode (is_test = 0)");
  // The ratio alone changes nothing; where there is a mode it decides whether that matters.
  ConstantRef ratio = n.has(2) ? n.constant(1) : n.has(1) ? n.in(1).constant : nullptr;
  const bool dropsNone = ratio && ratio->numElements() == 1 && ratio->floatAt(0) == 0;
  if (n.has(2) && !dropsNone) {
    auto training = n.ints(2);
    if (!training)
      return n.unsupported("training_mode that is not constant");
    if (!training->empty() && (*training)[0])
      return n.unsupported("dropout in training mode");
  }
  if (ratio && ratio->numElements() == 1 && !(ratio->floatAt(0) >= 0 && ratio->floatAt(0) < 1))
    return n.fail(Diag::BadOperand, "ratio must be in [0, 1)");
  FUSEC_CHECK(n.finish(OpKind::Identity, {n.id(0)}, {}, {{n.type(0), n.shape(0)}}));
  if (n.wants(1)) { // in inference nothing is dropped
    DType maskType = n.opset() < 10 ? n.type(0) : DType::Bool;
    n.result(1, Compose(n).filled(maskType, 1, n.shape(0)));
  }
  return success();
}

Status mish(NodeImporter &n) { return floatUnary(n); }
Status swish(NodeImporter &n) { return withAttributes(n, {{"alpha", n.attrFloat("alpha", 1.0)}}); }
Status elu(NodeImporter &n) { return celu(n); }

/// a * sigmoid(alpha * a) * b
Status swiGlu(NodeImporter &n) {
  FUSEC_CHECK(needFloat(n));
  if (n.type(1) != n.type(0))
    return n.mismatch("the operands must have one type");
  for (size_t d = 0; n.rank(0) == n.rank(1) && d < n.shape(0).size(); ++d) {
    FUSEC_TRY([[maybe_unused]] DimExpr same,
              n.sameDim(n.shape(0)[d], n.shape(1)[d], "the operands' sizes"));
  }
  if (n.rank(0) != n.rank(1))
    return n.mismatch("the operands must have one shape");
  ValueId gate = n.emitOne(OpKind::Swish, {n.id(0)}, {{"alpha", n.attrFloat("alpha", 1.0)}},
                           n.type(0), n.shape(0));
  return n.finish(OpKind::Mul, {gate, n.id(1)}, {}, {{n.type(0), n.shape(0)}});
}

constexpr OpRow kRows[] = {
    {"Abs", 1, 28, 1, 1, 1, numericUnary},
    {"Acos", 7, 28, 1, 1, 1, floatUnary},
    {"Acosh", 9, 28, 1, 1, 1, floatUnary},
    {"Add", 1, 28, 2, 2, 1, arithmetic},
    {"And", 1, 28, 2, 2, 1, logical},
    {"Asin", 7, 28, 1, 1, 1, floatUnary},
    {"Asinh", 9, 28, 1, 1, 1, floatUnary},
    {"Atan", 7, 28, 1, 1, 1, floatUnary},
    {"Atanh", 9, 28, 1, 1, 1, floatUnary},
    {"BitShift", 11, 28, 2, 2, 1, bitShift},
    {"BitwiseAnd", 18, 28, 2, 2, 1, bitwise},
    {"BitwiseNot", 18, 28, 1, 1, 1, integerUnary},
    {"BitwiseOr", 18, 28, 2, 2, 1, bitwise},
    {"BitwiseXor", 18, 28, 2, 2, 1, bitwise},
    {"Ceil", 1, 28, 1, 1, 1, floatUnary},
    {"Celu", 12, 28, 1, 1, 1, celu},
    {"Clip", 1, 28, 1, 3, 1, clip},
    {"Cos", 7, 28, 1, 1, 1, floatUnary},
    {"Cosh", 9, 28, 1, 1, 1, floatUnary},
    {"Div", 1, 28, 2, 2, 1, arithmetic},
    {"Dropout", 1, 28, 1, 3, 2, dropout, "inference only"},
    {"Elu", 1, 28, 1, 1, 1, elu},
    {"Equal", 1, 28, 2, 2, 1, comparison},
    {"Erf", 9, 28, 1, 1, 1, floatUnary},
    {"Exp", 1, 28, 1, 1, 1, floatUnary},
    {"Floor", 1, 28, 1, 1, 1, floatUnary},
    {"Gelu", 20, 28, 1, 1, 1, gelu},
    {"Greater", 1, 28, 2, 2, 1, comparison},
    {"GreaterOrEqual", 12, 28, 2, 2, 1, comparison},
    {"HardSigmoid", 1, 28, 1, 1, 1, hardSigmoid},
    {"HardSwish", 14, 28, 1, 1, 1, floatUnary},
    {"Identity", 1, 28, 1, 1, 1, identity},
    {"IsInf", 10, 28, 1, 1, 1, isInf},
    {"IsNaN", 9, 28, 1, 1, 1, isNaN},
    {"LeakyRelu", 1, 28, 1, 1, 1, leakyRelu},
    {"Less", 1, 28, 2, 2, 1, comparison},
    {"LessOrEqual", 12, 28, 2, 2, 1, comparison},
    {"Log", 1, 28, 1, 1, 1, floatUnary},
    {"Max", 1, 28, 1, -1, 1, variadic},
    {"Mean", 1, 28, 1, -1, 1, variadic},
    {"Min", 1, 28, 1, -1, 1, variadic},
    {"Mish", 18, 28, 1, 1, 1, mish},
    {"Mod", 10, 28, 2, 2, 1, mod},
    {"Mul", 1, 28, 2, 2, 1, arithmetic},
    {"Neg", 1, 28, 1, 1, 1, numericUnary},
    {"Not", 1, 28, 1, 1, 1, boolUnary},
    {"Or", 1, 28, 2, 2, 1, logical},
    {"PRelu", 1, 28, 2, 2, 1, prelu},
    {"Pow", 1, 28, 2, 2, 1, pow},
    {"Reciprocal", 1, 28, 1, 1, 1, floatUnary},
    {"Relu", 1, 28, 1, 1, 1, numericUnary},
    {"Round", 11, 28, 1, 1, 1, floatUnary},
    {"Selu", 1, 28, 1, 1, 1, selu},
    {"Shrink", 9, 28, 1, 1, 1, shrink},
    {"Sigmoid", 1, 28, 1, 1, 1, floatUnary},
    {"Sign", 9, 28, 1, 1, 1, numericUnary},
    {"Sin", 7, 28, 1, 1, 1, floatUnary},
    {"Sinh", 9, 28, 1, 1, 1, floatUnary},
    {"Softplus", 1, 28, 1, 1, 1, floatUnary},
    {"Softsign", 1, 28, 1, 1, 1, floatUnary},
    {"Sqrt", 1, 28, 1, 1, 1, floatUnary},
    {"Sub", 1, 28, 2, 2, 1, arithmetic},
    {"Sum", 1, 28, 1, -1, 1, variadic},
    {"SwiGLU", 28, 28, 2, 2, 1, swiGlu},
    {"Swish", 24, 28, 1, 1, 1, swish},
    {"Tan", 7, 28, 1, 1, 1, floatUnary},
    {"Tanh", 1, 28, 1, 1, 1, floatUnary},
    {"ThresholdedRelu", 10, 28, 1, 1, 1, celu},
    {"Where", 9, 28, 3, 3, 1, where},
    {"Xor", 1, 28, 2, 2, 1, logical},
};

} // namespace

std::span<const OpRow> elementwiseOps() { return kRows; }

} // namespace fusec
