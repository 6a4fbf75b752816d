#include "Reference/GraphOps/Quantise.h"
#include "Reference/OpCall.h"
#include "Support/Diag.h"

#include <cmath>
#include <limits>

namespace fusec {

namespace {

/// Sliding windows over x[N, C, in...]; the output's shape comes from the graph (it knows ceil_mode).
struct Windows {
  Dims in, out, kernel, strides, dilations, padBegin, padEnd, inStrides;
  int64_t planes, inSize, outSize;
};

Result<Windows> readWindows(const OpCall &call) {
  const TensorValue &x = call.in(0);
  FUSEC_TRY(Dims dims, call.knownOutDims());
  if (x.rank() < 3 || dims.size() != x.dims.size())
    return call.fail("expects a tensor [N, C, ...]", Diag::ShapeMismatch);
  const auto &pads = call.node.intsAttr("pads");
  size_t rank = x.dims.size() - 2;
  Windows w{Dims(x.dims.begin() + 2, x.dims.end()),
            Dims(dims.begin() + 2, dims.end()),
            call.node.intsAttr("kernel_shape"),
            call.node.intsAttr("strides"),
            call.node.intsAttr("dilations"),
            {},
            {},
            {},
            x.dims[0] * x.dims[1],
            1,
            1};
  w.padBegin.assign(pads.begin(), pads.begin() + static_cast<long>(rank));
  w.padEnd.assign(pads.begin() + static_cast<long>(rank), pads.end());
  w.inStrides = rowMajorStrides(w.in);
  for (size_t d = 0; d < rank; ++d) {
    w.inSize *= w.in[d];
    w.outSize *= w.out[d];
  }
  return w;
}

/// Calls visit(offset) for every cell of the window at output position `at` that lies in the input, and returns
/// the number of cells in the input or its padding.
template <typename F> int64_t visitWindow(const Windows &w, const Dims &at, F visit) {
  int64_t padded = 0;
  for (Walker k(w.kernel, {}); !k.done(); k.next()) {
    int64_t offset = 0;
    bool inside = true, insidePadding = true;
    for (size_t d = 0; d < w.in.size(); ++d) {
      int64_t p = at[d] * w.strides[d] - w.padBegin[d] + k[d] * w.dilations[d];
      inside = inside && p >= 0 && p < w.in[d];
      insidePadding = insidePadding && p < w.in[d] + w.padEnd[d];
      offset += p * w.inStrides[d];
    }
    padded += insidePadding;
    if (inside)
      visit(offset);
  }
  return padded;
}

/// pool(plane offset, output position) -> value, for every output element.
template <typename F> Result<Outputs> poolFloats(const OpCall &call, const Windows &w, F pool) {
  FUSEC_TRY(Dims dims, call.knownOutDims());
  TensorValue y(call.in(0).type, dims);
  size_t i = 0;
  for (int64_t plane = 0; plane < w.planes; ++plane)
    for (Walker o(w.out, {}); !o.done(); o.next(), ++i)
      y.floats[i] = pool(call.in(0).floats.data() + plane * w.inSize, o.coordinates());
  return Outputs{std::move(y)};
}

Result<Outputs> averagePool(const OpCall &call) {
  FUSEC_TRY(Windows w, readWindows(call));
  bool countPadding = call.node.intAttr("count_include_pad");
  return poolFloats(call, w, [&](const double *plane, const Dims &at) {
    double sum = 0;
    int64_t inside = 0;
    int64_t padded = visitWindow(w, at, [&](int64_t offset) {
      sum += plane[offset];
      ++inside;
    });
    return sum / static_cast<double>(countPadding ? padded : inside);
  });
}

Result<Outputs> lpPool(const OpCall &call) {
  FUSEC_TRY(Windows w, readWindows(call));
  auto p = static_cast<double>(call.node.intAttr("p"));
  return poolFloats(call, w, [&](const double *plane, const Dims &at) {
    double sum = 0;
    visitWindow(w, at, [&](int64_t offset) { sum += std::pow(std::fabs(plane[offset]), p); });
    return std::pow(sum, 1 / p);
  });
}

/// The first of equal elements wins; a NaN counts as the largest. Indices are flat over the whole input, within a
/// plane in row-major (storage_order 0) or column-major order. A window without any cell gives the lowest value.
Result<Outputs> maxPool(const OpCall &call) {
  FUSEC_TRY(Windows w, readWindows(call));
  FUSEC_TRY(Dims dims, call.knownOutDims());
  const TensorValue &x = call.in(0);
  TensorValue y(x.type, dims), indices(DType::I64, dims);
  bool columnMajor = call.node.intAttr("storage_order");
  size_t i = 0;
  for (int64_t plane = 0; plane < w.planes; ++plane)
    for (Walker o(w.out, {}); !o.done(); o.next(), ++i) {
      int64_t best = -1, base = plane * w.inSize;
      visitWindow(w, o.coordinates(), [&](int64_t offset) {
        auto p = static_cast<size_t>(base + offset), q = static_cast<size_t>(base + best);
        bool better = best < 0;
        if (!better && x.isFloating())
          better =
              x.floats[p] > x.floats[q] || (std::isnan(x.floats[p]) && !std::isnan(x.floats[q]));
        else if (!better)
          better = x.type == DType::U64
                       ? static_cast<uint64_t>(x.ints[p]) > static_cast<uint64_t>(x.ints[q])
                       : x.ints[p] > x.ints[q];
        if (better)
          best = offset;
      });
      if (best < 0) {
        if (x.isFloating())
          y.floats[i] = -std::numeric_limits<double>::infinity();
        else
          y.ints[i] = lowestInt(x.type);
        continue;
      }
      y.copyElement(static_cast<int64_t>(i), x, base + best);
      int64_t flat = best;
      if (columnMajor) {
        flat = 0;
        int64_t stride = 1, rest = best;
        for (size_t d = 0; d < w.in.size(); ++d) {
          flat += rest / w.inStrides[d] * stride;
          rest %= w.inStrides[d];
          stride *= w.in[d];
        }
      }
      indices.ints[i] = base + flat;
    }
  return Outputs{std::move(y), std::move(indices)};
}

/// reduce(begin, count) over each plane of x[N, C, ...].
template <typename F> Result<Outputs> globalPool(const OpCall &call, F reduce) {
  const TensorValue &x = call.in(0);
  if (x.rank() < 2)
    return call.fail("expects a tensor [N, C, ...]", Diag::ShapeMismatch);
  Dims dims(x.dims.size(), 1);
  dims[0] = x.dims[0];
  dims[1] = x.dims[1];
  TensorValue y(x.type, dims);
  int64_t planes = dims[0] * dims[1], size = planes ? x.numElements() / planes : 0;
  for (int64_t p = 0; p < planes; ++p)
    y.floats[static_cast<size_t>(p)] = reduce(x.floats.data() + p * size, size);
  return Outputs{std::move(y)};
}

Result<Outputs> globalAveragePool(const OpCall &call) {
  return globalPool(call, [](const double *v, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i)
      sum += v[i];
    return sum / static_cast<double>(n);
  });
}

Result<Outputs> globalMaxPool(const OpCall &call) {
  return globalPool(call, [](const double *v, int64_t n) {
    double best = -std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < n; ++i)
      best = std::isnan(v[i]) || std::isnan(best) ? std::nan("") : std::fmax(best, v[i]);
    return best;
  });
}

Result<Outputs> globalLpPool(const OpCall &call) {
  auto p = static_cast<double>(call.node.intAttr("p"));
  return globalPool(call, [p](const double *v, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i)
      sum += std::pow(std::fabs(v[i]), p);
    return std::pow(sum, 1 / p);
  });
}

} // namespace

void addWindowsPool(OpTable &t) {
  entry(t, OpKind::AveragePool) = averagePool;
  entry(t, OpKind::MaxPool) = maxPool;
  entry(t, OpKind::LpPool) = lpPool;
  entry(t, OpKind::GlobalAveragePool) = globalAveragePool;
  entry(t, OpKind::GlobalMaxPool) = globalMaxPool;
  entry(t, OpKind::GlobalLpPool) = globalLpPool;
}

} // namespace fusec
