// Element-wise operators: one shape, or several that broadcast.
#include "Graph/rules/OpCheck.h"

namespace fusec::rules {
namespace {

template <Kind k> Result<Types> unary(const OpCheck &c) {
  FUSEC_CHECK(c.operand(k));
  return like(c);
}
template <Kind k> Result<Types> test(const OpCheck &c) {
  FUSEC_CHECK(c.operand(k));
  return one(DType::Bool, c.shape(0));
}

Result<Types> cast(const OpCheck &c) { return one(c.typeAttr("to"), c.shape(0)); }

Result<Types> bitCast(const OpCheck &c) {
  const DType to = c.typeAttr("to");
  FUSEC_CHECK(c.expect(c.type(0) != DType::Bool && to != DType::Bool &&
                           sizeInBytes(c.type(0)) == sizeInBytes(to),
                       "the types must be numbers of equal width"));
  return one(to, c.shape(0));
}

Result<Shape> common(const OpCheck &c) {
  std::vector<const Shape *> shapes;
  for (size_t i = 0; i < c.node.inputs.size(); ++i)
    shapes.push_back(&c.shape(i));
  return c.sizes.broadcast(shapes);
}

template <Kind k> Result<Types> combined(const OpCheck &c) {
  FUSEC_CHECK(c.operands(k));
  FUSEC_TRY(Shape shape, common(c));
  return one(c.type(0), std::move(shape));
}

template <Kind k> Result<Types> comparison(const OpCheck &c) {
  FUSEC_CHECK(c.operands(k));
  FUSEC_TRY(Shape shape, common(c));
  return one(DType::Bool, std::move(shape));
}

Result<Types> power(const OpCheck &c) {
  FUSEC_CHECK(c.expect(c.type(0) != DType::Bool && c.type(1) != DType::Bool,
                       "the operands must be numbers"));
  FUSEC_TRY(Shape shape, common(c));
  return one(c.type(0), std::move(shape));
}

Result<Types> prelu(const OpCheck &c) {
  FUSEC_CHECK(c.operands(Kind::Number));
  FUSEC_CHECK(
      c.sizes.broadcastsTo(c.shape(1), c.shape(0), "the slope must broadcast to the data's shape"));
  return like(c);
}

Result<Types> where(const OpCheck &c) {
  FUSEC_CHECK(c.expect(c.type(0) == DType::Bool && c.type(1) == c.type(2),
                       "the condition must be bool and both operands of one type"));
  FUSEC_TRY(Shape shape, common(c));
  return one(c.type(1), std::move(shape));
}

Result<Types> clip(const OpCheck &c) {
  FUSEC_CHECK(c.operand(Kind::Number));
  FUSEC_CHECK(c.sameTypes({0, 1, 2}));
  FUSEC_CHECK(c.oneNumber(1));
  FUSEC_CHECK(c.oneNumber(2));
  return like(c);
}

} // namespace

void addElementwise(RuleTable &table) {
  using enum OpKind;
  for (OpKind op : {Acos,        Acosh,     Asin,
                    Asinh,       Atan,      Atanh,
                    Ceil,        Celu,      Cos,
                    Cosh,        Elu,       Erf,
                    Exp,         Floor,     Gelu,
                    HardSigmoid, HardSwish, LeakyRelu,
                    Log,         Mish,      Reciprocal,
                    Round,       Selu,      Sigmoid,
                    Sin,         Sinh,      Softplus,
                    Softsign,    Sqrt,      Swish,
                    Tan,         Tanh,      ThresholdedRelu})
    entry(table, op) = unary<Kind::Float>;
  for (OpKind op : {Abs, Neg, Relu, Shrink, Sign})
    entry(table, op) = unary<Kind::Number>;
  for (OpKind op : {IsInf, IsNaN})
    entry(table, op) = test<Kind::Float>;
  entry(table, Identity) = unary<Kind::Any>;
  entry(table, BitwiseNot) = unary<Kind::Integer>;
  entry(table, Not) = unary<Kind::Bool>;
  entry(table, Cast) = cast;
  entry(table, BitCast) = bitCast;
  for (OpKind op : {Add, Div, Max, Mean, Min, Mod, Mul, Sub, Sum})
    entry(table, op) = combined<Kind::Number>;
  for (OpKind op : {BitShift, BitwiseAnd, BitwiseOr, BitwiseXor})
    entry(table, op) = combined<Kind::Integer>;
  for (OpKind op : {And, Or, Xor})
    entry(table, op) = combined<Kind::Bool>;
  for (OpKind op : {Greater, GreaterOrEqual, Less, LessOrEqual})
    entry(table, op) = comparison<Kind::Number>;
  entry(table, Equal) = comparison<Kind::Any>;
  entry(table, Pow) = power;
  entry(table, PRelu) = prelu;
  entry(table, Where) = where;
  entry(table, Clip) = clip;
}

} // namespace fusec::rules
