#include "Onnx/MovedAtRunTime.h"
#include "Onnx/Compose.h"
#include "Onnx/DimTools.h"

namespace fusec {

/// Pads that are a run-time vector, where the model declares the output's shape: each axis is gathered at
/// iota(size of the output) - begin, brought back inside as the mode says; with mode constant what lay outside is
/// replaced at the end.
Status padAtRunTime(NodeImporter &n, const std::string &mode, const Shape &out) {
  Compose c(n);
  auto number = [&](const DimExpr &v) -> Result<ValueId> {
    if (!v.isConst())
      return n.fail(Diag::UnsupportedShape,
                    "run-time pads need axes of a fixed size; give them with --shape");
    return n.constantValue(makeIntConstant({}, {v.constValue()}));
  };
  ValueId result = n.id(0), inside = kNoValue;
  Shape shape = n.shape(0);
  for (size_t d = 0; d < out.size(); ++d) {
    const DimExpr size = shape[d];
    if (size.range(n.symbols()).min < 1)
      return n.needsAtLeast(size, 1, "an axis with run-time pads");
    FUSEC_TRY(ValueId zero, number(0));
    FUSEC_TRY(ValueId one, number(1));
    FUSEC_TRY(ValueId extent, number(size));
    FUSEC_TRY(ValueId last, number(size - DimExpr(1)));
    auto axis = static_cast<int64_t>(d), rank = static_cast<int64_t>(out.size());
    ValueId begin = c.slice(n.id(1), 0, axis, 1), end = c.slice(n.id(1), 0, rank + axis, 1);
    FUSEC_TRY(ValueId at, c.binary(OpKind::Sub, c.iota(out[d]), begin));
    auto mod = [&](ValueId v, ValueId by) {
      return n.emitOne(OpKind::Mod, {v, by}, {{"fmod", int64_t(0)}}, DType::I64, {out[d]});
    };
    if (mode == "constant") {
      FUSEC_TRY(ValueId low, c.binary(OpKind::GreaterOrEqual, at, zero));
      FUSEC_TRY(ValueId high, c.binary(OpKind::Less, at, extent));
      FUSEC_TRY(ValueId here, c.binary(OpKind::And, low, high));
      Shape column(out.size() - d, DimExpr(1));
      column[0] = out[d];
      here = n.reshape(here, column);
      if (inside != kNoValue) {
        FUSEC_TRY(here, c.binary(OpKind::And, inside, here));
      }
      inside = here;
    } else if (mode != "edge") {
      // What negative pads cut, before and behind, is gone before anything is repeated.
      FUSEC_TRY(ValueId before, c.binary(OpKind::Sub, zero, begin));
      FUSEC_TRY(ValueId behind, c.binary(OpKind::Sub, zero, end));
      FUSEC_TRY(before, c.binary(OpKind::Max, before, zero));
      FUSEC_TRY(behind, c.binary(OpKind::Max, behind, zero));
      FUSEC_TRY(ValueId rest, c.binary(OpKind::Sub, extent, before));
      FUSEC_TRY(rest, c.binary(OpKind::Sub, rest, behind));
      FUSEC_TRY(at, c.binary(OpKind::Sub, at, before));
      if (mode == "reflect") { // a triangle wave of period 2 (rest - 1)
        FUSEC_TRY(rest, c.binary(OpKind::Sub, rest, one));
        FUSEC_TRY(rest, c.binary(OpKind::Add, rest, rest));
      }
      FUSEC_TRY(ValueId period, c.binary(OpKind::Max, rest, one));
      at = mod(at, period);
      if (mode == "reflect") {
        FUSEC_TRY(ValueId back, c.binary(OpKind::Sub, period, at));
        FUSEC_TRY(at, c.binary(OpKind::Min, at, back));
      }
      FUSEC_TRY(at, c.binary(OpKind::Add, at, before));
    }
    at = n.emitOne(OpKind::Clip, {at, zero, last}, {}, DType::I64, {out[d]});
    shape[d] = out[d];
    result = n.emitOne(OpKind::Gather, {result, at}, {{"axis", static_cast<int64_t>(d)}}, n.type(0),
                       shape);
  }
  if (inside != kNoValue) {
    ValueId fill = n.has(2) ? n.reshape(n.id(2), {}) : c.scalar(n.type(0), 0);
    FUSEC_TRY(result, c.where(inside, result, fill));
  }
  n.result(0, result);
  return success();
}

} // namespace fusec
