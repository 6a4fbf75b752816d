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

} // namespace

void addMisc(OpTable &t) {
  using enum OpKind;
  entry(t, Det) = det;
  entry(t, HannWindow) = hannWindow;
  entry(t, HammingWindow) = hammingWindow;
  entry(t, BlackmanWindow) = blackmanWindow;
}

} // namespace fusec
