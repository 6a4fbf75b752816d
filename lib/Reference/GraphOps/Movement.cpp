#include "Reference/OpCall.h"
#include "Support/Diag.h"

#include <algorithm>

namespace fusec {

namespace {

Result<Outputs> concat(const OpCall &call) {
  int64_t axis = call.node.intAttr("axis");
  Dims dims = call.in(0).dims;
  auto a = static_cast<size_t>(axis);
  dims[a] = 0;
  for (const TensorValue *x : call.inputs) {
    if (x->dims.size() != dims.size())
      return call.fail("the operands' ranks differ", Diag::ShapeMismatch);
    for (size_t d = 0; d < dims.size(); ++d)
      if (d != a && x->dims[d] != dims[d])
        return call.fail("the operands' shapes do not fit", Diag::ShapeMismatch);
    dims[a] += x->dims[a];
  }
  FUSEC_CHECK(call.checkSize(dims));
  TensorValue out(call.in(0).type, dims);
  AxisView to(dims, axis);
  int64_t begin = 0;
  for (const TensorValue *x : call.inputs) {
    AxisView from(x->dims, axis);
    for (int64_t o = 0; o < from.outer; ++o)
      for (int64_t e = 0; e < from.extent; ++e)
        for (int64_t i = 0; i < from.inner; ++i)
          out.copyElement(to.index(o, begin + e, i), *x, from.index(o, e, i));
    begin += from.extent;
  }
  return Outputs{std::move(out)};
}

/// Sizes come from the outputs' shapes; one output may have an unknown size.
Result<Outputs> split(const OpCall &call) {
  const TensorValue &x = call.in(0);
  auto axis = static_cast<size_t>(call.node.intAttr("axis"));
  size_t parts = call.node.outputs.size();
  Dims sizes;
  for (size_t k = 0; k < parts; ++k) {
    if (auto dims = call.outDims(k))
      sizes.push_back((*dims)[axis]);
    else if (call.has(1) && call.in(1).numElements() == static_cast<int64_t>(parts))
      sizes.push_back(call.in(1).ints[k]);
    else if (!call.has(1)) { // equal parts, the last one smaller
      int64_t n = static_cast<int64_t>(parts), each = (x.dims[axis] + n - 1) / n;
      int64_t before = each * static_cast<int64_t>(k);
      sizes.push_back(std::clamp<int64_t>(x.dims[axis] - before, 0, each));
    } else
      return call.fail("the size of part " + std::to_string(k) + " is not known",
                       Diag::UnsupportedShape);
  }
  AxisView from(x.dims, static_cast<int64_t>(axis));
  Outputs outs;
  int64_t begin = 0;
  for (int64_t s : sizes) {
    if (s < 0 || begin + s > from.extent)
      return call.fail("the parts are larger than the tensor", Diag::ShapeMismatch);
    Dims dims = x.dims;
    dims[axis] = s;
    TensorValue out(x.type, dims);
    for (int64_t o = 0; o < from.outer; ++o)
      for (int64_t e = 0; e < s; ++e)
        for (int64_t i = 0; i < from.inner; ++i)
          out.copyElement((o * s + e) * from.inner + i, x, from.index(o, begin + e, i));
    outs.push_back(std::move(out));
    begin += s;
  }
  if (begin != from.extent)
    return call.fail("the parts are smaller than the tensor", Diag::ShapeMismatch);
  return outs;
}

/// Negative positions count from the end; then the start is clamped to an element (forwards: or the end of the
/// axis), and the end to one beyond the last that can be read in either direction.
Result<Outputs> sliceBy(const OpCall &call, const Dims &starts, const Dims &ends, const Dims &axes,
                        const Dims &steps) {
  const TensorValue &x = call.in(0);
  Dims strides = rowMajorStrides(x.dims), dims = x.dims, first(x.dims.size(), 0),
       step(x.dims.size(), 1);
  for (size_t k = 0; k < starts.size(); ++k) {
    int64_t axis = k < axes.size() ? axes[k] : static_cast<int64_t>(k);
    axis += axis < 0 ? x.rank() : 0;
    int64_t by = k < steps.size() ? steps[k] : 1;
    if (axis < 0 || axis >= x.rank() || by == 0 || by == INT64_MIN || k >= ends.size())
      return call.fail("an axis is outside the rank or a step is 0");
    auto a = static_cast<size_t>(axis);
    int64_t n = x.dims[a];
    auto position = [n, by](int64_t p, int64_t low) {
      return std::clamp(p < 0 ? p + n : p, low, std::max(low, by > 0 ? n : n - 1));
    };
    int64_t begin = position(starts[k], 0), end = position(ends[k], by > 0 ? 0 : -1);
    int64_t span = by > 0 ? end - begin : begin - end, width = by > 0 ? by : -by;
    first[a] = begin;
    step[a] = by;
    dims[a] = n > 0 && span > 0 ? (span - 1) / width + 1 : 0;
  }
  return Outputs{rearrange(x, dims, [&](const Dims &c) {
    int64_t offset = 0;
    for (size_t d = 0; d < c.size(); ++d)
      offset += (first[d] + c[d] * step[d]) * strides[d];
    return offset;
  })};
}

Result<Outputs> slice(const OpCall &call) {
  const Node &n = call.node;
  return sliceBy(call, n.intsAttr("starts"), n.intsAttr("ends"), n.intsAttr("axes"),
                 n.intsAttr("steps"));
}

Result<Outputs> sliceDynamic(const OpCall &call) {
  return sliceBy(call, call.in(1).ints, call.in(2).ints, call.has(3) ? call.in(3).ints : Dims{},
                 call.has(4) ? call.in(4).ints : Dims{});
}

Result<Outputs> transpose(const OpCall &call) {
  const TensorValue &x = call.in(0);
  const auto &perm = call.node.intsAttr("perm");
  Dims own = rowMajorStrides(x.dims), dims, strides;
  for (int64_t p : perm) {
    dims.push_back(x.dims[static_cast<size_t>(p)]);
    strides.push_back(own[static_cast<size_t>(p)]);
  }
  TensorValue out(x.type, dims);
  int64_t i = 0;
  for (Walker w(dims, {strides}); !w.done(); w.next(), ++i)
    out.copyElement(i, x, w.offset(0));
  return Outputs{std::move(out)};
}

Result<Outputs> tile(const OpCall &call) {
  const TensorValue &x = call.in(0);
  Dims dims = x.dims, strides = rowMajorStrides(x.dims);
  if (auto known = call.outDims())
    dims = *known;
  else if (call.has(1))
    for (size_t d = 0; d < dims.size(); ++d)
      dims[d] *= call.in(1).ints[d];
  else
    return call.fail("the output's shape is not known", Diag::UnsupportedShape);
  FUSEC_CHECK(call.checkSize(dims));
  return Outputs{rearrange(x, dims, [&](const Dims &c) {
    int64_t offset = 0;
    for (size_t d = 0; d < c.size(); ++d)
      offset += c[d] % x.dims[d] * strides[d];
    return offset;
  })};
}

/// Position in [0, n) that position p outside of it copies, or -1 (constant).
int64_t padSource(const std::string &mode, int64_t p, int64_t n) {
  if (p >= 0 && p < n)
    return p;
  if (mode == "edge")
    return p < 0 ? 0 : n - 1;
  if (mode == "wrap")
    return ((p % n) + n) % n;
  if (mode == "reflect") {
    if (n == 1)
      return 0;
    int64_t period = 2 * (n - 1), q = ((p % period) + period) % period;
    return q < n ? q : period - q;
  }
  return -1;
}

/// Negative pads cut. In the modes wrap and reflect the cut part is gone before anything is repeated.
Result<Outputs> pad(const OpCall &call) {
  TensorValue x = call.in(0);
  Dims pads = call.node.intsAttr("pads");
  const std::string &mode = call.node.stringAttr("mode");
  size_t rank = x.dims.size();
  Dims starts(rank, 0), ends = x.dims, axes(rank), dims(rank);
  for (size_t d = 0; d < rank; ++d) {
    axes[d] = static_cast<int64_t>(d);
    starts[d] = std::max<int64_t>(-pads[d], 0);
    ends[d] -= std::max<int64_t>(-pads[d + rank], 0);
    if (starts[d] > ends[d])
      return call.fail("negative pads cut more than the tensor has");
    pads[d] = std::max<int64_t>(pads[d], 0);
    pads[d + rank] = std::max<int64_t>(pads[d + rank], 0);
    dims[d] = ends[d] - starts[d] + pads[d] + pads[d + rank];
    if (mode != "constant" && starts[d] == ends[d] && dims[d] > 0)
      return call.fail("an empty axis cannot be extended by mode " + mode);
  }
  FUSEC_CHECK(call.checkSize(dims));
  FUSEC_TRY(Outputs cut, sliceBy(call, starts, ends, axes, {}));
  x = std::move(cut[0]);
  Dims strides = rowMajorStrides(x.dims);
  TensorValue out(x.type, dims);
  if (call.has(2))
    for (int64_t i = 0; i < out.numElements(); ++i)
      out.copyElement(i, call.in(2), 0);
  int64_t i = 0;
  for (Walker w(dims, {}); !w.done(); w.next(), ++i) {
    int64_t offset = 0;
    for (size_t d = 0; d < rank && offset >= 0; ++d) {
      int64_t p = padSource(mode, w[d] - pads[d], x.dims[d]);
      offset = p < 0 ? -1 : offset + p * strides[d];
    }
    if (offset >= 0)
      out.copyElement(i, x, offset);
  }
  return Outputs{std::move(out)};
}

/// x[N, C, H, W] -> [N, C/b^2, H*b, W*b]; DCR: channel = (row*b + column)*C' + c', CRD: (c'*b + row)*b + column.
Result<Outputs> depthToSpace(const OpCall &call) {
  const TensorValue &x = call.in(0);
  int64_t b = call.node.intAttr("blocksize");
  bool crd = call.node.stringAttr("mode") == "CRD";
  int64_t depth = x.dims[1] / (b * b), h = x.dims[2], w = x.dims[3];
  return Outputs{rearrange(x, {x.dims[0], depth, h * b, w * b}, [&](const Dims &c) {
    int64_t row = c[2] % b, column = c[3] % b;
    int64_t channel = crd ? (c[1] * b + row) * b + column : (row * b + column) * depth + c[1];
    return ((c[0] * x.dims[1] + channel) * h + c[2] / b) * w + c[3] / b;
  })};
}

/// The inverse of depthToSpace.
Result<Outputs> spaceToDepth(const OpCall &call) {
  const TensorValue &x = call.in(0);
  int64_t b = call.node.intAttr("blocksize"), channels = x.dims[1], h = x.dims[2], w = x.dims[3];
  bool crd = call.node.stringAttr("mode") == "CRD";
  return Outputs{rearrange(x, {x.dims[0], channels * b * b, h / b, w / b}, [&](const Dims &c) {
    int64_t block = crd ? c[1] % (b * b) : c[1] / channels;
    int64_t channel = crd ? c[1] / (b * b) : c[1] % channels;
    return ((c[0] * channels + channel) * h + c[2] * b + block / b) * w + c[3] * b + block % b;
  })};
}

Result<Outputs> trilu(const OpCall &call) {
  const TensorValue &x = call.in(0);
  int64_t k = call.has(1) ? call.in(1).ints[0] : 0;
  bool upper = call.node.intAttr("upper");
  int64_t rows = x.dims[x.dims.size() - 2], columns = x.dims.back();
  k = std::clamp(k, -rows - 1, columns + 1); // keeps row + k inside int64
  TensorValue out = x;
  for (int64_t i = 0; i < x.numElements(); ++i) {
    int64_t row = i / columns % rows, column = i % columns;
    bool keep = upper ? column >= row + k : column <= row + k;
    if (!keep)
      out.setNumber(i, 0);
  }
  return Outputs{std::move(out)};
}

/// Crops from floor(difference / 2) on; pads floor(difference / 2) zeros in front.
Result<Outputs> reverseSequence(const OpCall &call) {
  const TensorValue &x = call.in(0);
  auto batch = static_cast<size_t>(call.node.intAttr("batch_axis")),
       time = static_cast<size_t>(call.node.intAttr("time_axis"));
  Dims strides = rowMajorStrides(x.dims);
  for (int64_t length : call.in(1).ints)
    if (length < 0 || length > x.dims[time])
      return call.fail("a sequence length is outside the time axis");
  return Outputs{rearrange(x, x.dims, [&](const Dims &c) {
    int64_t length = call.in(1).ints[static_cast<size_t>(c[batch])], offset = 0;
    for (size_t d = 0; d < c.size(); ++d)
      offset += (d == time && c[d] < length ? length - 1 - c[d] : c[d]) * strides[d];
    return offset;
  })};
}

} // namespace

void addMovement(OpTable &t) {
  using enum OpKind;
  entry(t, Concat) = concat;
  entry(t, Split) = split;
  entry(t, Slice) = slice;
  entry(t, SliceDynamic) = sliceDynamic;
  entry(t, Transpose) = transpose;
  entry(t, Tile) = tile;
  entry(t, Pad) = pad;
  entry(t, DepthToSpace) = depthToSpace;
  entry(t, SpaceToDepth) = spaceToDepth;
  entry(t, Trilu) = trilu;
  entry(t, ReverseSequence) = reverseSequence;
}

} // namespace fusec
