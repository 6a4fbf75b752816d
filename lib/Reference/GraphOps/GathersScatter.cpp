#include "Reference/OpCall.h"
#include "Support/Diag.h"

#include <cmath>

namespace fusec {

namespace {

/// out[i] = reduction(out[i], update[j]); applied in the order of the updates.
Status combine(const OpCall &call, TensorValue &out, int64_t i, const TensorValue &update,
               int64_t j) {
  const std::string &reduction = call.node.stringAttr("reduction");
  if (reduction == "none") {
    out.copyElement(i, update, j);
    return success();
  }
  auto p = static_cast<size_t>(i), q = static_cast<size_t>(j);
  bool max = reduction == "max", min = reduction == "min";
  if (out.isFloating()) {
    double &a = out.floats[p], b = update.floats[q];
    if (max || min)
      a = std::isnan(a) || std::isnan(b) ? std::nan("") : max ? std::fmax(a, b) : std::fmin(a, b);
    else
      a = reduction == "add" ? a + b : a * b;
    return success();
  }
  int64_t &a = out.ints[p], b = update.ints[q];
  if (max || min) {
    bool less =
        out.type == DType::U64 ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
    a = less == max ? b : a;
    return success();
  }
  auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  a = wrapToDType(out.type, static_cast<int64_t>(reduction == "add" ? x + y : x * y));
  return success();
}

Result<int64_t> position(const OpCall &call, int64_t index, int64_t extent) {
  int64_t e = index < 0 ? index + extent : index;
  if (e < 0 || e >= extent)
    return call.fail("index " + std::to_string(index) + " is outside an axis of size " +
                     std::to_string(extent));
  return e;
}

Result<Outputs> scatterElements(const OpCall &call) {
  TensorValue out = call.in(0);
  const TensorValue &indices = call.in(1), &updates = call.in(2);
  auto axis = static_cast<size_t>(call.node.intAttr("axis"));
  if (indices.dims != updates.dims || indices.dims.size() != out.dims.size())
    return call.fail("data, indices and updates do not fit", Diag::ShapeMismatch);
  Dims strides = rowMajorStrides(out.dims);
  int64_t j = 0;
  for (Walker w(indices.dims, {}); !w.done(); w.next(), ++j) {
    FUSEC_TRY(int64_t e, position(call, indices.ints[static_cast<size_t>(j)], out.dims[axis]));
    int64_t i = 0;
    for (size_t d = 0; d < out.dims.size(); ++d) {
      int64_t at = d == axis ? e : w[d];
      if (at >= out.dims[d])
        return call.fail("the indices are larger than the data", Diag::ShapeMismatch);
      i += at * strides[d];
    }
    FUSEC_CHECK(combine(call, out, i, updates, j));
  }
  return Outputs{std::move(out)};
}

Result<Outputs> scatterNd(const OpCall &call) {
  TensorValue out = call.in(0);
  const TensorValue &indices = call.in(1), &updates = call.in(2);
  if (indices.dims.empty() || static_cast<size_t>(indices.dims.back()) > out.dims.size())
    return call.fail("the indices do not fit the data", Diag::ShapeMismatch);
  auto depth = static_cast<size_t>(indices.dims.back());
  Dims strides = rowMajorStrides(out.dims);
  int64_t slice = 1, tuples = 1;
  for (size_t d = depth; d < out.dims.size(); ++d)
    slice *= out.dims[d];
  for (size_t d = 0; d + 1 < indices.dims.size(); ++d)
    tuples *= indices.dims[d];
  if (updates.numElements() != tuples * slice)
    return call.fail("the updates do not fit data and indices", Diag::ShapeMismatch);
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t offset = 0;
    for (size_t d = 0; d < depth; ++d) {
      FUSEC_TRY(int64_t e,
                position(call, indices.ints[static_cast<size_t>(t) * depth + d], out.dims[d]));
      offset += e * strides[d];
    }
    for (int64_t i = 0; i < slice; ++i)
      FUSEC_CHECK(combine(call, out, offset + i, updates, t * slice + i));
  }
  return Outputs{std::move(out)};
}

/// Writes `update` into the cache along the axis from write_indices[batch] on.
Result<Outputs> tensorScatter(const OpCall &call) {
  TensorValue out = call.in(0);
  const TensorValue &update = call.in(1);
  auto axis = static_cast<size_t>(call.node.intAttr("axis"));
  bool circular = call.node.stringAttr("mode") == "circular";
  Dims strides = rowMajorStrides(out.dims);
  int64_t j = 0;
  for (Walker w(update.dims, {}); !w.done(); w.next(), ++j) {
    int64_t e = w[axis] + (call.has(2) ? call.in(2).ints[static_cast<size_t>(w[0])] : 0);
    if (circular)
      e = (e % out.dims[axis] + out.dims[axis]) % out.dims[axis];
    if (e < 0 || e >= out.dims[axis])
      return call.fail("the update does not fit the cache");
    int64_t i = 0;
    for (size_t d = 0; d < out.dims.size(); ++d)
      i += (d == axis ? e : w[d]) * strides[d];
    out.copyElement(i, update, j);
  }
  return Outputs{std::move(out)};
}

} // namespace

void addGathersScatter(OpTable &t) {
  entry(t, OpKind::ScatterElements) = scatterElements;
  entry(t, OpKind::ScatterND) = scatterNd;
  entry(t, OpKind::TensorScatter) = tensorScatter;
}

} // namespace fusec
