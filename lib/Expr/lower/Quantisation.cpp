// Linear quantisation and the integer contractions: zero points are subtracted in i32, products summed in i32,
// and a map brings the sum to the output's scale. Scales are applied in f64, where the i32 sum is exact, and
// the quotient that is rounded has the scale's own type, so that ties fall as ONNX defines them.
#include "Expr/lower/Contractions.h"

namespace fusec::lower {
namespace {

bool isOne(const Shape &shape) { return numElements(shape).isConst(1); }

/// Element of a scale or zero point at an element of the data: one for all, one an entry of `axis`, or one a
/// block of `blockSize` entries.
Val parameter(EquationBuilder &b, TensorId t, const std::vector<Val> &at, size_t axis,
              int64_t blockSize) {
  if (blockSize > 0) {
    std::vector<Val> block = at;
    block[axis] = floorDiv(at[axis], blockSize);
    return b.read(t, block);
  }
  return isOne(b.n.shapeOf(t)) ? b.scalar(t) : b.read(t, {at[axis]});
}

/// saturate(round(quotient) + zero) in `t`; f32 holds all of it but for 32-bit types.
Val quantised(DType t, Val quotient, std::optional<Val> zero) {
  DType wide = sizeInBytes(t) <= 2 && quotient.type() != DType::F64 ? DType::F32 : DType::F64;
  Val r = roundEven(cast(wide, quotient));
  return castSat(t, zero ? r + cast(wide, *zero) : r);
}

Status quantizeLinear(NodeLowering &n) {
  auto axis = static_cast<size_t>(n.node.intAttr("axis"));
  int64_t block = n.node.intAttr("block_size");
  n.map(n.out(), [&](EquationBuilder &b) {
    Val x = b.read(n.in(0), b.axes), scale = parameter(b, n.in(1), b.axes, axis, block);
    DType t = !x.floating() || scale.type() == DType::F64 ? DType::F64 : DType::F32;
    Val quotient = cast(scale.type(), cast(t, x) / cast(t, scale));
    std::optional<Val> zero;
    if (n.has(2))
      zero = parameter(b, n.in(2), b.axes, axis, block);
    return quantised(n.outType(), quotient, zero);
  });
  return success();
}

Status dequantizeLinear(NodeLowering &n) {
  auto axis = static_cast<size_t>(n.node.intAttr("axis"));
  int64_t block = n.node.intAttr("block_size");
  n.map(n.out(), [&](EquationBuilder &b) {
    Val x = b.read(n.in(0), b.axes), scale = parameter(b, n.in(1), b.axes, axis, block);
    // The difference of two bytes or words is exact in i32 and in f32.
    bool narrow = sizeInBytes(x.type()) <= 2 && scale.type() != DType::F64;
    x = cast(narrow ? DType::I32 : DType::I64, x);
    if (n.has(2))
      x = x - cast(x.type(), parameter(b, n.in(2), b.axes, axis, block));
    DType t = narrow ? DType::F32 : DType::F64;
    return cast(n.outType(), cast(t, x) * cast(t, scale));
  });
  return success();
}

/// scale = (max(x, 0) - min(x, 0)) / 255, zero = round(-min / scale), both of their own type before use.
Status dynamicQuantizeLinear(NodeLowering &n) {
  auto extreme = [&](Monoid m, const char *suffix) {
    return n.reduceTemp(suffix, m, DType::F32, {}, [&](EquationBuilder &b) {
      return b.read(n.in(0), b.reductions(n.shape(0)));
    });
  };
  TensorId high = extreme(Monoid::Max, "max"), low = extreme(Monoid::Min, "min");
  TensorId scale = n.wants(1) ? n.out(1) : n.temp("scale", DType::F32, {});
  TensorId zero = n.wants(2) ? n.out(2) : n.temp("zero", DType::U8, {});
  n.map(scale, [&](EquationBuilder &b) {
    return (max(b.read(high, {}), 0) - min(b.read(low, {}), 0)) / 255;
  });
  n.map(zero, [&](EquationBuilder &b) {
    Val s = b.read(scale, {}), quotient = -min(b.read(low, {}), 0) / s;
    return castSat(DType::U8, select(eq(s, 0), s.like(0), quotient));
  });
  if (n.wants(0))
    n.map(n.out(), [&](EquationBuilder &b) {
      Val s = b.read(scale, {});
      Val quotient = b.read(n.in(0), b.axes) / select(eq(s, 0), s.like(1), s);
      return quantised(DType::U8, quotient, b.read(zero, {}));
    });
  return success();
}

/// A parameter of the left (one a row) or right (one a column) operand, in an equation over the product.
Val sideParameter(EquationBuilder &b, TensorId t, bool left) {
  const Shape &shape = b.n.shapeOf(t);
  if (isOne(shape))
    return b.scalar(t);
  if (left && shape.size() == 1)
    return b.read(t, {b.axis(b.axes.size() - 2)});
  return b.broadcast(t);
}

/// The i32 product of operands `x` and `w` with optional zero points, into `out`.
void integerMatMul(NodeLowering &n, TensorId out, TensorId x, TensorId w, TensorId zeroX,
                   TensorId zeroW) {
  n.reduce(out, Monoid::Sum, [&](EquationBuilder &b) {
    auto centred = [&](TensorId zero, bool left) {
      return [&b, zero, left](Val v) {
        v = cast(DType::I32, v);
        return zero < 0 ? v : v - cast(DType::I32, sideParameter(b, zero, left));
      };
    };
    return matMulTerm(b, x, w, centred(zeroX, true), centred(zeroW, false));
  });
}

Status matMulInteger(NodeLowering &n) {
  integerMatMul(n, n.out(), n.in(0), n.in(1), n.has(2) ? n.in(2) : -1, n.has(3) ? n.in(3) : -1);
  return success();
}

/// sum * scaleX * scaleW, as f32.
Val rescaled(Val sum, Val scaleX, Val scaleW) {
  auto wide = [](Val v) { return cast(DType::F64, v); };
  return cast(DType::F32, wide(sum) * wide(scaleX) * wide(scaleW));
}

/// Inputs: a, its scale and zero point, b, likewise, the output's scale and zero point.
Status qLinearMatMul(NodeLowering &n) {
  TensorId sum = n.temp("acc", DType::I32, n.outShape());
  integerMatMul(n, sum, n.in(0), n.in(3), n.in(2), n.in(5));
  n.map(n.out(), [&](EquationBuilder &b) {
    Val y = rescaled(b.read(sum, b.axes), sideParameter(b, n.in(1), true),
                     sideParameter(b, n.in(4), false));
    Val scale = sideParameter(b, n.in(6), true);
    Val quotient = cast(scale.type(), cast(DType::F32, y) / cast(DType::F32, scale));
    return quantised(n.outType(), quotient, sideParameter(b, n.in(7), true));
  });
  return success();
}

/// The i32 convolution; padding stands for zero, so what is read there is the zero point.
void integerConv(NodeLowering &n, TensorId out, size_t w, size_t zeroX, size_t zeroW) {
  DType t = DType::I32;
  Window window(n.node, n.shape(0));
  convolve(
      n, out, n.shape(w), n.node.intAttr("group"), window,
      [&](EquationBuilder &b, Val inside, const std::vector<Val> &at) {
        Val zero = n.has(zeroX) ? b.scalar(n.in(zeroX)) : b.constant(n.type(0), 0);
        return cast(t, b.readIf(inside, n.in(0), at, zero)) - cast(t, zero);
      },
      [&](EquationBuilder &b, const std::vector<Val> &at) {
        Val v = cast(t, b.read(n.in(w), at));
        return n.has(zeroW) ? v - cast(t, parameter(b, n.in(zeroW), at, 0, 0)) : v;
      });
}

Status convInteger(NodeLowering &n) {
  integerConv(n, n.out(), 1, 2, 3);
  return success();
}

/// Inputs: x, scale, zero; w, scale, zero; the output's scale, zero; bias (i32).
Status qLinearConv(NodeLowering &n) {
  TensorId sum = n.temp("acc", DType::I32, n.outShape());
  integerConv(n, sum, 3, 2, 5);
  n.map(n.out(), [&](EquationBuilder &b) {
    Val s = b.read(sum, b.axes);
    if (n.has(8))
      s = s + b.read(n.in(8), {b.axis(1)});
    Val y = rescaled(s, b.scalar(n.in(1)), parameter(b, n.in(4), b.axes, 1, 0));
    return quantised(n.outType(), y / cast(DType::F32, b.scalar(n.in(6))), b.scalar(n.in(7)));
  });
  return success();
}

} // namespace

void addQuantisation(HandlerTable &table) {
  using enum OpKind;
  table[QuantizeLinear] = quantizeLinear;
  table[DequantizeLinear] = dequantizeLinear;
  table[DynamicQuantizeLinear] = dynamicQuantizeLinear;
  table[MatMulInteger] = matMulInteger;
  table[QLinearMatMul] = qLinearMatMul;
  table[ConvInteger] = convInteger;
  table[QLinearConv] = qLinearConv;
}

} // namespace fusec::lower
