#include "Reference/ExprEquations.h"
#include "Reference/ExprInterpreter.h"
#include "Support/Diag.h"

#include <algorithm>
#include <cstring>

namespace fusec {
namespace {

using machine::Array;

/// out[box point] = source[offset + sum of stride * axis], innermost axis last.
template <typename T>
void copyStrided(const T *source, T *out, const std::vector<int64_t> &extents,
                 const std::vector<int64_t> &strides) {
  if (extents.empty()) {
    *out = *source;
    return;
  }
  std::vector<int64_t> at(extents.size());
  const int64_t inner = extents.back(), stride = strides.back();
  for (;;) {
    for (int64_t i = 0; i < inner; ++i)
      *out++ = source[i * stride];
    size_t k = extents.size() - 1;
    for (;;) {
      if (k-- == 0)
        return;
      source += strides[k];
      if (++at[k] < extents[k])
        break;
      source -= strides[k] * extents[k];
      at[k] = 0;
    }
  }
}

void copyStrided(const uint8_t *source, uint8_t *out, int64_t elementBytes,
                 const std::vector<int64_t> &extents, const std::vector<int64_t> &strides) {
  auto as = [&](auto element) {
    using T = decltype(element);
    copyStrided(reinterpret_cast<const T *>(source), reinterpret_cast<T *>(out), extents, strides);
  };
  switch (elementBytes) {
  case 1: return as(uint8_t());
  case 2: return as(uint16_t());
  case 4: return as(uint32_t());
  default: return as(uint64_t());
  }
}

/// Flat offset and strides of an affine read that stays inside its constant for the whole box.
struct Affine {
  int64_t offset = 0;
  std::vector<int64_t> strides;
};
std::optional<Affine> affineRead(const Body &body, const Scalar &read, const Constant &c,
                                 const std::vector<int64_t> &extents) {
  Affine out;
  out.strides.assign(extents.size(), 0);
  int64_t dimStride = 1;
  for (size_t d = c.dims.size(); d-- > 0; dimStride *= c.dims[d]) {
    auto form = affineForm(body, read.args[d], static_cast<int>(extents.size()));
    if (!form || form->rest != kNoNode || !form->constant.isConst())
      return std::nullopt;
    int64_t low = form->constant.constValue(), high = low;
    out.offset += low * dimStride;
    for (size_t a = 0; a < extents.size(); ++a) {
      if (!form->coefficients[a].isConst())
        return std::nullopt;
      int64_t k = form->coefficients[a].constValue();
      out.strides[a] += k * dimStride;
      (k < 0 ? low : high) += k * (extents[a] - 1);
    }
    if (low < 0 || high >= c.dims[d])
      return std::nullopt;
  }
  return out;
}

} // namespace

Status evaluateBox(const Body &body, NodeId root, const ExprProgram &program,
                   const std::vector<int64_t> &extents, uint8_t *out) {
  for (int64_t n : extents)
    if (n == 0)
      return success();
  for (NodeId id : body.reachable({root})) {
    const Scalar &s = body[id];
    if (s.op == ScalarOp::Dim || s.op == ScalarOp::Step ||
        ((s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf) &&
         !program.tensors[s.index].constant))
      return Diagnostic{
          Diag::BadIr, "expr " + program.name,
          "a value that is needed when the bundle is made depends on more than constants"};
  }
  const Scalar &top = body[root];
  if (top.op == ScalarOp::Read) {
    const Constant &c = *program.tensors[top.index].constant;
    if (auto affine = affineRead(body, top, c, extents)) {
      int64_t bytes = sizeInBytes(c.type);
      copyStrided(c.bytes + affine->offset * bytes, out, bytes, extents, affine->strides);
      return success();
    }
  }

  std::vector<Array> arrays(program.tensors.size());
  auto lookup = [&](TensorId id) {
    const Constant &c = *program.tensors[id].constant;
    arrays[id].storage = c.type;
    arrays[id].dims = c.dims;
    arrays[id].bytes = c.bytes;
    return const_cast<const Array *>(&arrays[id]);
  };
  machine::Machine machine(body, {root}, lookup, {}, 0, false, 0);
  int used = 0;
  for (const Scalar &s : body.nodes)
    if (s.op == ScalarOp::Axis)
      used = std::max(used, s.index + 1);
  std::vector<machine::Lane *> registers;
  for (size_t a = 0; a < extents.size(); ++a)
    registers.push_back(static_cast<int>(a) < used ? machine.axis(static_cast<int>(a)) : nullptr);
  machine::Odometer points(extents, registers);
  Array lanes;
  lanes.allocate(top.type, {machine::kLanes});
  const int64_t bytes = sizeInBytes(top.type);
  for (int64_t done = 0; done < points.numPoints(); done += machine::kLanes) {
    int count = static_cast<int>(std::min<int64_t>(machine::kLanes, points.numPoints() - done));
    points.next(count);
    if (!machine.runSpatial(count))
      return Diagnostic{Diag::BadIr, "expr " + program.name,
                        "reads outside %" + program.tensors[machine.fault].name};
    const machine::Lane *v = machine.value(root);
    for (int l = 0; l < count; ++l)
      machine::store(lanes, l, isFloat(top.type) ? ScalarValue{0, v[l].f} : ScalarValue{v[l].i, 0});
    std::memcpy(out + done * bytes, lanes.owned.data(), static_cast<size_t>(count * bytes));
  }
  return success();
}

} // namespace fusec
