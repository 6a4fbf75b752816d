#pragma once
#include "Expr/Body.h"

namespace fusec::lower {

/// A node of a Body with operators, so that lowering rules read as formulas. A Val without a body is a
/// predicate that always holds.
struct Val {
  Body *body = nullptr;
  NodeId id = kNoNode;

  bool always() const { return id == kNoNode; }
  DType type() const { return (*body)[id].type; }
  bool floating() const { return isFloat(type()); }
  /// The constant `v` in this value's type.
  Val like(double v) const { return {body, body->constant(type(), v)}; }
  Val likeInt(int64_t v) const { return {body, body->constantInt(type(), v)}; }
  Val likeDim(const DimExpr &d) const { return {body, body->dim(d)}; } // i64 only
};

inline Val binary(ScalarOp op, Val a, Val b) { return {a.body, a.body->binary(op, a.id, b.id)}; }
inline Val unary(ScalarOp op, Val a) { return {a.body, a.body->unary(op, a.id)}; }

inline Val operator+(Val a, Val b) { return binary(ScalarOp::Add, a, b); }
inline Val operator-(Val a, Val b) { return binary(ScalarOp::Sub, a, b); }
inline Val operator*(Val a, Val b) { return binary(ScalarOp::Mul, a, b); }
inline Val operator/(Val a, Val b) { return binary(ScalarOp::Div, a, b); }
inline Val operator-(Val a) { return unary(ScalarOp::Neg, a); }
inline Val operator+(Val a, double b) { return a + a.like(b); }
inline Val operator-(Val a, double b) { return a - a.like(b); }
inline Val operator*(Val a, double b) { return a * a.like(b); }
inline Val operator/(Val a, double b) { return a / a.like(b); }
inline Val operator-(double a, Val b) { return b.like(a) - b; }
inline Val operator/(double a, Val b) { return b.like(a) / b; }
inline Val operator+(Val a, const DimExpr &b) { return a + a.likeDim(b); }
inline Val operator-(Val a, const DimExpr &b) { return a - a.likeDim(b); }
inline Val operator*(Val a, const DimExpr &b) { return a * a.likeDim(b); }
inline Val floorDiv(Val a, const DimExpr &b) { return binary(ScalarOp::FloorDiv, a, a.likeDim(b)); }
inline Val floorMod(Val a, const DimExpr &b) { return binary(ScalarOp::FloorMod, a, a.likeDim(b)); }
/// Rounds up; a >= 0, b > 0.
inline Val ceilDiv(Val a, const DimExpr &b) { return floorDiv(a + (b - 1), b); }

inline Val lt(Val a, Val b) { return binary(ScalarOp::Lt, a, b); }
inline Val le(Val a, Val b) { return binary(ScalarOp::Le, a, b); }
inline Val eq(Val a, Val b) { return binary(ScalarOp::Eq, a, b); }
inline Val ne(Val a, Val b) { return binary(ScalarOp::Ne, a, b); }
inline Val lt(Val a, double b) { return lt(a, a.like(b)); }
inline Val le(Val a, double b) { return le(a, a.like(b)); }
inline Val ge(Val a, double b) { return le(a.like(b), a); }
inline Val gt(Val a, double b) { return lt(a.like(b), a); }
inline Val eq(Val a, double b) { return eq(a, a.like(b)); }
inline Val lt(Val a, const DimExpr &b) { return lt(a, a.likeDim(b)); }
inline Val le(Val a, const DimExpr &b) { return le(a, a.likeDim(b)); }
inline Val ge(Val a, const DimExpr &b) { return le(a.likeDim(b), a); }
inline Val min(Val a, Val b) { return binary(ScalarOp::Min, a, b); }
inline Val max(Val a, Val b) { return binary(ScalarOp::Max, a, b); }
// The number in front: a machine's one instruction gives its second operand where that is a NaN, and where both are
// equal. So max(0, -0.0) is -0.0.
inline Val min(Val a, double b) { return min(a.like(b), a); }
inline Val max(Val a, double b) { return max(a.like(b), a); }
inline Val pow(Val a, Val b) { return binary(ScalarOp::Pow, a, b); }
inline Val exp(Val a) { return unary(ScalarOp::Exp, a); }
inline Val log(Val a) { return unary(ScalarOp::Log, a); }
inline Val log1p(Val a) { return unary(ScalarOp::Log1p, a); }
inline Val expm1(Val a) { return unary(ScalarOp::Expm1, a); }
inline Val tanh(Val a) { return unary(ScalarOp::Tanh, a); }
inline Val erf(Val a) { return unary(ScalarOp::Erf, a); }
inline Val sigmoid(Val a) { return unary(ScalarOp::Sigmoid, a); }
inline Val sqrt(Val a) { return unary(ScalarOp::Sqrt, a); }
inline Val abs(Val a) { return unary(ScalarOp::Abs, a); }
inline Val floor(Val a) { return unary(ScalarOp::Floor, a); }
inline Val ceil(Val a) { return unary(ScalarOp::Ceil, a); }
inline Val roundEven(Val a) { return unary(ScalarOp::RoundEven, a); }
inline Val isNan(Val a) { return unary(ScalarOp::IsNan, a); }
inline Val isInf(Val a) { return unary(ScalarOp::IsInf, a); }
inline Val logicalNot(Val a) { return unary(ScalarOp::Not, a); }
inline Val either(Val a, Val b) { return binary(ScalarOp::Or, a, b); }
inline Val cast(DType t, Val a) { return {a.body, a.type() == t ? a.id : a.body->cast(t, a.id)}; }
inline Val castSat(DType t, Val a) { return {a.body, a.body->castSat(t, a.id)}; }
inline Val select(Val p, Val a, Val b) {
  return p.always() ? a : Val{a.body, a.body->select(p.id, a.id, b.id)};
}
/// Conjunction of predicates, either of which may be "always".
inline Val both(Val a, Val b) {
  Body *body = a.body ? a.body : b.body;
  return body ? Val{body, body->logicalAnd(a.id, b.id)} : Val{};
}
/// 0 <= i < extent
inline Val inRange(Val i, const DimExpr &extent) { return both(ge(i, 0), lt(i, extent)); }

/// The type in which an operator on `t` computes: 16-bit floats in f32.
inline DType computeType(DType t) { return t == DType::F16 || t == DType::BF16 ? DType::F32 : t; }
inline Val widen(Val a) { return cast(computeType(a.type()), a); }

} // namespace fusec::lower
