#include "Onnx/Compose.h"
#include "Onnx/OpTable.h"
#include "Support/Diag.h"

// Element-wise operators: one operand, or several with multidirectional broadcast. Before opset 7 the
// binary ones broadcast only with `broadcast=1`, the second operand aligned at `axis`.

namespace fusec {
namespace {

OpKind kindOf(const NodeImporter &n) { return *parseOpKind(n.op()); }

/// Everything but what older opsets lack is said by the rule of the operator: one operand and its attributes.
Status unary(NodeImporter &n) {
  n.ignore("consumed_inputs"); // a memory hint of opset 1
  return n.finish(kindOf(n), {n.id(0)});
}

/// The default of a float attribute is a float32 constant in the operator's text.
double f32(float v) { return static_cast<double>(v); }

Status selu(NodeImporter &n) {
  if (n.opset() >= 6)
    return unary(n);
  n.ignore("consumed_inputs");
  return n.finish(OpKind::Selu, {n.id(0)},
                  {{"alpha", n.attrFloat("alpha", f32(1.6732f))},
                   {"gamma", n.attrFloat("gamma", f32(1.0507f))}});
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
    FUSEC_CHECK(n.sizes().sameShape(n.shape(1), n.shape(0),
                                    "operands must have equal shapes where broadcast is not set"));
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

/// Two operands, of which opsets before 7 align the second one.
Status binary(NodeImporter &n) {
  ValueId second = n.id(1);
  if (n.opset() < 7 && (n.hasAttribute("broadcast") || n.hasAttribute("axis"))) {
    FUSEC_TRY(second, alignedSecond(n));
  }
  n.ignore("consumed_inputs");
  return n.finish(kindOf(n), {n.id(0), second});
}

Status mod(NodeImporter &n) {
  int64_t fmod = n.attrInt("fmod", 0);
  if (fmod != 0 && fmod != 1)
    return n.fail(Diag::BadAttribute, "fmod is " + std::to_string(fmod) + "; 0 or 1 is needed");
  if (n.type(0) == DType::Bool || (isFloat(n.type(0)) && !fmod && n.opset() < 28))
    return n.mismatch("the operands must be integers, or fmod must be 1 (before opset 28)");
  return binary(n);
}
Status bitShift(NodeImporter &n) {
  if (n.opset() < 28 && isInteger(n.type(0)) && isSigned(n.type(0)))
    return n.mismatch("the operands must be unsigned integers (before opset 28)");
  return binary(n);
}

Status prelu(NodeImporter &n) {
  ValueId slope = n.id(1);
  n.ignore("consumed_inputs");
  // Opsets before 7 take one slope a channel and align it at axis 1.
  if (n.opset() < 7 && n.rank(1) == 1 && n.rank(0) > 2) {
    Shape shape = n.shape(1);
    shape.insert(shape.end(), static_cast<size_t>(n.rank(0) - 2), DimExpr(1));
    slope = n.reshape(slope, std::move(shape));
  }
  return n.finish(OpKind::PRelu, {n.id(0), slope});
}

Status variadic(NodeImporter &n) {
  for (size_t i = 0; i < n.numInputs(); ++i)
    if (!n.has(i))
      return n.fail(Diag::BadGraph, "input " + std::to_string(i) + " has no name");
  n.ignore("consumed_inputs");
  return n.finish(kindOf(n), n.ids());
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
    return n.finish(OpKind::Identity, {n.id(0)});
  return n.finish(OpKind::Clip, std::move(in));
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
  FUSEC_CHECK(n.finish(OpKind::Identity, {n.id(0)}));
  if (n.wants(1)) { // in inference nothing is dropped
    DType maskType = n.opset() < 10 ? n.type(0) : DType::Bool;
    n.result(1, Compose(n).filled(maskType, 1, n.shape(0)));
  }
  return success();
}

/// a * sigmoid(alpha * a) * b
Status swiGlu(NodeImporter &n) {
  if (n.rank(0) != n.rank(1))
    return n.mismatch("the operands must have one shape");
  for (size_t d = 0; d < n.shape(0).size(); ++d)
    FUSEC_CHECK(n.sameDim(n.shape(0)[d], n.shape(1)[d], "the operands' sizes"));
  FUSEC_TRY(ValueId gate,
            n.emitOne(OpKind::Swish, {n.id(0)}, {{"alpha", n.attrFloat("alpha", 1.0)}}));
  return n.finish(OpKind::Mul, {gate, n.id(1)});
}

constexpr OpRow kRows[] = {
    {"Abs", 1, kNewestOpset, 1, 1, 1, unary},
    {"Acos", 7, kNewestOpset, 1, 1, 1, unary},
    {"Acosh", 9, kNewestOpset, 1, 1, 1, unary},
    {"Add", 1, kNewestOpset, 2, 2, 1, binary},
    {"And", 1, kNewestOpset, 2, 2, 1, binary},
    {"Asin", 7, kNewestOpset, 1, 1, 1, unary},
    {"Asinh", 9, kNewestOpset, 1, 1, 1, unary},
    {"Atan", 7, kNewestOpset, 1, 1, 1, unary},
    {"Atanh", 9, kNewestOpset, 1, 1, 1, unary},
    {"BitShift", 11, kNewestOpset, 2, 2, 1, bitShift},
    {"BitwiseAnd", 18, kNewestOpset, 2, 2, 1, binary},
    {"BitwiseNot", 18, kNewestOpset, 1, 1, 1, unary},
    {"BitwiseOr", 18, kNewestOpset, 2, 2, 1, binary},
    {"BitwiseXor", 18, kNewestOpset, 2, 2, 1, binary},
    {"Ceil", 1, kNewestOpset, 1, 1, 1, unary},
    {"Celu", 12, kNewestOpset, 1, 1, 1, unary},
    {"Clip", 1, kNewestOpset, 1, 3, 1, clip},
    {"Cos", 7, kNewestOpset, 1, 1, 1, unary},
    {"Cosh", 9, kNewestOpset, 1, 1, 1, unary},
    {"Div", 1, kNewestOpset, 2, 2, 1, binary},
    {"Dropout", 1, kNewestOpset, 1, 3, 2, dropout, "inference only"},
    {"Elu", 1, kNewestOpset, 1, 1, 1, unary},
    {"Equal", 1, kNewestOpset, 2, 2, 1, binary},
    {"Erf", 9, kNewestOpset, 1, 1, 1, unary},
    {"Exp", 1, kNewestOpset, 1, 1, 1, unary},
    {"Floor", 1, kNewestOpset, 1, 1, 1, unary},
    {"Gelu", 20, kNewestOpset, 1, 1, 1, unary},
    {"Greater", 1, kNewestOpset, 2, 2, 1, binary},
    {"GreaterOrEqual", 12, kNewestOpset, 2, 2, 1, binary},
    {"HardSigmoid", 1, kNewestOpset, 1, 1, 1, unary},
    {"HardSwish", 14, kNewestOpset, 1, 1, 1, unary},
    {"Identity", 1, kNewestOpset, 1, 1, 1, identity},
    {"IsInf", 10, kNewestOpset, 1, 1, 1, unary},
    {"IsNaN", 9, kNewestOpset, 1, 1, 1, unary},
    {"LeakyRelu", 1, kNewestOpset, 1, 1, 1, unary},
    {"Less", 1, kNewestOpset, 2, 2, 1, binary},
    {"LessOrEqual", 12, kNewestOpset, 2, 2, 1, binary},
    {"Log", 1, kNewestOpset, 1, 1, 1, unary},
    {"Max", 1, kNewestOpset, 1, -1, 1, variadic},
    {"Mean", 1, kNewestOpset, 1, -1, 1, variadic},
    {"Min", 1, kNewestOpset, 1, -1, 1, variadic},
    {"Mish", 18, kNewestOpset, 1, 1, 1, unary},
    {"Mod", 10, kNewestOpset, 2, 2, 1, mod},
    {"Mul", 1, kNewestOpset, 2, 2, 1, binary},
    {"Neg", 1, kNewestOpset, 1, 1, 1, unary},
    {"Not", 1, kNewestOpset, 1, 1, 1, unary},
    {"Or", 1, kNewestOpset, 2, 2, 1, binary},
    {"PRelu", 1, kNewestOpset, 2, 2, 1, prelu},
    {"Pow", 1, kNewestOpset, 2, 2, 1, binary},
    {"Reciprocal", 1, kNewestOpset, 1, 1, 1, unary},
    {"Relu", 1, kNewestOpset, 1, 1, 1, unary},
    {"Round", 11, kNewestOpset, 1, 1, 1, unary},
    {"Selu", 1, kNewestOpset, 1, 1, 1, selu},
    {"Shrink", 9, kNewestOpset, 1, 1, 1, unary},
    {"Sigmoid", 1, kNewestOpset, 1, 1, 1, unary},
    {"Sign", 9, kNewestOpset, 1, 1, 1, unary},
    {"Sin", 7, kNewestOpset, 1, 1, 1, unary},
    {"Sinh", 9, kNewestOpset, 1, 1, 1, unary},
    {"Softplus", 1, kNewestOpset, 1, 1, 1, unary},
    {"Softsign", 1, kNewestOpset, 1, 1, 1, unary},
    {"Sqrt", 1, kNewestOpset, 1, 1, 1, unary},
    {"Sub", 1, kNewestOpset, 2, 2, 1, binary},
    {"Sum", 1, kNewestOpset, 1, -1, 1, variadic},
    {"SwiGLU", 28, kNewestOpset, 2, 2, 1, swiGlu},
    {"Swish", 24, kNewestOpset, 1, 1, 1, unary},
    {"Tan", 7, kNewestOpset, 1, 1, 1, unary},
    {"Tanh", 1, kNewestOpset, 1, 1, 1, unary},
    {"ThresholdedRelu", 10, kNewestOpset, 1, 1, 1, unary},
    {"Where", 9, kNewestOpset, 3, 3, 1, variadic},
    {"Xor", 1, kNewestOpset, 2, 2, 1, binary},
};

} // namespace

std::span<const OpRow> elementwiseOps() { return kRows; }

} // namespace fusec
