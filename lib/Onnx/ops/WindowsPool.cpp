#include "Onnx/Compose.h"
#include "Onnx/OpTable.h"
#include "Onnx/TestedInRun.h"
#include "Onnx/Windows.h"
#include "Support/Diag.h"

#include <cmath>
#include <limits>

// Pools over x [N, C, spatial...].

namespace fusec {
namespace {

/// The places `flat` of the padded data's elements as those of the data's, column-major in each image if the node
/// says so.
Result<ValueId> unpaddedPlaces(NodeImporter &n, const Window &w, ValueId flat,
                               const PaddedData &padded) {
  Compose c(n);
  const auto rank = static_cast<int64_t>(n.shape(0).size());
  const bool columnMajor = n.attrInt("storage_order", 0) != 0 && rank > 3;
  std::vector<ValueId> places(static_cast<size_t>(rank));
  ValueId rest = flat;
  for (int64_t axis = rank - 1; axis >= 2; --axis) {
    ValueId &at = places[static_cast<size_t>(axis)];
    FUSEC_TRY(const ValueId size, c.extent(padded.value, axis));
    FUSEC_TRY(at, n.emitOne(OpKind::Mod, {rest, size}, {{"fmod", int64_t(0)}}));
    FUSEC_TRY(rest, c.binary(OpKind::Div, rest, size));
    for (size_t k = 0; k < w.open.size(); ++k)
      if (static_cast<int64_t>(w.open[k]) + 2 == axis) {
        FUSEC_TRY(at, c.binary(OpKind::Sub, at, n.reshape(padded.begins[k], {})));
        // A pad is as large as the least number: where that is the largest, the first element is meant.
        FUSEC_TRY(const ValueId own, c.extent(n.id(0), axis));
        FUSEC_TRY(const ValueId last, c.binary(OpKind::Sub, own, c.integer(1)));
        at = c.like(OpKind::Clip, {at, c.integer(0), last});
      }
  }
  ValueId place = rest;
  for (int64_t k = 2; k < rank; ++k) {
    const int64_t axis = columnMajor ? rank + 1 - k : k;
    FUSEC_TRY(const ValueId size, c.extent(n.id(0), axis));
    FUSEC_TRY(const ValueId before, c.binary(OpKind::Mul, place, size));
    FUSEC_TRY(place, c.binary(OpKind::Add, before, places[static_cast<size_t>(axis)]));
  }
  return place;
}

/// A maximum, of which pads are no elements, whose pads hang on sizes.
Status openMaxPool(NodeImporter &n, const PoolForm &form) {
  const DType type = n.type(0);
  // Powers of 2: exact, also for 64 bits.
  const double least = isFloat(type)    ? -std::numeric_limits<double>::infinity()
                       : isSigned(type) ? std::ldexp(-1, 8 * sizeInBytes(type) - 1)
                                        : 0;
  FUSEC_TRY(PaddedData x, padOpenAxes(n, n.id(0), form.window, n.scalarValue(type, least)));
  Attributes attrs = form.attributes();
  attrs.emplace("storage_order", int64_t(0));
  FUSEC_TRY(std::vector<ValueId> made,
            n.emit(OpKind::MaxPool, {x.value}, std::move(attrs), {}, {}, n.wants(1) ? 2 : 1));
  if (n.wants(0))
    n.result(0, made[0]);
  if (n.wants(1)) {
    FUSEC_TRY(const ValueId places, unpaddedPlaces(n, form.window, made[1], x));
    n.result(1, places);
  } else {
    n.ignore("storage_order");
  }
  return success();
}

Status maxPool(NodeImporter &n) {
  FUSEC_TRY(PoolForm form, readPool(n, n.shape(0)));
  return form.window.open.empty() ? n.finish(OpKind::MaxPool, {n.id(0)}, form.attributes())
                                  : openMaxPool(n, form);
}

Status averagePool(NodeImporter &n) {
  FUSEC_TRY(PoolForm form, readPool(n, n.shape(0)));
  const bool includePad = n.attrInt("count_include_pad", 0) != 0;
  FUSEC_TRY(const ValueId mean, meanOfWindows(n, n.id(0), form, includePad));
  n.result(0, mean);
  return success();
}

/// p was a float in opset 1.
Attributes oldP(NodeImporter &n) {
  if (n.opset() >= 2)
    return {};
  return {{"p", static_cast<int64_t>(n.attrFloat("p", 2.0))}};
}

/// Pads are zeros, which a norm does not see.
Status lpPool(NodeImporter &n) {
  FUSEC_TRY(PoolForm form, readPool(n, n.shape(0)));
  Attributes a = form.attributes();
  a.merge(oldP(n));
  PaddedData x{n.id(0), {}};
  if (!form.window.open.empty()) {
    FUSEC_TRY(x, padOpenAxes(n, n.id(0), form.window, kNoValue));
  }
  return n.finish(OpKind::LpPool, {x.value}, std::move(a));
}

Status globalLpPool(NodeImporter &n) { return n.finish(OpKind::GlobalLpPool, {n.id(0)}, oldP(n)); }

/// The inverse of MaxPool: x lies at its indices in the plane that the window implies, all else is 0. A given output
/// shape adds zeros behind that plane.
Status maxUnpool(NodeImporter &n) {
  const char *text = "data of rank 3 or more and i64 indices of its shape are needed";
  if (n.rank(0) < 3 || n.type(1) != DType::I64)
    return n.mismatch(text);
  FUSEC_CHECK(n.sizes().sameShape(n.shape(1), n.shape(0), text));
  if (!n.hasAttribute("kernel_shape"))
    return n.fail(Diag::BadAttribute, "attribute 'kernel_shape' is missing");
  for (const char *key : {"auto_pad", "dilations"}) // which readWindow() would take
    if (n.hasAttribute(key))
      return n.unreadAttribute(key);
  const Shape in = n.shape(0);
  Shape spatial(in.begin() + 2, in.end());
  FUSEC_TRY(Window w, readWindow(n, n.attrInts("kernel_shape"), spatial));
  Shape plane{in[0], in[1]};
  for (size_t i = 0; i < spatial.size(); ++i)
    plane.push_back((spatial[i] - DimExpr(1)) * DimExpr(w.strides[i]) +
                    DimExpr(w.kernel[i] - w.pads[i] - w.pads[spatial.size() + i]));
  Shape out = plane;
  if (n.has(2)) {
    auto given = n.known(2);
    auto declared = n.declared(0);
    if (!given && declared && isStatic(declared->shape)) {
      const DimExpr rank(static_cast<int64_t>(declared->shape.size()));
      FUSEC_CHECK(n.sizes().sameShape(n.shape(2), {rank}, "the output shape must have its rank"));
      FUSEC_CHECK(requireDeclared(n, n.id(2), declared->shape));
      given = declared->shape;
    }
    if (!given)
      return n.needsConstant("the output shape is a run-time value; it must be constant", {2});
    out = *given;
    if (out.size() != plane.size())
      return n.mismatch("the output shape must have the data's rank");
    FUSEC_CHECK(n.sizes().sameShape({out[0], out[1]}, {in[0], in[1]},
                                    "the output shape must have the data's batch and channels"));
    for (size_t i = 2; i < out.size(); ++i)
      FUSEC_CHECK(n.sizes().noLess(out[i], plane[i],
                                   "the output shape must hold the plane that the windows imply"));
  }
  DimExpr count = numElements(plane), given = numElements(in);
  Compose c(n);
  const ValueId zeros = c.filled(n.type(0), 0, {count});
  FUSEC_TRY(const ValueId places, c.extent(zeros, 0));
  FUSEC_TRY(const ValueId last, c.binary(OpKind::Sub, places, c.integer(1)));
  FUSEC_CHECK(requireBetween(n, n.id(1), c.integer(0), last, DataTest::Places));
  FUSEC_TRY(ValueId flat,
            n.emitOne(OpKind::ScatterElements,
                      {zeros, n.reshape(n.id(1), {given}), n.reshape(n.id(0), {given})},
                      {{"axis", int64_t(0)}, {"reduction", std::string("none")}}));
  ValueId placed = n.reshape(flat, plane);
  if (out == plane) {
    n.result(0, placed);
    return success();
  }
  Shape pads(2 * out.size(), 0);
  for (size_t i = 2; i < out.size(); ++i)
    pads[out.size() + i] = out[i] - plane[i];
  FUSEC_TRY(placed, c.pad(placed, pads, c.scalar(n.type(0), 0)));
  n.result(0, placed);
  return success();
}

constexpr OpRow kRows[] = {
    {"AveragePool", 1, kNewestOpset, 1, 1, 1, averagePool},
    {"GlobalAveragePool", 1, kNewestOpset, 1, 1, 1, sameOperator},
    {"GlobalLpPool", 1, kNewestOpset, 1, 1, 1, globalLpPool},
    {"GlobalMaxPool", 1, kNewestOpset, 1, 1, 1, sameOperator},
    {"LpPool", 1, kNewestOpset, 1, 1, 1, lpPool},
    {"MaxPool", 1, kNewestOpset, 1, 1, 2, maxPool},
    {"MaxUnpool", 9, kNewestOpset, 2, 3, 1, maxUnpool},
};

} // namespace

std::span<const OpRow> windowsPoolOps() { return kRows; }

} // namespace fusec
