#pragma once
#include "Expr/Body.h"

namespace fusec {

/// sum of coefficient * atom + constant; atoms are nodes of the body that are no sums themselves.
struct LinearForm {
  struct Term {
    NodeId atom;
    DimExpr coefficient;
  };
  std::vector<Term> terms;
  DimExpr constant;

  bool isConstant() const { return terms.empty(); }
};

/// Quasi-affine arithmetic over the i64 nodes of one Body.
///
/// Every sum is kept as a sorted LinearForm, written back as ((t0 + t1) + ...) + constant with each t one of
/// atom, atom*constant. Divisions and remainders by a positive constant or Dim fold by the ranges of their
/// parts. With s in [0, 128), h in [0, 12), d in [0, 64):
///
///   ((s*768 + h*64 + d) floordiv 64) floormod 12
///     -> (s*12 + h + (d floordiv 64)) floormod 12     terms with a coefficient divisible by 64 leave
///     -> (s*12 + h) floormod 12                       d floordiv 64 = 0, because d < 64
///     -> h                                            s*12 vanishes, and h < 12
///
/// and a value that was taken apart is put together again:
///   (x floordiv 64)*64 + x floormod 64 -> x.
///
/// Data (Read and what is computed from it) may wrap, so a division of a sum over data is left alone unless
/// its range is known to be finite.
class IndexAlgebra {
public:
  explicit IndexAlgebra(Body &body) : body(body) {}

  /// Result of an i64 Add, Sub, Mul, Neg, FloorDiv or FloorMod, simplified; kNoNode when the rules do not
  /// apply (overflowing coefficients, unknown divisor): then the operation stands as it is.
  NodeId simplify(const Scalar &s);
  /// A comparison of i64 nodes without data: a bool constant, or lt(a, b) with common parts cancelled;
  /// kNoNode when left as it is.
  NodeId simplifyComparison(const Scalar &s);

  LinearForm linear(NodeId id);
  bool provablyNonNegative(const LinearForm &f);

private:
  NodeId build(LinearForm f);
  NodeId constantNode(const DimExpr &d);
  NodeId divide(NodeId dividend, NodeId divisor);
  NodeId remainder(NodeId dividend, NodeId divisor);
  void add(LinearForm &to, const LinearForm &f, const DimExpr &factor);
  void addTerm(LinearForm &to, NodeId atom, const DimExpr &coefficient);
  DimExpr sum(const DimExpr &a, const DimExpr &b);
  DimExpr product(const DimExpr &a, const DimExpr &b);
  void recombine(LinearForm &f);
  bool recombineOnce(LinearForm &f);
  /// Splits f into divisor * quotient + rest, as far as the coefficients show it.
  void split(const LinearForm &f, const DimExpr &divisor, LinearForm &quotient, LinearForm &rest);
  /// Takes multiples out of coefficients that lie beside one, i*(d - 1) = d*i - i; whether the rest is within d then.
  bool splitNearest(LinearForm &quotient, LinearForm &rest, const DimExpr &divisor);
  bool within(const LinearForm &f, const DimExpr &limit); // 0 <= f < limit, provably
  std::vector<DimExpr> commonFactors(const LinearForm &f, const DimExpr &divisor);
  std::optional<DimExpr> bound(NodeId atom, bool upper);
  bool mayWrap(const LinearForm &f);
  bool holdsData(NodeId id);
  bool isPositive(const DimExpr &d);
  bool positiveConstant(NodeId id, DimExpr &value); // a Const or Dim that is provably >= 1
  int compare(NodeId a, NodeId b);                  // structural order, independent of ids

  Body &body;
  bool overflow = false;
};

/// a / d when it is exact as polynomials in the symbols.
std::optional<DimExpr> exactQuotient(const DimExpr &a, const DimExpr &d);

} // namespace fusec
