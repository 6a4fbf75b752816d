#include "Reference/OpCall.h"

#include <algorithm>
#include <cmath>

namespace fusec {

namespace {

/// Equal values keep the order of their indices; a NaN counts as larger than any number.
Result<Outputs> topK(const OpCall &call) {
  const TensorValue x = call.rounded(0);
  int64_t axis = call.node.intAttr("axis"), k = call.in(1).ints[0];
  bool largest = call.node.intAttr("largest");
  AxisView v(x.dims, axis);
  if (k < 0 || k > v.extent)
    return call.fail("k = " + std::to_string(k) + " is outside 0.." + std::to_string(v.extent));
  auto less = [&](int64_t p, int64_t q) {
    if (x.isFloating()) {
      double a = x.floats[static_cast<size_t>(p)], b = x.floats[static_cast<size_t>(q)];
      return std::isnan(b) ? !std::isnan(a) : a < b;
    }
    int64_t a = x.ints[static_cast<size_t>(p)], b = x.ints[static_cast<size_t>(q)];
    return x.type == DType::U64 ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
  };
  Dims dims = x.dims;
  dims[static_cast<size_t>(axis)] = k;
  TensorValue values(x.type, dims), indices(DType::I64, dims);
  AxisView to(dims, axis);
  std::vector<int64_t> order(static_cast<size_t>(v.extent));
  for (int64_t o = 0; o < v.outer; ++o)
    for (int64_t i = 0; i < v.inner; ++i) {
      for (int64_t e = 0; e < v.extent; ++e)
        order[static_cast<size_t>(e)] = e;
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        int64_t p = v.index(o, a, i), q = v.index(o, b, i);
        return largest ? less(q, p) : less(p, q);
      });
      for (int64_t e = 0; e < k; ++e) {
        int64_t from = order[static_cast<size_t>(e)], at = to.index(o, e, i);
        values.copyElement(at, x, v.index(o, from, i));
        indices.ints[static_cast<size_t>(at)] = from;
      }
    }
  return Outputs{std::move(values), std::move(indices)};
}

} // namespace

void addReductionsTopK(OpTable &t) { entry(t, OpKind::TopK) = topK; }

} // namespace fusec
