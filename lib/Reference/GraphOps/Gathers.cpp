#include "Reference/OpCall.h"
#include "Support/Diag.h"

namespace fusec {

namespace {

/// Negative indices count from the end; -1 when outside.
int64_t normalised(int64_t index, int64_t extent) {
  if (index < 0)
    index += extent;
  return index >= 0 && index < extent ? index : -1;
}

Diagnostic outside(const OpCall &call, int64_t index, int64_t extent) {
  return call.fail("index " + std::to_string(index) + " is outside an axis of size " +
                   std::to_string(extent));
}

Result<Outputs> gather(const OpCall &call) {
  const TensorValue &x = call.in(0), &indices = call.in(1);
  int64_t axis = call.node.intAttr("axis");
  AxisView v(x.dims, axis);
  Dims dims(x.dims.begin(), x.dims.begin() + axis);
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), x.dims.begin() + axis + 1, x.dims.end());
  FUSEC_CHECK(call.checkSize(dims));
  TensorValue out(x.type, dims);
  int64_t next = 0;
  for (int64_t o = 0; o < v.outer; ++o)
    for (int64_t index : indices.ints) {
      int64_t e = normalised(index, v.extent);
      if (e < 0)
        return outside(call, index, v.extent);
      for (int64_t i = 0; i < v.inner; ++i)
        out.copyElement(next++, x, v.index(o, e, i));
    }
  return Outputs{std::move(out)};
}

Result<Outputs> chosen(const OpCall &call) {
  const TensorValue &mask = call.in(0);
  FUSEC_TRY(const Dims dims, call.knownOutDims());
  TensorValue out(DType::I64, dims);
  int64_t next = 0;
  for (int64_t i = 0; i < mask.numElements(); ++i) {
    if (mask.ints[static_cast<size_t>(i)] == 0)
      continue;
    if (next == dims[0])
      return call.fail("more are chosen than the output has room for");
    out.ints[static_cast<size_t>(next++)] = i;
  }
  if (next != dims[0])
    return call.fail("fewer are chosen than the output has elements");
  return Outputs{std::move(out)};
}

Result<Outputs> gatherElements(const OpCall &call) {
  const TensorValue &x = call.in(0), &indices = call.in(1);
  auto axis = static_cast<size_t>(call.node.intAttr("axis"));
  if (x.dims.size() != indices.dims.size())
    return call.fail("data and indices differ in rank", Diag::ShapeMismatch);
  Dims strides = rowMajorStrides(x.dims);
  TensorValue out(x.type, indices.dims);
  int64_t i = 0;
  for (Walker w(indices.dims, {}); !w.done(); w.next(), ++i) {
    int64_t index = indices.ints[static_cast<size_t>(i)], e = normalised(index, x.dims[axis]);
    if (e < 0)
      return outside(call, index, x.dims[axis]);
    int64_t offset = 0;
    for (size_t d = 0; d < x.dims.size(); ++d)
      offset += (d == axis ? e : w[d]) * strides[d];
    out.copyElement(i, x, offset);
  }
  return Outputs{std::move(out)};
}

/// The last axis of indices holds coordinates behind `batch_dims` shared axes; each selects a slice.
Result<Outputs> gatherNd(const OpCall &call) {
  const TensorValue &x = call.in(0), &indices = call.in(1);
  auto batch = static_cast<size_t>(call.node.intAttr("batch_dims"));
  if (indices.dims.empty() || batch >= indices.dims.size() ||
      batch + static_cast<size_t>(indices.dims.back()) > x.dims.size())
    return call.fail("the indices do not fit the data", Diag::ShapeMismatch);
  auto depth = static_cast<size_t>(indices.dims.back());
  Dims tuples(indices.dims.begin(), indices.dims.end() - 1), dims = tuples;
  dims.insert(dims.end(), x.dims.begin() + static_cast<long>(batch + depth), x.dims.end());
  FUSEC_CHECK(call.checkSize(dims));
  Dims strides = rowMajorStrides(x.dims);
  int64_t slice = 1;
  for (size_t d = batch + depth; d < x.dims.size(); ++d)
    slice *= x.dims[d];
  TensorValue out(x.type, dims);
  int64_t next = 0;
  size_t tuple = 0;
  for (Walker w(tuples, {}); !w.done(); w.next(), ++tuple) {
    int64_t offset = 0;
    for (size_t d = 0; d < batch; ++d)
      offset += w[d] * strides[d];
    for (size_t d = 0; d < depth; ++d) {
      int64_t index = indices.ints[tuple * depth + d], e = normalised(index, x.dims[batch + d]);
      if (e < 0)
        return outside(call, index, x.dims[batch + d]);
      offset += e * strides[batch + d];
    }
    for (int64_t i = 0; i < slice; ++i)
      out.copyElement(next++, x, offset + i);
  }
  return Outputs{std::move(out)};
}

/// values = [off, on]; an index outside [-depth, depth) leaves its line off.
Result<Outputs> oneHot(const OpCall &call) {
  const TensorValue &indices = call.in(0), &values = call.in(2);
  auto depth = static_cast<int64_t>(call.in(1).number(0));
  int64_t axis = call.node.intAttr("axis");
  Dims dims = indices.dims;
  dims.insert(dims.begin() + axis, depth);
  FUSEC_CHECK(call.checkSize(dims));
  TensorValue out(values.type, dims);
  for (int64_t i = 0; i < out.numElements(); ++i)
    out.copyElement(i, values, 0);
  AxisView v(dims, axis);
  for (int64_t o = 0; o < v.outer; ++o)
    for (int64_t i = 0; i < v.inner; ++i) {
      int64_t index = truncateToInt(DType::I64, indices.number(o * v.inner + i));
      if (int64_t e = normalised(index, depth); e >= 0)
        out.copyElement(v.index(o, e, i), values, 1);
    }
  return Outputs{std::move(out)};
}

} // namespace

void addGathers(OpTable &t) {
  using enum OpKind;
  entry(t, Gather) = gather;
  entry(t, GatherElements) = gatherElements;
  entry(t, GatherND) = gatherNd;
  entry(t, OneHot) = oneHot;
  entry(t, Chosen) = chosen;
}

} // namespace fusec
