// MatMul, Gemm and Einsum: sums of products with one axis a label. The integer forms are in Quantisation.cpp.
#include "Expr/lower/Contractions.h"

#include <map>

namespace fusec::lower {

Val matMulTerm(EquationBuilder &b, TensorId x, TensorId w, const std::function<Val(Val)> &mapX,
               const std::function<Val(Val)> &mapW) {
  const Shape &a = b.n.shapeOf(x), &c = b.n.shapeOf(w);
  size_t out = b.axes.size();
  bool hasRow = a.size() > 1, hasColumn = c.size() > 1;
  std::vector<Val> batch(b.axes.begin(), b.axes.end() - (hasRow + hasColumn));
  Val k = b.reduction(a.back());
  std::vector<Val> ia = batch, ib = batch;
  if (hasRow)
    ia.push_back(b.axis(out - 1 - hasColumn));
  ia.push_back(k);
  ib.push_back(k);
  if (hasColumn)
    ib.push_back(b.axis(out - 1));
  // A one-dimensional operand has no batch dims either.
  auto trim = [](std::vector<Val> at, size_t rank) {
    return std::vector<Val>(at.end() - static_cast<std::ptrdiff_t>(rank), at.end());
  };
  return mapX(b.broadcast(x, trim(ia, a.size()))) * mapW(b.broadcast(w, trim(ib, c.size())));
}

namespace {

Status matMul(NodeLowering &n) {
  DType t = computeType(n.outType());
  auto wide = [t](Val v) { return cast(t, v); };
  n.reduceTo(n.out(), "acc", Monoid::Sum, t,
             [&](EquationBuilder &b) { return matMulTerm(b, n.in(0), n.in(1), wide, wide); });
  return success();
}

Status gemm(NodeLowering &n) {
  bool transA = n.node.intAttr("transA"), transB = n.node.intAttr("transB");
  double alpha = n.node.floatAttr("alpha"), beta = n.node.floatAttr("beta");
  bool hasC = n.has(2) && beta != 0;
  DType t = computeType(n.outType());
  DimExpr depth = n.shape(0)[transA ? 0 : 1];
  auto product = [&](EquationBuilder &b) {
    Val k = b.reduction(depth), i = b.axis(0), j = b.axis(1);
    Val x = b.read(n.in(0), transA ? std::vector<Val>{k, i} : std::vector<Val>{i, k});
    Val w = b.read(n.in(1), transB ? std::vector<Val>{j, k} : std::vector<Val>{k, j});
    return cast(t, x) * cast(t, w);
  };
  if (alpha == 1 && !hasC) {
    n.reduceTo(n.out(), "acc", Monoid::Sum, t, product);
    return success();
  }
  TensorId acc = n.reduceTemp("acc", Monoid::Sum, t, n.outShape(), product);
  // Integers take their factors in f64: alpha and beta need not be whole numbers.
  DType factorType = isFloat(t) ? t : DType::F64;
  auto scaled = [&](Val v, double factor) {
    return factor == 1 ? v : cast(t, cast(factorType, v) * factor);
  };
  n.map(n.out(), [&](EquationBuilder &b) {
    Val y = scaled(b.read(acc, b.axes), alpha);
    if (hasC)
      y = y + scaled(cast(t, b.broadcast(n.in(2))), beta);
    return cast(n.outType(), y);
  });
  return success();
}

/// "ij,jk->ik": one axis a label; the labels of the result are the spatial ones, in its order.
Status einsum(NodeLowering &n) {
  const std::string &equation = n.node.stringAttr("equation");
  size_t arrow = equation.find("->");
  if (arrow == std::string::npos)
    return n.fail("the equation '" + equation + "' has no explicit output");
  std::vector<std::string> terms(1);
  for (char c : equation.substr(0, arrow)) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  std::string result = equation.substr(arrow + 2);
  if (terms.size() != n.node.inputs.size() || result.size() != n.outShape().size())
    return n.fail("the equation '" + equation + "' does not fit the operands");

  std::map<char, DimExpr> extents; // of labels that are summed
  std::string summed;              // in the order of appearance
  for (size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].size() != n.shape(i).size())
      return n.fail("the term '" + terms[i] + "' does not fit operand " + std::to_string(i));
    for (size_t d = 0; d < terms[i].size(); ++d) {
      char c = terms[i][d];
      if (result.find(c) != std::string::npos)
        continue;
      auto [it, isNew] = extents.emplace(c, n.shape(i)[d]);
      if (isNew)
        summed += c;
      else if (it->second.isConst(1))
        it->second = n.shape(i)[d];
    }
  }
  DType t = computeType(n.outType());
  n.reduceTo(n.out(), "acc", Monoid::Sum, t, [&](EquationBuilder &b) {
    std::map<char, Val> at;
    for (size_t d = 0; d < result.size(); ++d)
      at[result[d]] = b.axis(d);
    for (char c : summed)
      at[c] = b.reduction(extents.at(c));
    Val y = b.constant(t, 1);
    for (size_t i = 0; i < terms.size(); ++i) {
      std::vector<Val> indices;
      for (size_t d = 0; d < terms[i].size(); ++d)
        indices.push_back(at.at(terms[i][d]));
      Val factor = cast(t, b.broadcast(n.in(i), indices));
      y = i == 0 ? factor : y * factor;
    }
    return y;
  });
  return success();
}

} // namespace

void addContractions(HandlerTable &table) {
  table[OpKind::MatMul] = matMul;
  table[OpKind::Gemm] = gemm;
  table[OpKind::Einsum] = einsum;
}

} // namespace fusec::lower
