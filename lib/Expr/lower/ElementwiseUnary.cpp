// Element-wise operators with one tensor operand.
#include "Expr/lower/Lowering.h"

#include <cmath>
#include <limits>

namespace fusec::lower {
namespace {

using Formula = Val (*)(Val x, const Node &node);

template <ScalarOp op> Val plain(Val x, const Node &) { return unary(op, x); }
/// Rounding functions and tests on integers: the identity, or never.
template <ScalarOp op> Val rounding(Val x, const Node &) { return x.floating() ? unary(op, x) : x; }

Val celu(Val x, const Node &n) {
  double alpha = n.floatAttr("alpha");
  return max(x, 0) + min(expm1(x / alpha) * alpha, 0);
}
Val elu(Val x, const Node &n) { return select(lt(x, 0), expm1(x) * n.floatAttr("alpha"), x); }
Val selu(Val x, const Node &n) {
  return select(le(x, 0), expm1(x) * n.floatAttr("alpha"), x) * n.floatAttr("gamma");
}
Val gelu(Val x, const Node &n) {
  if (n.stringAttr("approximate") == "tanh") {
    // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
    Val inner = (x + x * x * x * 0.044715) * std::sqrt(2 / M_PI);
    return x * 0.5 * (tanh(inner) + 1);
  }
  return x * 0.5 * (erf(x * M_SQRT1_2) + 1);
}
Val hardSigmoid(Val x, const Node &n) {
  return max(min(x * n.floatAttr("alpha") + n.floatAttr("beta"), 1), 0);
}
Val hardSwish(Val x, const Node &) { return x * max(min(x * (1.0 / 6) + 0.5, 1), 0); }
Val isInfinite(Val x, const Node &n) {
  if (!x.floating())
    return {x.body, x.body->constantInt(DType::Bool, 0)};
  bool negative = n.intAttr("detect_negative"), positive = n.intAttr("detect_positive");
  if (negative && positive)
    return isInf(x);
  if (!negative && !positive)
    return {x.body, x.body->constantInt(DType::Bool, 0)};
  return eq(x, positive ? std::numeric_limits<double>::infinity()
                        : -std::numeric_limits<double>::infinity());
}
Val isNotANumber(Val x, const Node &) {
  return x.floating() ? isNan(x) : Val{x.body, x.body->constantInt(DType::Bool, 0)};
}
Val leakyRelu(Val x, const Node &n) { return select(lt(x, 0), x * n.floatAttr("alpha"), x); }
/// log(1 + e^x) without overflow
Val softplusOf(Val x) { return max(x, 0) + log1p(exp(-abs(x))); }
Val softplus(Val x, const Node &) { return softplusOf(x); }
Val mish(Val x, const Node &) { return x * tanh(softplusOf(x)); }
Val reciprocal(Val x, const Node &) { return 1.0 / x; }
Val relu(Val x, const Node &) { return max(x, 0); }
Val shrink(Val x, const Node &n) {
  double bias = n.floatAttr("bias"), lambd = n.floatAttr("lambd");
  if (!x.floating()) {
    // The comparison and the sum are made on the mathematical values.
    Val wide = cast(DType::F64, x);
    Val r =
        select(lt(wide, -lambd), wide + bias, select(gt(wide, lambd), wide - bias, wide.like(0)));
    return cast(x.type(), r);
  }
  return select(lt(x, -lambd), x + bias, select(gt(x, lambd), x - bias, x.like(0)));
}
Val sign(Val x, const Node &) {
  Val positive = select(gt(x, 0), x.like(1), x.like(0));
  if (x.floating())
    return select(lt(x, 0), x.like(-1), select(isNan(x), x, positive));
  return isSigned(x.type()) ? select(lt(x, 0), x.like(-1), positive) : positive;
}
Val softsign(Val x, const Node &) { return x / (abs(x) + 1); }
Val swish(Val x, const Node &n) { return x * sigmoid(x * n.floatAttr("alpha")); }
Val thresholdedRelu(Val x, const Node &n) {
  return select(gt(x, n.floatAttr("alpha")), x, x.like(0));
}
Val castTo(Val x, const Node &n) { return cast(std::get<DType>(n.attributes.at("to")), x); }

Val bitCastTo(Val x, const Node &n) {
  Scalar s;
  s.op = ScalarOp::Bitcast;
  s.type = std::get<DType>(n.attributes.at("to"));
  s.args = {x.id};
  return {x.body, x.body->add(std::move(s))};
}

Formula formulaOf(OpKind op) {
  using enum OpKind;
  switch (op) {
  case Abs: return plain<ScalarOp::Abs>;
  case Acos: return plain<ScalarOp::Acos>;
  case Acosh: return plain<ScalarOp::Acosh>;
  case Asin: return plain<ScalarOp::Asin>;
  case Asinh: return plain<ScalarOp::Asinh>;
  case Atan: return plain<ScalarOp::Atan>;
  case Atanh: return plain<ScalarOp::Atanh>;
  case BitCast: return bitCastTo;
  case BitwiseNot: return plain<ScalarOp::Not>;
  case Cast: return castTo;
  case Ceil: return rounding<ScalarOp::Ceil>;
  case Celu: return celu;
  case Cos: return plain<ScalarOp::Cos>;
  case Cosh: return plain<ScalarOp::Cosh>;
  case Elu: return elu;
  case Erf: return plain<ScalarOp::Erf>;
  case Exp: return plain<ScalarOp::Exp>;
  case Floor: return rounding<ScalarOp::Floor>;
  case Gelu: return gelu;
  case HardSigmoid: return hardSigmoid;
  case HardSwish: return hardSwish;
  case IsInf: return isInfinite;
  case IsNaN: return isNotANumber;
  case LeakyRelu: return leakyRelu;
  case Log: return plain<ScalarOp::Log>;
  case Mish: return mish;
  case Neg: return plain<ScalarOp::Neg>;
  case Not: return plain<ScalarOp::Not>;
  case Reciprocal: return reciprocal;
  case Relu: return relu;
  case Round: return rounding<ScalarOp::RoundEven>;
  case Selu: return selu;
  case Shrink: return shrink;
  case Sigmoid: return plain<ScalarOp::Sigmoid>;
  case Sign: return sign;
  case Sin: return plain<ScalarOp::Sin>;
  case Sinh: return plain<ScalarOp::Sinh>;
  case Softplus: return softplus;
  case Softsign: return softsign;
  case Sqrt: return plain<ScalarOp::Sqrt>;
  case Swish: return swish;
  case Tan: return plain<ScalarOp::Tan>;
  case Tanh: return plain<ScalarOp::Tanh>;
  case ThresholdedRelu: return thresholdedRelu;
  default: return nullptr;
  }
}

Status elementwise(NodeLowering &n) {
  Formula formula = formulaOf(n.node.op);
  n.map(n.out(), [&](EquationBuilder &b) {
    Val x = b.broadcast(n.in(0));
    // Conversions go by the declared type, everything else by the wider one.
    bool converts = n.node.op == OpKind::Cast || n.node.op == OpKind::BitCast;
    Val y = formula(converts ? x : widen(x), n.node);
    return cast(n.outType(), y);
  });
  return success();
}

Status identity(NodeLowering &n) {
  n.copy(n.out(), n.in(0));
  return success();
}

} // namespace

void addElementwiseUnary(HandlerTable &table) {
  for (int op = 0; op <= static_cast<int>(OpKind::ThresholdedRelu); ++op)
    if (formulaOf(static_cast<OpKind>(op)))
      table[static_cast<OpKind>(op)] = elementwise;
  table[OpKind::Identity] = identity;
}

} // namespace fusec::lower
