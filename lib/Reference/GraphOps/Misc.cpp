#include "Reference/OpCall.h"
#include "Support/Diag.h"

#include <cmath>

namespace fusec {

namespace {

/// Gaussian elimination with partial pivoting, for each [N, N] matrix of x[..., N, N].
Result<Outputs> det(const OpCall &call) {
  TensorValue x = call.in(0);
  if (x.rank() < 2 || x.dims[x.dims.size() - 2] != x.dims.back())
    return call.fail("expects square matrices", Diag::ShapeMismatch);
  int64_t n = x.dims.back();
  TensorValue out(x.type, Dims(x.dims.begin(), x.dims.end() - 2));
  for (int64_t m = 0; m < out.numElements(); ++m) {
    double *a = x.floats.data() + m * n * n;
    double product = 1;
    for (int64_t c = 0; c < n; ++c) {
      int64_t pivot = c;
      for (int64_t r = c + 1; r < n; ++r)
        if (std::fabs(a[r * n + c]) > std::fabs(a[pivot * n + c]))
          pivot = r;
      if (pivot != c)
        product = -product;
      for (int64_t k = 0; k < n; ++k)
        std::swap(a[c * n + k], a[pivot * n + k]);
      product *= a[c * n + c];
      for (int64_t r = c + 1; r < n && a[c * n + c] != 0; ++r) {
        double factor = a[r * n + c] / a[c * n + c];
        for (int64_t k = c; k < n; ++k)
          a[r * n + k] -= factor * a[c * n + k];
      }
    }
    out.floats[static_cast<size_t>(m)] = product;
  }
  return Outputs{std::move(out)};
}

/// A symmetric (periodic = 0: N-1 intervals) or periodic (N intervals) window of `size` points:
/// a0 - a1*cos(2 pi i / intervals) + a2*cos(4 pi i / intervals).
Result<Outputs> cosineWindow(const OpCall &call, double a0, double a1, double a2) {
  auto size = static_cast<int64_t>(call.in(0).number(0));
  FUSEC_CHECK(call.checkSize({size}));
  TensorValue out(call.outType(), {size});
  double intervals = static_cast<double>(call.node.intAttr("periodic") ? size : size - 1);
  for (int64_t i = 0; i < size; ++i) {
    double turn = 2 * M_PI * static_cast<double>(i) / intervals;
    out.setNumber(i, a0 - a1 * std::cos(turn) + a2 * std::cos(2 * turn));
  }
  return Outputs{std::move(out)};
}

Result<Outputs> hannWindow(const OpCall &call) { return cosineWindow(call, 0.5, 0.5, 0); }
Result<Outputs> hammingWindow(const OpCall &call) {
  return cosineWindow(call, 25.0 / 46, 21.0 / 46, 0);
}
Result<Outputs> blackmanWindow(const OpCall &call) { return cosineWindow(call, 0.42, 0.5, 0.08); }

/// Rotates pairs of the first `rotary_embedding_dim` elements of each head by the token's angles. x is
/// [B, heads, S, size] or [B, S, heads*size]; the caches are [B, S, dim/2], or [positions, dim/2] with position_ids.
Result<Outputs> rotaryEmbedding(const OpCall &call) {
  TensorValue out = call.in(0);
  const TensorValue &x = call.in(0), &cosCache = call.in(1), &sinCache = call.in(2);
  bool packed = x.rank() == 3;
  int64_t heads = packed ? call.node.intAttr("num_heads") : x.dims[1];
  if ((x.rank() != 3 && x.rank() != 4) || heads <= 0 || (packed && x.dims[2] % heads != 0))
    return call.fail("the input does not divide into heads", Diag::ShapeMismatch);
  int64_t tokens = packed ? x.dims[1] : x.dims[2], size = packed ? x.dims[2] / heads : x.dims[3];
  int64_t rotated = call.node.intAttr("rotary_embedding_dim");
  rotated = rotated ? rotated : size;
  int64_t half = rotated / 2;
  if (rotated > size || cosCache.dims.back() != half || sinCache.dims != cosCache.dims)
    return call.fail("the caches do not fit the rotated size", Diag::ShapeMismatch);
  bool interleaved = call.node.intAttr("interleaved");
  int64_t rows = cosCache.dims.size() == 2 ? cosCache.dims[0] : cosCache.dims[0] * cosCache.dims[1];
  for (int64_t b = 0; b < x.dims[0]; ++b)
    for (int64_t s = 0; s < tokens; ++s) {
      int64_t row =
          call.has(3) ? call.in(3).ints[static_cast<size_t>(b * tokens + s)] : b * tokens + s;
      if (row < 0 || row >= rows)
        return call.fail("position " + std::to_string(row) + " is outside the cache");
      for (int64_t h = 0; h < heads; ++h) {
        int64_t base =
            packed ? ((b * tokens + s) * heads + h) * size : ((b * heads + h) * tokens + s) * size;
        for (int64_t k = 0; k < half; ++k) {
          auto p = static_cast<size_t>(base + (interleaved ? 2 * k : k));
          auto q = static_cast<size_t>(base + (interleaved ? 2 * k + 1 : k + half));
          double c = cosCache.floats[static_cast<size_t>(row * half + k)];
          double n = sinCache.floats[static_cast<size_t>(row * half + k)];
          out.floats[p] = c * x.floats[p] - n * x.floats[q];
          out.floats[q] = n * x.floats[p] + c * x.floats[q];
        }
      }
    }
  return Outputs{std::move(out)};
}

} // namespace

void addMisc(OpTable &t) {
  using enum OpKind;
  entry(t, Det) = det;
  entry(t, HannWindow) = hannWindow;
  entry(t, HammingWindow) = hammingWindow;
  entry(t, BlackmanWindow) = blackmanWindow;
  entry(t, RotaryEmbedding) = rotaryEmbedding;
}

} // namespace fusec
