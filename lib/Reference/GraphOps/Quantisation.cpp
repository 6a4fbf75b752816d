#include "Reference/GraphOps/Quantise.h"
#include "Support/Diag.h"

#include <algorithm>
#include <cmath>

namespace fusec {

int64_t lowestInt(DType t) {
  if (t == DType::Bool || !isSigned(t))
    return 0;
  return static_cast<int64_t>(~uint64_t(0) << (8 * sizeInBytes(t) - 1));
}

int64_t highestInt(DType t) {
  if (t == DType::Bool)
    return 1;
  int64_t bits = 8 * sizeInBytes(t);
  return static_cast<int64_t>(~uint64_t(0) >> (isSigned(t) ? 65 - bits : 64 - bits));
}

int64_t saturateTo(DType t, double v, int64_t zeroPoint) {
  if (std::isnan(v))
    return zeroPoint;
  double r = std::nearbyint(v) + static_cast<double>(zeroPoint);
  auto low = static_cast<double>(lowestInt(t)), high = numberOf(t, highestInt(t));
  double kept = std::clamp(r, low, high);
  return kept < high ? truncateToInt(t, kept) : highestInt(t); // of 64 bits, `high` is one too many
}

Status subtractZeroPoint(const OpCall &call, TensorValue &x, const TensorValue &zeroPoint) {
  Dims zeroDims = zeroPoint.numElements() == 1 ? Dims{} : zeroPoint.dims;
  auto dims = broadcastDims({x.dims, zeroDims});
  if (!dims || *dims != x.dims)
    return call.fail("the zero point does not broadcast to its tensor", Diag::ShapeMismatch);
  size_t i = 0;
  for (Walker w(x.dims, {broadcastStrides(zeroDims, x.dims)}); !w.done(); w.next(), ++i)
    x.ints[i] -= zeroPoint.ints[static_cast<size_t>(w.offset(0))];
  return success();
}

Result<TensorValue> scaleBy(const OpCall &call, const TensorValue &x,
                            const std::vector<TensorValue> &factors) {
  TensorValue out(DType::F32, x.dims);
  for (int64_t i = 0; i < x.numElements(); ++i)
    out.floats[static_cast<size_t>(i)] = x.number(i);
  for (const TensorValue &f : factors) {
    Dims factorDims = f.numElements() == 1 ? Dims{} : f.dims;
    auto dims = broadcastDims({x.dims, factorDims});
    if (!dims || *dims != x.dims)
      return call.fail("a scale does not broadcast to its tensor", Diag::ShapeMismatch);
    size_t i = 0;
    for (Walker w(x.dims, {broadcastStrides(factorDims, x.dims)}); !w.done(); w.next(), ++i)
      out.floats[i] *= f.floats[static_cast<size_t>(w.offset(0))];
  }
  return out;
}

Result<TensorValue> quantise(const OpCall &call, const TensorValue &x, const TensorValue &scale,
                             const TensorValue &zeroPoint) {
  Dims scaleDims = scale.numElements() == 1 ? Dims{} : scale.dims;
  Dims zeroDims = zeroPoint.numElements() == 1 ? Dims{} : zeroPoint.dims;
  auto dims = broadcastDims({x.dims, scaleDims, zeroDims});
  if (!dims || *dims != x.dims)
    return call.fail("scale or zero point does not broadcast to its tensor", Diag::ShapeMismatch);
  TensorValue out(zeroPoint.type, x.dims);
  size_t i = 0;
  for (Walker w(x.dims, {broadcastStrides(scaleDims, x.dims), broadcastStrides(zeroDims, x.dims)});
       !w.done(); w.next(), ++i) {
    double s = scale.floats[static_cast<size_t>(w.offset(0))];
    // The quotient is rounded as the declared types round it: ties are decided on that value.
    double q =
        roundToDType(scale.type, roundToDType(x.type, x.number(static_cast<int64_t>(i))) / s);
    out.ints[i] = saturateTo(zeroPoint.type, q, zeroPoint.ints[static_cast<size_t>(w.offset(1))]);
  }
  return out;
}

namespace {

/// Offset of the scale that belongs to element `at` of x: per tensor, per axis, or per block along the axis.
class ScaleIndex {
public:
  ScaleIndex(const TensorValue &scale, int64_t axis, int64_t blockSize)
      : strides(rowMajorStrides(scale.dims)), axis(static_cast<size_t>(axis)), block(blockSize),
        perTensor(scale.numElements() == 1 && blockSize == 0) {}
  int64_t operator()(const Dims &at) const {
    if (perTensor)
      return 0;
    if (block == 0)
      return at[axis];
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d)
      offset += strides[d] * (d == axis ? at[d] / block : at[d]);
    return offset;
  }

private:
  Dims strides;
  size_t axis;
  int64_t block;
  bool perTensor;
};

Status checkScale(const OpCall &call, const TensorValue &x, const TensorValue &scale) {
  int64_t axis = call.node.intAttr("axis"), block = call.node.intAttr("block_size");
  bool fits = block ? scale.rank() == x.rank() : scale.numElements() == 1;
  if (!block && !fits)
    fits =
        scale.rank() == 1 && axis < x.rank() && scale.dims[0] == x.dims[static_cast<size_t>(axis)];
  for (size_t d = 0; block && fits && d < x.dims.size(); ++d) {
    int64_t blocks = static_cast<int64_t>(d) == axis ? (x.dims[d] + block - 1) / block : x.dims[d];
    fits = scale.dims[d] == blocks;
  }
  if (!fits)
    return call.fail("the scale's shape does not fit the tensor", Diag::ShapeMismatch);
  return success();
}

Result<Outputs> quantizeLinear(const OpCall &call) {
  const TensorValue &x = call.in(0), &scale = call.in(1);
  FUSEC_CHECK(checkScale(call, x, scale));
  ScaleIndex index(scale, call.node.intAttr("axis"), call.node.intAttr("block_size"));
  TensorValue out(call.outType(), x.dims);
  if (out.isFloating())
    return call.fail("quantises to integers only", Diag::UnsupportedType);
  size_t i = 0;
  for (Walker w(x.dims, {}); !w.done(); w.next(), ++i) {
    auto s = static_cast<size_t>(index(w.coordinates()));
    double v = roundToDType(x.type, x.number(static_cast<int64_t>(i)));
    double q = roundToDType(scale.type, v / scale.floats[s]);
    out.ints[i] = saturateTo(out.type, q, call.has(2) ? call.in(2).ints[s] : 0);
  }
  return Outputs{std::move(out)};
}

Result<Outputs> dequantizeLinear(const OpCall &call) {
  const TensorValue &x = call.in(0), &scale = call.in(1);
  FUSEC_CHECK(checkScale(call, x, scale));
  ScaleIndex index(scale, call.node.intAttr("axis"), call.node.intAttr("block_size"));
  TensorValue out(call.outType(), x.dims);
  size_t i = 0;
  for (Walker w(x.dims, {}); !w.done(); w.next(), ++i) {
    auto s = static_cast<size_t>(index(w.coordinates()));
    int64_t zero = call.has(2) && !call.in(2).isFloating() ? call.in(2).ints[s] : 0;
    out.floats[i] = static_cast<double>(x.ints[i] - zero) * scale.floats[s];
  }
  return Outputs{std::move(out)};
}

/// The range always holds zero. Scale and zero point are rounded to their types before they are used.
Result<Outputs> dynamicQuantizeLinear(const OpCall &call) {
  const TensorValue &x = call.in(0);
  double low = 0, high = 0;
  for (double v : x.floats) {
    low = std::fmin(low, v);
    high = std::fmax(high, v);
  }
  TensorValue scale(DType::F32, {}), zero(DType::U8, {});
  scale.floats[0] = roundToDType(DType::F32, (high - low) / 255);
  zero.ints[0] = scale.floats[0] == 0
                     ? 0
                     : saturateTo(DType::U8, roundToDType(DType::F32, -low / scale.floats[0]), 0);
  TensorValue divisor = scale;
  if (divisor.floats[0] == 0)
    divisor.floats[0] = 1; // all zeros
  FUSEC_TRY(TensorValue y, quantise(call, x, divisor, zero));
  return Outputs{std::move(y), std::move(scale), std::move(zero)};
}

} // namespace

void addQuantisation(OpTable &t) {
  entry(t, OpKind::QuantizeLinear) = quantizeLinear;
  entry(t, OpKind::DequantizeLinear) = dequantizeLinear;
  entry(t, OpKind::DynamicQuantizeLinear) = dynamicQuantizeLinear;
}

} // namespace fusec
