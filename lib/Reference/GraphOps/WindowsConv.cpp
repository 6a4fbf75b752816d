#include "Reference/GraphOps/Quantise.h"
#include "Reference/OpCall.h"
#include "Support/Diag.h"

namespace fusec {

namespace {

/// Geometry of a convolution x[N, C, in...] * w[M, C/group, kernel...] -> y[N, M, out...]. Position o of the
/// output reads x at o*stride - padBegin + k*dilation.
struct Geometry {
  int64_t batch, channels, filters, group;
  Dims in, kernel, out, strides, dilations, padBegin;
  size_t rank() const { return in.size(); }
};

Dims tail(const Dims &d) { return Dims(d.begin() + 2, d.end()); }
int64_t product(const Dims &d) {
  int64_t n = 1;
  for (int64_t v : d)
    n *= v;
  return n;
}

Result<Geometry> readGeometry(const OpCall &call, const Dims &x, const Dims &w) {
  if (x.size() < 3 || w.size() != x.size())
    return call.fail("expects tensors [N, C, ...] and [M, C, ...]", Diag::ShapeMismatch);
  const auto &pads = call.node.intsAttr("pads");
  Geometry g{x[0],
             x[1],
             w[0],
             call.node.intAttr("group"),
             tail(x),
             tail(w),
             {},
             call.node.intsAttr("strides"),
             call.node.intsAttr("dilations"),
             {}};
  g.padBegin.assign(pads.begin(), pads.begin() + static_cast<long>(g.rank()));
  for (size_t d = 0; d < g.rank(); ++d) {
    int64_t span = g.in[d] + pads[d] + pads[d + g.rank()] - g.dilations[d] * (g.kernel[d] - 1) - 1;
    g.out.push_back(span < 0 ? 0 : span / g.strides[d] + 1);
  }
  return g;
}

/// y += conv(x, w). The innermost loop runs along the last spatial axis of the output.
template <typename T> void convolve(const Geometry &g, const T *x, const T *w, T *y) {
  size_t last = g.rank() - 1;
  int64_t inSize = product(g.in), outSize = product(g.out), kernelSize = product(g.kernel);
  int64_t perGroup = g.channels / g.group, filtersPerGroup = g.filters / g.group;
  int64_t width = g.in[last], outWidth = g.out[last], stride = g.strides[last];
  Dims inStrides = rowMajorStrides(g.in), outer(g.out.begin(), g.out.end() - 1);
  for (int64_t n = 0; n < g.batch; ++n)
    for (int64_t m = 0; m < g.filters; ++m)
      for (int64_t c = 0; c < perGroup; ++c) {
        const T *plane = x + (n * g.channels + m / filtersPerGroup * perGroup + c) * inSize;
        const T *filter = w + (m * perGroup + c) * kernelSize;
        T *result = y + (n * g.filters + m) * outSize;
        int64_t tap = 0;
        for (Walker k(g.kernel, {}); !k.done(); k.next(), ++tap) {
          T weight = filter[tap];
          int64_t shift = k[last] * g.dilations[last] - g.padBegin[last];
          int64_t row = 0;
          for (Walker o(outer, {}); !o.done(); o.next(), ++row) {
            int64_t offset = 0;
            bool inside = true;
            for (size_t d = 0; d < last; ++d) {
              int64_t at = o[d] * g.strides[d] - g.padBegin[d] + k[d] * g.dilations[d];
              inside = inside && at >= 0 && at < g.in[d];
              offset += at * inStrides[d];
            }
            if (!inside)
              continue;
            int64_t begin = shift < 0 ? (-shift + stride - 1) / stride : 0;
            int64_t end = width > shift ? (width - shift + stride - 1) / stride : 0;
            end = end < outWidth ? end : outWidth;
            const T *source = plane + offset + shift;
            T *target = result + row * outWidth;
            for (int64_t i = begin; i < end; ++i)
              target[i] += weight * source[i * stride];
          }
        }
      }
}

Dims outputDims(const Geometry &g) {
  Dims dims{g.batch, g.filters};
  dims.insert(dims.end(), g.out.begin(), g.out.end());
  return dims;
}

void addBias(TensorValue &y, const TensorValue &bias) {
  AxisView v(y.dims, 1);
  for (int64_t o = 0; o < v.outer; ++o)
    for (int64_t c = 0; c < v.extent; ++c)
      for (int64_t i = 0; i < v.inner; ++i) {
        auto p = static_cast<size_t>(v.index(o, c, i)), q = static_cast<size_t>(c);
        if (y.isFloating())
          y.floats[p] += bias.floats[q];
        else
          y.ints[p] = wrapToDType(y.type, y.ints[p] + bias.ints[q]);
      }
}

Result<Outputs> conv(const OpCall &call) {
  const TensorValue &x = call.in(0), &w = call.in(1);
  FUSEC_TRY(Geometry g, readGeometry(call, x.dims, w.dims));
  FUSEC_CHECK(call.checkSize(outputDims(g)));
  TensorValue y(x.type, outputDims(g));
  convolve(g, x.floats.data(), w.floats.data(), y.floats.data());
  if (call.has(2))
    addBias(y, call.in(2));
  return Outputs{std::move(y)};
}

/// Zero points are taken off first, so that padding adds nothing. The weights' zero point may be [M].
Result<TensorValue> convIntegers(const OpCall &call, TensorValue x, TensorValue w,
                                 const TensorValue *xZero, const TensorValue *wZero) {
  FUSEC_TRY(Geometry g, readGeometry(call, x.dims, w.dims));
  FUSEC_CHECK(call.checkSize(outputDims(g)));
  if (xZero)
    FUSEC_CHECK(subtractZeroPoint(call, x, *xZero));
  if (wZero) {
    TensorValue zero = *wZero;
    if (zero.numElements() > 1)
      zero.dims.resize(w.dims.size(), 1);
    FUSEC_CHECK(subtractZeroPoint(call, w, zero));
  }
  TensorValue y(DType::I32, outputDims(g));
  convolve(g, x.ints.data(), w.ints.data(), y.ints.data());
  for (int64_t &v : y.ints)
    v = wrapToDType(DType::I32, v);
  return y;
}

Result<Outputs> convInteger(const OpCall &call) {
  FUSEC_TRY(TensorValue y,
            convIntegers(call, call.in(0), call.in(1), call.has(2) ? &call.in(2) : nullptr,
                         call.has(3) ? &call.in(3) : nullptr));
  return Outputs{std::move(y)};
}

Result<Outputs> qLinearConv(const OpCall &call) {
  FUSEC_TRY(TensorValue y, convIntegers(call, call.in(0), call.in(3), &call.in(2), &call.in(5)));
  if (call.has(8))
    addBias(y, call.in(8));
  TensorValue weightScale = call.in(4);
  if (weightScale.numElements() > 1) // per filter: [M] -> [M, 1, ...]
    weightScale.dims.resize(y.dims.size() - 1, 1);
  FUSEC_TRY(TensorValue scaled, scaleBy(call, y, {call.in(1), weightScale}));
  FUSEC_TRY(TensorValue out, quantise(call, scaled, call.in(6), call.in(7)));
  return Outputs{std::move(out)};
}

/// Scatters x[n, c, i] * w[c, m, k] to position i*stride - padBegin + k*dilation.
Result<Outputs> convTranspose(const OpCall &call) {
  const TensorValue &x = call.in(0), &w = call.in(1);
  FUSEC_TRY(Dims dims, call.knownOutDims());
  TensorValue y(x.type, dims);
  int64_t group = call.node.intAttr("group"), channels = x.dims[1], perGroup = channels / group;
  int64_t filters = w.dims[1]; // of one group
  Dims in = tail(x.dims), kernel = tail(w.dims), out = tail(dims),
       outStrides = rowMajorStrides(out);
  int64_t inSize = product(in), outSize = product(out), kernelSize = product(kernel);
  const auto &strides = call.node.intsAttr("strides"), &dilations = call.node.intsAttr("dilations"),
             &pads = call.node.intsAttr("pads");
  for (int64_t n = 0; n < x.dims[0]; ++n)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t m = 0; m < filters; ++m) {
        const double *plane = x.floats.data() + (n * channels + c) * inSize;
        const double *filter = w.floats.data() + (c * filters + m) * kernelSize;
        double *result = y.floats.data() + (n * dims[1] + c / perGroup * filters + m) * outSize;
        int64_t i = 0;
        for (Walker p(in, {}); !p.done(); p.next(), ++i) {
          int64_t tap = 0;
          for (Walker k(kernel, {}); !k.done(); k.next(), ++tap) {
            int64_t offset = 0;
            bool inside = true;
            for (size_t d = 0; d < in.size(); ++d) {
              int64_t at = p[d] * strides[d] - pads[d] + k[d] * dilations[d];
              inside = inside && at >= 0 && at < out[d];
              offset += at * outStrides[d];
            }
            if (inside)
              result[offset] += plane[i] * filter[tap];
          }
        }
      }
  if (call.has(2))
    addBias(y, call.in(2));
  return Outputs{std::move(y)};
}

} // namespace

void addWindowsConv(OpTable &t) {
  entry(t, OpKind::Conv) = conv;
  entry(t, OpKind::ConvInteger) = convInteger;
  entry(t, OpKind::QLinearConv) = qLinearConv;
  entry(t, OpKind::ConvTranspose) = convTranspose;
}

} // namespace fusec
