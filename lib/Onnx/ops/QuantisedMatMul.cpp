#include "Onnx/OpTable.h"
#include "Onnx/ops/Quantised.h"

#include <algorithm>
#include <array>
#include <numeric>

// Products of com.microsoft: of bytes, with what brings their i32 sums to floats or to the output's scale, and
// FusedMatMul, which transposes and scales.

namespace fusec {
namespace {

/// A bias along the columns of the product of inputs 0 and 1, which has one where input 1 is a vector.
Status checkBias(NodeImporter &n, size_t i, const Shape &product) {
  FUSEC_CHECK(Quantised(n).floats(i));
  if (!n.has(i))
    return success();
  return n.sizes().sameShape(n.shape(i), {n.rank(1) == 1 ? DimExpr(1) : product.back()},
                             "the bias must have one value for each column of the product");
}

/// A parameter of one number has no axes, so that it does not widen what it is multiplied with.
ValueId plain(NodeImporter &n, size_t i) {
  return n.has(i) && numElements(n.shape(i)).isConst(1) ? n.reshape(n.id(i), {}) : n.id(i);
}

/// Columns of a product are its last axis: of a vector [K] the product is that of [1,K], without its rows.
ValueId asMatrix(NodeImporter &n, ValueId a) {
  const Shape shape = n.shapeOf(a);
  return shape.size() == 1 ? n.reshape(a, {DimExpr(1), shape[0]}) : a;
}

/// Where b is a vector too, the product has no columns and its rows are the last axis.
void finishProduct(NodeImporter &n, ValueId y) {
  Shape shape = n.shapeOf(y);
  if (n.rank(0) == 1)
    shape.erase(shape.end() - (n.rank(1) == 1 ? 1 : 2));
  n.result(0, n.reshape(y, shape));
}

/// A scale is one number or has one a row, [..,M,1], or a column, [N] or [..,1,N].
Status checkScale(NodeImporter &n, size_t i, const Shape &product) {
  Status columns = n.sideParameter(i, product, false);
  if (columns.ok() || (n.rank(i) >= 2 && n.sideParameter(i, product, true).ok()))
    return success();
  return columns;
}

/// Says which of the scales, inputs 2 and 3, ONNX Runtime applies behind the bias: it gives its kernels one number a
/// factor, or for one of the factors those of b's columns, in just that form.
std::array<bool, 2> areBehindBias(NodeImporter &n) {
  Shape form = n.shape(1);
  if (form.size() >= 2)
    form[form.size() - 2] = DimExpr(1);
  auto isOne = [&](size_t i) { return n.rank(i) < 2 && numElements(n.shape(i)).isConst(1); };
  auto isOfColumns = [&](size_t i) {
    return form.size() >= 2 &&
           (n.shape(i) == form || (form.size() == 2 && n.shape(i) == Shape{form.back()}));
  };
  const bool ofA = isOfColumns(2) && !form.back().isConst(1);
  return {!isOne(2) && !ofA, !isOne(3) && (ofA || !isOfColumns(3))};
}

/// Shape of the product of inputs 0 and 1 with its rows, so that parameters can be checked before it is made.
Result<Shape> productShape(NodeImporter &n) {
  Shape a = n.shape(0);
  if (a.size() == 1)
    a.insert(a.begin(), DimExpr(1));
  return n.sizes().matMul(a, n.shape(1));
}

/// Inputs: a f32, b, b's scale, zero?, bias?. a is quantised as DynamicQuantizeLinear does.
Status dynamicQuantizeMatMul(NodeImporter &n) {
  Compose c(n);
  Quantised q(n);
  FUSEC_CHECK(q.floats(0));
  FUSEC_CHECK(q.bytes(1));
  FUSEC_CHECK(q.floats(2));
  FUSEC_CHECK(q.bytes(3, n.type(1)));
  FUSEC_TRY(const Shape shape, productShape(n));
  FUSEC_CHECK(n.sideParameter(2, shape, false));
  FUSEC_CHECK(n.sideParameter(3, shape, false));
  FUSEC_CHECK(checkBias(n, 4, shape));
  FUSEC_TRY(std::vector<ValueId> a, q.dynamic(n.id(0)));
  FUSEC_TRY(ValueId sum, q.product(asMatrix(n, a[0]), n.id(1), a[2], plain(n, 3)));
  FUSEC_TRY(ValueId scale, c.binary(OpKind::Mul, a[1], plain(n, 2)));
  FUSEC_TRY(ValueId y, c.binary(OpKind::Mul, q.f32(sum), scale));
  if (n.has(4)) {
    FUSEC_TRY(y, c.binary(OpKind::Add, y, n.id(4)));
  }
  finishProduct(n, y);
  return success();
}

/// Inputs: a, b, a's scale, b's scale, a's zero?, b's zero?, bias?. A scale of a row [..,M,1] or of a column ([N] or
/// [..,1,N]) may stand in either place.
Status matMulIntegerToFloat(NodeImporter &n) {
  Compose c(n);
  Quantised q(n);
  for (size_t i : {0, 1}) {
    FUSEC_CHECK(q.bytes(i));
    FUSEC_CHECK(q.floats(2 + i));
    FUSEC_CHECK(q.bytes(4 + i, n.type(i)));
  }
  FUSEC_CHECK(n.quantParameter(4, DimExpr(1)));
  FUSEC_TRY(const Shape shape, productShape(n));
  FUSEC_CHECK(n.sideParameter(5, shape, false));
  FUSEC_CHECK(checkBias(n, 6, shape));
  for (size_t i : {2, 3})
    FUSEC_CHECK(checkScale(n, i, shape));
  const std::array<bool, 2> isBehind = areBehindBias(n);
  FUSEC_TRY(ValueId sum, q.product(asMatrix(n, n.id(0)), n.id(1), plain(n, 4), plain(n, 5)));
  ValueId scale = c.scalar(DType::F32, 1);
  std::vector<ValueId> behind;
  for (size_t i : {2, 3}) {
    if (isBehind[i - 2]) {
      behind.push_back(plain(n, i));
    } else {
      FUSEC_TRY(scale, c.binary(OpKind::Mul, scale, plain(n, i)));
    }
  }
  FUSEC_TRY(ValueId y, c.binary(OpKind::Mul, q.f32(sum), scale));
  if (n.has(6)) {
    FUSEC_TRY(y, c.binary(OpKind::Add, y, n.id(6)));
  }
  for (ValueId scale : behind) {
    FUSEC_TRY(y, c.binary(OpKind::Mul, y, scale));
  }
  finishProduct(n, y);
  return success();
}

/// Inputs: a, scale, zero; b, scale, zero; c?; the output's scale?, zero?. c is i32 and has the product's scale.
Status qGemm(NodeImporter &n) {
  Compose c(n);
  Quantised q(n);
  bool transA = n.attrInt("transA", 0) != 0, transB = n.attrInt("transB", 0) != 0;
  double alpha = n.attrFloat("alpha", 1.0);
  for (size_t i : {0, 3})
    FUSEC_CHECK(q.bytes(i));
  if (n.rank(0) != 2 || n.rank(3) != 2)
    return n.mismatch("both factors must be matrices");
  FUSEC_TRY(Quantisation qa, q.parameters(1, 2, n.type(0)));
  ValueId a = transA ? c.transpose(n.id(0), {1, 0}) : n.id(0);
  ValueId b = transB ? c.transpose(n.id(3), {1, 0}) : n.id(3);
  const DimExpr columns = n.shapeOf(b)[1];
  FUSEC_CHECK(q.floats(4));
  FUSEC_CHECK(n.quantParameter(4, columns));
  FUSEC_CHECK(q.bytes(5, n.type(3)));
  FUSEC_CHECK(n.quantParameter(5, columns));
  FUSEC_TRY(const Shape shape, n.sizes().matMul(n.shapeOf(a), n.shapeOf(b)));
  if (n.has(6)) {
    FUSEC_TRY(Shape all, n.broadcast({&n.shape(6), &shape}));
    const char *text = "the summand must be i32 and broadcast to the product's shape";
    if (n.type(6) != DType::I32)
      return n.mismatch(text);
    FUSEC_CHECK(n.sizes().sameShape(all, shape, text));
  }
  if (n.has(8) && !n.has(7))
    return n.unsupported("a zero point of the output without its scale");
  FUSEC_CHECK(q.floats(7));
  FUSEC_CHECK(n.quantParameter(7, DimExpr(1)));
  FUSEC_CHECK(q.bytes(8));
  FUSEC_CHECK(n.quantParameter(8, DimExpr(1)));
  FUSEC_TRY(ValueId sum, q.product(a, b, qa.zero, plain(n, 5)));
  if (n.has(6)) {
    FUSEC_TRY(sum, c.binary(OpKind::Add, sum, n.id(6)));
  }
  FUSEC_TRY(ValueId scaleA, c.binary(OpKind::Mul, c.scalar(DType::F32, alpha), qa.scale));
  FUSEC_TRY(ValueId scale, c.binary(OpKind::Mul, scaleA, plain(n, 4)));
  if (n.has(7)) {
    FUSEC_TRY(scale, c.binary(OpKind::Div, scale, plain(n, 7)));
  }
  FUSEC_TRY(ValueId y, c.binary(OpKind::Mul, q.f32(sum), scale));
  if (n.has(8))
    y = q.roundTo(y, plain(n, 8));
  n.result(0, y);
  return success();
}

/// Operand `x` as a matrix, or stack of matrices, to multiply. With `batch` its first axis goes behind the batch axes,
/// with `matrix` the last two axes change places, in this order.
ValueId arranged(Compose &c, NodeImporter &n, ValueId x, bool matrix, bool batch) {
  auto rank = static_cast<int64_t>(n.shapeOf(x).size());
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), int64_t(0));
  if (batch && rank > 2)
    std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (matrix && rank > 1)
    std::swap(perm[perm.size() - 2], perm.back());
  return std::is_sorted(perm.begin(), perm.end()) ? x : c.transpose(x, perm);
}

