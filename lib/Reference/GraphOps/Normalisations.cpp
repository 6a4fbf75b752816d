#include "Reference/OpCall.h"
#include "Support/Diag.h"

#include <cmath>

namespace fusec {

namespace {

struct Moments {
  double mean = 0, variance = 0;
};

/// Population mean and variance of `n` numbers.
Moments momentsOf(const double *v, int64_t n) {
  Moments m;
  for (int64_t i = 0; i < n; ++i)
    m.mean += v[i];
  m.mean /= static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i)
    m.variance += (v[i] - m.mean) * (v[i] - m.mean);
  m.variance /= static_cast<double>(n);
  return m;
}

/// y = (x - mean)/sqrt(variance + epsilon) * scale + bias, all per channel (axis 1).
Result<Outputs> batchNormalization(const OpCall &call) {
  TensorValue y = call.in(0);
  double epsilon = call.node.floatAttr("epsilon");
  AxisView v(y.dims, 1); // rank 1: one channel
  for (size_t k = 1; k <= 4; ++k)
    if (call.in(k).numElements() != v.extent)
      return call.fail("scale, bias, mean and variance must have one element a channel",
                       Diag::ShapeMismatch);
  for (int64_t o = 0; o < v.outer; ++o)
    for (int64_t c = 0; c < v.extent; ++c) {
      auto q = static_cast<size_t>(c);
      double factor = call.in(1).floats[q] / std::sqrt(call.in(4).floats[q] + epsilon);
      for (int64_t i = 0; i < v.inner; ++i) {
        double &e = y.floats[static_cast<size_t>(v.index(o, c, i))];
        e = (e - call.in(3).floats[q]) * factor + call.in(2).floats[q];
      }
    }
  return Outputs{std::move(y)};
}

/// x[N, C, ...] normalised over groups of C/groups channels; scale and bias per channel.
Result<Outputs> normaliseGroups(const OpCall &call, int64_t groups) {
  TensorValue y = call.in(0);
  if (y.rank() < 2 || groups <= 0 || y.dims[1] % groups != 0 ||
      call.in(1).numElements() != y.dims[1] || call.in(2).numElements() != y.dims[1])
    return call.fail("channels, groups, scale and bias do not fit", Diag::ShapeMismatch);
  double epsilon = call.node.floatAttr("epsilon");
  AxisView v(y.dims, 1);
  int64_t size = v.extent / groups * v.inner;
  for (int64_t g = 0; g < v.outer * groups; ++g) {
    double *begin = y.floats.data() + g * size;
    Moments m = momentsOf(begin, size);
    for (int64_t i = 0; i < size; ++i) {
      auto c = static_cast<size_t>((g % groups * size + i) / v.inner);
      begin[i] = (begin[i] - m.mean) / std::sqrt(m.variance + epsilon) * call.in(1).floats[c] +
                 call.in(2).floats[c];
    }
  }
  return Outputs{std::move(y)};
}

Result<Outputs> groupNormalization(const OpCall &call) {
  return normaliseGroups(call, call.node.intAttr("num_groups"));
}
Result<Outputs> instanceNormalization(const OpCall &call) {
  return normaliseGroups(call, call.in(0).rank() < 2 ? 0 : call.in(0).dims[1]);
}

/// Multiplies by `scale` and adds `bias` (if any), which broadcast to y.
Status applyAffine(const OpCall &call, TensorValue &y, const TensorValue &scale,
                   const TensorValue *bias) {
  Dims biasDims = bias ? bias->dims : Dims{};
  auto dims = broadcastDims({y.dims, scale.dims, biasDims});
  if (!dims || *dims != y.dims)
    return call.fail("scale or bias does not broadcast to the input", Diag::ShapeMismatch);
  size_t i = 0;
  for (Walker w(y.dims, {broadcastStrides(scale.dims, y.dims), broadcastStrides(biasDims, y.dims)});
       !w.done(); w.next(), ++i)
    y.floats[i] = y.floats[i] * scale.floats[static_cast<size_t>(w.offset(0))] +
                  (bias ? bias->floats[static_cast<size_t>(w.offset(1))] : 0);
  return success();
}

/// Over all axes from `axis` on; outputs 1 and 2 are the mean and 1/sqrt(variance + epsilon) of each row.
Result<Outputs> layerNormalization(const OpCall &call) {
  TensorValue y = call.in(0);
  auto axis = static_cast<size_t>(call.node.intAttr("axis"));
  double epsilon = call.node.floatAttr("epsilon");
  Dims rowDims = y.dims;
  int64_t rows = 1, size = 1;
  for (size_t d = 0; d < y.dims.size(); ++d) {
    (d < axis ? rows : size) *= y.dims[d];
    if (d >= axis)
      rowDims[d] = 1;
  }
  DType statistics = call.node.hasOutput(1)   ? call.outType(1)
                     : call.node.hasOutput(2) ? call.outType(2)
                                              : DType::F32;
  TensorValue mean(statistics, rowDims), inverse(statistics, rowDims);
  for (int64_t r = 0; r < rows; ++r) {
    Moments m = momentsOf(y.floats.data() + r * size, size);
    auto q = static_cast<size_t>(r);
    mean.floats[q] = m.mean;
    inverse.floats[q] = 1 / std::sqrt(m.variance + epsilon);
    for (int64_t i = 0; i < size; ++i) {
      double &e = y.floats[static_cast<size_t>(r * size + i)];
      e = (e - m.mean) * inverse.floats[q];
    }
  }
  FUSEC_CHECK(applyAffine(call, y, call.in(1), call.has(2) ? &call.in(2) : nullptr));
  return Outputs{std::move(y), std::move(mean), std::move(inverse)};
}

Result<Outputs> rmsNormalization(const OpCall &call) {
  TensorValue y = call.in(0);
  auto axis = static_cast<size_t>(call.node.intAttr("axis"));
  double epsilon = call.node.floatAttr("epsilon");
  int64_t rows = 1, size = 1;
  for (size_t d = 0; d < y.dims.size(); ++d)
    (d < axis ? rows : size) *= y.dims[d];
  for (int64_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (int64_t i = 0; i < size; ++i) {
      double e = y.floats[static_cast<size_t>(r * size + i)];
      squares += e * e;
    }
    double factor = 1 / std::sqrt(squares / static_cast<double>(size) + epsilon);
    for (int64_t i = 0; i < size; ++i)
      y.floats[static_cast<size_t>(r * size + i)] *= factor;
  }
  FUSEC_CHECK(applyAffine(call, y, call.in(1), nullptr));
  return Outputs{std::move(y)};
}

/// A line with norm 0 stays 0.
Result<Outputs> lpNormalization(const OpCall &call) {
  TensorValue y = call.in(0);
  bool euclid = call.node.intAttr("p") == 2;
  AxisView v(y.dims, call.node.intAttr("axis"));
  for (int64_t o = 0; o < v.outer; ++o)
    for (int64_t i = 0; i < v.inner; ++i) {
      double norm = 0;
      for (int64_t e = 0; e < v.extent; ++e) {
        double x = y.floats[static_cast<size_t>(v.index(o, e, i))];
        norm += euclid ? x * x : std::fabs(x);
      }
      if (euclid)
        norm = std::sqrt(norm);
      for (int64_t e = 0; e < v.extent; ++e) {
        double &x = y.floats[static_cast<size_t>(v.index(o, e, i))];
        x = norm == 0 ? 0 : x / norm;
      }
    }
  return Outputs{std::move(y)};
}

/// y = x / (bias + alpha/size * sum of squares over `size` neighbouring channels)^beta.
Result<Outputs> lrn(const OpCall &call) {
  const TensorValue &x = call.in(0);
  TensorValue y = x;
  int64_t size = call.node.intAttr("size");
  double alpha = call.node.floatAttr("alpha"), beta = call.node.floatAttr("beta"),
         bias = call.node.floatAttr("bias");
  AxisView v(x.dims, 1);
  for (int64_t o = 0; o < v.outer; ++o)
    for (int64_t c = 0; c < v.extent; ++c)
      for (int64_t i = 0; i < v.inner; ++i) {
        double squares = 0;
        for (int64_t k = c - (size - 1) / 2; k <= c + size / 2; ++k)
          if (k >= 0 && k < v.extent) {
            double e = x.floats[static_cast<size_t>(v.index(o, k, i))];
            squares += e * e;
          }
        y.floats[static_cast<size_t>(v.index(o, c, i))] /=
            std::pow(bias + alpha / static_cast<double>(size) * squares, beta);
      }
  return Outputs{std::move(y)};
}

/// (x - mean) / (standard deviation + 1e-9), as the operator's function body says.
Result<Outputs> meanVarianceNormalization(const OpCall &call) {
  TensorValue y = call.in(0);
  Dims strides = rowMajorStrides(y.dims), kept, keptStrides, inner, innerStrides;
  std::vector<bool> reduced(y.dims.size(), false);
  for (int64_t a : call.node.intsAttr("axes"))
    reduced[static_cast<size_t>(a)] = true;
  for (size_t d = 0; d < y.dims.size(); ++d) {
    (reduced[d] ? inner : kept).push_back(y.dims[d]);
    (reduced[d] ? innerStrides : keptStrides).push_back(strides[d]);
  }
  std::vector<double> line;
  for (Walker o(kept, {keptStrides}); !o.done(); o.next()) {
    line.clear();
    for (Walker r(inner, {innerStrides}); !r.done(); r.next())
      line.push_back(y.floats[static_cast<size_t>(o.offset(0) + r.offset(0))]);
    Moments m = momentsOf(line.data(), static_cast<int64_t>(line.size()));
    for (Walker r(inner, {innerStrides}); !r.done(); r.next()) {
      double &e = y.floats[static_cast<size_t>(o.offset(0) + r.offset(0))];
      e = (e - m.mean) / (std::sqrt(m.variance) + 1e-9);
    }
  }
  return Outputs{std::move(y)};
}

} // namespace

void addNormalisations(OpTable &t) {
  using enum OpKind;
  entry(t, BatchNormalization) = batchNormalization;
  entry(t, GroupNormalization) = groupNormalization;
  entry(t, InstanceNormalization) = instanceNormalization;
  entry(t, LayerNormalization) = layerNormalization;
  entry(t, LpNormalization) = lpNormalization;
  entry(t, LRN) = lrn;
  entry(t, MeanVarianceNormalization) = meanVarianceNormalization;
  entry(t, RMSNormalization) = rmsNormalization;
}

} // namespace fusec
