#include "Reference/OpCall.h"
#include "Support/Diag.h"

#include <cmath>

namespace fusec {

namespace {

TensorValue fromInts(const Dims &values) {
  TensorValue t(DType::I64, {static_cast<int64_t>(values.size())});
  t.ints = values;
  return t;
}

Result<Outputs> shape(const OpCall &call) {
  const Dims &dims = call.in(0).dims;
  int64_t start = call.node.intAttr("start"), end = call.node.intAttr("end");
  if (start > end)
    end = start;
  return Outputs{fromInts(Dims(dims.begin() + start, dims.begin() + end))};
}

Result<Outputs> size(const OpCall &call) {
  TensorValue t(DType::I64, {});
  t.ints[0] = call.in(0).numElements();
  return Outputs{std::move(t)};
}

Result<Outputs> withDims(const OpCall &call, Dims dims) {
  FUSEC_CHECK(call.checkSize(dims));
  TensorValue out = call.in(0);
  if (checkedProduct(dims) != out.numElements())
    return call.fail("the new shape has another number of elements", Diag::ShapeMismatch);
  out.dims = std::move(dims);
  return Outputs{std::move(out)};
}

/// The shape comes from the graph; where it depends on data, from operand 1 (0 copies a dim, -1 is inferred).
Result<Outputs> reshape(const OpCall &call) {
  if (auto dims = call.outDims())
    return withDims(call, *dims);
  if (!call.has(1))
    return call.fail("the new shape is not known", Diag::UnsupportedShape);
  const TensorValue &x = call.in(0);
  Dims dims = call.in(1).ints;
  int64_t known = 1, inferred = -1;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 0 && d < x.dims.size())
      dims[d] = x.dims[d];
    if (dims[d] == -1)
      inferred = static_cast<int64_t>(d);
    else
      known *= dims[d];
  }
  if (inferred >= 0)
    dims[static_cast<size_t>(inferred)] = known ? x.numElements() / known : 0;
  return withDims(call, dims);
}

Result<Outputs> flatten(const OpCall &call) {
  const Dims &d = call.in(0).dims;
  Dims dims{1, 1};
  for (size_t i = 0; i < d.size(); ++i)
    dims[static_cast<int64_t>(i) < call.node.intAttr("axis") ? 0 : 1] *= d[i];
  return withDims(call, dims);
}

Result<Outputs> squeeze(const OpCall &call) {
  std::vector<bool> drop(call.in(0).dims.size(), false);
  for (int64_t a : call.node.intsAttr("axes"))
    drop[static_cast<size_t>(a)] = true;
  Dims dims;
  for (size_t d = 0; d < drop.size(); ++d)
    if (!drop[d])
      dims.push_back(call.in(0).dims[d]);
  return withDims(call, dims);
}

Result<Outputs> unsqueeze(const OpCall &call) {
  const auto &axes = call.node.intsAttr("axes");
  Dims dims(call.in(0).dims.size() + axes.size(), -1);
  for (int64_t a : axes)
    dims[static_cast<size_t>(a)] = 1;
  size_t next = 0;
  for (int64_t &d : dims)
    if (d < 0)
      d = call.in(0).dims[next++];
  return withDims(call, dims);
}

/// The first operand that gives the output's dims: the graph, else the integers of input `i`.
Result<Dims> dimsOrInput(const OpCall &call, size_t i) {
  if (auto dims = call.outDims())
    return *dims;
  if (!call.has(i))
    return call.fail("the output's shape is not known", Diag::UnsupportedShape);
  return call.in(i).ints;
}

Result<Outputs> constantOfShape(const OpCall &call) {
  FUSEC_TRY(Dims dims, dimsOrInput(call, 0));
  FUSEC_CHECK(call.checkSize(dims));
  TensorValue value = toTensorValue(*std::get<ConstantRef>(call.node.attributes.at("value")));
  TensorValue out(value.type, dims);
  for (int64_t i = 0; i < out.numElements(); ++i)
    out.copyElement(i, value, 0);
  return Outputs{std::move(out)};
}

Result<Outputs> expand(const OpCall &call) {
  const TensorValue &x = call.in(0);
  FUSEC_TRY(Dims wanted, dimsOrInput(call, 1));
  auto dims = broadcastDims({x.dims, wanted});
  if (!dims)
    return call.fail("the input does not broadcast to the shape", Diag::ShapeMismatch);
  FUSEC_CHECK(call.checkSize(*dims));
  TensorValue out(x.type, *dims);
  int64_t i = 0;
  for (Walker w(*dims, {broadcastStrides(x.dims, *dims)}); !w.done(); w.next(), ++i)
    out.copyElement(i, x, w.offset(0));
  return Outputs{std::move(out)};
}

/// ceil((limit - start) / delta) elements, or as the graph says where the limit is absent.
Result<int64_t> rangeLength(const OpCall &call) {
  if (!call.has(1)) {
    FUSEC_TRY(Dims dims, call.knownOutDims());
    return dims[0];
  }
  const TensorValue &start = call.in(0), &limit = call.in(1), &delta = call.in(2);
  if (delta.number(0) == 0)
    return call.fail("delta is 0");
  double count = std::ceil((limit.number(0) - start.number(0)) / delta.number(0));
  if (std::isnan(count) || count > static_cast<double>(kMaxElements))
    return call.fail("the range has too many elements", Diag::LimitExceeded);
  return count > 0 ? static_cast<int64_t>(count) : 0;
}

Result<Outputs> range(const OpCall &call) {
  const TensorValue &start = call.in(0), &delta = call.in(2);
  FUSEC_TRY(int64_t count, rangeLength(call));
  TensorValue out(start.type, {count});
  for (int64_t i = 0; i < out.dims[0]; ++i) {
    auto p = static_cast<size_t>(i);
    if (out.isFloating())
      out.floats[p] = start.floats[0] + static_cast<double>(i) * delta.floats[0];
    else
      out.ints[p] = wrapToDType(out.type, start.ints[0] + i * delta.ints[0]);
  }
  return Outputs{std::move(out)};
}

Result<Outputs> eyeLike(const OpCall &call) {
  const Dims &dims = call.in(0).dims;
  if (dims.size() != 2)
    return call.fail("expects a matrix", Diag::ShapeMismatch);
  TensorValue out(call.outType(), dims);
  int64_t k = call.node.intAttr("k");
  for (int64_t r = 0; r < dims[0]; ++r)
    if (k > -dims[0] && k < dims[1] && r + k >= 0 && r + k < dims[1])
      out.setNumber(r * dims[1] + r + k, 1);
  return Outputs{std::move(out)};
}

} // namespace

void addMovementShapes(OpTable &t) {
  using enum OpKind;
  entry(t, Shape) = shape;
  entry(t, Size) = size;
  entry(t, Reshape) = reshape;
  entry(t, Flatten) = flatten;
  entry(t, Squeeze) = squeeze;
  entry(t, Unsqueeze) = unsqueeze;
  entry(t, ConstantOfShape) = constantOfShape;
  entry(t, Expand) = expand;
  entry(t, Range) = range;
  entry(t, EyeLike) = eyeLike;
}

} // namespace fusec
