#include "Onnx/OpTable.h"
#include "Onnx/Windows.h"
#include "Onnx/ops/Quantised.h"
#include "Support/Diag.h"

#include <algorithm>

// Operators of com.microsoft on bytes that stand for numbers: element-wise, softmax, concatenation and pools. Where
// ONNX Runtime looks results up in a table of 256, these compute what the table holds.

namespace fusec {
namespace {

/// Input `i` is the bytes of operand `i`, whose type all others share.
Result<DType> byteType(NodeImporter &n, size_t i) {
  FUSEC_CHECK(Quantised(n).bytes(i));
  return n.type(i);
}

/// Inputs: a, scale, zero?; b, scale, zero?; the output's scale, zero?.
struct BinaryOperands {
  Quantisation a, b, y;
};
Result<BinaryOperands> binaryOperands(NodeImporter &n) {
  Quantised q(n);
  FUSEC_TRY(DType type, byteType(n, 0));
  FUSEC_CHECK(q.bytes(3, type));
  BinaryOperands o;
  FUSEC_TRY(o.a, q.parameters(1, 2, type));
  FUSEC_TRY(o.b, q.parameters(4, 5, type));
  FUSEC_TRY(o.y, q.parameters(6, 7, type));
  return o;
}

/// round((zeroY - (ra * zeroA + rb * zeroB)) + a * ra + b * rb) where ra and rb are the scales by the output's.
Status add(NodeImporter &n) {
  Compose c(n);
  Quantised q(n);
  FUSEC_TRY(BinaryOperands o, binaryOperands(n));
  FUSEC_TRY(ValueId ratioA, c.binary(OpKind::Div, o.a.scale, o.y.scale));
  FUSEC_TRY(ValueId ratioB, c.binary(OpKind::Div, o.b.scale, o.y.scale));
  FUSEC_TRY(ValueId zeroA, c.binary(OpKind::Mul, ratioA, q.f32(o.a.zero)));
  FUSEC_TRY(ValueId zeroB, c.binary(OpKind::Mul, ratioB, q.f32(o.b.zero)));
  FUSEC_TRY(ValueId zeros, c.binary(OpKind::Add, zeroA, zeroB));
  FUSEC_TRY(ValueId fixed, c.binary(OpKind::Sub, q.f32(o.y.zero), zeros));
  FUSEC_TRY(ValueId partA, c.binary(OpKind::Mul, q.f32(n.id(0)), ratioA));
  FUSEC_TRY(ValueId partB, c.binary(OpKind::Mul, q.f32(n.id(3)), ratioB));
  FUSEC_TRY(ValueId first, c.binary(OpKind::Add, fixed, partA));
  FUSEC_TRY(ValueId sum, c.binary(OpKind::Add, first, partB));
  n.result(0, q.roundTo(sum, c.scalar(n.type(0), 0)));
  return success();
}

/// round((a - zeroA) * (b - zeroB) * (scaleA * scaleB / scaleY) + zeroY)
Status mul(NodeImporter &n) {
  Compose c(n);
  Quantised q(n);
  FUSEC_TRY(BinaryOperands o, binaryOperands(n));
  FUSEC_TRY(ValueId scales, c.binary(OpKind::Mul, o.a.scale, o.b.scale));
  FUSEC_TRY(ValueId ratio, c.binary(OpKind::Div, scales, o.y.scale));
  FUSEC_TRY(ValueId a, q.centred(n.id(0), o.a.zero));
  FUSEC_TRY(ValueId b, q.centred(n.id(3), o.b.zero));
  FUSEC_TRY(ValueId product, c.binary(OpKind::Mul, a, b));
  FUSEC_TRY(ValueId scaled, c.binary(OpKind::Mul, q.f32(product), ratio));
  FUSEC_TRY(ValueId moved, c.binary(OpKind::Add, scaled, q.f32(o.y.zero)));
  n.result(0, q.roundTo(moved, c.scalar(n.type(0), 0)));
  return success();
}

/// Inputs: x, scale, zero?, the output's scale, zero?.
struct UnaryOperands {
  Quantisation x, y;
};
Result<UnaryOperands> unaryOperands(NodeImporter &n) {
  Quantised q(n);
  FUSEC_TRY(DType type, byteType(n, 0));
  UnaryOperands o;
  FUSEC_TRY(o.x, q.parameters(1, 2, type));
  FUSEC_TRY(o.y, q.parameters(3, 4, type));
  return o;
}

Status activation(NodeImporter &n, OpKind op, Attributes attrs) {
  Quantised q(n);
  FUSEC_TRY(UnaryOperands o, unaryOperands(n));
  ValueId x = q.dequantise(n.id(0), o.x);
  n.result(0, q.quantise(Compose(n).like(op, {x}, std::move(attrs)), o.y));
  return success();
}

Status leakyRelu(NodeImporter &n) {
  return activation(n, OpKind::LeakyRelu,
                    {{"alpha", n.attrFloat("alpha", static_cast<double>(0.01f))}});
}
Status sigmoid(NodeImporter &n) { return activation(n, OpKind::Sigmoid, {}); }

/// round(softmax(x * scale) * floor(1 / scaleY)) + zeroY; x's zero point moves all numbers alike.
Status softmax(NodeImporter &n) {
  Compose c(n);
  Quantised q(n);
  FUSEC_TRY(UnaryOperands o, unaryOperands(n));
  bool coerces = n.attrInt("opset") < 13;
  FUSEC_TRY(int64_t axis, n.axis(n.attrInt("axis", -1), n.rank(0)));
  FUSEC_TRY(ValueId x, c.binary(OpKind::Mul, q.f32(n.id(0)), o.x.scale));
  ValueId shares = coerces ? c.flatSoftmax(OpKind::Softmax, x, axis)
                           : c.like(OpKind::Softmax, {x}, {{"axis", axis}});
  FUSEC_TRY(ValueId steps, c.binary(OpKind::Div, c.scalar(DType::F32, 1), o.y.scale));
  FUSEC_TRY(ValueId y, c.binary(OpKind::Mul, shares, c.unary(OpKind::Floor, steps)));
  n.result(0, q.roundTo(y, o.y.zero));
  return success();
}

/// Inputs: the output's scale and zero point, then bytes, scale and zero point of each part.
Status concat(NodeImporter &n) {
  Compose c(n);
  Quantised q(n);
  if (n.numInputs() % 3 != 2)
    return n.fail(Diag::BadGraph, "behind the output's scale and zero point each part needs three "
                                  "inputs: its bytes, their scale and zero point");
  for (size_t i = 0; i < n.numInputs(); ++i)
    if (!n.has(i))
      return n.fail(Diag::BadGraph, "input " + std::to_string(i) + " has no name");
  FUSEC_CHECK(q.bytes(1));
  DType type = n.type(1);
  FUSEC_TRY(Quantisation y, q.parameters(0, 1, type));
  FUSEC_TRY(int64_t axis, n.axis(n.attrInt("axis"), n.rank(2)));
  std::vector<ValueId> parts;
  Shape first = n.shape(2);
  for (size_t i = 2; i < n.numInputs(); i += 3) {
    FUSEC_CHECK(q.bytes(i, type));
    FUSEC_TRY(Quantisation x, q.parameters(i + 1, i + 2, type));
    if (n.rank(i) != n.rank(2))
      return n.mismatch("the parts must have one rank");
    for (size_t k = 0; k < first.size(); ++k)
      if (static_cast<int64_t>(k) != axis)
        FUSEC_CHECK(n.sameDim(first[k], n.shape(i)[k], "sizes off the axis"));
    parts.push_back(q.requantise(n.id(i), x, y));
  }
  n.result(0, c.concat(parts, axis));
  return success();
}

/// Inputs: condition; x, scale, zero; y, scale, zero; the output's scale, zero.
Status where(NodeImporter &n) {
  Compose c(n);
  Quantised q(n);
  if (n.type(0) != DType::Bool)
    return n.mismatch("the condition must be bool");
  FUSEC_TRY(DType type, byteType(n, 1));
  FUSEC_CHECK(q.bytes(4, type));
  FUSEC_TRY(Quantisation x, q.parameters(2, 3, type));
  FUSEC_TRY(Quantisation y, q.parameters(5, 6, type));
  FUSEC_TRY(Quantisation z, q.parameters(7, 8, type));
  FUSEC_TRY(ValueId chosen,
            c.where(n.id(0), q.requantise(n.id(1), x, z), q.requantise(n.id(4), y, z)));
  n.result(0, chosen);
  return success();
}

/// The mean over all spatial axes of x, [N, C, spatial...] or [N, spatial..., C]:
/// round(sum(x - zeroX) * (scaleX / (scaleY * count))) + zeroY
Status globalMean(NodeImporter &n, const UnaryOperands &o, bool channelsLast) {
  Compose c(n);
  Quantised q(n);
  int64_t begin = channelsLast ? 1 : 2, end = n.rank(0) - (channelsLast ? 1 : 0);
  std::vector<int64_t> axes;
  for (int64_t a = begin; a < end; ++a)
    axes.push_back(a);
  FUSEC_TRY(ValueId sizes, n.emitOne(OpKind::Shape, {n.id(0)}, {{"start", begin}, {"end", end}}));
  FUSEC_TRY(ValueId count, c.reduce(OpKind::ReduceProd, sizes, {0}));
  FUSEC_TRY(ValueId x, q.centred(n.id(0), o.x.zero));
  FUSEC_TRY(ValueId sum, c.reduce(OpKind::ReduceSum, x, axes, true));
  FUSEC_TRY(ValueId divisor, c.binary(OpKind::Mul, o.y.scale, q.f32(count)));
  FUSEC_TRY(ValueId scale, c.binary(OpKind::Div, o.x.scale, divisor));
  FUSEC_TRY(ValueId mean, c.binary(OpKind::Mul, q.f32(sum), scale));
  n.result(0, q.roundTo(mean, o.y.zero));
  return success();
}

Status globalAveragePool(NodeImporter &n) {
  bool channelsLast = n.attrInt("channels_last", 0) != 0;
  FUSEC_TRY(UnaryOperands o, unaryOperands(n));
  if (n.rank(0) < 3)
    return n.mismatch("the data must have rank 3 or more");
  return globalMean(n, o, channelsLast);
}

/// The order of axes that puts the last one to `to`, or back.
std::vector<int64_t> channelsMoved(size_t rank, bool toFront) {
  std::vector<int64_t> perm{0};
  if (toFront)
    perm.push_back(static_cast<int64_t>(rank) - 1);
  for (size_t i = 1; i + 1 < rank; ++i)
    perm.push_back(static_cast<int64_t>(i) + (toFront ? 0 : 1));
  if (!toFront)
    perm.push_back(1);
  return perm;
}

/// Zeros around x so that a window counts all of its taps, also those that ceil_mode lets stand out beyond the pads.
Result<ValueId> padded(NodeImporter &n, ValueId x, const PoolForm &form) {
  const Window &w = form.window;
  const size_t rank = n.shapeOf(x).size(), axes = rank - 2;
  std::vector<int64_t> pads(2 * rank, 0);
  for (size_t i = 0; i < axes; ++i) {
    if (std::ranges::count(w.open, i)) // meanOfWindows() pads these, so that no window stands out
      continue;
    // A stride less one is what one window more may lack, which has to begin in front of the pads at the end.
    pads[i + 2] = w.pads[i];
    pads[rank + i + 2] = std::min(w.pads[axes + i] + w.strides[i], w.kernel[i]) - 1;
  }
  return n.emitOne(OpKind::Pad, {x}, {{"mode", std::string("constant")}, {"pads", pads}});
}

/// round(mean / scaleY + zeroY) of the dequantised x; where one window covers all of it, as globalMean().
Status averagePool(NodeImporter &n) {
  Compose c(n);
  Quantised q(n);
  bool channelsLast = n.attrInt("channels_last", 0) != 0;
  const bool includePad = n.attrInt("count_include_pad", 0) != 0;
  FUSEC_TRY(UnaryOperands o, unaryOperands(n));
  if (n.hasAttribute("dilations"))
    return n.fail(Diag::BadAttribute, "the operator has no attribute 'dilations'");
  size_t rank = n.shape(0).size();
  if (rank < 3)
    return n.mismatch("the data must have rank 3 or more");
  ValueId bytes = channelsLast ? c.transpose(n.id(0), channelsMoved(rank, true)) : n.id(0);
  const Shape shape = n.shapeOf(bytes);
  FUSEC_TRY(PoolForm form, readPool(n, shape));
  bool whole =
      form.window.open.empty() && std::all_of(form.window.pads.begin(), form.window.pads.end(),
                                              [](int64_t p) { return p == 0; });
  for (size_t i = 2; i < rank; ++i)
    whole = whole && shape[i].isConst(form.window.kernel[i - 2]);
  if (whole)
    return globalMean(n, o, channelsLast);
  ValueId x = q.dequantise(bytes, o.x);
  if (includePad && form.ceilMode) {
    FUSEC_TRY(x, padded(n, x, form));
    std::fill(form.window.pads.begin(), form.window.pads.end(), 0);
    form.ceilMode = 0;
  }
  FUSEC_TRY(ValueId mean, meanOfWindows(n, x, form, includePad));
  FUSEC_TRY(ValueId steps, c.binary(OpKind::Div, mean, o.y.scale));
  FUSEC_TRY(ValueId moved, c.binary(OpKind::Add, steps, q.f32(o.y.zero)));
  ValueId y = q.roundTo(moved, c.scalar(n.type(0), 0));
  n.result(0, channelsLast ? c.transpose(y, channelsMoved(rank, false)) : y);
  return success();
}

constexpr OpRow kRows[] = {
    {"QLinearAdd", 1, 1, 7, 8, 1, add, "", 0b100100},
    {"QLinearAveragePool", 1, 1, 4, 5, 1, averagePool, "", 0b100},
    {"QLinearConcat", 1, 1, 5, -1, 1, concat},
    {"QLinearGlobalAveragePool", 1, 1, 5, 5, 1, globalAveragePool},
    {"QLinearLeakyRelu", 1, 1, 4, 5, 1, leakyRelu, "", 0b100},
    {"QLinearMul", 1, 1, 7, 8, 1, mul, "", 0b100100},
    {"QLinearSigmoid", 1, 1, 4, 5, 1, sigmoid, "", 0b100},
    {"QLinearSoftmax", 1, 1, 5, 5, 1, softmax, "", 0b100},
    {"QLinearWhere", 1, 1, 9, 9, 1, where},
};

} // namespace

std::span<const OpRow> quantisedOps() { return kRows; }

} // namespace fusec