Status fusedMatMul(NodeImporter &n) {
  Compose c(n);
  if (!isFloat(n.type(0)) || n.type(0) != n.type(1))
    return n.mismatch("both factors must have one float type");
  bool transA = n.attrInt("transA", 0) != 0, transB = n.attrInt("transB", 0) != 0;
  bool batchA = n.attrInt("transBatchA", 0) != 0, batchB = n.attrInt("transBatchB", 0) != 0;
  double alpha = n.attrFloat("alpha", 1.0);
  ValueId a = arranged(c, n, n.id(0), transA, batchA), b = arranged(c, n, n.id(1), transB, batchB);
  FUSEC_TRY(ValueId y, c.matMul(a, b));
  if (alpha != 1) {
    FUSEC_TRY(y, c.binary(OpKind::Mul, y, c.scalar(n.type(0), alpha)));
  }
  n.result(0, y);
  return success();
}

constexpr OpRow kRows[] = {
    {"DynamicQuantizeMatMul", 1, 1, 3, 5, 1, dynamicQuantizeMatMul},
    {"FusedMatMul", 1, 1, 2, 2, 1, fusedMatMul},
    {"MatMulIntegerToFloat", 1, 1, 4, 7, 1, matMulIntegerToFloat, "f32"},
    {"QGemm", 1, 1, 6, 9, 1, qGemm},
};

} // namespace

std::span<const OpRow> quantisedMatMulOps() { return kRows; }

} // namespace fusec
