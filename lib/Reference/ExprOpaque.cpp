#include "Expr/OpaqueOps.h"
#include "Reference/ExprEquations.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fusec::machine {
namespace {

bool less(DType t, ScalarValue a, ScalarValue b) {
  if (isFloat(t))
    return std::isnan(b.f) ? !std::isnan(a.f) : a.f < b.f;
  return t == DType::U64 ? static_cast<uint64_t>(a.i) < static_cast<uint64_t>(b.i) : a.i < b.i;
}

Status topK(State &state, const Equation &e) {
  for (TensorId id : e.outputs)
    FUSEC_CHECK(state.allocate(id, e.name));
  const Array &x = state.arrays[e.opaqueInputs[0]];
  Array &values = state.arrays[e.outputs[0]], &indices = state.arrays[e.outputs[1]];
  bool largest = e.opaqueAttributes.at("largest") != 0;
  int64_t stride = x.dims.back(), k = values.dims.back();
  FUSEC_TRY(int64_t length, state.evaluate(e.axes.back().extent, e.name));
  if (k > length)
    return state.error(e.name, "topk finds " + std::to_string(k) + " of " + std::to_string(length) +
                                   " elements");
  // As in the Graph interpreter, the order is that of the declared type, also where floats are kept in double.
  DType type = state.program.tensors[e.opaqueInputs[0]].type;
  std::vector<ScalarValue> row(static_cast<size_t>(length));
  std::vector<size_t> order(row.size());
  for (int64_t r = 0; r < (k == 0 ? 0 : values.numElements() / k); ++r) {
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = load(x, r * stride + static_cast<int64_t>(i));
      if (isFloat(type))
        row[i].f = roundToType(type, row[i].f);
    }
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return largest ? less(type, row[b], row[a]) : less(type, row[a], row[b]);
    });
    for (int64_t i = 0; i < k; ++i) {
      size_t from = order[static_cast<size_t>(i)];
      store(values, r * k + i, load(x, r * stride + static_cast<int64_t>(from)));
      store(indices, r * k + i, {static_cast<int64_t>(from), 0});
    }
  }
  for (TensorId id : e.outputs)
    state.written(id);
  return success();
}

} // namespace

Status runOpaque(State &state, const Equation &e) {
  switch (*parseOpaqueOp(e.opaque)) {
  case OpaqueOp::TopK: return topK(state, e);
  }
  return success();
}

} // namespace fusec::machine
