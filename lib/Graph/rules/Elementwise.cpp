// Element-wise operators: one shape, or several that broadcast.
#include "Graph/rules/OpCheck.h"

namespace fusec::rules {
namespace {

template <Kind k> Status unary(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, k));
  return c.output(c.type(0), c.shape(0));
}
template <Kind k> Status test(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, k));
  return c.output(DType::Bool, c.shape(0));
}

Status cast(const OpCheck &c) {
  return c.output(std::get<DType>(c.node.attributes.at("to")), c.shape(0));
}

Status bitCast(const OpCheck &c) {
  const DType to = std::get<DType>(c.node.attributes.at("to"));
  FUSEC_CHECK(c.expect(c.type(0) != DType::Bool && to != DType::Bool &&
                           sizeInBytes(c.type(0)) == sizeInBytes(to),
                       "the types must be numbers of equal width"));
  return c.output(to, c.shape(0));
}

Status gelu(const OpCheck &c) { return unary<Kind::Float>(c); }

Result<Shape> common(const OpCheck &c) {
  std::vector<const Shape *> shapes;
  for (size_t i = 0; i < c.node.inputs.size(); ++i)
    shapes.push_back(&c.shape(i));
  return c.broadcast(shapes);
}

template <Kind k> Status combined(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, k));
  FUSEC_CHECK(c.allSameTypes());
  FUSEC_TRY(Shape shape, common(c));
  return c.output(c.type(0), shape);
}

template <Kind k> Status comparison(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, k));
  FUSEC_CHECK(c.allSameTypes());
  FUSEC_TRY(Shape shape, common(c));
  return c.output(DType::Bool, shape);
}

Status bitShift(const OpCheck &c) { return combined<Kind::Integer>(c); }

Status power(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Number));
  FUSEC_CHECK(c.kind(1, Kind::Number));
  FUSEC_TRY(Shape shape, common(c));
  return c.output(c.type(0), shape);
}

Status prelu(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Number));
  FUSEC_CHECK(c.allSameTypes());
  FUSEC_CHECK(c.broadcastsTo(c.shape(1), c.shape(0), "the slope"));
  return c.output(c.type(0), c.shape(0));
}

Status where(const OpCheck &c) {
  FUSEC_CHECK(c.expect(c.type(0) == DType::Bool, "the condition must be bool"));
  FUSEC_CHECK(c.sameTypes({1, 2}));
  FUSEC_TRY(Shape shape, common(c));
  return c.output(c.type(1), shape);
}

Status clip(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Number));
  FUSEC_CHECK(c.sameTypes({0, 1, 2}));
  FUSEC_CHECK(c.oneNumber(1));
  FUSEC_CHECK(c.oneNumber(2));
  return c.output(c.type(0), c.shape(0));
}

} // namespace

void addElementwise(RuleTable &table) {
  using enum OpKind;
  for (OpKind op : {Acos,  Acosh, Asin,        Asinh,          Atan,
                    Atanh, Celu,  Cos,         Cosh,           Elu,
                    Erf,   Exp,   HardSigmoid, HardSwish,      LeakyRelu,
                    Log,   Mish,  Reciprocal,  Selu,           Sigmoid,
                    Sin,   Sinh,  Softplus,    Softsign,       Sqrt,
                    Swish, Tan,   Tanh,        ThresholdedRelu})
    table[op] = unary<Kind::Float>;
  for (OpKind op : {Abs, Ceil, Floor, Neg, Relu, Round, Shrink, Sign})
    table[op] = unary<Kind::Number>;
  for (OpKind op : {IsInf, IsNaN})
    table[op] = test<Kind::Number>;
  table[Identity] = unary<Kind::Any>;
  table[BitwiseNot] = unary<Kind::Integer>;
  table[Not] = unary<Kind::Bool>;
  table[Cast] = cast;
  table[BitCast] = bitCast;
  table[Gelu] = gelu;
  for (OpKind op : {Add, Div, Max, Mean, Min, Mod, Mul, Sub, Sum})
    table[op] = combined<Kind::Number>;
  for (OpKind op : {BitwiseAnd, BitwiseOr, BitwiseXor})
    table[op] = combined<Kind::Integer>;
  for (OpKind op : {And, Or, Xor})
    table[op] = combined<Kind::Bool>;
  for (OpKind op : {Greater, GreaterOrEqual, Less, LessOrEqual})
    table[op] = comparison<Kind::Number>;
  table[Equal] = comparison<Kind::Any>;
  table[BitShift] = bitShift;
  table[Pow] = power;
  table[PRelu] = prelu;
  table[Where] = where;
  table[Clip] = clip;
}

} // namespace fusec::rules
