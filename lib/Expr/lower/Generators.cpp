// Operators that make tensors from sizes and numbers.
#include "Expr/lower/Lowering.h"

#include <cmath>

namespace fusec::lower {
namespace {

Status constantOfShape(NodeLowering &n) {
  const auto &value = std::get<ConstantRef>(n.node.attributes.at("value"));
  n.map(n.out(), [&](EquationBuilder &b) {
    if (isFloat(n.outType()))
      return b.constant(n.outType(), value->floatAt(0));
    return b.val(b.body().constantInt(n.outType(), value->intAt(0)));
  });
  return success();
}

Status range(NodeLowering &n) {
  n.map(n.out(), [&](EquationBuilder &b) {
    Val start = widen(b.scalar(n.in(0))), delta = widen(b.scalar(n.in(2)));
    return cast(n.outType(), start + cast(start.type(), b.axis(0)) * delta);
  });
  return success();
}

Status eyeLike(NodeLowering &n) {
  n.map(n.out(), [&](EquationBuilder &b) {
    return cast(n.outType(), eq(b.axis(0) + double(n.node.intAttr("k")), b.axis(1)));
  });
  return success();
}

/// Sizes as elements of a vector: a chain of choices by index.
Status shape(NodeLowering &n) {
  auto start = static_cast<size_t>(n.node.intAttr("start"));
  size_t count = static_cast<size_t>(n.outShape()[0].constValue());
  n.map(n.out(), [&](EquationBuilder &b) {
    Val r = count ? b.index(n.shape(0)[start + count - 1]) : b.index(0);
    for (size_t i = count; i-- > 1;)
      r = select(lt(b.axis(0), double(i)), b.index(n.shape(0)[start + i - 1]), r);
    return r;
  });
  return success();
}

Status size(NodeLowering &n) {
  n.map(n.out(), [&](EquationBuilder &b) { return b.index(numElements(n.shape(0))); });
  return success();
}

/// sum of coefficients a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N), N = size or size - 1
Status window(NodeLowering &n, double a0, double a1, double a2) {
  DimExpr length = n.outShape()[0];
  bool periodic = n.node.intAttr("periodic");
  n.map(n.out(), [&](EquationBuilder &b) {
    DType t = n.outType() == DType::F64 ? DType::F64 : DType::F32;
    Val turn = cast(t, b.axis(0)) * (2 * M_PI) / b.number(t, periodic ? length : length - 1);
    Val y = a0 - unary(ScalarOp::Cos, turn) * a1;
    if (a2 != 0)
      y = y + unary(ScalarOp::Cos, turn * 2) * a2;
    return cast(n.outType(), y);
  });
  return success();
}
Status hann(NodeLowering &n) { return window(n, 0.5, 0.5, 0); }
Status hamming(NodeLowering &n) { return window(n, 25.0 / 46, 21.0 / 46, 0); }
Status blackman(NodeLowering &n) { return window(n, 0.42, 0.5, 0.08); }

} // namespace

void addGenerators(HandlerTable &table) {
  using enum OpKind;
  table[ConstantOfShape] = constantOfShape;
  table[Range] = range;
  table[EyeLike] = eyeLike;
  table[Shape] = shape;
  table[Size] = size;
  table[HannWindow] = hann;
  table[HammingWindow] = hamming;
  table[BlackmanWindow] = blackman;
}

} // namespace fusec::lower
