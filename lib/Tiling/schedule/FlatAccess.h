#pragma once
#include "Expr/Expr.h"
#include "Expr/Padding.h"

#include <optional>
#include <vector>

namespace fusec {

/// Nodes of all Read and ReadIf of an equation's body that its results (or scatter nodes) reach, in node order.
std::vector<NodeId> readsOf(const Equation &equation);

/// Row-major strides of a shape in elements.
std::vector<DimExpr> stridesOf(const Shape &shape);

/// A read as a flat, row-major element address that is affine in the equation's axes:
/// address = constant + sum of stride[axis] * axis + sum of rests. nullopt where it is not (divisions
/// but for the digits of one number, gathers).
struct FlatAccess {
  std::vector<DimExpr> stride; // one an axis
  DimExpr constant;
  struct Rest {
    NodeId value;   // axis-free i64 node of the equation's body, such as a scan's step
    DimExpr stride; // multiplies it
  };
  std::vector<Rest> rests;
};
std::optional<FlatAccess> flatAccess(const Equation &equation, NodeId read,
                                     const ExprProgram &program);

/// An axis of the equation, or a digit of it, as a term of an address: floormod(floordiv(axis, divisor), modulus).
struct DigitTerm {
  int axis;
  int64_t divisor = 1;
  int64_t modulus = 0; // 0: the whole quotient
  DimExpr stride;
};
/// A read's address as a sum of such terms, where constants take its axes apart; nullopt where it is none.
std::optional<std::vector<DigitTerm>> digitTerms(const Equation &equation, NodeId read,
                                                 const ExprProgram &program);

/// The address at which an output of the equation has the value of a point.
FlatAccess outputAccess(const Equation &equation, const Tensor &output);

/// Bit a set iff node `id` depends on axis a (equations have at most 64 axes).
uint64_t axisDependence(const Body &body, NodeId id);
/// The axisDependence of every node up to `last`, at the cost of one.
std::vector<uint64_t> axisDependences(const Body &body, NodeId last);

} // namespace fusec
